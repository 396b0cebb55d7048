#ifndef HG_H5CONVERT_INSPECT_EDGES_H
#define HG_H5CONVERT_INSPECT_EDGES_H

#include <jansson.h>

#include "halfgraph/data.h"

/* A file may declare 2^31 classes; no more than these are listed. */
#define LISTED 1000000

/* What is said of the attributes and labels of edges. */
struct edge_facts {
	float *low, *high;  /* [columns] */
	int64_t columns;    /* of the attributes; 0 where there are no edges, too */
	int64_t *per_class; /* [listed] */
	int32_t listed;
	int64_t unlabelled;
};

/* 0: out of memory. The caller frees the facts in both cases. */
int edge_facts_measure(const hg_dataset *d, struct edge_facts *f);
void edge_facts_free(struct edge_facts *f);
/* Print a line for each kind of data that edges have. */
void edge_facts_print(const hg_dataset *d, const struct edge_facts *f);
/* Add the members edge_* to an object; 0: out of memory. */
int edge_facts_json(const hg_dataset *d, const struct edge_facts *f, json_t *object);

#endif
