#include <math.h>

#include "doctor/sum_terms.h"
#include "precision/half.h"

/* Sums over the edges of a row, alpha r_i * sum over edges (i, j) of w s_j X[j, col], and sums of
 * products at one edge. */

static struct hg__mat vector(const float *data, int64_t rows)
{
	const struct hg__mat mat = {(void *)(uintptr_t)data, rows, 1, 1, HG_F32};
	return mat;
}

/* Sets f and x as f16 arithmetic computes them (kernels.h, "f"). */
static void set_f16_factors(const struct hg__aggregate *g, double w, double s, double x,
                            struct hg__addend *a)
{
	const int scales_weight = g->col_scale && !g->scale_first;
	a->f = g->w.data ? hg__half_round((float)w) : 1.0f;
	if (scales_weight)
		a->f = hg__half_round(a->f * hg__half_round((float)s));
	a->x = g->col_scale && g->scale_first ? hg__half_round((float)s * (float)x) : (float)x;
}

struct readers {
	struct hg__reader x, w, s;
};

static hg_status fill_addend(const struct hg__aggregate *g, const struct readers *from,
                             const struct hg__row_edges *edges, int64_t k, int64_t col, double r,
                             struct hg__addend *a)
{
	double w = 1.0, s = 1.0;
	a->row = hg__neighbour(edges, k);
	a->col = col;
	HG__TRY(hg__read_element(&from->x, a->row, col, &a->operand));
	if (g->w.data)
		HG__TRY(hg__read_element(&from->w, hg__value_row(edges, k),
		                         g->heads > 1 ? col / (g->x.cols / g->heads) : 0, &w));
	if (g->col_scale)
		HG__TRY(hg__read_element(&from->s, a->row, 0, &s));
	a->factor = (double)g->alpha * r * w * s;
	set_f16_factors(g, w, s, a->operand, a);
	return HG_OK;
}

/* Marks where batches end, and where the share that one item of the plan has of the row ends. */
static hg_status mark_ends(hg_context *ctx, const struct hg__csr *csr, int64_t begin,
                           struct hg__sum *sum)
{
	struct hg__buffer edges = {0};
	const struct hg__plan *plan = csr->plan;
	const int64_t *end = NULL;
	for (int64_t k = 0; k < sum->count; k++)
		sum->addend[k].ends =
		    (begin + k + 1) % HG_BATCH_EDGES == 0 ? HG__ENDS_BATCH : HG__ENDS_NOTHING;
	if (!plan || !plan->splits)
		return HG_OK;
	HG__TRY(
	    hg__buffer_host(ctx, plan->items + 1, sizeof *end, "doctor: the plan of a sum", &edges));
	const hg_status status = ctx->backend->copy_out(ctx, edges.data, plan->item_edge, edges.bytes);
	end = edges.data;
	for (int64_t i = 0; status >= 0 && i <= plan->items; i++)
		if (end[i] > begin && end[i] <= begin + sum->count)
			sum->addend[end[i] - begin - 1].ends = HG__ENDS_PART;
	hg__buffer_free(ctx, &edges);
	return status;
}

static hg_status fill_addends(const struct hg__terms *t, const struct readers *from,
                              const struct hg__row_edges *edges, hg_accumulate accumulate,
                              struct hg__sum *sum)
{
	const struct hg__aggregate *g = &t->edges;
	double r = 1.0;
	if (g->row_scale) {
		const struct hg__mat scale = vector(g->row_scale, g->csr->rows);
		HG__TRY(hg__fetch_element(sum->ctx, &scale, t->i, 0, &r));
	}
	HG__TRY(hg__sum_alloc(sum, edges->count));
	for (int64_t k = 0; k < edges->count; k++)
		HG__TRY(fill_addend(g, from, edges, k, t->j, r, &sum->addend[k]));
	sum->products = g->w.data || (g->col_scale && !g->scale_first);
	sum->accumulate = t->halves ? accumulate : HG_ACC_F32;
	sum->last_factor = hg__half_round(g->row_scale ? g->alpha * (float)r : g->alpha);
	return sum->accumulate == HG_ACC_F16_DISCRETIZED
	           ? mark_ends(sum->ctx, g->csr, edges->begin, sum)
	           : HG_OK;
}

