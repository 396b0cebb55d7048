#ifndef HG_BENCH_REORDER_H
#define HG_BENCH_REORDER_H

#include "halfgraph/order.h"

struct bench;
struct json;

/* --reorder METHOD: the workload's nodes in another order, and the cost of gathering before and
 * after. */
struct reorder {
	hg_order_report report; /* report.method NULL: no order was requested */
	double permute_seconds;
	/* the graph in its original order, beside the workload's; NULL: the workload has that order */
	hg_graph *unordered;
};

/* Replace b->graph by a graph in the new order; the old graph becomes `unordered`. */
hg_status reorder_make(struct bench *b, const char *method);
/* Free the graph in its original order. */
void reorder_free(struct bench *b);
/* Print lines above the table, or write fields of a JSON line; nothing if no order was
 * requested. */
void reorder_print(const struct reorder *r);
void reorder_json(const struct reorder *r, struct json *j);

#endif
