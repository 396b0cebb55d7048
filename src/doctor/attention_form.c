#include "doctor/attention_form.h"

#include <math.h>

static double leaky(const struct hg__attention *of, double x)
{
	return x > 0.0 ? x : (double)of->slope * x;
}

static double slope_at(const struct hg__attention *of, double x)
{
	return x > 0.0 ? 1.0 : (double)of->slope;
}

/* ---- ADD: f(q + k + bias), of heads of one column ---- */

static double add_term(const struct hg__attention *of, double q, double k, double c)
{
	(void)of, (void)c;
	return q + k;
}

static double add_score(const struct hg__attention *of, struct hg__edge_products *p, double c,
                        double bias)
{
	(void)c;
	return leaky(of, p->sum + bias);
}

static double add_derivative(const struct hg__attention *of, const struct hg__edge_products *p,
                             double bias, const struct hg__score_at *at)
{
	(void)p;
	return slope_at(of, at->own + at->other + bias);
}

/* ---- DOT: scale <q, k> + bias ---- */

static double dot_term(const struct hg__attention *of, double q, double k, double c)
{
	(void)of, (void)c;
	return q * k;
}

static double dot_score(const struct hg__attention *of, struct hg__edge_products *p, double c,
                        double bias)
{
	(void)c;
	return (double)of->scale * p->sum + bias;
}

static double dot_derivative(const struct hg__attention *of, const struct hg__edge_products *p,
                             double bias, const struct hg__score_at *at)
{
	(void)p, (void)bias;
	return (double)of->scale * at->other;
}

/* ---- COSINE: c <q / |q|, k / |k|> + bias ---- */

/* A vector with a NaN is not short: its score is NaN. */
static int is_short(double squares)
{
	return sqrt(squares) < HG__ATTENTION_TINY;
}

static double cosine_score(const struct hg__attention *of, struct hg__edge_products *p, double c,
                           double bias)
{
	(void)of;
	p->size = fmax(p->qq, p->kk); /* they are at least the sum of |q k| */
	return is_short(p->qq) || is_short(p->kk) ? bias
	                                          : c * p->qk / (sqrt(p->qq) * sqrt(p->kk)) + bias;
}

/* With unit vectors q' and k', the cosine has the derivative (k' - cosine q') / |q|. */
static double cosine_derivative(const struct hg__attention *of, const struct hg__edge_products *p,
                                double bias, const struct hg__score_at *at)
{
	(void)of, (void)bias;
	if (is_short(at->own_squares) || is_short(at->other_squares))
		return 0.0;
	const double norm = sqrt(at->own_squares), other_norm = sqrt(at->other_squares),
	             cosine = p->qk / (norm * other_norm);
	return at->c * ((at->other / other_norm - cosine * at->own / norm) / norm);
}

/* ---- ADD_V2: <c, f(q + k)> + bias ---- */

static double add_v2_term(const struct hg__attention *of, double q, double k, double c)
{
	return c * leaky(of, q + k);
}

static double add_v2_score(const struct hg__attention *of, struct hg__edge_products *p, double c,
                           double bias)
{
	(void)of, (void)c;
	return p->sum + bias;
}

static double add_v2_derivative(const struct hg__attention *of, const struct hg__edge_products *p,
                                double bias, const struct hg__score_at *at)
{
	(void)p, (void)bias;
	return at->c * slope_at(of, at->own + at->other);
}

/* ---- all ---- */

const struct hg__score_form *hg__score_form(hg_score score)
{
	static const struct hg__score_form forms[HG_SCORE_COUNT] = {
	    [HG_SCORE_ADD] = {HG__CONSTANT_NONE, add_term, add_score, add_derivative},
	    [HG_SCORE_DOT] = {HG__CONSTANT_NONE, dot_term, dot_score, dot_derivative},
	    [HG_SCORE_COSINE] = {HG__CONSTANT_OF_HEAD, dot_term, cosine_score, cosine_derivative},
	    [HG_SCORE_ADD_V2] = {HG__CONSTANT_OF_COLUMN, add_v2_term, add_v2_score, add_v2_derivative},
	};
	return &forms[score];
}
