#include "suite/ranges.h"

/* Graphs of a few nodes. Edges stay among nodes first .. first+n-1: one graph of a batch. */
struct edges {
	int64_t first, n, m;
	int32_t dst[512], src[512];
};

static void edge(struct edges *e, int64_t dst, int64_t src)
{
	if (e->m == (int64_t)(sizeof e->dst / sizeof e->dst[0]))
		return;
	e->dst[e->m] = (int32_t)(e->first + dst);
	e->src[e->m++] = (int32_t)(e->first + src);
}

static void nothing(struct edges *e)
{
	(void)e;
}

static void ring(struct edges *e)
{
	for (int64_t i = 0; i < e->n; i++)
		edge(e, i, (i + 1) % e->n);
}

static void some(struct edges *e)
{
	for (int64_t k = test_below(3 * e->n + 1); k > 0; k--)
		edge(e, test_below(e->n), test_below(e->n));
}

/* Everybody is heard by node 0; or hears it. */
static void star_in(struct edges *e)
{
	for (int64_t i = 0; i < e->n; i++)
		edge(e, 0, i);
}

static void star_out(struct edges *e)
{
	for (int64_t i = 0; i < e->n; i++)
		edge(e, i, 0);
}

static void complete(struct edges *e)
{
	for (int64_t k = 0; k < e->n * e->n; k++)
		edge(e, k / e->n, k % e->n);
}

/* One row of many edges, some of them the same one again: more than a batch of the discretized
 * reduction, so that rows are split. */
static void hub(struct edges *e)
{
	for (int64_t k = 60 + test_below(150); k > 0; k--)
		edge(e, 0, k % 7 == 0 ? 0 : test_below(e->n));
	for (int64_t i = 1; i < e->n; i++)
		edge(e, i, test_below(e->n));
}

typedef void (*draw_fn)(struct edges *e);
static const draw_fn draws[] = {nothing, ring, some, some, star_in, star_out, complete, some, hub};

/* Where everything is to line up: what rules say of the largest degrees, for want of more, is
 * reached. One node hears all others of its half, which nobody else hears; one is heard by all
 * others of the other half, who hear nobody else; and the last node is its own only neighbour, so
 * that factors 1/d are 1. */
static void two_stars(struct edges *e)
{
	const int64_t middle = (e->n - 1) / 2;
	for (int64_t i = 1; i < middle; i++)
		edge(e, 0, i);
	for (int64_t i = middle + 1; i < e->n - 1; i++)
		edge(e, i, middle);
}

static float weight(int kind, int positive)
{
	const double x = (positive ? 0.25 : -1.0) + 2.0 * test_uniform(),
	             scale[] = {1.0, 1.0, 0x1p-16, 30000.0};
	return (float)(x * scale[kind]);
}

/* Nodes and edges of one graph of the batch, from e->first on. */
static void draw_part(struct edges *e, int alone, int lined_up, int weighted)
{
	e->n = 1 + test_below(alone ? 7 : 3);
	if (lined_up)
		e->n = 1 + (weighted ? 2 : 1) * e->n;
	else if (!alone && test_below(6) == 0)
		e->n = 0;
	if (e->n == 0)
		return;
	if (lined_up && weighted)
		two_stars(e);
	else {
		e->n -= lined_up;
		draws[test_below((int64_t)(sizeof draws / sizeof draws[0]))](e);
		e->n += lined_up;
	}
	if (lined_up)
		edge(e, e->n - 1, e->n - 1);
}

/* Up to three graphs, some of them empty, or one. */
hg_graph *ranges_graph(hg_context *ctx, int lined_up)
{
	struct edges e = {0};
	float w[512];
	int64_t ptr[4] = {0};
	const int64_t parts = test_below(2) ? 1 : 1 + test_below(3);
	const int weighted = test_below(3) == 0, kind = (int)test_below(lined_up ? 2 : 4);
	for (int64_t k = 0; k < parts; k++) {
		e.first = ptr[k];
		draw_part(&e, parts == 1, lined_up, weighted);
		ptr[k + 1] = e.first + e.n;
	}
	for (int64_t i = 0; i < e.m; i++)
		w[i] = weight(kind, lined_up);
	hg_graph *graph = NULL;
	CHECK_OK(hg_graph_from_coo(ctx, ptr[parts], ptr[parts], e.m, e.dst, e.src, weighted ? w : NULL,
	                           NULL, &graph));
	CHECK_OK(hg_graph_set_batch(graph, parts, ptr));
	return graph;
}
