#include "doctor/attention_edge.h"

#include <math.h>

#include "core/rng.h"

/* ---- what is read ---- */

static int64_t width_of(const struct hg__edge_reader *from, const struct hg__mat *mat)
{
	return mat->cols / from->at->of.heads;
}

hg_status hg__edge_reader_open(hg_context *ctx, const struct hg__attended *at, int64_t head,
                               int64_t edges, struct hg__edge_reader *reader)
{
	*reader = (struct hg__edge_reader){.ctx = ctx, .at = at, .head = head};
	const int64_t of_scores = edges * width_of(reader, &at->of.q),
	              of_values = edges * width_of(reader, &at->of.v);
	hg_status status = HG_OK;
	if (at->of.dropout.p > 0.0f)
		status =
		    ctx->backend->copy_out(ctx, &reader->step, at->of.dropout.step, sizeof reader->step);
	if (status >= 0)
		status = hg__reader_open(ctx, &at->of.q, of_scores, &reader->q);
	if (status >= 0)
		status = hg__reader_open(ctx, &at->of.k, of_scores, &reader->k);
	if (status >= 0)
		status = hg__reader_open(ctx, &at->log_sum, edges, &reader->log_sum);
	if (status >= 0)
		status = hg__reader_open(ctx, &at->of.v, of_values, &reader->v);
	if (status >= 0 && at->y.data)
		status = hg__reader_open(ctx, &at->y, of_values, &reader->y);
	if (status >= 0 && at->dy.data)
		status = hg__reader_open(ctx, &at->dy, of_values, &reader->dy);
	if (status < 0)
		hg__edge_reader_close(reader);
	return status;
}

void hg__edge_reader_close(struct hg__edge_reader *reader)
{
	hg__reader_close(&reader->dy);
	hg__reader_close(&reader->y);
	hg__reader_close(&reader->v);
	hg__reader_close(&reader->log_sum);
	hg__reader_close(&reader->k);
	hg__reader_close(&reader->q);
}

/* A constant of the score: element `at` of c, or the one that all heads share. */
static hg_status constant(const struct hg__edge_reader *from, int64_t at, double *value)
{
	const struct hg__mat *c = &from->at->of.c;
	return hg__fetch_element(from->ctx, c, 0, c->cols == 1 ? 0 : at, value);
}

/* ---- the score ---- */

static double leaky(const struct hg__attention *of, double x)
{
	return x > 0.0 ? x : (double)of->slope * x;
}

static hg_status multiply(const struct hg__edge_reader *from, const struct hg__edge *edge,
                          struct hg__edge_products *p)
{
	const struct hg__attention *of = &from->at->of;
	const int64_t width = width_of(from, &of->q);
	double size = 0.0;
	*p = (struct hg__edge_products){0};
	for (int64_t c = from->head * width; c < (from->head + 1) * width; c++) {
		double q = 0.0, k = 0.0, factor = 1.0;
		HG__TRY(hg__read_element(&from->q, edge->i, c, &q));
		HG__TRY(hg__read_element(&from->k, edge->j, c, &k));
		if (of->score == HG_SCORE_ADD_V2)
			HG__TRY(constant(from, c, &factor));
		const double added = of->score == HG_SCORE_ADD_V2 ? factor * leaky(of, q + k) : q + k;
		p->qk += q * k;
		p->qq += q * q;
		p->kk += k * k;
		p->sum += added;
		size += of->score == HG_SCORE_DOT ? fabs(q * k) : fabs(added);
	}
	p->size = of->score == HG_SCORE_COSINE ? fmax(p->qq, p->kk) : size;
	return HG_OK;
}

/* A score of -inf is no fault: such an edge has no weight. */
static int is_bad(const struct hg__edge_score *s)
{
	const double limit = hg_dtype_get(HG_F32)->overflow;
	return isnan(s->score) || s->score >= limit || (s->products.size >= limit && s->score > -limit);
}

hg_status hg__edge_score(const struct hg__edge_reader *from, const struct hg__edge *edge,
                         struct hg__edge_score *s)
{
	const struct hg__attention *of = &from->at->of;
	const double tiny = HG__ATTENTION_TINY;
	struct hg__edge_products *p = &s->products;
	double beta = 1.0;
	s->bias = 0.0;
	HG__TRY(multiply(from, edge, p));
	if (of->bias.data)
		HG__TRY(hg__fetch_element(from->ctx, &of->bias, edge->value_row, from->head, &s->bias));
	if (of->score == HG_SCORE_COSINE)
		HG__TRY(constant(from, from->head, &beta));
	switch (of->score) {
	case HG_SCORE_DOT:
		s->score = (double)of->scale * p->qk + s->bias;
		break;
	case HG_SCORE_COSINE:
		s->score = sqrt(p->qq) < tiny || sqrt(p->kk) < tiny
		               ? s->bias
		               : beta * p->qk / (sqrt(p->qq) * sqrt(p->kk)) + s->bias;
		break;
	case HG_SCORE_ADD_V2:
		s->score = p->sum + s->bias;
		break;
	case HG_SCORE_ADD:
	case HG_SCORE_COUNT:
		s->score = leaky(of, p->sum + s->bias);
		break;
	}
	s->bad = is_bad(s);
	return HG_OK;
}

