/* Graphs of a few nodes for the ranges suite. */
#include "graphs.h"
#include "suite/ranges.h"

/* One graph of a batch: its edges stay among the nodes first .. first + n - 1 of the list. */
struct part {
	struct coo *list;
	int64_t first, n;
};

static void edge(struct part *p, int64_t dst, int64_t src)
{
	coo_add(p->list, p->first + dst, p->first + src);
}

static void no_edges(struct part *p)
{
	(void)p;
}

static void cycle(struct part *p)
{
	for (int64_t i = 0; i < p->n; i++)
		edge(p, i, (i + 1) % p->n);
}

static void random_edges(struct part *p)
{
	for (int64_t k = test_below(3 * p->n + 1); k > 0; k--) {
		const int64_t dst = test_below(p->n);
		edge(p, dst, test_below(p->n));
	}
}

/* Node 0 has an edge from every node. */
static void star_in(struct part *p)
{
	for (int64_t i = 0; i < p->n; i++)
		edge(p, 0, i);
}

/* Node 0 has an edge into every node. */
static void star_out(struct part *p)
{
	for (int64_t i = 0; i < p->n; i++)
		edge(p, i, 0);
}

static void complete(struct part *p)
{
	for (int64_t k = 0; k < p->n * p->n; k++)
		edge(p, k / p->n, k % p->n);
}

/* A row of many edges, some of them duplicates. They are more than a batch of the discretized
 * reduction, so that the row is split. */
static void hub(struct part *p)
{
	for (int64_t k = 60 + test_below(150); k > 0; k--)
		edge(p, 0, k % 7 == 0 ? 0 : test_below(p->n));
	for (int64_t i = 1; i < p->n; i++)
		edge(p, i, test_below(p->n));
}

typedef void (*draw_fn)(struct part *p);
static const draw_fn draws[] = {no_edges, cycle,    random_edges, random_edges, star_in,
                                star_out, complete, random_edges, hub};

/* A graph that attains what rules say of the largest degrees, which are all that they know of it:
 * one node has edges from all others of its half, whose only edges these are; one node of the other
 * half has edges into all others of it; and the last node has a loop alone, so that its factor 1/d
 * is 1. */
static void two_stars(struct part *p)
{
	const int64_t middle = (p->n - 1) / 2;
	for (int64_t i = 1; i < middle; i++)
		edge(p, 0, i);
	for (int64_t i = middle + 1; i < p->n - 1; i++)
		edge(p, i, middle);
}

static float draw_weight(int kind, int positive)
{
	const double x = (positive ? 0.25 : -1.0) + 2.0 * test_uniform(),
	             scale[] = {1.0, 1.0, 0x1p-16, 30000.0};
	return (float)(x * scale[kind]);
}

/* Draws how many nodes the part has, and its edges. */
static void draw_part(struct part *p, int alone, int lined_up, int weighted)
{
	p->n = 1 + test_below(alone ? 7 : 3);
	if (lined_up)
		p->n = 1 + (weighted ? 2 : 1) * p->n;
	else if (!alone && test_below(6) == 0)
		p->n = 0;
	p->list->rows = p->list->cols = p->first + p->n;
	if (p->n == 0)
		return;
	if (lined_up && weighted)
		two_stars(p);
	else {
		p->n -= lined_up;
		draws[test_below((int64_t)(sizeof draws / sizeof draws[0]))](p);
		p->n += lined_up;
	}
	if (lined_up)
		edge(p, p->n - 1, p->n - 1);
}

/* One graph, or a batch of up to three, of which some may be empty. */
hg_graph *ranges_graph(hg_context *ctx, int lined_up, int counted)
{
	struct coo list = coo_empty(0, 0);
	int64_t ptr[4] = {0};
	const int64_t parts = test_below(2) ? 1 : 1 + test_below(3);
	const int weighted = test_below(3) == 0, kind = (int)test_below(lined_up ? 2 : 4);
	for (int64_t k = 0; k < parts; k++) {
		struct part part = {&list, ptr[k], 0};
		draw_part(&part, parts == 1, lined_up, weighted);
		ptr[k + 1] = part.first + part.n;
	}
	if (weighted) {
		float *weight = coo_weights(&list);
		for (int64_t e = 0; e < list.m; e++)
			weight[e] = counted && !lined_up && test_below(6) == 0
			                ? 0.0f
			                : draw_weight(kind, lined_up || counted);
		coo_turn_negative_rows(&list);
	}
	hg_graph *graph = coo_graph(ctx, list);
	CHECK_OK(hg_graph_set_batch(graph, parts, ptr));
	return graph;
}
