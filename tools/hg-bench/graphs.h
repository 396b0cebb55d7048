#ifndef HG_BENCH_GRAPHS_H
#define HG_BENCH_GRAPHS_H

#include "bench.h"
#include "edges.h"

/* The usual synthetic graphs, by name. */
struct named_graph {
	const char *name, *help;
	struct edge_rule rule;
	int features, classes;
	int stored; /* number of non-zero features of a node, stored sparse; 0: dense features */
};

const struct named_graph *graph_list(int *count);
const struct named_graph *graph_named(const char *name);
int graph_is_file(const char *name); /* the name ends in .h5 */

/* Make the workload of a run: a named graph, made on the device, or the graph of a dataset file. */
hg_status workload_make(struct bench *b, const char *graph, int weights);
void workload_free(struct bench *b);

#endif
