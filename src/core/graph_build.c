/* Graphs from edge lists and from CSR arrays. The host checks everything before anything is built;
 * the device sorts. */
#include <math.h>

#include "core/graph.h"

static hg_status check_extent(hg_context *ctx, int64_t rows, int64_t cols, int64_t m)
{
	if (rows < 0 || cols < 0 || m < 0)
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph: [%lld, %lld] with %lld edges has a negative extent",
		                (long long)rows, (long long)cols, (long long)m);
	if (rows > INT32_MAX || cols > INT32_MAX)
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph: [%lld, %lld] is larger than 32-bit node ids reach (2147483647)",
		                (long long)rows, (long long)cols);
	if (m > INT64_MAX / 16)
		return hg__fail(ctx, HG_ERR_NOMEM, "graph: %lld edges are more than memory can hold",
		                (long long)m);
	return HG_OK;
}

static hg_status check_ids(hg_context *ctx, int64_t limit, int64_t m, const int32_t *id,
                           const char *what)
{
	for (int64_t e = 0; e < m; e++)
		if (id[e] < 0 || id[e] >= limit)
			return hg__fail(ctx, HG_ERR_ARG, "graph: %s[%lld] = %d, expected 0 .. %lld", what,
			                (long long)e, (int)id[e], (long long)limit - 1);
	return HG_OK;
}

static hg_status check_weights(hg_context *ctx, int64_t m, const float *weight)
{
	for (int64_t e = 0; weight && e < m; e++)
		if (!isfinite(weight[e]))
			return hg__fail(ctx, HG_ERR_ARG, "graph: weight[%lld] = %g is not finite", (long long)e,
			                (double)weight[e]);
	return HG_OK;
}

/* Sorts the edges into CSR form. Weights and the caller's `order` need the original index of each
 * sorted edge: 8 bytes an edge, which are released as soon as the graph is built. */
static hg_status sort_edges(hg_graph *g, const int32_t *dst, const int32_t *src,
                            const float *weight, struct hg__buffer *order)
{
	hg_context *ctx = g->ctx;
	HG__TRY(hg__buffer_device(ctx, g->rows + 1, sizeof(int64_t), "graph: rowptr", &g->rowptr));
	HG__TRY(hg__buffer_device(ctx, g->m, sizeof(int32_t), "graph: col", &g->col));
	HG__TRY(ctx->backend->csr_from_coo(ctx, g->rows, g->cols, g->m, dst, src, g->rowptr.data,
	                                   g->col.data, order->data));
	if (!weight || !g->m)
		return HG_OK;
	HG__TRY(hg__buffer_device(ctx, g->m, sizeof *weight, "graph: weight", &g->weight));
	return ctx->backend->gather_f32(ctx, g->m, weight, order->data, g->weight.data);
}

static hg_status build_coo(hg_graph *g, const int32_t *dst, const int32_t *src, const float *weight,
                           int64_t *order)
{
	struct hg__buffer indices = {0};
	if (weight || order)
		HG__TRY(hg__buffer_device(g->ctx, g->m, sizeof(int64_t), "graph: order", &indices));
	hg_status status = sort_edges(g, dst, src, weight, &indices);
	if (status == HG_OK && order && g->m)
		status = g->ctx->backend->copy_out(g->ctx, order, indices.data, indices.bytes);
	/* The queued work still reads the buffer that is freed next. */
	const hg_status done = g->ctx->backend->synchronize(g->ctx);
	hg__buffer_free(g->ctx, &indices);
	return status < 0 ? status : done;
}

/* Returns the built graph, or frees what exists of it after a failure. */
static hg_status return_or_free(hg_graph *g, hg_status status, hg_graph **graph)
{
	if (status < 0)
		hg_graph_free(g);
	else
		*graph = g;
	return status;
}

