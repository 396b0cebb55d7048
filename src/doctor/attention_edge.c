#include "doctor/attention_edge.h"

#include <math.h>

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

/* ---- the score ---- */

/* Element `at` of c, or the one number that all heads share, if the form has a constant `wanted`;
 * otherwise 1. */
static hg_status constant(const struct hg__edge_reader *from, enum hg__score_constant wanted,
                          int64_t at, double *value)
{
	const struct hg__mat *c = &from->at->of.c;
	*value = 1.0;
	return wanted != HG__CONSTANT_NONE && hg__score_form(from->at->of.score)->constant == wanted
	           ? hg__fetch_element(from->ctx, c, 0, c->cols == 1 ? 0 : at, value)
	           : HG_OK;
}

static hg_status multiply(const struct hg__edge_reader *from, const struct hg__edge *edge,
                          struct hg__edge_products *p)
{
	const struct hg__attention *of = &from->at->of;
	const int64_t width = width_of(from, &of->q);
	*p = (struct hg__edge_products){0};
	for (int64_t col = from->head * width; col < (from->head + 1) * width; col++) {
		double q = 0.0, k = 0.0, c = 1.0;
		HG__TRY(hg__read_element(&from->q, edge->i, col, &q));
		HG__TRY(hg__read_element(&from->k, edge->j, col, &k));
		HG__TRY(constant(from, HG__CONSTANT_OF_COLUMN, col, &c));
		const double term = hg__score_form(of->score)->term(of, q, k, c);
		p->qk += q * k;
		p->qq += q * q;
		p->kk += k * k;
		p->sum += term;
		p->size += fabs(term);
	}
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
	double c = 1.0;
	s->bias = 0.0;
	HG__TRY(multiply(from, edge, &s->products));
	if (of->bias.data)
		HG__TRY(hg__fetch_element(from->ctx, &of->bias, edge->value_row, from->head, &s->bias));
	HG__TRY(constant(from, HG__CONSTANT_OF_HEAD, from->head, &c));
	s->score = hg__score_form(of->score)->score(of, &s->products, c, s->bias);
	s->bad = is_bad(s);
	return HG_OK;
}

/* ---- the weight ---- */

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
	*mask = (double)hg__attention_mask(&from->at->of.dropout, from->step, edge->i, edge->j,
	                                   (int)from->head);
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

hg_status hg__edge_derivative(const struct hg__edge_reader *from, const struct hg__edge *edge,
                              const struct hg__edge_score *score, int of_k, int64_t col,
                              double *derivative)
{
	const struct hg__attention *of = &from->at->of;
	const struct hg__score_form *form = hg__score_form(of->score);
	const struct hg__edge_products *p = &score->products;
	struct hg__score_at at = {.own_squares = of_k ? p->kk : p->qq,
	                          .other_squares = of_k ? p->qq : p->kk};
	HG__TRY(hg__read_element(&from->q, edge->i, col, of_k ? &at.other : &at.own));
	HG__TRY(hg__read_element(&from->k, edge->j, col, of_k ? &at.own : &at.other));
	HG__TRY(constant(from, form->constant,
	                 form->constant == HG__CONSTANT_OF_HEAD ? from->head : col, &at.c));
	*derivative = form->derivative(of, p, score->bias, &at);
	return HG_OK;
}
