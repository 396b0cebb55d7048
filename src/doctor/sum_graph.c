#include <math.h>

#include "doctor/sum_of.h"
#include "precision/half.h"

/* Sums over the edges of a row, alpha r_i * sum over entries (i, j) of w s_j X[j, col], and sums
 * at one edge. */

static struct hg__mat vector(const float *data, int64_t rows)
{
	const struct hg__mat mat = {(void *)(uintptr_t)data, rows, 1, 1, HG_F32};
	return mat;
}

/* Factors as f16 arithmetic has them: kernels.h, "f". */
static void narrow(const struct hg__aggregate *g, double w, double s, double x,
                   struct hg__addend *a)
{
	const int later = g->col_scale && !g->scale_first;
	a->f = g->w.data ? hg__half_round((float)w) : 1.0f;
	if (later)
		a->f = hg__half_round(a->f * hg__half_round((float)s));
	a->x = g->col_scale && g->scale_first ? hg__half_round((float)s * (float)x) : (float)x;
}

struct pickers {
	struct hg__picker x, w, s;
};

static hg_status addend(const struct hg__aggregate *g, const struct pickers *from,
                        const struct hg__entries *entries, int64_t k, int64_t col, double r,
                        struct hg__addend *a)
{
	double w = 1.0, s = 1.0;
	a->row = hg__entry_col(entries, k);
	a->col = col;
	HG__TRY(hg__pick(&from->x, a->row, col, &a->operand));
	if (g->w.data)
		HG__TRY(hg__pick(&from->w, hg__entry_edge(entries, k),
		                 g->heads > 1 ? col / (g->x.cols / g->heads) : 0, &w));
	if (g->col_scale)
		HG__TRY(hg__pick(&from->s, a->row, 0, &s));
	a->factor = (double)g->alpha * r * w * s;
	narrow(g, w, s, a->operand, a);
	return HG_OK;
}

/* Where a batch ends, and where what one item of the plan has of the row. */
static hg_status cut(hg_context *ctx, const struct hg__csr *csr, int64_t begin, struct hg__sum *sum)
{
	struct hg__buffer edges = {0};
	const struct hg__plan *plan = csr->plan;
	const int64_t *end = NULL;
	for (int64_t k = 0; k < sum->count; k++)
		sum->addend[k].cut = (begin + k + 1) % HG_BATCH_EDGES == 0;
	if (!plan || !plan->splits)
		return HG_OK;
	HG__TRY(
	    hg__buffer_host(ctx, plan->items + 1, sizeof *end, "doctor: the plan of a sum", &edges));
	const hg_status status = ctx->backend->copy_out(ctx, edges.data, plan->item_edge, edges.bytes);
	end = edges.data;
	for (int64_t i = 0; status >= 0 && i <= plan->items; i++)
		if (end[i] > begin && end[i] <= begin + sum->count)
			sum->addend[end[i] - begin - 1].cut = 2;
	hg__buffer_free(ctx, &edges);
	return status;
}

static hg_status gather_from(const struct hg__terms *t, const struct pickers *from,
                             const struct hg__entries *entries, hg_accumulate accumulate,
                             struct hg__sum *sum)
{
	const struct hg__aggregate *g = &t->edges;
	double r = 1.0;
	if (g->row_scale) {
		const struct hg__mat scale = vector(g->row_scale, g->csr->rows);
		HG__TRY(hg__fetch_element(sum->ctx, &scale, t->i, 0, &r));
	}
	HG__TRY(hg__sum_room(sum, entries->count));
	for (int64_t k = 0; k < entries->count; k++)
		HG__TRY(addend(g, from, entries, k, t->j, r, &sum->addend[k]));
	sum->products = g->w.data || (g->col_scale && !g->scale_first);
	sum->accumulate = t->halves ? accumulate : HG_ACC_F32;
	sum->after = hg__half_round(g->row_scale ? g->alpha * (float)r : g->alpha);
	return sum->accumulate == HG_ACC_F16_DISCRETIZED ? cut(sum->ctx, g->csr, entries->begin, sum)
	                                                 : HG_OK;
}

hg_status hg__sum_over_edges(const struct hg__terms *t, hg_accumulate accumulate,
                             struct hg__sum *sum)
{
	hg_context *ctx = sum->ctx;
	const struct hg__aggregate *g = &t->edges;
	const struct hg__mat s = vector(g->col_scale, g->csr->cols);
	struct hg__entries entries;
	struct pickers from = {0};
	HG__TRY(hg__entries_open(ctx, g->csr, t->i, &entries));
	hg_status status = hg__picker_open(ctx, &g->x, entries.count, &from.x);
	if (status >= 0 && g->w.data)
		status = hg__picker_open(ctx, &g->w, entries.count, &from.w);
	if (status >= 0 && g->col_scale)
		status = hg__picker_open(ctx, &s, entries.count, &from.s);
	if (status >= 0)
		status = gather_from(t, &from, &entries, accumulate, sum);
	hg__picker_close(&from.s);
	hg__picker_close(&from.w);
	hg__picker_close(&from.x);
	hg__entries_close(ctx, &entries);
	return status;
}

/* ---- products of two rows, at an edge ---- */

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
	hg_status status = hg__sum_room(sum, t->count);
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

/* ---- slopes at edges ---- */

static hg_status slopes_from(const struct hg__terms *t, const struct hg__entries *entries,
                             const struct hg__picker *de, const struct hg__picker *other,
                             struct hg__sum *sum)
{
	double own = 0.0;
	HG__TRY(hg__fetch_element(sum->ctx, &t->own, t->i, t->own_j, &own));
	HG__TRY(hg__sum_room(sum, entries->count));
	for (int64_t k = 0; k < entries->count; k++) {
		struct hg__addend *a = &sum->addend[k];
		double neighbour = 0.0;
		a->row = hg__entry_col(entries, k);
		a->col = t->j;
		HG__TRY(hg__pick(other, a->row, t->other_j, &neighbour));
		HG__TRY(hg__pick(de, hg__entry_edge(entries, k), t->j, &a->operand));
		a->factor = own + neighbour > 0.0 ? 1.0 : (double)t->slope;
	}
	return HG_OK;
}

hg_status hg__sum_over_slopes(const struct hg__terms *t, struct hg__sum *sum)
{
	struct hg__entries entries;
	struct hg__picker de = {0}, other = {0};
	HG__TRY(hg__entries_open(sum->ctx, t->edges.csr, t->i, &entries));
	hg_status status = hg__picker_open(sum->ctx, &t->a, entries.count, &de);
	if (status >= 0)
		status = hg__picker_open(sum->ctx, &t->b, entries.count, &other);
	if (status >= 0)
		status = slopes_from(t, &entries, &de, &other, sum);
	hg__picker_close(&other);
	hg__picker_close(&de);
	hg__entries_close(sum->ctx, &entries);
	return status;
}
