#ifndef HALFGRAPH_GRAPH_H
#define HALFGRAPH_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/context.h"
#include "halfgraph/export.h"
#include "halfgraph/status.h"
#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/* A graph is a sparse matrix A [rows, cols] in CSR: row = destination, column = source, m stored
 * entries = directed edges. A square one is a graph on n nodes; a rectangular one is bipartite, and
 * a sparse feature matrix is just that. Duplicate edges are kept and count twice. Edge e is the
 * e-th entry in CSR order (rows ascending, columns ascending within a row); edge tensors [m, h] use
 * this order.
 * Immutable; the transpose, work plans, degrees and sums are computed when first needed and
 * cached. */
typedef struct hg_graph hg_graph;

/* From m edges (dst[e], src[e]) in any order; weight [m] f32 or NULL (all ones). Host arrays,
 * copied. order [m] or NULL receives, for each edge in CSR order, its place in the input. Errors:
 * HG_ERR_ARG (an id out of range, named with its place; a weight not finite), HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_graph_from_coo(hg_context *context, int64_t rows, int64_t cols,
                                                int64_t m, const int32_t *dst, const int32_t *src,
                                                const float *weight, int64_t *order,
                                                hg_graph **graph);
/* From CSR host arrays, copied. rowptr [rows+1] must start at 0, not decrease and end at m.
 * Unsorted rows are accepted and sorted. */
HG_API HG_NODISCARD hg_status hg_graph_from_csr(hg_context *context, int64_t rows, int64_t cols,
                                                int64_t m, const int64_t *rowptr,
                                                const int32_t *col, const float *weight,
                                                hg_graph **graph);
HG_API void hg_graph_free(hg_graph *graph);

/* A new graph: A + A^T with duplicates merged into one (weights of merged edges: the larger); A
 * with one self loop of weight 1 on every node that has none. */
HG_API HG_NODISCARD hg_status hg_graph_symmetrize(hg_graph *graph, hg_graph **out);
HG_API HG_NODISCARD hg_status hg_graph_add_self_loops(hg_graph *graph, hg_graph **out);

/* Batch of graphs, block-diagonal: graph k owns nodes ptr[k] .. ptr[k+1]-1; ptr [count+1], from 0
 * to n, not decreasing.
 * Once, and before an op that reads the batch (hg_readout) is recorded: HG_ERR_STATE afterwards. */
HG_API HG_NODISCARD hg_status hg_graph_set_batch(hg_graph *graph, int64_t count,
                                                 const int64_t *ptr);

HG_API hg_context *hg_graph_context(const hg_graph *graph);
HG_API int64_t hg_graph_rows(const hg_graph *graph);
HG_API int64_t hg_graph_cols(const hg_graph *graph);
HG_API int64_t hg_graph_edges(const hg_graph *graph);
HG_API int64_t hg_graph_batch(const hg_graph *graph); /* number of graphs; 1 unless set */
HG_API int hg_graph_is_weighted(const hg_graph *graph);

/* Degree normalisation of an aggregation, d(i) = row degree of i (edges in), d'(j) = column degree
 * of j (edges out), both of them counts of edges, empty ones counted as 1:
 *
 *     NONE   1
 *     LEFT   1/d'(j)
 *     RIGHT  1/d(i), the mean
 *     BOTH   1/sqrt(d(i) d'(j))
 *     IN     1/sqrt(d(i) d(j)): the in-degree at both ends, as PyTorch Geometric's gcn_norm has it.
 * Of a graph whose pattern is symmetric the same as BOTH; of a square graph alone */
typedef enum hg_norm {
	HG_NORM_NONE = 0,
	HG_NORM_LEFT = 1,
	HG_NORM_RIGHT = 2,
	HG_NORM_BOTH = 3,
	HG_NORM_IN = 4
} hg_norm;
#define HG_NORMS 5

/* Facts the proofs and the plans need; computed once. Degrees count edges, sums add |weight|. */
typedef struct hg_graph_facts {
	size_t size;
	int64_t max_row_degree, max_col_degree, empty_rows, empty_cols, self_loops;
	double max_row_sum, max_col_sum; /* of |weight| */
	/* max over rows (columns) of the sum of |scaled entries|; index with hg_norm. IN: 0 of a graph
	 * that is not square */
	double norm_row_sum[HG_NORMS], norm_col_sum[HG_NORMS];
	int symmetric; /* A = A^T, weights included */
} hg_graph_facts;
#define HG_GRAPH_FACTS_INIT                                                              \
	{                                                                                    \
		sizeof(hg_graph_facts), 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, 0 \
	}
HG_API HG_NODISCARD hg_status hg_graph_facts_get(hg_graph *graph, hg_graph_facts *facts);

/* Copies of the CSR arrays to host memory; any pointer may be NULL. rowptr [rows+1], col [m],
 * weight [m] (ones if unweighted). */
HG_API HG_NODISCARD hg_status hg_graph_download(hg_graph *graph, int64_t *rowptr, int32_t *col,
                                                float *weight);

/* How the nodes of one graph of a batch become one row (hg_readout). */
typedef enum hg_reduce { HG_REDUCE_SUM = 0, HG_REDUCE_MEAN = 1, HG_REDUCE_MAX = 2 } hg_reduce;

HG_EXTERN_C_END
#endif
