/* The graphs on which the battery runs every op. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "suite/battery.h"

/* Fills a list that has its nodes and no edges yet. */
typedef void (*fill_fn)(struct coo *e);

static void nothing(struct coo *e)
{
	(void)e;
}

static void self_loop(struct coo *e)
{
	coo_add(e, 0, 0);
}

static void ring(struct coo *e)
{
	for (int64_t i = 0; i < e->rows; i++)
		coo_add(e, i, (i + 1) % e->rows);
}

/* Random edges among the first three quarters of the nodes: the rest is isolated; every tenth edge
 * is there twice. */
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

static const struct {
	const char *name;
	int64_t n;
	int weighted;
	fill_fn fill;
	int64_t width;
} collection[] = {
    {"no nodes", 0, 0, nothing, 0},
    {"one node", 1, 0, nothing, 0},
    {"one self loop", 1, 0, self_loop, 0},
    {"ring", 7, 0, ring, 0},
    {"random, isolated", 40, 0, random_edges, 0},
    {"random, weighted", 40, 1, random_edges, 0},
    {"hubs", 700, 0, hubs, 0},
    {"2,500 nodes, no edges", 2500, 0, nothing, 8},
    {"5,000 nodes, no edges", 5000, 0, nothing, 41},
    {"33,000 nodes, no edges", 33000, 0, nothing, 3},
};

/* The CSR as the library orders it, found independently: rows ascending, then columns, equal ones
 * in input order. */
static void sort_edges(struct coo *e)
{
	for (int64_t i = 1; i < e->m; i++) {
		const int32_t d = e->dst[i], s = e->src[i];
		int64_t k = i;
		for (; k > 0 && (e->dst[k - 1] > d || (e->dst[k - 1] == d && e->src[k - 1] > s)); k--) {
			e->dst[k] = e->dst[k - 1];
			e->src[k] = e->src[k - 1];
		}
		e->dst[k] = d;
		e->src[k] = s;
	}
}

int battery_graph_new(hg_context *ctx, int k, struct battery_graph *g)
{
	memset(g, 0, sizeof *g);
	if (k >= (int)(sizeof collection / sizeof collection[0]))
		return 0;
	struct coo e = coo_empty(collection[k].n, collection[k].n);
	test_reseed(1000 + (uint64_t)k);
	collection[k].fill(&e);
	sort_edges(&e);
	g->name = collection[k].name;
	g->weighted = collection[k].weighted;
	g->width = collection[k].width;
	g->dst = e.dst;
	g->src = e.src;
	g->rowptr = calloc((size_t)e.rows + 1, sizeof *g->rowptr);
	for (int64_t i = 0; i < e.m; i++)
		g->rowptr[e.dst[i] + 1]++;
	for (int64_t i = 0; i < e.rows; i++)
		g->rowptr[i + 1] += g->rowptr[i];
	float *w = calloc((size_t)e.m + 1, sizeof *w);
	g->weight = calloc((size_t)e.m + 1, sizeof *g->weight);
	for (int64_t i = 0; i < e.m; i++)
		g->weight[i] = w[i] = (float)(test_uniform() * 2 - 0.5);
	CHECK_OK(hg_graph_from_coo(ctx, e.rows, e.rows, e.m, e.dst, e.src, g->weighted ? w : NULL, NULL,
	                           &g->graph));
	free(w);
	/* a batch of three graphs without edges between them: all nodes up to the last that has an
	 * edge, none, the isolated rest */
	g->ptr = calloc(4, sizeof *g->ptr);
	for (int64_t i = 0; i < e.m; i++)
		for (int side = 0; side < 2; side++) {
			const int64_t node = side ? e.src[i] : e.dst[i];
			g->ptr[1] = g->ptr[2] = node + 1 > g->ptr[1] ? node + 1 : g->ptr[1];
		}
	g->ptr[3] = e.rows;
	CHECK_OK(hg_graph_set_batch(g->graph, 3, g->ptr));
	g->o = (struct oracle_graph){
	    e.rows, e.rows, e.m, 3, g->rowptr, g->dst, g->src, g->weighted ? g->weight : NULL, g->ptr};
	return 1;
}

void battery_graph_free(struct battery_graph *g)
{
	hg_graph_free(g->graph);
	free(g->rowptr);
	free(g->ptr);
	free(g->dst);
	free(g->src);
	free(g->weight);
}
