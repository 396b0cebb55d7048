/* The views of a graph that kernels read: both orientations with their plans, normalisation factors
 * and weights. Each is built in device memory by the first call that needs it. */
#include <math.h>

#include "core/convert.h"
#include "core/graph.h"
#include "core/plan_parts.h"

/* Sets *order to the order of parts that this device needs for this graph. */
static hg_status part_order(const hg_graph *g, int64_t rows, int64_t cols,
                            const int64_t *host_rowptr, const int32_t *col,
                            enum hg__part_order *order)
{
	int near = 0;
	*order = HG__PARTS_NONE;
	if (!g->ctx->backend->wants_parts)
		return HG_OK;
	HG__TRY(hg__plan_near(g->ctx, rows, cols, host_rowptr, col, &near));
	*order = near ? HG__PARTS_NEAR : HG__PARTS_ALL;
	return HG_OK;
}

static hg_status plan_of(const hg_graph *g, int64_t rows, int64_t cols,
                         const struct hg__buffer *rowptr, const struct hg__buffer *col,
                         struct hg__plan **plan)
{
	if (*plan)
		return HG_OK;
	struct hg__buffer host;
	enum hg__part_order order;
	HG__TRY(hg__buffer_download(g->ctx, rowptr, "plan: host rowptr", &host));
	hg_status status = part_order(g, rows, cols, host.data, col->data, &order);
	if (status == HG_OK)
		status = hg__plan_build(g->ctx, rows, g->m, host.data, order, plan);
	hg__buffer_free(g->ctx, &host);
	return status;
}

hg_status hg__graph_csr(hg_graph *g, struct hg__csr *csr)
{
	HG__TRY(hg__graph_in_rows(g));
	HG__TRY(plan_of(g, g->rows, g->cols, &g->rowptr, &g->col, &g->plan));
	const struct hg__csr view = {g->rows,     g->cols, g->m,   g->rowptr.data,
	                             g->col.data, NULL,    g->plan};
	*csr = view;
	return HG_OK;
}

/* Builds the arrays of the transpose on the device; `edge` only if it is needed. */
static hg_status build_transpose(hg_graph *g, int need_edge, struct hg__buffer *rowptr,
                                 struct hg__buffer *col, struct hg__buffer *edge)
{
	const struct hg__csr forward = {g->rows,     g->cols, g->m, g->rowptr.data,
	                                g->col.data, NULL,    NULL};
	hg_status status =
	    hg__buffer_device(g->ctx, g->cols + 1, sizeof(int64_t), "transpose: rowptr", rowptr);
	if (status == HG_OK)
		status = hg__buffer_device(g->ctx, g->m, sizeof(int32_t), "transpose: col", col);
	if (status == HG_OK && need_edge)
		status = hg__buffer_device(g->ctx, g->m, sizeof(uint32_t), "transpose: edge", edge);
	if (status == HG_OK)
		status =
		    g->ctx->backend->csr_transpose(g->ctx, &forward, rowptr->data, col->data, edge->data);
	return status;
}

/* Keeps `fresh` if it is needed and missing so far, else frees it. */
static void keep_or_free(hg_context *ctx, struct hg__buffer *kept, struct hg__buffer *fresh,
                         int needed)
{
	if (needed && !kept->bytes) {
		*kept = *fresh;
		const struct hg__buffer none = {0};
		*fresh = none;
	}
	hg__buffer_free(ctx, fresh);
}

static hg_status check_edge_limit(const hg_graph *g, int need_edge)
{
	if (!need_edge || g->m <= HG__EDGE_INDEX_LIMIT)
		return HG_OK;
	return hg__fail(g->ctx, HG_ERR_UNSUPPORTED,
	                "graph: %lld edges; the edge values of a transpose are addressed by 32-bit "
	                "numbers, which reach %lld",
	                (long long)g->m, (long long)HG__EDGE_INDEX_LIMIT);
}

hg_status hg__graph_missing(hg_graph *g, int need_edge, size_t *bytes)
{
	*bytes = 0;
	if (g->scatters) /* the list serves both orientations */
		return HG_OK;
	HG__TRY(check_edge_limit(g, need_edge));
	HG__TRY(hg__graph_know(g));
	const size_t pattern = (size_t)(g->cols + 1) * sizeof(int64_t) +
	                       (size_t)g->m * sizeof(int32_t) +
	                       hg__plan_most_bytes(g->cols, g->m, g->ctx->backend->wants_parts);
	*bytes = (g->pattern_symmetric || g->rowptr_t.bytes ? 0 : pattern) +
	         (need_edge && !g->edge_t.bytes ? (size_t)g->m * sizeof(uint32_t) : 0);
	return HG_OK;
}

