/** @file
 * A better order of the nodes: neighbouring rows share neighbours, so that what one row gathers is
 * still in a cache when the next row needs it.
 *
 *     order [n]: node k of the new order is node order[k] of the old one.
 *
 *     hg_order_config config = HG_ORDER_CONFIG_INIT;                    method "auto"
 *     hg_graph_order(graph, &config, order, NULL);
 *     hg_graph_permute(graph, order, NULL, &better);                    edges, weights, batch
 *     hg_order_rows(n, order, bytes of a row, feat, new_feat);          features, labels, masks
 *     ... train, infer ...
 *     hg_order_rows_back(n, order, bytes of a row, result, old_result);
 *
 * Edges count in both directions; weights do not matter; loops and duplicates are allowed. The
 * nodes of each graph of a batch stay together. The result depends on the graph and the method
 * alone, not on threads or the machine.
 *
 * Training is the same in every order up to rounding, except for dropout: it draws by the position
 * of an element, so a reordered run drops other elements, as with another seed.
 *
 * Threads   hg_graph_ functions: one thread at a time per context. The others are safe from any
 *           thread. */
#ifndef HALFGRAPH_ORDER_H
#define HALFGRAPH_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/export.h"
#include "halfgraph/graph.h"
#include "halfgraph/progress.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/** What gathering costs in a given order, modelled by a pass over the rows: each edge reads one
 * line of 128 bytes, which is a row of 64 halves (src/order/locality.c). */
typedef struct hg_locality {
	size_t size;
	double near_miss;  /**< share of edges whose line is not among the last 1,024 (first level) */
	double far_miss;   /**< share of edges whose line is not among the last 262,144 (32 MiB) */
	double tile_reuse; /**< edges per different source, in windows of 16 rows */
	double gather_ps;  /**< modelled picoseconds per edge on an H200; orders are compared by it */
} hg_locality;
/** An empty hg_locality with its size set. */
#define HG_LOCALITY_INIT HG__INIT_ZERO(hg_locality)

/** A method of finding an order:
 *
 *     auto       the cheapest of those below by gather_ps; the old order where none is cheaper by
 *                `margin`
 *     community  communities side by side, those that share edges next to each other, and the same
 *                inside them: graphs of people, products, papers
 *     leading    rows with the same most popular neighbour side by side
 *     rcm        breadth first from a peripheral node, by degree, reversed (Cuthill and McKee):
 *                for meshes and road networks
 *     degree     nodes with many neighbours first */
typedef struct hg_order_method {
	const char *name; /**< as above */
	const char *help; /**< one line */
} hg_order_method;

/** The table of methods.
 * @param count  receives the number of methods; may be NULL.
 * @return a constant array. */
HG_API const hg_order_method *hg_order_methods(size_t *count);

/** How an order is found. */
typedef struct hg_order_config {
	size_t size;
	const char *method; /**< a method; default "auto" */
	double margin;      /**< auto: gather_ps must fall by this share, in [0, 1); default 0.05 */
	int64_t graphs;     /**< number of graphs of a batch; 0 (default): no batch */
	const int64_t *ptr; /**< [graphs + 1]: graph k owns nodes ptr[k] to ptr[k+1] - 1 */
	const hg_progress *progress; /**< the watcher, or NULL (default) */
} hg_order_config;
/** The defaults of the fields. */
#define HG_ORDER_CONFIG_INIT \
	HG__INIT(hg_order_config, HG__SET(method, "auto") HG__SET(margin, 0.05))

/** What was found. */
typedef struct hg_order_report {
	size_t size;
	const char *method; /**< the method that was taken; "original" where auto kept the order */
	hg_locality before; /**< in the old order */
	hg_locality after;  /**< in the new order */
	double seconds;     /**< time it took */
} hg_order_report;
/** An empty hg_order_report with its sizes set. */
#define HG_ORDER_REPORT_INIT  \
	HG__INIT(hg_order_report, \
	         HG__SET(before.size, sizeof(hg_locality)) HG__SET(after.size, sizeof(hg_locality)))

