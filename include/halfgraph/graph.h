/** @file
 * A graph is a sparse matrix A [rows, cols] in CSR: row = destination, column = source, m stored
 * entries = directed edges. A square one is a graph on n nodes; a rectangular one is bipartite, and
 * a sparse feature matrix is one of these. Duplicate edges are kept and count twice. Edge e is the
 * e-th entry in CSR order (rows ascending, columns ascending within a row); edge tensors [m, h] use
 * this order.
 *
 * A graph is immutable but for its batch. The transpose, work plans, degrees and sums are computed
 * when they are first needed and cached.
 *
 * Owner     The graph copies all arrays. It keeps its context open until it is freed, and it is
 *           freed after the tapes that use it.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_GRAPH_H
#define HALFGRAPH_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/context.h"
#include "halfgraph/export.h"
#include "halfgraph/status.h"
#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/** A sparse matrix on a device. */
typedef struct hg_graph hg_graph;

/** Creates a graph from a list of edges in any order.
 *
 * Cost      O(m + rows + cols) time; 4 m + 8 rows bytes on the device, 4 m more with weights.
 * @param context  the context.
 * @param rows     number of destinations, 0 to 2^31 - 1.
 * @param cols     number of sources, 0 to 2^31 - 1.
 * @param m        number of edges, at least 0.
 * @param dst,src  host arrays [m]: edge e goes from src[e] in [0, cols) to dst[e] in [0, rows).
 * @param weight   host array [m] of finite numbers, or NULL: all 1.
 * @param order    host array [m] or NULL: receives, for each edge in CSR order, its position in the
 *                 input.
 * @param graph    receives the graph, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, an extent is negative or too large, an id is out of
 *         range or a weight is not finite: the message names it); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_from_coo(hg_context *context, int64_t rows, int64_t cols,
                                                int64_t m, const int32_t *dst, const int32_t *src,
                                                const float *weight, int64_t *order,
                                                hg_graph **graph);

/** Creates a graph from CSR arrays. Columns in any order within a row are accepted and sorted.
 *
 * Cost      As for hg_graph_from_coo.
 * @param context  the context.
 * @param rows     number of destinations, 0 to 2^31 - 1.
 * @param cols     number of sources, 0 to 2^31 - 1.
 * @param m        number of edges, at least 0.
 * @param rowptr   host array [rows + 1]: starts at 0, does not decrease, ends at m.
 * @param col      host array [m] of ids in [0, cols).
 * @param weight   host array [m] of finite numbers, or NULL: all 1.
 * @param graph    receives the graph, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, an extent is negative or too large, rowptr is no
 *         CSR row pointer, an id is out of range or a weight is not finite: the message names it);
 *         HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_from_csr(hg_context *context, int64_t rows, int64_t cols,
                                                int64_t m, const int64_t *rowptr,
                                                const int32_t *col, const float *weight,
                                                hg_graph **graph);

/** Frees a graph with everything it caches.
 * @param graph  a graph or NULL. */
HG_API void hg_graph_free(hg_graph *graph);

/** Creates the symmetric graph A + A^T, in which duplicate edges are merged into one. The weight of
 * a merged edge is the largest of its parts.
 * @param graph  a square graph, unchanged. A batch is kept.
 * @param out    receives the new graph, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_SHAPE (not square); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_symmetrize(hg_graph *graph, hg_graph **out);

/** Creates the graph with one self loop of weight 1 added to every node that has none.
 * @param graph  a square graph, unchanged. A batch is kept.
 * @param out    receives the new graph, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_SHAPE (not square); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_add_self_loops(hg_graph *graph, hg_graph **out);

/** Makes the graph a batch of graphs: its matrix is block-diagonal, and graph k owns nodes ptr[k]
 * to ptr[k+1] - 1. Call it once, before an op that reads the batch (hg_readout) is recorded.
 * @param graph  a square graph.
 * @param count  number of graphs, at least 1.
 * @param ptr    host array [count + 1]: starts at 0, does not decrease, ends at n. Copied.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, count below 1, ptr is not such an array, or an edge
 *         joins two graphs: the message names it); HG_ERR_SHAPE (not square); HG_ERR_STATE (the
 *         graph has its batch already); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_set_batch(hg_graph *graph, int64_t count,
                                                 const int64_t *ptr);

/** The context of a graph.
 * @param graph  a graph or NULL.
 * @return the context, borrowed; NULL for NULL. */
HG_API hg_context *hg_graph_context(const hg_graph *graph);

/** Number of destinations.
 * @param graph  a graph or NULL.
 * @return rows of A; 0 for NULL. */
HG_API int64_t hg_graph_rows(const hg_graph *graph);

/** Number of sources.
 * @param graph  a graph or NULL.
 * @return columns of A; 0 for NULL. */
HG_API int64_t hg_graph_cols(const hg_graph *graph);

/** Number of directed edges.
 * @param graph  a graph or NULL.
 * @return m, the stored entries of A; 0 for NULL. */
