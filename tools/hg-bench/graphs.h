#ifndef HG_BENCH_GRAPHS_H
#define HG_BENCH_GRAPHS_H

#include <stdint.h>

/* The named synthetic graphs, so that everyone measures the same thing.
 *
 * Power law: m directed edges, both endpoints floor(n u^a), u uniform in [0, 1), ids scattered by id * 2654435761 mod n; duplicates are kept. Local: for 70 %
 * of the edges the column is the row plus a uniform offset below 2,000 (mod n) instead. Kron: R-MAT (.57 .19 .19 .05) bit by bit, ids scattered by an
 * odd multiplier. */
struct named_graph {
	const char *name, *help;
	int64_t nodes, edges, features;
	int32_t classes;
	double exponent; /* 0: R-MAT */
	int local;
};
const struct named_graph *graph_named(const char *name);
const struct named_graph *graph_list(int *count);
/* Fill dst [edges] and src [edges]; the same numbers whatever the number of threads. */
void graph_edges(const struct named_graph *graph, uint64_t seed, int32_t *dst, int32_t *src);
/* The k-th number of a stream, uniform in [0, 1). */
double graph_uniform(uint64_t seed, uint64_t k);

#endif