/** Finds an order of a square CSR matrix in host memory. Needs no context.
 *
 * Cost      Communities take about ten passes over the edges in both directions, most of them on
 *           all threads: 180 to 480 ns of processor time per edge. Memory: 4 bytes per edge, about
 *           80 bytes per node, and the graphs of communities (8 % of the edges of an R-MAT graph).
 * @param config  how; NULL: HG_ORDER_CONFIG_INIT.
 * @param n       number of nodes, 0 to 2^31 - 1.
 * @param rowptr  [n + 1], row = destination.
 * @param col     [rowptr[n]] in [0, n), in any order within a row.
 * @param order   receives the order [n].
 * @param report  receives what was found, start from HG_ORDER_REPORT_INIT; or NULL.
 * @return HG_OK; HG_ERR_ARG (an unknown method, arrays that are not a graph, a batch that does not
 *         fit, a size not set, order is NULL); HG_ERR_NOMEM; HG_ERR_STATE (the watcher asked to
 *         stop). */
HG_API HG_NODISCARD hg_status hg_order_find(const hg_order_config *config, int64_t n,
                                            const int64_t *rowptr, const int32_t *col,
                                            int32_t *order, hg_order_report *report);

/** Models what gathering costs in an order of a CSR matrix in host memory.
 * @param n         number of nodes.
 * @param rowptr    [n + 1].
 * @param col       [rowptr[n]] in [0, n).
 * @param order     [n], or NULL: the order as it is.
 * @param locality  receives it; start from HG_LOCALITY_INIT.
 * @return HG_OK; HG_ERR_ARG (arrays that are not a graph, order is not a permutation, locality is
 * NULL or its size
 *         is not set); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_order_locality(int64_t n, const int64_t *rowptr,
                                                const int32_t *col, const int32_t *order,
                                                hg_locality *locality);

/** Checks that an order is a permutation of 0 .. n-1.
 * @param n      number of nodes.
 * @param order  [n].
 * @param place  [n], receives the way back: place[order[k]] = k; or NULL.
 * @return HG_OK; HG_ERR_ARG (it is not, or a pointer is NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_order_check(int64_t n, const int32_t *order, int32_t *place);

/** Puts rows in host memory in the new order: to[k] = from[order[k]].
 * @param n      number of rows.
 * @param order  a permutation [n].
 * @param bytes  bytes of a row.
 * @param from   [n] rows.
 * @param to     receives [n] rows; it does not overlap with from.
 * @return HG_OK; HG_ERR_ARG (no permutation, or a pointer is NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_order_rows(int64_t n, const int32_t *order, size_t bytes,
                                            const void *from, void *to);

/** Puts rows in host memory back in the old order: to[order[k]] = from[k].
 * @param n      number of rows.
 * @param order  a permutation [n].
 * @param bytes  bytes of a row.
 * @param from   [n] rows.
 * @param to     receives [n] rows; it does not overlap with from.
 * @return HG_OK; HG_ERR_ARG (no permutation, or a pointer is NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_order_rows_back(int64_t n, const int32_t *order, size_t bytes,
                                                 const void *from, void *to);

/** Finds an order of a square graph. A batch it has is kept together; config's own is ignored.
 *
 * Cost      As for hg_order_find, and a copy of the graph in host memory.
 * @param graph   the graph.
 * @param config  how; NULL: HG_ORDER_CONFIG_INIT.
 * @param order   host [n], receives the order.
 * @param report  receives what was found, start from HG_ORDER_REPORT_INIT; or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, an unknown method, a size not set); HG_ERR_SHAPE
 *         (not square); HG_ERR_STATE (the watcher asked to stop); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_order(hg_graph *graph, const hg_order_config *config,
                                             int32_t *order, hg_order_report *report);

/** Models what gathering costs in a square graph as it is.
 * @param graph     the graph.
 * @param locality  receives it; start from HG_LOCALITY_INIT.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or locality's size is not set); HG_ERR_SHAPE (not
 *         square); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_locality(hg_graph *graph, hg_locality *locality);

/** Creates the graph in which node k is node order[k] of the old one, with weights and batch.
 * @param graph  a square graph, unchanged.
 * @param order  host [n], a permutation that keeps the nodes of each graph of a batch together.
 * @param edge   host [m] or NULL: receives, for each edge of the new graph, its position in the old
 *               one, so that hg_order_rows with it moves edge tensors.
 * @param out    receives the new graph, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, no permutation, or it leaves the graphs of the
 *         batch); HG_ERR_SHAPE (not square); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_permute(hg_graph *graph, const int32_t *order, int64_t *edge,
                                               hg_graph **out);

HG_EXTERN_C_END
#endif
