/* The graphs on which the battery runs every op. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "suite/battery.h"

/* Fills a list that has its nodes and no edges yet. */
typedef void (*fill_fn)(struct coo *e);

static void no_edges(struct coo *e)
{
	(void)e;
}

static void self_loop(struct coo *e)
{
	coo_add(e, 0, 0);
}

static void cycle(struct coo *e)
{
	for (int64_t i = 0; i < e->rows; i++)
		coo_add(e, i, (i + 1) % e->rows);
}

/* Random edges among the first three quarters of the nodes. The other nodes are isolated. Every
 * tenth edge is a duplicate of the one before. */
static void random_edges(struct coo *e)
{
	for (int k = 0; k < 150; k++) {
		const int64_t src = test_below(e->rows * 3 / 4);
		coo_add(e, test_below(e->rows * 3 / 4), src);
		if (k % 10 == 0)
			coo_add(e, e->dst[e->m - 1], e->src[e->m - 1]);
	}
}

/* Node 0 has an edge from every other node, and node 1 has one into every other node: a row and a
 * column that span many work items. */
static void hubs(struct coo *e)
{
	for (int64_t i = 2; i < e->rows; i++) {
		coo_add(e, 0, i);
		coo_add(e, i, 1);
		if (i % 3 == 0)
			coo_add(e, i, i - 1);
	}
}

/* Weights of any sign, in rows that do not sum to less than 0; or how often each edge counts, some
 * of them not at all. */
enum { WEIGHTED = 1, COUNTED = 2 };

static float draw_weight(int kind)
{
	return kind == WEIGHTED     ? (float)(test_uniform() * 2 - 0.5)
	       : test_below(5) == 0 ? 0.0f
	                            : (float)(0.25 + 3.0 * test_uniform());
}

/* Small graphs, two of them empty, with a third of all possible edges. A sixth of those are there
 * twice. Every seventh row has none. */
enum { SMALL_GRAPHS = 6 };
static const int64_t small_ptr[SMALL_GRAPHS + 1] = {0, 128, 128, 129, 169, 186, 186};

static void small_graphs(struct coo *e)
{
	for (int g = 0; g < SMALL_GRAPHS; g++)
		for (int64_t i = small_ptr[g]; i < small_ptr[g + 1]; i++)
			for (int64_t j = small_ptr[g]; i % 7 != 6 && j < small_ptr[g + 1]; j++)
				for (int64_t times = test_below(3) ? 0 : 1 + test_below(12) / 10; times > 0;
				     times--)
					coo_add(e, i, j);
}

/* A full graph, a large one with few edges, no node, isolated nodes, and a small sparse graph: of
 * these, dense counts are for the first alone. */
enum { UNEQUAL_GRAPHS = 5 };
static const int64_t unequal_ptr[UNEQUAL_GRAPHS + 1] = {0, 40, 180, 180, 185, 220};

static void unequal_graphs(struct coo *e)
{
	static const int64_t of_hundred[UNEQUAL_GRAPHS] = {70, 5, 0, 0, 2};
	for (int g = 0; g < UNEQUAL_GRAPHS; g++)
		for (int64_t i = unequal_ptr[g]; i < unequal_ptr[g + 1]; i++)
			for (int64_t j = unequal_ptr[g]; i % 7 != 6 && j < unequal_ptr[g + 1]; j++)
				for (int64_t times = test_below(100) < of_hundred[g] ? 1 + test_below(12) / 10 : 0;
				     times > 0; times--)
					coo_add(e, i, j);
}

