/* Edge lists as SNAP publishes them: one "source destination [weight]" per line, comments after #
 * or %, ids of any size and with gaps. Several files are read as one list. Nodes are numbered by
 * ascending id; the ids are kept as orig_id unless they already are 0 .. n-1. Repeated edges are
 * merged (weights add up).
 *
 * The first line of a file may be a header with the counts of what follows (header.h). Then the
 * graph has all nodes that the header counts, also those without an edge. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/coo.h"
#include "import/edges.h"
#include "import/run.h"

/* The index of an id in the sorted ids, found by bisection. */
static int32_t number_of(const int64_t *ids, int64_t count, int64_t id)
{
	int64_t low = 0, high = count - 1;
	while (low < high) {
		const int64_t middle = (low + high) / 2;
		if (ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return (int32_t)low;
}

/* The ids of all nodes: the ids that occur, or, with a header, as many consecutive ids as it
 * counts, from 0 or from 1. */
static hg_status node_ids(const struct edge_list *list, int64_t **ids, int64_t *count,
                          char *message)
{
	HG__TRY(hg__edges_ids(list, 0, ids, count, message));
	const int64_t from = list->largest < list->declared ? 0 : 1;
	if (*count >= list->declared || list->largest > list->declared || (from == 1 && (*ids)[0] == 0))
		return HG_OK;
	HG__TRY(hg__data_grow((void **)ids, list->declared, sizeof **ids, "node ids", message));
	*count = list->declared;
	for (int64_t k = 0; k < *count; k++)
		(*ids)[k] = from + k;
	return HG_OK;
}

/* ends [m] := the numbers of the nodes, int32_t, in the same memory: number e is never behind the
 * id that it comes from. */
static void number_ends(const struct edge_list *list, void *ends, const int64_t *ids, int64_t count,
                        int identity)
{
	for (int64_t e = 0; e < list->m; e++) {
		const int64_t id = hg__edge_end(list, ends, e);
		const int32_t number = identity ? (int32_t)id : number_of(ids, count, id);
		memcpy((char *)ends + e * (int64_t)sizeof number, &number, sizeof number);
	}
}

/* The list becomes the entries of a matrix, without a second copy of it. */
static void move_edges(struct edge_list *list, struct hg__coo *coo)
{
	void **const ends[] = {&list->destination, &list->source};
	int32_t **const to[] = {&coo->row, &coo->col};
	for (int k = 0; k < 2; k++) {
		/* a smaller block, if there is one; memory of wide ids is not needed any more */
		void *less = list->m > 0 ? realloc(*ends[k], (size_t)list->m * sizeof(int32_t)) : *ends[k];
		*to[k] = less ? less : *ends[k];
		*ends[k] = NULL;
	}
	coo->value = list->weight;
	list->weight = NULL;
	coo->m = coo->capacity = list->m;
}

static hg_status number_nodes(struct edge_list *list, hg_dataset *d, struct hg__coo *coo,
                              char *message)
{
	/* the dataset owns the ids from here on, so that they are freed with it after a failure */
	HG__TRY(node_ids(list, &d->orig_id, &d->nodes, message));
	const int64_t *ids = d->orig_id;
	const int identity = d->nodes == 0 || ids[d->nodes - 1] == d->nodes - 1;
	if (d->nodes > INT32_MAX)
		return hg__data_fail(message, HG_ERR_RANGE,
		                     "edges: %" PRId64 " nodes, at most 2147483647 are possible", d->nodes);
	coo->rows = coo->cols = d->nodes;
	number_ends(list, list->source, ids, d->nodes, identity);
	number_ends(list, list->destination, ids, d->nodes, identity);
	move_edges(list, coo);
	if (identity) {
		free(d->orig_id);
		d->orig_id = NULL;
	}
	return HG_OK;
}

static hg_status build_graph(struct edge_list *list, hg_dataset *d, char *message)
{
	struct hg__coo coo = {0};
	hg_status status = number_nodes(list, d, &coo, message);
	if (status == HG_OK)
		status = hg__coo_to_graph(&coo, HG__MERGE_SUM, d, message);
	hg__coo_free(&coo);
	return status;
}

static void note_unnumbered(const struct hg__import *in, const struct edge_list *list)
{
	if (list->declared && list->largest > list->declared)
		hg__import_note(&in->config,
		                "%s: node %" PRId64 " is not among the %" PRId64
		                " nodes that a header counts: nodes "
		                "without an edge are left out",
		                in->path, list->largest, list->declared);
}

static hg_status read_all(struct hg__import *in)
{
	struct edge_list list = {.largest = -1};
	hg_status status = HG_OK;
	for (int k = 0; status == HG_OK && k < in->count; k++)
		status = hg__edges_read(&list, in->paths[k], &in->config, in->message);
	if (status == HG_OK) {
		note_unnumbered(in, &list);
		status = build_graph(&list, in->d, in->message);
	}
	if (status == HG_OK)
		hg__import_note_merged(&in->config, in->path, list.m, in->d->edges, list.columns == 3);
	hg__edges_free(&list);
	return status;
}

hg_status hg__import_edges(const char *const *paths, int count, const hg_import_config *config,
                           hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