hg_status hg__graph_transpose(hg_graph *g, int need_edge)
{
	HG__TRY(hg__graph_in_rows(g));
	HG__TRY(check_edge_limit(g, need_edge));
	HG__TRY(hg__graph_know(g));
	const int have_rows = g->pattern_symmetric || g->rowptr_t.bytes,
	          have_edge = !need_edge || !g->m || g->edge_t.bytes;
	if (have_rows && have_edge)
		return HG_OK;
	struct hg__buffer rowptr = {0}, col = {0}, edge = {0};
	HG__TRY(hg__graph_keeps(g, "the transpose that is needed"));
	hg_status status = build_transpose(g, need_edge, &rowptr, &col, &edge);
	if (status == HG_OK)
		/* the calls below may free arrays that are still being written */
		status = g->ctx->backend->synchronize(g->ctx);
	keep_or_free(g->ctx, &g->rowptr_t, &rowptr, status == HG_OK && !g->pattern_symmetric);
	keep_or_free(g->ctx, &g->col_t, &col, status == HG_OK && !g->pattern_symmetric);
	keep_or_free(g->ctx, &g->edge_t, &edge, status == HG_OK && need_edge);
	return status;
}

hg_status hg__graph_csr_t(hg_graph *g, int need_edge, struct hg__csr *csr_t)
{
	HG__TRY(hg__graph_transpose(g, need_edge));
	if (g->pattern_symmetric) {
		HG__TRY(hg__graph_csr(g, csr_t));
	} else {
		HG__TRY(plan_of(g, g->cols, g->rows, &g->rowptr_t, &g->col_t, &g->plan_t));
		const struct hg__csr view = {g->cols,       g->rows, g->m,     g->rowptr_t.data,
		                             g->col_t.data, NULL,    g->plan_t};
		*csr_t = view;
	}
	csr_t->edge = g->edge_t.data;
	return HG_OK;
}

/* 0 .. m-1 in device memory. */
static hg_status places(hg_graph *g)
{
	struct hg__buffer host;
	if (g->place.bytes || !g->m)
		return HG_OK;
	HG__TRY(hg__buffer_host(g->ctx, g->m, sizeof(int32_t), "graph: places of edges", &host));
	for (int64_t e = 0; e < g->m; e++)
		((int32_t *)host.data)[e] = (int32_t)e;
	const hg_status status = hg__buffer_upload(g->ctx, g->m, sizeof(int32_t), host.data,
	                                           "graph: places of edges", &g->place);
	hg__buffer_free(g->ctx, &host);
	return status;
}

hg_status hg__graph_by_edge(hg_graph *g, int transposed, const struct hg__csr **csr)
{
	struct hg__csr from;
	struct hg__plan *plan = &g->plan_by_edge[transposed];
	if (g->m > INT32_MAX)
		return hg__fail(g->ctx, HG_ERR_UNSUPPORTED,
		                "graph: %lld edges; sums over values of edges are for at most %lld",
		                (long long)g->m, (long long)INT32_MAX);
	HG__TRY(transposed ? hg__graph_csr_t(g, 1, &from) : hg__graph_csr(g, &from));
	if (!from.edge)
		HG__TRY(places(g));
	*plan = *from.plan;
	plan->tiles = NULL;
	plan->dense = NULL;
	plan->counted = plan->rest = NULL;
	g->by_edge[transposed] = (struct hg__csr){from.rows,
	                                          g->m,
	                                          g->m,
	                                          from.rowptr,
	                                          from.edge ? (const int32_t *)(const void *)from.edge
	                                                    : (const int32_t *)g->place.data,
	                                          NULL,
	                                          plan};
	*csr = &g->by_edge[transposed];
	return HG_OK;
}

typedef void (*degree_function)(int64_t n, const int64_t *ptr, float *out);

/* Uploads f(degree) for each of n nodes; ptr is a host array. */
static hg_status degree_vector(hg_context *ctx, int64_t n, const int64_t *ptr, degree_function f,
                               struct hg__buffer *vector)
{
	if (vector->bytes || !n)
		return HG_OK;
	struct hg__buffer host;
	HG__TRY(hg__buffer_host(ctx, n, sizeof(float), "graph: norm", &host));
	f(n, ptr, host.data);
	const hg_status status =
	    hg__buffer_upload(ctx, n, sizeof(float), host.data, "graph: norm", vector);
	hg__buffer_free(ctx, &host);
	return status;
}

static hg_status row_vector(hg_graph *g, degree_function f, struct hg__buffer *vector)
{
	if (vector->bytes)
		return HG_OK;
	struct hg__host_csr csr;
	HG__TRY(hg__graph_keeps(g, "the factors of this normalisation"));
	HG__TRY(hg__graph_fetch(g, 0, 0, &csr));
	const hg_status status = degree_vector(g->ctx, g->rows, csr.rowptr, f, vector);
	hg__graph_fetch_free(g, &csr);
	return status;
}

/* Sets *ptr to the row pointers of the transpose: those of the graph if its pattern is known to be
 * symmetric, those of a transpose that is already built, or else new ones, which `counted` then
 * owns. */
static hg_status column_ptr(const hg_graph *g, struct hg__buffer *counted,
                            const struct hg__buffer **ptr)
{
	const struct hg__csr csr = {g->rows, g->cols, g->m, g->rowptr.data, g->col.data, NULL, NULL};
	*ptr = g->rowptr_t.bytes                        ? &g->rowptr_t
	       : g->facts_known && g->pattern_symmetric ? &g->rowptr
	                                                : counted;
	if (*ptr != counted)
		return HG_OK;
	HG__TRY(
	    hg__buffer_device(g->ctx, g->cols + 1, sizeof(int64_t), "graph: column degrees", counted));
	return g->ctx->backend->column_ptr(g->ctx, &csr, counted->data);
}

