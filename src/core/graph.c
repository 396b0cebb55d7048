#include "core/graph.h"

#include <string.h>

#include "core/versioned.h"

hg_status hg__graph_new(hg_context *ctx, int64_t rows, int64_t cols, int64_t m, hg_graph **graph)
{
	struct hg__buffer self = {0};
	*graph = NULL;
	HG__TRY(hg__buffer_host(ctx, 1, sizeof(hg_graph), "graph", &self));
	hg_graph *g = self.data;
	g->ctx = ctx;
	hg__context_hold(ctx);
	g->rows = rows;
	g->cols = cols;
	g->m = m;
	g->batch = 1;
	g->batch_max = rows;
	*graph = g;
	return HG_OK;
}

void hg_graph_free(hg_graph *g)
{
	if (!g)
		return;
	struct hg__buffer *const all[] = {&g->rowptr,      &g->col,         &g->weight,   &g->weight_f16, &g->rowptr_t,  &g->col_t,   &g->edge_t,
	                                  &g->inverse_row, &g->inverse_col, &g->root_row, &g->root_col,   &g->batch_ptr, &g->batch_id};
	hg_context *ctx = g->ctx;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		hg__buffer_free(ctx, all[i]);
	hg__plan_free(ctx, g->plan);
	hg__plan_free(ctx, g->plan_t);
	hg__host_free(ctx, g, sizeof *g);
	hg__context_release(ctx);
}

hg_context *hg_graph_context(const hg_graph *graph)
{
	return graph ? graph->ctx : NULL;
}

int64_t hg_graph_rows(const hg_graph *graph)
{
	return graph ? graph->rows : 0;
}

int64_t hg_graph_cols(const hg_graph *graph)
{
	return graph ? graph->cols : 0;
}

int64_t hg_graph_edges(const hg_graph *graph)
{
	return graph ? graph->m : 0;
}

int64_t hg_graph_batch(const hg_graph *graph)
{
	return graph ? graph->batch : 0;
}

int hg_graph_is_weighted(const hg_graph *graph)
{
	return graph && graph->weight.data != NULL;
}

hg_status hg__graph_fetch(const hg_graph *g, int want_col, int want_weight, struct hg__host_csr *host)
{
	const struct hg__host_csr none = {0};
	*host = none;
	hg_status status = hg__buffer_download(g->ctx, &g->rowptr, "graph: host rowptr", &host->rowptr_memory);
	if (status == HG_OK && want_col)
		status = hg__buffer_download(g->ctx, &g->col, "graph: host col", &host->col_memory);
	if (status == HG_OK && want_weight && g->weight.data)
		status = hg__buffer_download(g->ctx, &g->weight, "graph: host weight", &host->weight_memory);
	if (status < 0)
		hg__graph_fetch_free(g, host);
	host->rowptr = host->rowptr_memory.data;
	host->col = host->col_memory.data;
	host->weight = host->weight_memory.data;
	return status;
}

void hg__graph_fetch_free(const hg_graph *g, struct hg__host_csr *host)
{
	hg__buffer_free(g->ctx, &host->rowptr_memory);
	hg__buffer_free(g->ctx, &host->col_memory);
	hg__buffer_free(g->ctx, &host->weight_memory);
}

hg_status hg_graph_download(hg_graph *g, int64_t *rowptr, int32_t *col, float *weight)
{
	if (!g)
		return HG_ERR_ARG;
	const struct hg__backend *b = g->ctx->backend;
	if (rowptr)
		HG__TRY(b->copy_out(g->ctx, rowptr, g->rowptr.data, g->rowptr.bytes));
	if (col && g->m)
		HG__TRY(b->copy_out(g->ctx, col, g->col.data, g->col.bytes));
	if (weight && g->weight.data)
		HG__TRY(b->copy_out(g->ctx, weight, g->weight.data, g->weight.bytes));
	else
		for (int64_t e = 0; weight && e < g->m; e++)
			weight[e] = 1.0f;
	return HG_OK;
}

hg_status hg_graph_facts_get(hg_graph *g, hg_graph_facts *facts)
{
	if (!g)
		return HG_ERR_ARG;
	if (!facts)
		return hg__fail(g->ctx, HG_ERR_ARG, "graph facts: the pointer for the result is NULL");
	HG__TRY(hg__graph_know(g));
	if (!hg__struct_write(facts, &g->facts, sizeof g->facts))
		return hg__fail(g->ctx, HG_ERR_ARG, "graph facts: facts->size is not set: start from HG_GRAPH_FACTS_INIT");
	return HG_OK;
}
