/* Put the nodes of a dataset, and every array with a row per node, into another order. The new
 * arrays are complete before they replace the old ones, so a failure leaves the dataset
 * unchanged. */
#include "halfgraph/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/coo.h"
#include "graph/edge_data.h"
#include "node_names.h"

int64_t hg_dataset_node(const hg_dataset *d, int64_t i)
{
	return d->orig_id ? d->orig_id[i] : d->order ? d->order[i] : i;
}

/* Build the CSR matrix of the rows order[0], order[1], ...; columns are renumbered by `position`
 * where it is given. m->origin, if there is memory for it, says where the entries were before. */
static hg_status move_sparse(int64_t n, const int32_t *order, const int32_t *position,
                             const int64_t *rowptr, const int32_t *col, const float *value,
                             struct hg__sparse *m, char *message)
{
	HG__TRY(hg__data_alloc(n + 1, sizeof *m->rowptr, "row pointers in another order",
	                       (void **)&m->rowptr, message));
	HG__TRY(hg__data_alloc(rowptr[n], sizeof *m->col, "edges in another order", (void **)&m->col,
	                       message));
	if (value)
		HG__TRY(hg__data_alloc(rowptr[n], sizeof *m->value, "weights in another order",
		                       (void **)&m->value, message));
	m->rows = n;
	m->rowptr[0] = 0;
	for (int64_t k = 0; k < n; k++) {
		for (int64_t e = rowptr[order[k]]; e < rowptr[order[k] + 1]; e++) {
			if (value)
				m->value[m->m] = value[e];
			if (m->origin)
				m->origin[m->m] = e;
			m->col[m->m++] = position ? position[col[e]] : col[e];
		}
		m->rowptr[k + 1] = m->m;
	}
	return position ? hg__sparse_sort(m, message) : HG_OK;
}

/* Copy rows of `size` bytes in the new order; NULL stays NULL. */
static hg_status move_rows(int64_t n, const int32_t *order, size_t size, const void *from,
                           void **to, char *message)
{
	if (!from)
		return HG_OK;
	HG__TRY(hg__data_alloc(n, size > 0 ? size : 1, "nodes in another order", to, message));
	for (int64_t k = 0; k < n && size > 0; k++)
		memcpy((char *)*to + (size_t)k * size, (const char *)from + (size_t)order[k] * size, size);
	return HG_OK;
}

/* The original number of each node: through this order and all earlier ones. Back in the original
 * order *to is NULL. */
static hg_status move_order(const hg_dataset *d, const int32_t *order, int32_t **to, char *message)
{
	int64_t moved = 0;
	HG__TRY(hg__data_alloc(d->nodes, sizeof **to, "the order", (void **)to, message));
	for (int64_t k = 0; k < d->nodes; k++) {
		(*to)[k] = d->order ? d->order[order[k]] : order[k];
		moved += (*to)[k] != k;
	}
	if (moved == 0) {
		free(*to);
		*to = NULL;
	}
	return HG_OK;
}

/* The graph with the data of its edges. */
static hg_status move_graph(const hg_dataset *d, const int32_t *order, const int32_t *position,
                            hg_dataset *moved, char *message)
{
	const struct hg__edge_data old = hg__edge_data_of(d);
	struct hg__edge_data data = {0};
	struct hg__sparse graph = {.cols = d->nodes};
	if (hg__has_edge_data(d))
		HG__TRY(hg__data_alloc(d->edges, sizeof *graph.origin, "edges in another order",
		                       (void **)&graph.origin, message));
	hg_status status =
	    move_sparse(d->nodes, order, position, d->rowptr, d->col, d->weight, &graph, message);
	if (status == HG_OK && graph.origin)
		status = hg__edge_data_gather(&old, graph.origin, d->edges, HG__BEYOND_NEW, &data, NULL,
		                              message);
	free(graph.origin);
	hg__edge_data_give(moved, &data);
	moved->rowptr = graph.rowptr;
	moved->col = graph.col;
	moved->weight = graph.value;
	return status;
}