hg_status hg__sum_over_edges(const struct hg__terms *t, hg_accumulate accumulate,
                             struct hg__sum *sum)
{
	hg_context *ctx = sum->ctx;
	const struct hg__aggregate *g = &t->edges;
	const struct hg__mat s = vector(g->col_scale, g->csr->cols);
	struct hg__row_edges edges;
	struct readers from = {0};
	HG__TRY(hg__row_edges_open(ctx, g->csr, t->i, &edges));
	hg_status status = hg__reader_open(ctx, &g->x, edges.count, &from.x);
	if (status >= 0 && g->w.data)
		status = hg__reader_open(ctx, &g->w, edges.count, &from.w);
	if (status >= 0 && g->col_scale)
		status = hg__reader_open(ctx, &s, edges.count, &from.s);
	if (status >= 0)
		status = fill_addends(t, &from, &edges, accumulate, sum);
	hg__reader_close(&from.s);
	hg__reader_close(&from.w);
	hg__reader_close(&from.x);
	hg__row_edges_close(ctx, &edges);
	return status;
}

/* ---- products of two rows, at one edge ---- */

static hg_status factor_at(hg_context *ctx, const float *scale, int64_t rows, int64_t row,
                           double *factor)
{
	const struct hg__mat mat = vector(scale, rows);
	*factor = 1.0;
	return scale ? hg__fetch_element(ctx, &mat, row, 0, factor) : HG_OK;
}

static hg_status dot_rows(const struct hg__terms *t, int64_t p, int64_t q, double factor,
                          struct hg__sum *sum)
{
	struct hg__fetched a = {0}, b = {0};
	hg_status status = hg__sum_alloc(sum, t->count);
	if (status >= 0)
		status = hg__fetch_rows(sum->ctx, &t->a, p, 1, &a);
	if (status >= 0)
		status = hg__fetch_rows(sum->ctx, &t->b, q, 1, &b);
	for (int64_t c = 0; status >= 0 && c < t->count; c++)
		sum->addend[c] = (struct hg__addend){.row = q,
		                                     .col = t->first + c,
		                                     .factor = factor * hg__fetched_at(&a, 0, t->first + c),
		                                     .operand = hg__fetched_at(&b, 0, t->first + c),
		                                     .f = 1.0f};
	hg__fetched_free(sum->ctx, &b);
	hg__fetched_free(sum->ctx, &a);
	return status;
}

hg_status hg__sum_over_ends(const struct hg__terms *t, struct hg__sum *sum)
{
	const struct hg__csr *csr = t->edges.csr;
	int64_t p = 0, q = 0;
	double r = 1.0, s = 1.0;
	HG__TRY(hg__csr_ends(sum->ctx, csr, t->i, &p, &q));
	HG__TRY(factor_at(sum->ctx, t->edges.row_scale, csr->rows, p, &r));
	HG__TRY(factor_at(sum->ctx, t->edges.col_scale, csr->cols, q, &s));
	return dot_rows(t, p, q, t->factor * r * s, sum);
}

/* ---- gradients of scores, each times the slope of a leaky relu at its edge ---- */

static hg_status fill_slopes(const struct hg__terms *t, const struct hg__row_edges *edges,
                             const struct hg__reader *de, const struct hg__reader *other,
                             struct hg__sum *sum)
{
	double own = 0.0;
	HG__TRY(hg__fetch_element(sum->ctx, &t->own, t->i, t->own_j, &own));
	HG__TRY(hg__sum_alloc(sum, edges->count));
	for (int64_t k = 0; k < edges->count; k++) {
		struct hg__addend *a = &sum->addend[k];
		double neighbour = 0.0;
		a->row = hg__neighbour(edges, k);
		a->col = t->j;
		HG__TRY(hg__read_element(other, a->row, t->other_j, &neighbour));
		HG__TRY(hg__read_element(de, hg__value_row(edges, k), t->j, &a->operand));
		a->factor = own + neighbour > 0.0 ? 1.0 : (double)t->slope;
	}
	return HG_OK;
}

hg_status hg__sum_over_slopes(const struct hg__terms *t, struct hg__sum *sum)
{
	struct hg__row_edges edges;
	struct hg__reader de = {0}, other = {0};
	HG__TRY(hg__row_edges_open(sum->ctx, t->edges.csr, t->i, &edges));
	hg_status status = hg__reader_open(sum->ctx, &t->a, edges.count, &de);
	if (status >= 0)
		status = hg__reader_open(sum->ctx, &t->b, edges.count, &other);
	if (status >= 0)
		status = fill_slopes(t, &edges, &de, &other, sum);
	hg__reader_close(&other);
	hg__reader_close(&de);
	hg__row_edges_close(sum->ctx, &edges);
	return status;
}
