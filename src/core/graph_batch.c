/* Batches of graphs. A batch is one block-diagonal matrix, and the nodes at which its blocks
 * begin. */
#include "core/graph.h"

static hg_status check_ptr(hg_graph *g, int64_t count, const int64_t *ptr)
{
	if (g->rows != g->cols)
		return hg__fail(g->ctx, HG_ERR_SHAPE,
		                "set_batch: the graph is [%lld, %lld], a batch needs a square one",
		                (long long)g->rows, (long long)g->cols);
	if (count < 0 || count > INT32_MAX || !ptr)
		return hg__fail(g->ctx, HG_ERR_ARG, "set_batch: count = %lld with ptr %s", (long long)count,
		                ptr ? "given" : "NULL");
	if (ptr[0] != 0 || ptr[count] != g->rows)
		return hg__fail(g->ctx, HG_ERR_ARG,
		                "set_batch: ptr goes from %lld to %lld, expected 0 to %lld nodes",
		                (long long)ptr[0], (long long)ptr[count], (long long)g->rows);
	for (int64_t k = 0; k < count; k++)
		if (ptr[k + 1] < ptr[k])
			return hg__fail(
			    g->ctx, HG_ERR_ARG, "set_batch: ptr[%lld] = %lld is less than ptr[%lld] = %lld",
			    (long long)(k + 1), (long long)ptr[k + 1], (long long)k, (long long)ptr[k]);
	return HG_OK;
}

static hg_status check_blocks(hg_graph *g, const struct hg__host_csr *csr, const int64_t *ptr,
                              const int32_t *id)
{
	for (int64_t i = 0; i < g->rows; i++)
		for (int64_t e = csr->rowptr[i]; e < csr->rowptr[i + 1]; e++)
			if (id[csr->col[e]] != id[i])
				return hg__fail(g->ctx, HG_ERR_ARG,
				                "set_batch: edge %lld joins node %lld of graph %d, which ends at "
				                "%lld, and node %d of graph %d",
				                (long long)e, (long long)i, (int)id[i], (long long)ptr[id[i] + 1],
				                (int)csr->col[e], (int)id[csr->col[e]]);
	return HG_OK;
}

/* Uploads both arrays. If one upload fails the graph keeps neither, so it never has half a
 * batch. */
static hg_status install_batch(hg_graph *g, int64_t count, const int64_t *ptr, const int32_t *id)
{
	struct hg__buffer device_ptr = {0}, device_id = {0};
	HG__TRY(hg__buffer_upload(g->ctx, count + 1, sizeof *ptr, ptr, "batch: ptr", &device_ptr));
	const hg_status status =
	    hg__buffer_upload(g->ctx, g->rows, sizeof *id, id, "batch: id", &device_id);
	if (status < 0) {
		hg__buffer_free(g->ctx, &device_ptr);
		return status;
	}
	g->batch_ptr = device_ptr;
	g->batch_id = device_id;
	g->batch = count;
	g->batch_max = g->batch_min = 0;
	for (int64_t k = 0; k < count; k++) {
		const int64_t nodes = ptr[k + 1] - ptr[k];
		g->batch_max = nodes > g->batch_max ? nodes : g->batch_max;
		g->batch_min =
		    nodes > 0 && (g->batch_min == 0 || nodes < g->batch_min) ? nodes : g->batch_min;
	}
	g->bins.rows = hg__bins_rows(g->batch_max);
	return HG_OK;
}

static hg_status set_batch(hg_graph *g, int64_t count, const int64_t *ptr)
{
	struct hg__host_csr csr;
	struct hg__buffer id = {0};
	HG__TRY(hg__graph_fetch(g, 1, 0, &csr));
	hg_status status = hg__buffer_host(g->ctx, g->rows, sizeof(int32_t), "batch: id", &id);
	if (status == HG_OK) {
		int32_t *of = id.data;
		for (int64_t k = 0; k < count; k++)
			for (int64_t i = ptr[k]; i < ptr[k + 1]; i++)
				of[i] = (int32_t)k;
		status = check_blocks(g, &csr, ptr, of);
	}
	if (status == HG_OK)
		status = install_batch(g, count, ptr, id.data);
	hg__buffer_free(g->ctx, &id);
	hg__graph_fetch_free(g, &csr);
	return status;
}

hg_status hg_graph_set_batch(hg_graph *g, int64_t count, const int64_t *ptr)
{
	if (!g)
		return HG_ERR_ARG;
	HG__TRY(check_ptr(g, count, ptr));
	if (g->batch_ptr.bytes)
		return hg__fail(g->ctx, HG_ERR_STATE,
		                "set_batch: the graph already has its batch (of %lld graphs); set it once, "
		                "before the graph is used",
		                (long long)g->batch);
	HG__TRY(set_batch(g, count, ptr));
	g->batch_set = 1;
	return HG_OK;
}

hg_status hg__graph_batch(hg_graph *g, const int64_t **ptr, const int32_t **id)
{
	if (!g->batch_ptr.bytes) {
		const int64_t whole[2] = {0, g->rows};
		struct hg__buffer zeros = {0};
		HG__TRY(hg__buffer_host(g->ctx, g->rows, sizeof(int32_t), "batch: id", &zeros));
		const hg_status status = install_batch(g, 1, whole, zeros.data);
		hg__buffer_free(g->ctx, &zeros);
		HG__TRY(status);
	}
	*ptr = g->batch_ptr.data;
	*id = g->batch_id.data;
	return HG_OK;
}

int64_t hg__graph_batch_max(const hg_graph *g)
{
	return g->batch_max;
}

int64_t hg__graph_batch_min(const hg_graph *g)
{
	return g->batch_min;
}

hg_status hg__graph_copy_batch(const hg_graph *from, hg_graph *to)
{
	if (!from->batch_set)
		return HG_OK;
	struct hg__buffer ptr;
	HG__TRY(hg__buffer_download(from->ctx, &from->batch_ptr, "batch: host ptr", &ptr));
	const hg_status status = hg_graph_set_batch(to, from->batch, ptr.data);
	hg__buffer_free(from->ctx, &ptr);
	return status;
}