/* Fill `moved` with every array that has a row per node. Labels and splits of a batch belong to its
 * graphs and stay. */
static hg_status move_nodes(const hg_dataset *d, const int32_t *order, const int32_t *position,
                            hg_dataset *moved, char *message)
{
	struct hg__sparse feat = {.cols = d->features};
	const int64_t n = d->nodes;
	hg_status status = move_graph(d, order, position, moved, message);
	if (status == HG_OK && d->feat_rowptr)
		status =
		    move_sparse(n, order, NULL, d->feat_rowptr, d->feat_col, d->feat_value, &feat, message);
	moved->feat_rowptr = feat.rowptr;
	moved->feat_col = feat.col;
	moved->feat_value = feat.value;
	HG__TRY(status);
	HG__TRY(move_rows(n, order, (size_t)d->features * hg_dtype_size(d->feat_dtype), d->feat,
	                  &moved->feat, message));
	HG__TRY(move_rows(n, order, sizeof *d->orig_id, d->orig_id, (void **)&moved->orig_id, message));
	HG__TRY(hg__node_names_gather(d, order, n, moved, message));
	HG__TRY(move_order(d, order, &moved->order, message));
	if (d->graph_ptr)
		return HG_OK;
	HG__TRY(move_rows(n, order, sizeof *d->label, d->label, (void **)&moved->label, message));
	HG__TRY(move_rows(n, order, (size_t)d->targets * sizeof *d->target, d->target,
	                  (void **)&moved->target, message));
	HG__TRY(move_rows(n, order, 1, d->train_mask, (void **)&moved->train_mask, message));
	HG__TRY(move_rows(n, order, 1, d->val_mask, (void **)&moved->val_mask, message));
	HG__TRY(move_rows(n, order, sizeof *d->fold, d->fold, (void **)&moved->fold, message));
	return move_rows(n, order, 1, d->test_mask, (void **)&moved->test_mask, message);
}

/* *d takes the new arrays; `moved` takes the old ones, so that freeing it frees them. */
static void swap_arrays(hg_dataset *d, hg_dataset *moved)
{
	const hg_dataset old = *d;
	d->rowptr = moved->rowptr;
	d->col = moved->col;
	d->weight = moved->weight;
	d->edge_feat = moved->edge_feat;
	d->edge_label = moved->edge_label;
	d->feat_rowptr = moved->feat_rowptr;
	d->feat_col = moved->feat_col;
	d->feat_value = moved->feat_value;
	d->feat = moved->feat;
	d->orig_id = moved->orig_id;
	d->order = moved->order;
	d->node_name = moved->node_name;
	if (!d->graph_ptr) {
		d->label = moved->label;
		d->target = moved->target;
		d->train_mask = moved->train_mask;
		d->val_mask = moved->val_mask;
		d->test_mask = moved->test_mask;
		d->fold = moved->fold;
	}
	*moved = (hg_dataset){.rowptr = old.rowptr,
	                      .col = old.col,
	                      .weight = old.weight,
	                      .edge_feat = old.edge_feat,
	                      .edge_label = old.edge_label,
	                      .feat_rowptr = old.feat_rowptr,
	                      .feat_col = old.feat_col,
	                      .feat_value = old.feat_value,
	                      .feat = old.feat,
	                      .orig_id = old.orig_id,
	                      .order = old.order,
	                      .node_name = old.node_name};
	if (d->graph_ptr)
		return;
	moved->label = old.label;
	moved->target = old.target;
	moved->train_mask = old.train_mask;
	moved->val_mask = old.val_mask;
	moved->test_mask = old.test_mask;
	moved->fold = old.fold;
}