static hg_status col_vector(hg_graph *g, degree_function f, struct hg__buffer *vector)
{
	if (vector->bytes)
		return HG_OK;
	struct hg__buffer counted = {0}, host = {0};
	const struct hg__buffer *ptr = NULL;
	HG__TRY(hg__graph_keeps(g, "the factors of this normalisation"));
	hg_status status = column_ptr(g, &counted, &ptr);
	if (status == HG_OK)
		status = hg__buffer_download(g->ctx, ptr, "graph: column degrees", &host);
	if (status == HG_OK)
		status = degree_vector(g->ctx, g->cols, host.data, f, vector);
	hg__buffer_free(g->ctx, &host);
	hg__buffer_free(g->ctx, &counted);
	return status;
}

static hg_status weighted_norm(hg_graph *g, hg_norm norm, const float **row_scale,
                               const float **col_scale)
{
	struct hg__weighed facts;
	HG__TRY(hg__graph_weigh(g, norm, &facts));
	*row_scale = norm == HG_NORM_WEIGHTED ? g->weighted_root.data : g->weighted_inverse.data;
	*col_scale = norm == HG_NORM_WEIGHTED ? g->weighted_root.data : NULL;
	return HG_OK;
}

hg_status hg__graph_norm(hg_graph *g, hg_norm norm, const float **row_scale,
                         const float **col_scale)
{
	if ((unsigned)norm >= HG_NORM_VALUES)
		return hg__fail(g->ctx, HG_ERR_ARG, "graph: %d is not an hg_norm", (int)norm);
	if (hg__norm_is_weighted(norm))
		return weighted_norm(g, norm, row_scale, col_scale);
	struct hg__buffer none = {0};
	if (norm == HG_NORM_IN && g->rows != g->cols)
		return hg__fail(g->ctx, HG_ERR_SHAPE,
		                "graph: norm in needs a square graph, found %lld rows and %lld columns",
		                (long long)g->rows, (long long)g->cols);
	struct hg__buffer *const row[HG_NORMS] = {&none, &none, &g->inverse_row, &g->root_row,
	                                          &g->root_row};
	struct hg__buffer *const col[HG_NORMS] = {&none, &g->inverse_col, &none, &g->root_col,
	                                          &g->root_row};
	static const degree_function row_fn[HG_NORMS] = {NULL, NULL, hg__degree_inverse,
	                                                 hg__degree_root, hg__degree_root};
	/* HG_NORM_IN uses the row factors on both sides */
	static const degree_function col_fn[HG_NORMS] = {NULL, hg__degree_inverse, NULL,
	                                                 hg__degree_root, NULL};
	if (row_fn[norm])
		HG__TRY(row_vector(g, row_fn[norm], row[norm]));
	if (col_fn[norm])
		HG__TRY(col_vector(g, col_fn[norm], col[norm]));
	*row_scale = row[norm]->data;
	*col_scale = col[norm]->data;
	return HG_OK;
}

static hg_status narrow_weights(hg_graph *g)
{
	struct hg__buffer wide, narrow = {0};
	HG__TRY(hg__graph_keeps(g, "f16 weights"));
	HG__TRY(hg__buffer_download(g->ctx, &g->weight, "graph: host weight", &wide));
	const int64_t bad = hg__convert_overflow(HG_F16, HG_F32, wide.data, g->m);
	hg_status status = HG_OK;
	if (bad >= 0)
		status = hg__fail(
		    g->ctx, HG_ERR_RANGE,
		    "graph: the weight %.9g of edge %lld (in CSR order) does not fit f16 (largest 65504)",
		    (double)((const float *)wide.data)[bad], (long long)bad);
	if (status == HG_OK)
		status = hg__buffer_host(g->ctx, g->m, sizeof(hg_half), "graph: f16 weight", &narrow);
	if (status == HG_OK) {
		hg__convert(HG_F16, narrow.data, HG_F32, wide.data, g->m);
		status = hg__buffer_upload(g->ctx, g->m, sizeof(hg_half), narrow.data, "graph: f16 weight",
		                           &g->weight_f16);
	}
	hg__buffer_free(g->ctx, &narrow);
	hg__buffer_free(g->ctx, &wide);
	return status;
}

hg_status hg__graph_weight(hg_graph *g, hg_dtype dtype, const void **weight)
{
	if (dtype != HG_F16 && dtype != HG_F32)
		return hg__fail(g->ctx, HG_ERR_DTYPE,
		                "graph: weights are available as f16 and f32, not as %s",
		                hg_dtype_name(dtype));
	if (dtype == HG_F16 && g->weight.bytes && !g->weight_f16.bytes)
		HG__TRY(narrow_weights(g));
	*weight = dtype == HG_F16 ? g->weight_f16.data : g->weight.data;
	return HG_OK;
}
