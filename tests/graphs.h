#ifndef HG_TESTS_GRAPHS_H
#define HG_TESTS_GRAPHS_H

#include "halfgraph/graph.h"
#include "harness.h"

/* Test graphs, all in one place. A builder returns a list of edges (COO: coordinate format). A case
 * may add edges to it and read its arrays; then it makes a graph of it. Edge e goes from src[e] to
 * dst[e]: row dst[e] of the adjacency matrix sums over its edges. Builders of random graphs draw
 * from the harness, so test_reseed sets their seed. */
struct coo {
	int64_t rows, cols, m, room; /* room: edges that the arrays have memory for */
	int32_t *dst, *src;
	float *weight; /* NULL: the edges have no weights */
};

/* No edges. rows != cols: a bipartite graph, or a sparse matrix. */
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
/* m random edges, of which every `every`-th goes into one of the first `hubs` nodes. */
struct coo coo_hubs(int64_t n, int64_t m, int64_t every, int64_t hubs);
/* Two communities without edges between them: the nodes below `first`, and the others. */
struct coo coo_two_communities(int64_t n, int64_t m, int64_t first);
/* Planted communities i % count: three of four edges stay inside. count divides n. */
struct coo coo_communities(int64_t n, int64_t m, int64_t count);

/* Either all edges of a list have weights, or none. */
void coo_add(struct coo *list, int64_t dst, int64_t src);
void coo_add_weighted(struct coo *list, int64_t dst, int64_t src, float weight);
/* Gives all edges of a list without weights the weight 0. Returns the array of weights, which the
 * caller fills. */
float *coo_weights(struct coo *list);
/* Removes the weights of a list. */
void coo_drop_weights(struct coo *list);
/* Negates the weights of rows that sum to less than 0, which normalisation by weights refuses. */
void coo_turn_negative_rows(struct coo *list);
/* Adds every edge of the list again, in the other direction. */
void coo_add_transpose(struct coo *list);
/* Makes duplicates: afterwards every edge of the list is in it `times` times. */
void coo_repeat(struct coo *list, int times);
void coo_free(struct coo *list);

/* The graph of a list. coo_graph frees the list. coo_build is for cases in which an allocation may
 * fail: it checks nothing and returns the library's status. */
hg_graph *coo_graph(hg_context *ctx, struct coo list);
hg_graph *coo_to_graph(hg_context *ctx, const struct coo *list);
hg_status coo_build(hg_context *ctx, const struct coo *list, hg_graph **graph);

/* A graph in host memory as the library orders it (CSR): rows ascending, columns ascending within a
 * row, duplicates in the order in which they were given. Entry e is in row[e] and col[e]. */
struct host_csr {
	int64_t rows, cols, m, *rowptr;
	int32_t *row, *col;
	float *weight; /* NULL: the list had none; a download gives 1 for each */
	int64_t *edge; /* which edge of the list the entry was; NULL after a download */
};

/* Sorts a list, and frees it. Shares no code with the library. */
struct host_csr host_csr_sort(struct coo list);
struct host_csr host_csr_download(hg_context *ctx, hg_graph *graph);
void host_csr_free(struct host_csr *csr);

#endif