HG_API int64_t hg_graph_edges(const hg_graph *graph);

/** Number of graphs in the batch.
 * @param graph  a graph or NULL.
 * @return the number given to hg_graph_set_batch; 1 where there is no batch. */
HG_API int64_t hg_graph_batch(const hg_graph *graph);

/** Has the graph weights of its own?
 * @param graph  a graph or NULL.
 * @return 1 if it was made with weights, else 0: all are 1. */
HG_API int hg_graph_is_weighted(const hg_graph *graph);

/** Degree normalisation of an aggregation: the factors r_i and s_j of hg_spmm. d(i) is the row
 * degree of i (edges in), d'(j) the column degree of j (edges out). Both count edges; 0 counts as
 * 1. D(i) is the weighted degree, the sum of the graph's own weights a_ij over row i, self loop
 * included; all weights are 1 where the graph has none. Where D(i) is 0, its factor is 0.
 *
 * The norms with D want D(i) >= 0 and factors between 2^-126 and 2^128 for every i; otherwise the
 * op that is recorded fails with HG_ERR_ARG and names the node. Single weights may be negative. */
typedef enum hg_norm {
	HG_NORM_NONE = 0,  /**< r_i s_j = 1 */
	HG_NORM_LEFT = 1,  /**< r_i s_j = 1 / d'(j) */
	HG_NORM_RIGHT = 2, /**< r_i s_j = 1 / d(i), the mean */
	HG_NORM_BOTH = 3,  /**< r_i s_j = 1 / sqrt(d(i) d'(j)) */
	/** r_i s_j = 1 / sqrt(d(i) d(j)), square graphs only: the in-degree at both ends, as PyTorch
	 * Geometric's gcn_norm. The same as BOTH where the pattern of A is symmetric */
	HG_NORM_IN = 4,
	/** r_i s_j = 1 / sqrt(D(i) D(j)), square graphs only: PyTorch Geometric's gcn_norm of a graph
	 * with edge weights */
	HG_NORM_WEIGHTED = 5,
	HG_NORM_WEIGHTED_MEAN = 6 /**< r_i s_j = 1 / D(i), the mean by weight */
} hg_norm;
/** Number of values of hg_norm that count edges, which are the first ones. */
#define HG_NORMS 5
/** Number of values of hg_norm. */
#define HG_NORM_VALUES 7

/** Facts about a graph that the range proofs and the work plans need. Degrees count edges, sums add
 * |weight|. */
typedef struct hg_graph_facts {
	size_t size;
	int64_t max_row_degree; /**< largest number of edges in a row */
	int64_t max_col_degree; /**< largest number of edges in a column */
	int64_t empty_rows;     /**< rows without an edge */
	int64_t empty_cols;     /**< columns without an edge */
	int64_t self_loops;     /**< edges (i, i) */
	double max_row_sum;     /**< largest sum of |weight| in a row */
	double max_col_sum;     /**< largest sum of |weight| in a column */
	/** by hg_norm, those that count edges: the largest sum of |r_i a_ij s_j| in a row; HG_NORM_IN:
	 * 0 if not square */
	double norm_row_sum[HG_NORMS];
	/** by hg_norm: the largest sum of |r_i a_ij s_j| in a column; HG_NORM_IN: 0 if not square */
	double norm_col_sum[HG_NORMS];
	int symmetric; /**< 1: A = A^T, weights included */
} hg_graph_facts;
/** An empty hg_graph_facts with its size set. */
#define HG_GRAPH_FACTS_INIT HG__INIT_ZERO(hg_graph_facts)

/** Reads the facts about a graph. The first call computes them.
 * @param graph  the graph.
 * @param facts  receives them; start from HG_GRAPH_FACTS_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or facts' size is not set); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_facts_get(hg_graph *graph, hg_graph_facts *facts);

/** Copies the CSR arrays to host memory. Waits for the device. Any of the arrays may be NULL.
 * @param graph   the graph.
 * @param rowptr  receives [rows + 1].
 * @param col     receives [m].
 * @param weight  receives [m]; ones for a graph without weights.
 * @return HG_OK; HG_ERR_ARG (graph is NULL); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_download(hg_graph *graph, int64_t *rowptr, int32_t *col,
                                                float *weight);

/** How the nodes of one graph of a batch become one row (hg_readout), and how the edges of a node
 * do (hg_scatter). */
typedef enum hg_reduce {
	HG_REDUCE_SUM = 0,  /**< sum over the nodes or edges */
	HG_REDUCE_MEAN = 1, /**< mean over the nodes or edges */
	HG_REDUCE_MAX = 2   /**< maximum over the nodes or edges, per column */
} hg_reduce;

/** One of the two nodes of an edge (hg_gather, hg_scatter). */
typedef enum hg_end {
	HG_END_SOURCE = 0,     /**< column j of entry (i, j): the node that the edge leads from */
	HG_END_DESTINATION = 1 /**< row i: the node that it leads to */
} hg_end;

HG_EXTERN_C_END
#endif
