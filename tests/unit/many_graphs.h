#ifndef HG_TESTS_MANY_GRAPHS_H
#define HG_TESTS_MANY_GRAPHS_H

#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "halfgraph/batches.h"

/* A dataset of many small graphs in host memory, for tests of batches: the class of a graph is what
 * the features of its nodes tell, its target is their number. Some graphs are empty, some have one
 * node, some no edge. */

enum {
	MG_GRAPHS = 41,
	MG_NODES = 1000,
	MG_EDGES = 4000,
	MG_LARGEST = 400,
	MG_FEATURES = 6,
	MG_CLASSES = 3,
	MG_ATTRIBUTES = 2 /* of an edge: its weight, and 1 less than that */
};

struct many_graphs {
	int64_t graphs, nodes, m;
	int64_t ptr[MG_GRAPHS + 1], rowptr[MG_NODES + 1];
	int32_t col[MG_EDGES], label[MG_GRAPHS];
	float weight[MG_EDGES], x[MG_NODES * MG_FEATURES], target[MG_GRAPHS * 2];
};

/* Appends a graph of n nodes with about `degree` random edges in each row, with both directions if
 * it is symmetric. */
static inline void many_graphs_add(struct many_graphs *g, int64_t n, int64_t degree, int symmetric)
{
	static uint8_t has[MG_LARGEST][MG_LARGEST];
	const int64_t k = g->graphs, first = g->ptr[k];
	CHECK(k < MG_GRAPHS && n <= MG_LARGEST && first + n <= MG_NODES);
	memset(has, 0, (size_t)n * sizeof has[0]);
	for (int64_t e = 0; e < n * degree; e++) {
		const int64_t i = test_below(n), j = test_below(n);
		has[i][j] = 1;
		has[j][i] |= (uint8_t)symmetric;
	}
	g->label[k] = (int32_t)(k % MG_CLASSES);
	for (int64_t i = 0; i < n; i++) {
		for (int32_t j = 0; j < (int32_t)n; j++)
			if (has[i][j]) {
				CHECK(g->m < MG_EDGES);
				g->weight[g->m] = 0.5f + (float)((i + j) % 4) / 4.0f;
				g->col[g->m++] = (int32_t)first + j;
			}
		g->rowptr[first + i + 1] = g->m;
		for (int64_t c = 0; c < MG_FEATURES; c++)
			g->x[(first + i) * MG_FEATURES + c] =
			    test_below(3)
			        ? (float)(c % MG_CLASSES == g->label[k]) + (float)test_below(64) / 128.0f
			        : 0.0f;
	}
	g->nodes = g->ptr[k + 1] = first + n;
	g->target[2 * k] = (float)n;
	g->target[2 * k + 1] = 10.0f * (float)g->label[k];
	g->graphs++;
}

/* The same dataset for every case of one seed. odd: with empty graphs and graphs of one node. */
static inline void many_graphs_make(struct many_graphs *g, int symmetric, int odd)
{
	test_reseed(31);
	memset(g, 0, sizeof *g);
	for (int64_t k = 0; k < MG_GRAPHS; k++) {
		const int64_t n = 4 + test_below(9);
		many_graphs_add(g,
		                odd && k % 5 == 1   ? 0
		                : odd && k % 5 == 3 ? 1
		                                    : n,
		                odd && k % 7 == 4 ? 0 : 1 + test_below(3), symmetric);
	}
}

/* On a device: all graphs, or those that are listed, as one batch. */
struct many_device {
	hg_graph *graph, *x_sparse;
	hg_tensor *x, *label, *target, *edge_x;
};

enum { MG_WEIGHTED = 1, MG_SPARSE = 2, MG_F32 = 4, MG_VARIANTS = 8 };
/* Beside a variant: features and attributes of edges are in host memory. */
enum { MG_ON_HOST = 16 };

/* The dataset made of the graphs that are listed. */
static inline void many_graphs_pick(const struct many_graphs *from, const int64_t *list,
                                    int64_t count, struct many_graphs *to)
{
	memset(to, 0, sizeof *to);
	for (int64_t k = 0; k < count; k++) {
		const int64_t first = from->ptr[list[k]], n = from->ptr[list[k] + 1] - first,
		              base = to->ptr[k];
		for (int64_t i = 0; i < n; i++) {
			for (int64_t e = from->rowptr[first + i]; e < from->rowptr[first + i + 1]; e++) {
				to->weight[to->m] = from->weight[e];
				to->col[to->m++] = from->col[e] - (int32_t)first + (int32_t)base;
			}
			to->rowptr[base + i + 1] = to->m;
		}
		memcpy(to->x + base * MG_FEATURES, from->x + first * MG_FEATURES,
		       (size_t)(n * MG_FEATURES) * sizeof(float));
		memcpy(to->target + 2 * k, from->target + 2 * list[k], 2 * sizeof(float));
		to->label[k] = from->label[list[k]];
		to->nodes = to->ptr[k + 1] = base + n;
		to->graphs++;
	}
}