hg_status hg_graph_from_coo(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
                            const int32_t *dst, const int32_t *src, const float *weight,
                            int64_t *order, hg_graph **graph)
{
	if (graph)
		*graph = NULL;
	if (!ctx || !graph || (m > 0 && (!dst || !src)))
		return hg__fail(ctx, HG_ERR_ARG, "graph: %s is NULL",
		                !graph ? "the pointer for the result" : "dst or src");
	HG__TRY(check_extent(ctx, rows, cols, m));
	HG__TRY(check_ids(ctx, rows, m, dst, "dst"));
	HG__TRY(check_ids(ctx, cols, m, src, "src"));
	HG__TRY(check_weights(ctx, m, weight));
	hg_graph *g;
	HG__TRY(hg__graph_new(ctx, rows, cols, m, &g));
	return return_or_free(g, build_coo(g, dst, src, weight, order), graph);
}

static hg_status check_rowptr(hg_context *ctx, int64_t rows, int64_t m, const int64_t *rowptr)
{
	if (rowptr[0] != 0 || rowptr[rows] != m)
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph: rowptr goes from %lld to %lld, expected 0 to %lld edges",
		                (long long)rowptr[0], (long long)rowptr[rows], (long long)m);
	for (int64_t i = 0; i < rows; i++)
		if (rowptr[i + 1] < rowptr[i])
			return hg__fail(
			    ctx, HG_ERR_ARG, "graph: rowptr[%lld] = %lld is less than rowptr[%lld] = %lld",
			    (long long)(i + 1), (long long)rowptr[i + 1], (long long)i, (long long)rowptr[i]);
	return HG_OK;
}

static int rows_are_sorted(int64_t rows, const int64_t *rowptr, const int32_t *col)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t e = rowptr[i] + 1; e < rowptr[i + 1]; e++)
			if (col[e] < col[e - 1])
				return 0;
	return 1;
}

static hg_status copy_csr(hg_graph *g, const int64_t *rowptr, const int32_t *col,
                          const float *weight)
{
	HG__TRY(hg__buffer_upload(g->ctx, g->rows + 1, sizeof *rowptr, rowptr, "graph: rowptr",
	                          &g->rowptr));
	HG__TRY(hg__buffer_upload(g->ctx, g->m, sizeof *col, col, "graph: col", &g->col));
	if (weight)
		HG__TRY(
		    hg__buffer_upload(g->ctx, g->m, sizeof *weight, weight, "graph: weight", &g->weight));
	return HG_OK;
}

/* A CSR whose rows are not sorted becomes an edge list, which is sorted. */
static hg_status sort_csr(hg_graph *g, const int64_t *rowptr, const int32_t *col,
                          const float *weight)
{
	struct hg__buffer dst;
	HG__TRY(hg__buffer_host(g->ctx, g->m, sizeof(int32_t), "graph: dst", &dst));
	int32_t *row = dst.data;
	for (int64_t i = 0; i < g->rows; i++)
		for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++)
			row[e] = (int32_t)i;
	const hg_status status = build_coo(g, row, col, weight, NULL);
	hg__buffer_free(g->ctx, &dst);
	return status;
}

hg_status hg_graph_from_csr(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
                            const int64_t *rowptr, const int32_t *col, const float *weight,
                            hg_graph **graph)
{
	if (graph)
		*graph = NULL;
	if (!ctx || !graph || !rowptr || (m > 0 && !col))
		return hg__fail(ctx, HG_ERR_ARG, "graph: %s is NULL",
		                !graph    ? "the pointer for the result"
		                : !rowptr ? "rowptr"
		                          : "col");
	HG__TRY(check_extent(ctx, rows, cols, m));
	HG__TRY(check_rowptr(ctx, rows, m, rowptr));
	HG__TRY(check_ids(ctx, cols, m, col, "col"));
	HG__TRY(check_weights(ctx, m, weight));
	hg_graph *g;
	HG__TRY(hg__graph_new(ctx, rows, cols, m, &g));
	const int sorted = rows_are_sorted(rows, rowptr, col);
	return return_or_free(
	    g, sorted ? copy_csr(g, rowptr, col, weight) : sort_csr(g, rowptr, col, weight), graph);
}
