#ifndef HG_BENCH_REORDER_H
#define HG_BENCH_REORDER_H

#include "halfgraph/halfgraph.h"

struct bench;
struct json;

/* --reorder METHOD: the workload's nodes in another order, and what gathering costs before and
 * after. */
struct reorder {
	hg_order_report report; /* report.method NULL: nothing was asked for */
	double permute_seconds;
	hg_graph *unordered; /* the graph as it came, beside the workload's; NULL: they are one */
};

/* Puts a graph in that order in the place of b->graph, which stays as `unordered`. */
hg_status reorder_make(struct bench *b, const char *method);
/* The graph as it came is no longer needed. */
void reorder_forget(struct bench *b);
/* Lines above the table, fields of a line of JSON; nothing where nothing was asked for. */
void reorder_print(const struct reorder *r);
void reorder_json(const struct reorder *r, struct json *j);

#endif