static const struct {
	const char *name;
	int64_t n;
	int weighted;
	fill_fn fill;
	int64_t width;
} collection[] = {
    {"no nodes", 0, 0, no_edges, 0},
    {"one node", 1, 0, no_edges, 0},
    {"one self loop", 1, 0, self_loop, 0},
    {"ring", 7, 0, cycle, 0},
    {"random, isolated", 40, 0, random_edges, 0},
    {"random, weighted", 40, WEIGHTED, random_edges, 0},
    {"hubs", 700, 0, hubs, 0},
    {"2,500 nodes, no edges", 2500, 0, no_edges, 8},
    {"5,000 nodes, no edges", 5000, 0, no_edges, 41},
    {"33,000 nodes, no edges", 33000, 0, no_edges, 3},
    {"random, counted", 40, COUNTED, random_edges, 0},
    {"small graphs", 186, 0, small_graphs, 0},
    {"unequal graphs", 220, 0, unequal_graphs, 0},
};

/* The batches for dense counts. */
static const struct {
	fill_fn fill;
	int64_t graphs;
	const int64_t *ptr;
} batches[] = {{small_graphs, SMALL_GRAPHS, small_ptr},
               {unequal_graphs, UNEQUAL_GRAPHS, unequal_ptr}};

/* Sets the batch of such a graph. Returns the number of its graphs; 0 if it is another one. */
static int64_t dense_batch(int k, int64_t **ptr)
{
	size_t b = 0;
	while (b < sizeof batches / sizeof batches[0] && batches[b].fill != collection[k].fill)
		b++;
	if (b == sizeof batches / sizeof batches[0])
		return 0;
	const size_t bytes = (size_t)(batches[b].graphs + 1) * sizeof **ptr;
	*ptr = malloc(bytes);
	CHECK(*ptr);
	memcpy(*ptr, batches[b].ptr, bytes);
	return batches[b].graphs;
}

/* A batch of three graphs without edges between them: all nodes up to the last that has an edge, no
 * node, and the isolated rest. */
static int64_t *batch_pointers(const struct host_csr *csr)
{
	int64_t *ptr = calloc(4, sizeof *ptr);
	CHECK(ptr);
	for (int64_t e = 0; e < csr->m; e++)
		for (int side = 0; side < 2; side++) {
			const int64_t node = side ? csr->col[e] : csr->row[e];
			ptr[1] = ptr[2] = node + 1 > ptr[1] ? node + 1 : ptr[1];
		}
	ptr[3] = csr->rows;
	return ptr;
}

static double *widened(const float *values, int64_t count)
{
	double *wide = calloc((size_t)count + 1, sizeof *wide);
	CHECK(wide);
	for (int64_t i = 0; i < count; i++)
		wide[i] = (double)values[i];
	return wide;
}

int battery_graph_new(hg_context *ctx, int k, struct battery_graph *g)
{
	memset(g, 0, sizeof *g);
	if (k >= (int)(sizeof collection / sizeof collection[0]))
		return 0;
	struct coo e = coo_empty(collection[k].n, collection[k].n);
	test_reseed(1000 + (uint64_t)k);
	collection[k].fill(&e);
	if (collection[k].weighted) {
		float *weight = coo_weights(&e);
		for (int64_t i = 0; i < e.m; i++)
			weight[i] = draw_weight(collection[k].weighted);
		coo_turn_negative_rows(&e);
	}
	g->name = collection[k].name;
	g->weighted = collection[k].weighted != 0;
	g->counted = collection[k].weighted == COUNTED;
	g->width = collection[k].width;
	g->graph = coo_to_graph(ctx, &e);
	g->csr = host_csr_sort(e);
	g->weight = g->weighted ? widened(g->csr.weight, g->csr.m) : NULL;
	int64_t graphs = dense_batch(k, &g->ptr);
	g->dense = graphs > 0;
	if (!g->dense) {
		g->ptr = batch_pointers(&g->csr);
		graphs = 3;
	}
	CHECK_OK(hg_graph_set_batch(g->graph, graphs, g->ptr));
	g->o = (struct oracle_graph){g->csr.rows, g->csr.cols, g->csr.m,  graphs, g->csr.rowptr,
	                             g->csr.row,  g->csr.col,  g->weight, g->ptr};
	return 1;
}

void battery_graph_free(struct battery_graph *g)
{
	hg_graph_free(g->graph);
	host_csr_free(&g->csr);
	free(g->ptr);
	free(g->weight);
}
