/* Orders of the nodes of a graph on a device. They are found on the host, from a copy of the
 * rows. */
#include "core/graph.h"
#include "core/versioned.h"
#include "order/order.h"

static hg_status check_square(hg_graph *g, const char *verb)
{
	if (!g)
		return HG_ERR_ARG;
	if (g->rows != g->cols)
		return hg__fail(g->ctx, HG_ERR_SHAPE,
		                "%s: the graph is [%lld, %lld], expected a square one", verb,
		                (long long)g->rows, (long long)g->cols);
	return HG_OK;
}

/* Copies the graph's batch into the configuration. A graph without a batch leaves it empty. */
static hg_status fetch_batch(hg_graph *g, struct hg__buffer *ptr, hg_order_config *config)
{
	*ptr = (struct hg__buffer){0};
	config->graphs = 0;
	config->ptr = NULL;
	if (!g->batch_set)
		return HG_OK;
	HG__TRY(hg__buffer_download(g->ctx, &g->batch_ptr, "order: host batch", ptr));
	config->graphs = g->batch;
	config->ptr = ptr->data;
	return HG_OK;
}

hg_status hg_graph_order(hg_graph *g, const hg_order_config *config, int32_t *order,
                         hg_order_report *report)
{
	hg_order_config own = HG_ORDER_CONFIG_INIT;
	struct hg__host_csr csr;
	struct hg__buffer ptr;
	HG__TRY(check_square(g, "order"));
	if (config && !hg__struct_read(&own, sizeof own, config))
		return hg__fail(g->ctx, HG_ERR_ARG,
		                "order: config->size is not set: start from HG_ORDER_CONFIG_INIT");
	HG__TRY(fetch_batch(g, &ptr, &own));
	hg_status status = hg__graph_fetch(g, 1, 0, &csr);
	if (status == HG_OK) {
		status = hg__order_find(g->ctx, &own, g->rows, csr.rowptr, csr.col, order, report);
		hg__graph_fetch_free(g, &csr);
	}
	hg__buffer_free(g->ctx, &ptr);
	return status;
}

hg_status hg_graph_locality(hg_graph *g, hg_locality *locality)
{
	struct hg__host_csr csr;
	hg_locality found;
	HG__TRY(check_square(g, "locality"));
	if (!locality)
		return hg__fail(g->ctx, HG_ERR_ARG, "locality: the pointer for the result is NULL");
	const struct hg__order_work work = {g->ctx, NULL, 1};
	HG__TRY(hg__graph_fetch(g, 1, 0, &csr));
	const hg_status status = hg__locality(&work, g->rows, csr.rowptr, csr.col, NULL, &found);
	hg__graph_fetch_free(g, &csr);
	HG__TRY(status);
	if (!hg__struct_write(locality, &found, sizeof found))
		return hg__fail(g->ctx, HG_ERR_ARG,
		                "locality: locality->size is not set: start from HG_LOCALITY_INIT");
	return HG_OK;
}

/* Edge (row, col) becomes (position[row], position[col]). The new edge list is sorted like any
 * other. */
static hg_status rebuild_edges(hg_graph *g, const struct hg__host_csr *csr, const int32_t *position,
                               int64_t *edge, hg_graph **out)
{
	struct hg__buffer dst, src = {0};
	HG__TRY(hg__buffer_host(g->ctx, g->m, sizeof(int32_t), "permute: dst", &dst));
	hg_status status = hg__buffer_host(g->ctx, g->m, sizeof(int32_t), "permute: src", &src);
	if (status == HG_OK) {
		int32_t *to = dst.data, *from = src.data;
		for (int64_t i = 0; i < g->rows; i++)
			for (int64_t e = csr->rowptr[i]; e < csr->rowptr[i + 1]; e++) {
				to[e] = position[i];
				from[e] = position[csr->col[e]];
			}
		status =
		    hg_graph_from_coo(g->ctx, g->rows, g->cols, g->m, to, from, csr->weight, edge, out);
	}
	hg__buffer_free(g->ctx, &src);
	hg__buffer_free(g->ctx, &dst);
	return status;
}

static hg_status permute_graph(hg_graph *g, const int32_t *position, int64_t *edge, hg_graph **out)
{
	struct hg__host_csr csr;
	HG__TRY(hg__graph_fetch(g, 1, 1, &csr));
	hg_status status = rebuild_edges(g, &csr, position, edge, out);
	hg__graph_fetch_free(g, &csr);
	HG__TRY(status);
	status = hg__graph_copy_batch(g, *out);
	if (status < 0) {
		hg_graph_free(*out);
		*out = NULL;
	}
	return status;
}

/* Checks that every node stays inside its graph of the batch. */
static hg_status check_inside(hg_graph *g, const hg_order_config *batch, const int32_t *order)
{
	for (int64_t k = 0; k < batch->graphs; k++)
		for (int64_t i = batch->ptr[k]; i < batch->ptr[k + 1]; i++)
			if (order[i] < batch->ptr[k] || order[i] >= batch->ptr[k + 1])
				return hg__fail(g->ctx, HG_ERR_ARG,
				                "permute: order[%lld] = %d leaves graph %lld of the batch, which "
				                "has nodes %lld .. %lld",
				                (long long)i, (int)order[i], (long long)k, (long long)batch->ptr[k],
				                (long long)batch->ptr[k + 1] - 1);
	return HG_OK;
}

hg_status hg_graph_permute(hg_graph *g, const int32_t *order, int64_t *edge, hg_graph **out)
{
	hg_order_config batch = HG_ORDER_CONFIG_INIT;
	struct hg__buffer ptr, position = {0};
	HG__TRY(check_square(g, "permute"));
	if (!out)
		return hg__fail(g->ctx, HG_ERR_ARG, "permute: the pointer for the result is NULL");
	*out = NULL;
	const struct hg__order_work work = {g->ctx, NULL, 1};
	HG__TRY(fetch_batch(g, &ptr, &batch));
	hg_status status =
	    hg__buffer_host(g->ctx, g->rows, sizeof(int32_t), "permute: places", &position);
	if (status == HG_OK) {
		status = hg__order_check(&work, g->rows, order, position.data);
		if (status < 0)
			status =
			    hg__fail(g->ctx, HG_ERR_ARG, "permute: order is not a permutation of 0 .. %lld",
			             (long long)g->rows - 1);
	}
	if (status == HG_OK)
		status = check_inside(g, &batch, order);
	if (status == HG_OK)
		status = permute_graph(g, position.data, edge, out);
	hg__buffer_free(g->ctx, &position);
	hg__buffer_free(g->ctx, &ptr);
	return status;
}
