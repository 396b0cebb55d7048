#ifndef HG_BENCH_GRAPHS_H
#define HG_BENCH_GRAPHS_H

#include "bench.h"
#include "edges.h"

/* The synthetic graphs that everyone measures, by name. */
struct named_graph {
	const char *name, *help;
	struct edge_rule rule;
	int features, classes;
	int stored; /* of a node's features, that are not 0: sparse features; 0: dense */
};

const struct named_graph *graph_list(int *count);
const struct named_graph *graph_named(const char *name);
int graph_is_file(const char *name); /* it ends in .h5 */

/* What a run works on: a named graph made on the device, or the graph of a dataset file. */
hg_status workload_make(struct bench *b, const char *graph, int weights);
void workload_free(struct bench *b);

#endif