/* ---- the weight ---- */

static double mask_of(const struct hg__edge_reader *from, const struct hg__edge *edge)
{
	const struct hg__attention_dropout *drop = &from->at->of.dropout;
	if (!(drop->p > 0.0f))
		return 1.0;
	const struct hg__rng4 words = hg__philox(drop->key, (uint32_t)edge->i, (uint32_t)edge->j,
	                                         (uint32_t)(from->head / 8), (uint32_t)from->step);
	const uint32_t half = words.w[from->head % 8 / 2] >> (from->head % 2 ? 16 : 0) & 0xFFFFu;
	return half < hg__attention_threshold(drop->p) ? 0.0 : (double)hg__attention_kept(drop->p);
}

hg_status hg__edge_weight(const struct hg__edge_reader *from, const struct hg__edge *edge,
                          double score, double *p, double *mask)
{
	const float *weight = from->at->of.weight;
	double row = 0.0, times = 1.0;
	HG__TRY(hg__read_element(&from->log_sum, edge->i, from->head, &row));
	if (weight) {
		const struct hg__mat mat = {(void *)(uintptr_t)weight, edge->value_row + 1, 1, 1, HG_F32};
		HG__TRY(hg__fetch_element(from->ctx, &mat, edge->value_row, 0, &times));
	}
	*mask = mask_of(from, edge);
	*p = times == 0.0 || (isinf(row) && row < 0.0) ? 0.0 : times * exp(score - row);
	return HG_OK;
}

/* ---- gradients ---- */

hg_status hg__edge_gradient(const struct hg__edge_reader *from, const struct hg__edge *edge,
                            double p, double mask, double *ds)
{
	const int64_t width = width_of(from, &from->at->of.v);
	double product = 0.0, row = 0.0;
	for (int64_t c = from->head * width; c < (from->head + 1) * width; c++) {
		double g = 0.0, v = 0.0, y = 0.0;
		HG__TRY(hg__read_element(&from->dy, edge->i, c, &g));
		HG__TRY(hg__read_element(&from->v, edge->j, c, &v));
		HG__TRY(hg__read_element(&from->y, edge->i, c, &y));
		product += g * v;
		row += g * y;
	}
	*ds = p * (mask * product - row);
	return HG_OK;
}

/* With unit vectors q' and k', the cosine of COSINE has the derivative (k' - cosine q') / |q|. */
static double of_cosine(double own, double other, double own_squares, double other_squares,
                        double product)
{
	const double own_norm = sqrt(own_squares), other_norm = sqrt(other_squares);
	if (own_norm < HG__ATTENTION_TINY || other_norm < HG__ATTENTION_TINY)
		return 0.0;
	return (other / other_norm - product / (own_norm * other_norm) * own / own_norm) / own_norm;
}

hg_status hg__edge_derivative(const struct hg__edge_reader *from, const struct hg__edge *edge,
                              const struct hg__edge_score *score, int of_k, int64_t col,
                              double *derivative)
{
	const struct hg__attention *of = &from->at->of;
	const struct hg__edge_products *p = &score->products;
	double q = 0.0, k = 0.0, factor = 1.0;
	HG__TRY(hg__read_element(&from->q, edge->i, col, &q));
	HG__TRY(hg__read_element(&from->k, edge->j, col, &k));
	if (of->score == HG_SCORE_COSINE || of->score == HG_SCORE_ADD_V2)
		HG__TRY(constant(from, of->score == HG_SCORE_COSINE ? from->head : col, &factor));
	switch (of->score) {
	case HG_SCORE_DOT:
		*derivative = (double)of->scale * (of_k ? q : k);
		break;
	case HG_SCORE_COSINE:
		*derivative = factor * (of_k ? of_cosine(k, q, p->kk, p->qq, p->qk)
		                             : of_cosine(q, k, p->qq, p->kk, p->qk));
		break;
	case HG_SCORE_ADD_V2:
		*derivative = factor * (q + k > 0.0 ? 1.0 : (double)of->slope);
		break;
	case HG_SCORE_ADD:
	case HG_SCORE_COUNT:
		*derivative = q + k + score->bias > 0.0 ? 1.0 : (double)of->slope;
		break;
	}
	return HG_OK;
}