/* Does every node stay in its graph of the batch? */
static int keeps_graphs(const hg_dataset *d, const int32_t *order)
{
	for (int64_t g = 0; d->graph_ptr && g < d->graphs; g++)
		for (int64_t i = d->graph_ptr[g]; i < d->graph_ptr[g + 1]; i++)
			if (order[i] < d->graph_ptr[g] || order[i] >= d->graph_ptr[g + 1])
				return 0;
	return 1;
}

hg_status hg_dataset_permute(hg_dataset *d, const int32_t *order, char *message)
{
	int32_t *position = NULL;
	hg_dataset *moved = NULL;
	if (!d || (d->nodes > 0 && !order))
		return hg__data_fail(message, HG_ERR_ARG, "permute: %s is NULL",
		                     d ? "the order" : "dataset");
	HG__TRY(
	    hg__data_alloc(d->nodes, sizeof *position, "node positions", (void **)&position, message));
	hg_status status = hg_order_check(d->nodes, order, position);
	if (status < 0)
		status =
		    hg__data_fail(message, status,
		                  "permute: the order is not a permutation of %" PRId64 " nodes", d->nodes);
	else if (!keeps_graphs(d, order))
		status =
		    hg__data_fail(message, HG_ERR_ARG,
		                  "permute: the order moves nodes from one graph of the batch to another");
	if (status == HG_OK)
		status = hg_dataset_new(&moved, message);
	if (status == HG_OK)
		status = move_nodes(d, order, position, moved, message);
	if (status == HG_OK)
		swap_arrays(d, moved);
	hg_dataset_free(moved);
	free(position);
	return status;
}

/* order [n] := the order that restores the original one. */
static hg_status find_original(const hg_dataset *d, int32_t *order, char *message)
{
	if (!d->order)
		return hg__data_fail(message, HG_ERR_STATE,
		                     "reorder: the dataset is in its original order");
	if (hg_order_check(d->nodes, d->order, order) == HG_OK)
		return HG_OK;
	return hg__data_fail(
	    message, HG_ERR_ARG,
	    "reorder: the order that the dataset remembers is not a permutation of %" PRId64 " nodes",
	    d->nodes);
}

static hg_status find_order(const hg_dataset *d, const char *method, const hg_progress *progress,
                            int32_t *order, hg_order_report *report, char *message)
{
	hg_order_config config = HG_ORDER_CONFIG_INIT;
	config.method = method;
	config.graphs = d->graph_ptr ? d->graphs : 0;
	config.ptr = d->graph_ptr;
	config.progress = progress;
	const hg_status status = hg_order_find(&config, d->nodes, d->rowptr, d->col, order, report);
	if (status == HG_ERR_NOMEM)
		return hg__data_fail(message, status,
		                     "out of memory: an order of %" PRId64 " nodes and %" PRId64 " edges",
		                     d->nodes, d->edges);
	if (status == HG_ERR_STATE)
		return hg__data_fail(message, status, "reorder: stopped on request");
	if (status < 0)
		return hg__data_fail(message, status,
		                     "reorder: %s is not a method for this graph, or the graph is damaged",
		                     method);
	return status;
}

static int is_identity(int64_t n, const int32_t *order)
{
	for (int64_t k = 0; k < n; k++)
		if (order[k] != k)
			return 0;
	return 1;
}

hg_status hg_dataset_reorder(hg_dataset *d, const char *method, const hg_progress *progress,
                             hg_order_report *report, char *message)
{
	int32_t *order = NULL;
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "reorder: dataset is NULL");
	method = method ? method : "auto";
	HG__TRY(
	    hg__data_alloc(d->nodes, sizeof *order, "an order of the nodes", (void **)&order, message));
	const int back = strcmp(method, "original") == 0;
	hg_status status = back ? find_original(d, order, message)
	                        : find_order(d, method, progress, order, report, message);
	if (status == HG_OK && !is_identity(d->nodes, order))
		status = hg_dataset_permute(d, order, message);
	free(order);
	return status;
}
