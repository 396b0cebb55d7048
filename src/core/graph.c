/* A graph: creation, release, what it reports of itself, and copies of its arrays on the host. */
#include "core/graph.h"

#include <stddef.h>
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
	g->batch_max = g->batch_min = rows;
	*graph = g;
	return HG_OK;
}

hg_status hg__graph_keeps(const hg_graph *g, const char *what)
{
	return g->changes
	           ? hg__fail(g->ctx, HG_ERR_UNSUPPORTED,
	                      "graph: its arrays change from run to run, and it was made without %s",
	                      what)
	           : HG_OK;
}

hg_status hg__graph_in_rows(const hg_graph *g)
{
	return g->scatters ? hg__fail(g->ctx, HG_ERR_UNSUPPORTED,
	                              "graph: its edges are a list and not in rows, as its stream "
	                              "scatters; choose HG_AGGREGATION_GATHER for it")
	                   : HG_OK;
}

/* The device buffers of a graph; the plans release their own memory. */
static const size_t buffer_at[] = {
    offsetof(hg_graph, rowptr),        offsetof(hg_graph, col),
    offsetof(hg_graph, weight),        offsetof(hg_graph, weight_f16),
    offsetof(hg_graph, rowptr_t),      offsetof(hg_graph, col_t),
    offsetof(hg_graph, edge_t),        offsetof(hg_graph, inverse_row),
    offsetof(hg_graph, inverse_col),   offsetof(hg_graph, root_row),
    offsetof(hg_graph, root_col),      offsetof(hg_graph, batch_ptr),
    offsetof(hg_graph, batch_id),      offsetof(hg_graph, place),
    offsetof(hg_graph, weighted_root), offsetof(hg_graph, weighted_inverse),
    offsetof(hg_graph, bin_first),     offsetof(hg_graph, dst),
    offsetof(hg_graph, src),
};
#define BUFFERS (sizeof buffer_at / sizeof buffer_at[0])

size_t hg__graph_bytes(const hg_graph *g)
{
	size_t bytes = hg__plan_bytes(g->plan) + hg__plan_bytes(g->plan_t);
	for (size_t i = 0; i < BUFFERS; i++)
		bytes += ((const struct hg__buffer *)(const void *)((const char *)g + buffer_at[i]))->bytes;
	return bytes;
}

void hg_graph_free(hg_graph *g)
{
	if (!g)
		return;
	hg_context *ctx = g->ctx;
	for (size_t i = 0; i < BUFFERS; i++)
		hg__buffer_free(ctx, (struct hg__buffer *)(void *)((char *)g + buffer_at[i]));
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

const uint64_t *hg__graph_broken(const hg_graph *graph)
{
	return graph->broken;
}

const int64_t *hg__graph_live(const hg_graph *graph)
{
	const int64_t *ptr = graph->batch_ptr.data;
	return graph->changes && ptr ? ptr + graph->batch : NULL;
}

int hg__graph_scatters(const hg_graph *graph)
{
	return graph && graph->scatters;
}

struct hg__coo hg__graph_coo(const hg_graph *graph, int transposed)
{
	const int32_t *const dst = graph->dst.data, *const src = graph->src.data;
	return (struct hg__coo){graph->rows, graph->cols, graph->m, transposed ? src : dst,
	                        transposed ? dst : src};
}

int hg_graph_is_weighted(const hg_graph *graph)
{
	return graph && graph->weight.data != NULL;
}

hg_status hg__graph_fetch(const hg_graph *g, int need_col, int need_weight,
                          struct hg__host_csr *host)
{
	const struct hg__host_csr none = {0};
	*host = none;
	HG__TRY(hg__graph_in_rows(g));
	hg_status status =
	    hg__buffer_download(g->ctx, &g->rowptr, "graph: host rowptr", &host->rowptr_memory);
	if (status == HG_OK && need_col)
		status = hg__buffer_download(g->ctx, &g->col, "graph: host col", &host->col_memory);
	if (status == HG_OK && need_weight && g->weight.data)
		status =
		    hg__buffer_download(g->ctx, &g->weight, "graph: host weight", &host->weight_memory);
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
	HG__TRY(hg__graph_in_rows(g));
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
		return hg__fail(g->ctx, HG_ERR_ARG,
		                "graph facts: facts->size is not set: start from HG_GRAPH_FACTS_INIT");
	return HG_OK;
}
