/* Sums with attention weights (kernels/attention.h):
 *
 *     sum over the edges e of mask[e] p[e] a[e],  p = weight exp(s - log_sum)
 *
 * No kernel keeps the weights p, so they are computed here once more, in f64, from the two ends of
 * each edge and the log-sum-exp of its row, which the forward pass has kept. */
#include <math.h>

#include "core/rng.h"
#include "doctor/sum_terms.h"

/* The edges of the sum and where their weights come from. */
struct weights {
	const struct hg__attention *of;
	int64_t head, width; /* columns of Q and K that belong to a head */
	struct hg__reader q, k, log_sum, a;
	int64_t step; /* of the dropout masks */
};

/* A constant of the score: element `at` of c, or the one that all heads share. */
static hg_status constant(hg_context *ctx, const struct hg__attention *of, int64_t at,
                          double *value)
{
	return hg__fetch_element(ctx, &of->c, 0, of->c.cols == 1 ? 0 : at, value);
}

static double leaky(const struct hg__attention *of, double x)
{
	return x > 0.0 ? x : (double)of->slope * x;
}

/* Sums over the columns of the head: of q k, q q and k k, and `sum`, which is that of c f(q + k)
 * with ADD_V2, and q + k with ADD. */
struct products {
	double qk, qq, kk, sum;
};

static hg_status multiply(hg_context *ctx, const struct weights *w, int64_t i, int64_t j,
                          struct products *p)
{
	*p = (struct products){0};
	for (int64_t c = w->head * w->width; c < (w->head + 1) * w->width; c++) {
		double q = 0.0, k = 0.0, factor = 1.0;
		HG__TRY(hg__read_element(&w->q, i, c, &q));
		HG__TRY(hg__read_element(&w->k, j, c, &k));
		if (w->of->score == HG_SCORE_ADD_V2)
			HG__TRY(constant(ctx, w->of, c, &factor));
		p->qk += q * k;
		p->qq += q * q;
		p->kk += k * k;
		p->sum += w->of->score == HG_SCORE_ADD_V2 ? factor * leaky(w->of, q + k) : q + k;
	}
	return HG_OK;
}

/* The score of edge (i, j), whose values are in row `value_row` of edge tensors. */
static hg_status score_of(hg_context *ctx, const struct weights *w, int64_t i, int64_t j,
                          int64_t value_row, double *score)
{
	const struct hg__attention *of = w->of;
	const double tiny = HG__ATTENTION_TINY;
	struct products p;
	double beta = 1.0, bias = 0.0;
	HG__TRY(multiply(ctx, w, i, j, &p));
	if (of->bias.data)
		HG__TRY(hg__fetch_element(ctx, &of->bias, value_row, w->head, &bias));
	if (of->score == HG_SCORE_COSINE)
		HG__TRY(constant(ctx, of, w->head, &beta));
	switch (of->score) {
	case HG_SCORE_DOT:
		*score = (double)of->scale * p.qk + bias;
		break;
	case HG_SCORE_COSINE:
		*score = sqrt(p.qq) < tiny || sqrt(p.kk) < tiny
		             ? bias
		             : beta * p.qk / (sqrt(p.qq) * sqrt(p.kk)) + bias;
		break;
	case HG_SCORE_ADD_V2:
		*score = p.sum + bias;
		break;
	case HG_SCORE_ADD:
	case HG_SCORE_COUNT:
		*score = leaky(of, p.sum + bias);
		break;
	}
	return HG_OK;
}

/* 0 where dropout drops the weight of edge (i, j), else 1 / keep. */
static double mask_of(const struct weights *w, int64_t i, int64_t j)
{
	const struct hg__attention_dropout *drop = &w->of->dropout;
	if (!(drop->p > 0.0f))
		return 1.0;
	const struct hg__rng4 words =
	    hg__philox(drop->key, (uint32_t)i, (uint32_t)j, (uint32_t)(w->head / 8), (uint32_t)w->step);
	const uint32_t half = words.w[w->head % 8 / 2] >> (w->head % 2 ? 16 : 0) & 0xFFFFu;
	return half < hg__attention_threshold(drop->p) ? 0.0 : (double)hg__attention_kept(drop->p);
}

static hg_status fill_addend(const struct hg__terms *t, const struct weights *w,
                             const struct hg__row_edges *edges, int64_t e, struct hg__sum *sum)
{
	const int64_t neighbour = hg__neighbour(edges, e), value_row = hg__value_row(edges, e);
	const int64_t i = t->attention.by_source ? neighbour : t->i,
	              j = t->attention.by_source ? t->i : neighbour;
	struct hg__addend *a = &sum->addend[e];
	double score = 0.0, row = 0.0, times = 1.0;
	a->row = neighbour;
	a->col = t->j;
	HG__TRY(hg__read_element(&w->a, neighbour, t->j, &a->operand));
	HG__TRY(score_of(sum->ctx, w, i, j, value_row, &score));
	HG__TRY(hg__read_element(&w->log_sum, i, w->head, &row));
	if (w->of->weight) {
		const struct hg__mat weight = {(void *)(uintptr_t)w->of->weight, value_row + 1, 1, 1,
		                               HG_F32};
		HG__TRY(hg__fetch_element(sum->ctx, &weight, value_row, 0, &times));
	}
	a->factor = times == 0.0 || (isinf(row) && row < 0.0)
	                ? 0.0
	                : mask_of(w, i, j) * times * exp(score - row);
	a->f = (float)a->factor;
	a->x = (float)a->operand;
	return HG_OK;
}

static hg_status fill_addends(const struct hg__terms *t, const struct weights *w,
                              const struct hg__row_edges *edges, struct hg__sum *sum)
{
	HG__TRY(hg__sum_alloc(sum, edges->count));
	for (int64_t e = 0; e < edges->count; e++)
		HG__TRY(fill_addend(t, w, edges, e, sum));
	sum->products = 1;
	return HG_OK;
}

hg_status hg__sum_over_attention(const struct hg__terms *t, struct hg__sum *sum)
{
	hg_context *ctx = sum->ctx;
	const struct hg__attention *of = &t->attention.of;
	struct weights w = {
	    .of = of, .head = t->j / (t->a.cols / of->heads), .width = of->q.cols / of->heads};
	struct hg__row_edges edges;
	if (of->dropout.p > 0.0f)
		HG__TRY(ctx->backend->copy_out(ctx, &w.step, of->dropout.step, sizeof w.step));
	HG__TRY(hg__row_edges_open(ctx, t->edges.csr, t->i, &edges));
	const int64_t rows = edges.count, elements = rows * w.width;
	hg_status status = hg__reader_open(ctx, &of->q, elements, &w.q);
	if (status >= 0)
		status = hg__reader_open(ctx, &of->k, elements, &w.k);
	if (status >= 0)
		status = hg__reader_open(ctx, &t->attention.log_sum, rows, &w.log_sum);
	if (status >= 0)
		status = hg__reader_open(ctx, &t->a, rows, &w.a);
	if (status >= 0)
		status = fill_addends(t, &w, &edges, sum);
	hg__reader_close(&w.a);
	hg__reader_close(&w.log_sum);
	hg__reader_close(&w.k);
	hg__reader_close(&w.q);
	hg__row_edges_close(ctx, &edges);
	return status;
}
