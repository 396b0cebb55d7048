#ifndef HALFGRAPH_ORDER_H
#define HALFGRAPH_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/export.h"
#include "halfgraph/graph.h"
#include "halfgraph/progress.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/* A better order of the nodes: rows that stand side by side share neighbours, so that what one row
 * gathers is still in a cache when the next one asks for it.
 *
 *     order [n]: node k of the new order is node order[k] of the old one.
 *
 *     hg_order_config config = HG_ORDER_CONFIG_INIT;              (method "auto")
 *     hg_graph_order(graph, &config, order, NULL);
 *     hg_graph_permute(graph, order, NULL, &better);              edges, weights and batch of the
 *         graph
 *     hg_order_rows(n, order, bytes of a row, feat, new_feat);    features, labels and masks, once
 *     ... train, infer ...
 *     hg_order_rows_back(n, order, bytes of a row, result, old_result);
 *
 * Edges are taken in both directions; weights do not matter; loops and duplicates are welcome. The
 * nodes of a batch stay inside their graph. The result depends on the graph and the method alone,
 * not on threads or machine.
 *
 * Training is the same in every order up to rounding, but for dropout: it draws by an element's
 * place, so that a reordered run drops others, as with another seed. */

/* What gathering costs in a given order, seen by a sweep over the rows: for each edge one line of
 * 128 bytes, which is a row of 64 halves (locality.c). */
typedef struct hg_locality {
	size_t size;
	/* share of the edges whose line is not in the first-level cache of 1,024 lines */
	double near_miss;
	double far_miss;   /* ... and not among 262,144 lines, 32 MiB of a second-level cache */
	double tile_reuse; /* edges for each different source in windows of 16 rows */
	/* modelled time of an edge in picoseconds on an H200: what orders are compared by */
	double gather_ps;
} hg_locality;
#define HG_LOCALITY_INIT                        \
	{                                           \
		sizeof(hg_locality), 0.0, 0.0, 0.0, 0.0 \
	}

/* The methods, by name:
 *   auto       the cheapest of all below by gather_ps; the old order where none is cheaper by
 *              `margin`
 *   community  communities side by side, those that share edges next to each other, and the same
 *              inside: graphs of people, products, papers
 *   leading    rows with the same most popular neighbour side by side
 *   rcm        breadth first from the rim, by degree, reversed (Cuthill and McKee): meshes and
 *              roads
 *   degree     many neighbours first */
typedef struct hg_order_method {
	const char *name, *help;
} hg_order_method;
HG_API const hg_order_method *hg_order_methods(size_t *count);

typedef struct hg_order_config {
	size_t size;
	const char *method;
	double margin;      /* auto: gather_ps must fall by this share, or the order stays */
	int64_t graphs;     /* of a batch; 0: none */
	const int64_t *ptr; /* [graphs + 1]: graph k owns nodes ptr[k] .. ptr[k+1]-1 */
	const hg_progress *progress;
} hg_order_config;
#define HG_ORDER_CONFIG_INIT                           \
	{                                                  \
		sizeof(hg_order_config), "auto", 0.05, 0, 0, 0 \
	}

typedef struct hg_order_report {
	size_t size;
	const char *method; /* what was taken; "original" where auto kept the order */
	hg_locality before, after;
	double seconds;
} hg_order_report;
#define HG_ORDER_REPORT_INIT                                                \
	{                                                                       \
		sizeof(hg_order_report), 0, HG_LOCALITY_INIT, HG_LOCALITY_INIT, 0.0 \
	}

/* From CSR host arrays, without a context: row = destination, rowptr [n + 1], col [rowptr[n]] in
 * [0, n), in any order. config NULL: auto. report may be NULL. Cost: communities take about ten
 * sweeps over the edges, in both directions, most of them on all threads: 180 to 480 ns of
 * processor time an edge. Memory: 4 bytes an edge for the edges seen from their sources, some 80
 * bytes a node, and the graphs of communities (8 % of the edges of an R-MAT graph, fewer where
 * there are communities). Errors: HG_ERR_ARG (a method that is not known; arrays that are no graph,
 * a batch that does not fit), HG_ERR_NOMEM, HG_ERR_STATE (the watcher asked to stop). */
HG_API HG_NODISCARD hg_status hg_order_find(const hg_order_config *config, int64_t n,
                                            const int64_t *rowptr, const int32_t *col,
                                            int32_t *order, hg_order_report *report);
/* order NULL: as it is. */
HG_API HG_NODISCARD hg_status hg_order_locality(int64_t n, const int64_t *rowptr,
                                                const int32_t *col, const int32_t *order,
                                                hg_locality *locality);

/* Is it a permutation of 0 .. n-1? HG_ERR_ARG if not. place [n] or NULL receives the way back:
 * place[order[k]] = k. */
HG_API HG_NODISCARD hg_status hg_order_check(int64_t n, const int32_t *order, int32_t *place);
/* Rows of `bytes` bytes each, host memory: to[k] = from[order[k]], and back: to[order[k]] =
 * from[k]. from and to do not overlap. */
HG_API HG_NODISCARD hg_status hg_order_rows(int64_t n, const int32_t *order, size_t bytes,
                                            const void *from, void *to);
HG_API HG_NODISCARD hg_status hg_order_rows_back(int64_t n, const int32_t *order, size_t bytes,
                                                 const void *from, void *to);

/* The same of a square graph; a batch it has is kept together (config's own is not asked). order:
 * host [n]. */
HG_API HG_NODISCARD hg_status hg_graph_order(hg_graph *graph, const hg_order_config *config,
                                             int32_t *order, hg_order_report *report);
HG_API HG_NODISCARD hg_status hg_graph_locality(hg_graph *graph, hg_locality *locality);
/* A new graph in which node k is node order[k] of the old one, with weights and batch. edge [m] or
 * NULL receives, for each edge of the new graph, its place in the old one: edge tensors move with
 * hg_order_rows of that. Errors: HG_ERR_ARG (no permutation, or one that leaves the graphs of the
 * batch), HG_ERR_SHAPE. */
HG_API HG_NODISCARD hg_status hg_graph_permute(hg_graph *graph, const int32_t *order, int64_t *edge,
                                               hg_graph **out);

HG_EXTERN_C_END
#endif
