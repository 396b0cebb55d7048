#ifndef HG_TESTS_GRAPHS_H
#define HG_TESTS_GRAPHS_H

#include "halfgraph/graph.h"
#include "harness.h"

/* Small graphs for the tests. A builder returns a list of edges (COO: coordinate format), which
 * coo_graph makes into a graph and frees. Edge e goes from src[e] to dst[e]: row dst[e] sums over
 * its edges. A case may add edges to a list of any builder, and read or copy the arrays before.
 * Builders of random graphs draw from the harness: test_reseed sets their seed. */
struct coo {
	int64_t rows, cols, m, room; /* room: edges that the arrays have memory for */
	int32_t *dst, *src;
};

/* Without edges: no nodes, one node, or more of them; rows != cols: bipartite. */
struct coo coo_empty(int64_t rows, int64_t cols);
/* 1 -> 0, 2 -> 1, ...: the last node has no edge into it. */
struct coo coo_path(int64_t n);
/* The path with the edge 0 -> n-1, which closes it. */
struct coo coo_cycle(int64_t n);
/* A ring of n nodes, each with edges from its two neighbours and from itself. */
struct coo coo_ring(int64_t n);
/* Edges from the nodes 1 .. leaves into node 0. */
struct coo coo_star(int64_t leaves);
/* A star of n nodes whose leaves have self loops. */
struct coo coo_star_loops(int64_t n);
/* Bipartite: one edge from every column into row 0. The rows below have none. */
struct coo coo_fan_in(int64_t rows, int64_t cols);
/* Bipartite: one edge from column 0 into every row. */
struct coo coo_fan_out(int64_t rows);
/* m random edges, of which every `every`-th goes into `hub`. */
struct coo coo_hub(int64_t n, int64_t m, int64_t every, int64_t hub);
/* Two communities without edges between them, the nodes below `first` and the others. */
struct coo coo_two_communities(int64_t n, int64_t m, int64_t first);
/* Planted communities i % count: three of four edges stay inside. count divides n. */
struct coo coo_communities(int64_t n, int64_t m, int64_t count);

void coo_add(struct coo *list, int64_t dst, int64_t src);
/* Adds every edge of the list again, the other way round. */
void coo_add_transpose(struct coo *list);
/* Makes duplicates: every edge of the list is in it `times` times. */
void coo_repeat(struct coo *list, int times);
void coo_free(struct coo *list);
/* Copies the arrays into those of a case, and frees the list. */
void coo_move(struct coo list, int32_t *dst, int32_t *src);
/* The graph of a list without weights. Frees the list. */
hg_graph *coo_graph(hg_context *ctx, struct coo list);

#endif
