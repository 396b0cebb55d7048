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

static hg_status number_nodes(struct edge_list *list, hg_dataset *d, struct hg__coo *coo,
                              char *message)
{
	int64_t *ids = NULL;
	HG__TRY(node_ids(list, &ids, &d->nodes, message));
	const int identity = d->nodes == 0 || ids[d->nodes - 1] == d->nodes - 1;
	d->orig_id = ids;
	if (d->nodes > INT32_MAX)
		return hg__data_fail(message, HG_ERR_RANGE,
		                     "edges: %" PRId64 " nodes, at most 2147483647 are possible", d->nodes);
	coo->rows = coo->cols = d->nodes;
	HG__TRY(hg__coo_reserve(coo, list->m, list->columns == 3, message));
	for (int64_t e = 0; e < list->m; e++) {
		const int32_t source =
		    identity ? (int32_t)list->source[e] : number_of(ids, d->nodes, list->source[e]);
		const int32_t destination = identity ? (int32_t)list->destination[e]
		                                     : number_of(ids, d->nodes, list->destination[e]);
		HG__TRY(hg__coo_add(coo, destination, source, list->weight ? list->weight[e] : 1, message));
	}
	if (identity) {
		free(d->orig_id);
		d->orig_id = NULL;
	}
	return HG_OK;
}

static hg_status build_graph(struct edge_list *list, hg_dataset *d, char *message)
{
	struct hg__coo coo = {0};
	struct hg__sparse m = {0};
	hg_status status = number_nodes(list, d, &coo, message);
	if (status == HG_OK)
		status = hg__coo_to_sparse(&coo, HG__MERGE_SUM, &m, message);
	hg__coo_free(&coo);
	HG__TRY(status);
	hg__sparse_drop_ones(&m);
	d->edges = m.m;
	d->rowptr = m.rowptr;
	d->col = m.col;
	d->weight = m.value;
	return HG_OK;
}

hg_status hg__import_edges(const char *const *paths, int count, const hg_import_config *config,
                           hg_dataset **dataset, char *message)
{
	struct edge_list list = {.largest = -1};
	hg_import_config c;
	HG__TRY(hg__import_configure(config, &c, message));
	HG__TRY(hg_dataset_new(dataset, message));
	hg_status status = hg__import_name(*dataset, paths[0], message);
	for (int k = 0; status == HG_OK && k < count; k++)
		status = hg__edges_read(&list, paths[k], &c, message);
	if (list.declared && list.largest > list.declared)
		hg__import_note(&c,
		                "%s: node %" PRId64 " is not among the %" PRId64
		                " nodes that a header counts: nodes "
		                "without an edge are left out",
		                paths[0], list.largest, list.declared);
	if (status == HG_OK)
		status = build_graph(&list, *dataset, message);
	if (status == HG_OK)
		hg__import_note_merged(&c, paths[0], list.m, (*dataset)->edges, list.columns == 3);
	if (status == HG_OK)
		status = hg_dataset_check(*dataset, paths[0], message);
	hg__edges_free(&list);
	if (status < 0) {
		hg_dataset_free(*dataset);
		*dataset = NULL;
	}
	return status;
}