static inline hg_status many_sparse(hg_context *ctx, const struct many_graphs *g, hg_graph **x)
{
	int64_t rowptr[MG_NODES + 1] = {0}, m = 0;
	static int32_t col[MG_NODES * MG_FEATURES];
	static float value[MG_NODES * MG_FEATURES];
	for (int64_t i = 0; i < g->nodes; i++) {
		for (int32_t c = 0; c < MG_FEATURES; c++)
			if (g->x[i * MG_FEATURES + c] > 0.0f) {
				col[m] = c;
				value[m++] = g->x[i * MG_FEATURES + c];
			}
		rowptr[i + 1] = m;
	}
	return hg_graph_from_csr(ctx, g->nodes, MG_FEATURES, m, rowptr, col, value, x);
}

static inline hg_status many_tensor(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols,
                                    const void *host, hg_dtype from, hg_tensor **tensor)
{
	const hg_status status = hg_tensor_create(ctx, dtype, rows, cols, tensor);
	return status < 0 ? status : hg_tensor_upload(*tensor, host, from);
}

/* The same in the type and the memory of a variant. */
static inline hg_status many_floats(hg_context *ctx, int variant, int64_t rows, int64_t cols,
                                    const float *host, hg_tensor **tensor)
{
	const hg_dtype dtype = variant & MG_F32 ? HG_F32 : HG_F16;
	const hg_status status = (variant & MG_ON_HOST ? hg_tensor_create_on_host : hg_tensor_create)(
	    ctx, dtype, rows, cols, tensor);
	return status < 0 ? status : hg_tensor_upload(*tensor, host, HG_F32);
}

static inline const float *many_attributes(const struct many_graphs *g)
{
	static float edge_x[MG_EDGES * MG_ATTRIBUTES];
	for (int64_t e = 0; e < g->m; e++) {
		edge_x[MG_ATTRIBUTES * e] = g->weight[e];
		edge_x[MG_ATTRIBUTES * e + 1] = g->weight[e] - 1.0f;
	}
	return edge_x;
}

/* Returns the first error: allocations may fail. many_close frees what there is. */
static inline hg_status many_open(hg_context *ctx, const struct many_graphs *g, int variant,
                                  struct many_device *d)
{
	hg_status s;
	memset(d, 0, sizeof *d);
	s = hg_graph_from_csr(ctx, g->nodes, g->nodes, g->m, g->rowptr, g->col,
	                      variant & MG_WEIGHTED ? g->weight : NULL, &d->graph);
	if (s >= 0)
		s = hg_graph_set_batch(d->graph, g->graphs, g->ptr);
	if (s >= 0)
		s = variant & MG_SPARSE ? many_sparse(ctx, g, &d->x_sparse)
		                        : many_floats(ctx, variant, g->nodes, MG_FEATURES, g->x, &d->x);
	if (s >= 0)
		s = many_tensor(ctx, HG_I32, g->graphs, 1, g->label, HG_I32, &d->label);
	if (s >= 0)
		s = many_floats(ctx, variant, g->m, MG_ATTRIBUTES, many_attributes(g), &d->edge_x);
	return s < 0 ? s : many_tensor(ctx, HG_F32, g->graphs, 2, g->target, HG_F32, &d->target);
}

static inline void many_close(struct many_device *d)
{
	hg_graph_free(d->graph);
	hg_graph_free(d->x_sparse);
	hg_tensor_free(d->x);
	hg_tensor_free(d->label);
	hg_tensor_free(d->target);
	hg_tensor_free(d->edge_x);
	memset(d, 0, sizeof *d);
}

static inline hg_model_input many_input(const struct many_device *d)
{
	hg_model_input in = HG_MODEL_INPUT_INIT;
	in.graph = d->graph;
	in.x = d->x;
	in.x_sparse = d->x_sparse;
	in.edge_x = d->edge_x;
	return in;
}

#endif
