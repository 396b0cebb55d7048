#include "oracle/parts.h"

/* Row r of operand 0: largest element, exp(x - max) in p (may be NULL), and their sum. */
static num row_exp(const struct oracle_call *c, int64_t r, double *top, num *p)
{
	struct num_sum s = {0};
	*top = -INFINITY;
	for (int64_t k = 0; k < c->in[0].cols; k++)
		*top = fmax(*top, IN(0, r, k).v);
	for (int64_t k = 0; k < c->in[0].cols; k++) {
		const num e = num_exp(c->u, num_sub(c->u, IN(0, r, k), num_exact(*top)));
		if (p)
			p[k] = e;
		num_sum_add(&s, e);
	}
	return num_sum_get(c->u, &s);
}

/* Y = exp(X - max) / sum exp(X - max). */
void oracle_softmax(struct oracle_call *c)
{
	num *p = oracle_scratch(c->in[0].cols);
	for (int64_t r = 0; c->out.cols && r < c->out.rows; r++) {
		double top;
		const num sum = row_exp(c, r, &top, p);
		for (int64_t k = 0; k < c->out.cols; k++)
			OUT(r, k) = num_div(c->u, p[k], sum);
	}
	oracle_release(p);
}

/* dX = Y (dY - sum of Y dY), from the stored Y. */
void oracle_softmax_back(struct oracle_call *c)
{
	for (int64_t r = 0; WANT(0) && r < c->out.rows; r++) {
		struct num_sum s = {0};
		for (int64_t k = 0; k < c->out.cols; k++)
			num_sum_add(&s, num_mul(c->u, SAVED(r, k), DOUT(r, k)));
		for (int64_t k = 0; k < c->out.cols; k++)
			DIN(0, r, k) =
			    num_mul(c->u, SAVED(r, k), num_sub(c->u, DOUT(r, k), num_sum_get(c->u, &s)));
	}
}

/* Y = X - max - log sum exp(X - max). */
void oracle_log_softmax(struct oracle_call *c)
{
	for (int64_t r = 0; c->out.cols && r < c->out.rows; r++) {
		double top;
		const num log_sum = num_log(c->u, row_exp(c, r, &top, NULL));
		for (int64_t k = 0; k < c->out.cols; k++) {
			OUT(r, k) = num_sub(c->u, num_sub(c->u, IN(0, r, k), num_exact(top)), log_sum);
			/* If max + log sum is computed first, its rounding is u (|max| + |log sum|). */
			OUT(r, k).e += c->u * (fabs(top) + fabs(log_sum.v));
		}
	}
}

/* dX = dY - exp(Y) sum of dY, from the stored Y. */
void oracle_log_softmax_back(struct oracle_call *c)
{
	for (int64_t r = 0; WANT(0) && r < c->out.rows; r++) {
		struct num_sum s = {0};
		for (int64_t k = 0; k < c->out.cols; k++)
			num_sum_add(&s, DOUT(r, k));
		for (int64_t k = 0; k < c->out.cols; k++)
			DIN(0, r, k) = num_sub(
			    c->u, DOUT(r, k), num_mul(c->u, num_exp(c->u, SAVED(r, k)), num_sum_get(c->u, &s)));
	}
}

static int counts(const struct oracle_call *c, int64_t r, int mask)
{
	return !c->in[mask].at || IN(mask, r, 0).v != 0;
}

/* Mean over the rows with label >= 0 and mask != 0 of log sum exp(x) - x[label]. */
void oracle_softmax_xent(struct oracle_call *c)
{
	struct num_sum s = {0};
	for (int64_t r = 0; r < c->in[0].rows; r++) {
		const double label = IN(1, r, 0).v;
		if (label < 0 || !counts(c, r, 2))
			continue;
		double top;
		const num log_sum = num_log(c->u, row_exp(c, r, &top, NULL)), x = IN(0, r, (int64_t)label);
		num row = num_sub(c->u, log_sum, num_sub(c->u, x, num_exact(top)));
		row.e += c->u * (fabs(top) + fabs(log_sum.v));
		num_sum_add(&s, row);
	}
	OUT(0, 0) =
	    s.count ? num_div(c->u, num_sum_get(c->u, &s), num_exact((double)s.count)) : num_exact(0);
}

/* dX = (softmax(x) - onehot(label)) dloss / count. */
void oracle_softmax_xent_back(struct oracle_call *c)
{
	int64_t count = 0;
	for (int64_t r = 0; r < c->in[0].rows; r++)
		count += IN(1, r, 0).v >= 0 && counts(c, r, 2);
	num *p = oracle_scratch(c->in[0].cols);
	for (int64_t r = 0; WANT(0) && r < c->in[0].rows; r++) {
		double top;
		const double label = IN(1, r, 0).v;
		const int in = label >= 0 && counts(c, r, 2);
		const num sum = row_exp(c, r, &top, p),
		          factor = num_div(c->u, DOUT(0, 0), num_exact(count ? (double)count : 1.0));
		for (int64_t k = 0; k < c->in[0].cols; k++) {
			num q = num_div(c->u, p[k], sum);
			/* The kernel may compute exp(x - logsumexp) instead. */
			q.e += c->u * fabs(q.v) * (fabs(top) + 4);
			DIN(0, r, k) =
			    in ? num_mul(c->u, num_sub(c->u, q, num_exact((double)k == label)), factor)
			       : num_exact(0);
		}
	}
	oracle_release(p);
}

/* ---- with weights of the classes and label smoothing e ---- */

/* The weight of class k. */
static num class_weight(const struct oracle_call *c, int64_t k)
{
	return c->in[3].at ? IN(3, 0, k) : num_exact(1);
}

/* (1 - e) w[label] */
static num kept_share(const struct oracle_call *c, int64_t label)
{
	return num_mul(c->u, num_sub(c->u, num_exact(1), num_exact(c->p)), class_weight(c, label));
}

/* e / d */
static num spread_share(const struct oracle_call *c)
{
	return num_div(c->u, num_exact(c->p), num_exact((double)c->in[0].cols));
}

/* The class of a row that counts; -1: it does not count. */
static int64_t class_of(const struct oracle_call *c, int64_t r)
{
	return counts(c, r, 2) ? (int64_t)IN(1, r, 0).v : -1;
}

/* The sum of w[label] over the rows that count. */
static struct num_sum weight_of_rows(const struct oracle_call *c)
{
	struct num_sum s = {0};
	for (int64_t r = 0; r < c->in[0].rows; r++)
		if (class_of(c, r) >= 0)
			num_sum_add(&s, class_weight(c, class_of(c, r)));
	return s;
}

/* -log softmax(X)[r, k] */
static num surprise(const struct oracle_call *c, int64_t r, int64_t k, num log_sum, double top)
{
	num l = num_sub(c->u, log_sum, num_sub(c->u, IN(0, r, k), num_exact(top)));
	l.e += c->u * (fabs(top) + fabs(log_sum.v));
	return l;
}

/* 1/q sum of ((1 - e) w[label] l[label] + e/d sum of w l), q the sum of w[label]. */
void oracle_softmax_xent_weighted(struct oracle_call *c)
{
	const struct num_sum q = weight_of_rows(c);
	struct num_sum s = {0};
	for (int64_t r = 0; r < c->in[0].rows; r++) {
		const int64_t label = class_of(c, r);
		if (label < 0)
			continue;
		double top;
		const num log_sum = num_log(c->u, row_exp(c, r, &top, NULL));
		struct num_sum spread = {0};
		for (int64_t k = 0; c->p > 0.0 && k < c->in[0].cols; k++)
			num_sum_add(&spread,
			            num_mul(c->u, class_weight(c, k), surprise(c, r, k, log_sum, top)));
		num_sum_add(&s, num_mul(c->u, kept_share(c, label), surprise(c, r, label, log_sum, top)));
		num_sum_add(&s, num_mul(c->u, spread_share(c), num_sum_get(c->u, &spread)));
	}
	OUT(0, 0) =
	    q.v > 0.0 ? num_div(c->u, num_sum_get(c->u, &s), num_sum_get(c->u, &q)) : num_exact(0);
}

/* dX = ((1 - e) w[label] (p - onehot(label)) + e/d (p sum of w - w)) dloss / q. */
void oracle_softmax_xent_weighted_back(struct oracle_call *c)
{
	const struct num_sum q = weight_of_rows(c);
	const num factor = q.v > 0.0 ? num_div(c->u, DOUT(0, 0), num_sum_get(c->u, &q)) : num_exact(0);
	struct num_sum all = {0};
	for (int64_t k = 0; k < c->in[0].cols; k++)
		num_sum_add(&all, class_weight(c, k));
	num *p = oracle_scratch(c->in[0].cols);
	for (int64_t r = 0; WANT(0) && r < c->in[0].rows; r++) {
		double top;
		const int64_t label = class_of(c, r);
		const num sum = row_exp(c, r, &top, p), share = spread_share(c),
		          keep = label >= 0 ? kept_share(c, label) : num_exact(0),
		          slope = num_add(c->u, keep, num_mul(c->u, share, num_sum_get(c->u, &all)));
		for (int64_t k = 0; k < c->in[0].cols; k++) {
			num s = num_div(c->u, p[k], sum);
			/* The kernel may compute exp(x - logsumexp) instead. */
			s.e += c->u * fabs(s.v) * (fabs(top) + 4);
			const num at = num_sub(c->u, num_mul(c->u, slope, s), k == label ? keep : num_exact(0)),
			          g = num_sub(c->u, at, num_mul(c->u, share, class_weight(c, k)));
			DIN(0, r, k) = label >= 0 ? num_mul(c->u, g, factor) : num_exact(0);
		}
	}
	oracle_release(p);
}

/* max(x, 0) - x t + log(1 + exp(-|x|)). */
static num bce_term(const struct oracle_call *c, num x, num t, num w)
{
	(void)w;
	const num soft = num_log1p(c->u, num_exp(c->u, num_exact(-fabs(x.v))));
	return num_add(c->u, num_sub(c->u, num_exact(fmax(x.v, 0)), num_mul(c->u, x, t)), soft);
}

static num bce_slope(const struct oracle_call *c, num x, num t, num w)
{
	(void)w;
	const num e = num_exp(c->u, num_exact(-fabs(x.v))), one = num_add(c->u, num_exact(1), e);
	return num_sub(c->u, x.v >= 0 ? num_div(c->u, num_exact(1), one) : num_div(c->u, e, one), t);
}

/* 1 + (w - 1) t */
static num ones_weight(const struct oracle_call *c, num t, num w)
{
	return num_add(c->u, num_exact(1), num_mul(c->u, num_sub(c->u, w, num_exact(1)), t));
}

/* (1 - t) x + (1 + (w - 1) t) (max(-x, 0) + log(1 + exp(-|x|))). */
static num bce_weighted_term(const struct oracle_call *c, num x, num t, num w)
{
	const num soft = num_add(c->u, num_exact(fmax(-x.v, 0)),
	                         num_log1p(c->u, num_exp(c->u, num_exact(-fabs(x.v)))));
	return num_add(c->u, num_mul(c->u, num_sub(c->u, num_exact(1), t), x),
	               num_mul(c->u, ones_weight(c, t, w), soft));
}

/* (1 - t) - (1 + (w - 1) t) / (1 + exp(x)). */
static num bce_weighted_slope(const struct oracle_call *c, num x, num t, num w)
{
	const num e = num_exp(c->u, num_exact(-fabs(x.v))), one = num_add(c->u, num_exact(1), e),
	          down = x.v >= 0 ? num_div(c->u, e, one) : num_div(c->u, num_exact(1), one);
	return num_sub(c->u, num_sub(c->u, num_exact(1), t), num_mul(c->u, ones_weight(c, t, w), down));
}

static num mse_term(const struct oracle_call *c, num x, num t, num w)
{
	(void)w;
	const num d = num_sub(c->u, x, t);
	return num_mul(c->u, d, d);
}

static num mse_slope(const struct oracle_call *c, num x, num t, num w)
{
	(void)w;
	return num_mul(c->u, num_exact(2), num_sub(c->u, x, t));
}

static num mae_term(const struct oracle_call *c, num x, num t, num w)
{
	(void)w;
	const num d = num_sub(c->u, x, t);
	return (num){fabs(d.v), d.e};
}

/* A rounded difference has the sign of the exact one. */
static num mae_slope(const struct oracle_call *c, num x, num t, num w)
{
	(void)c;
	(void)w;
	return num_exact((x.v > t.v) - (x.v < t.v));
}

/* The mask of a row, or of an element if it has as many columns as X. */
static int counts_here(const struct oracle_call *c, int64_t r, int64_t k)
{
	return !c->in[2].at || IN(2, r, c->in[2].cols == c->in[0].cols ? k : 0).v != 0;
}

/* The mean over the elements that count. */
static void pointwise(struct oracle_call *c, num (*term)(const struct oracle_call *, num, num, num))
{
	struct num_sum s = {0};
	for (int64_t r = 0; r < c->in[0].rows; r++)
		for (int64_t k = 0; k < c->in[0].cols; k++)
			if (counts_here(c, r, k))
				num_sum_add(&s, term(c, IN(0, r, k), IN(1, r, k), class_weight(c, k)));
	OUT(0, 0) =
	    s.count ? num_div(c->u, num_sum_get(c->u, &s), num_exact((double)s.count)) : num_exact(0);
}

static void pointwise_back(struct oracle_call *c,
                           num (*slope)(const struct oracle_call *, num, num, num))
{
	int64_t count = 0;
	for (int64_t r = 0; r < c->in[0].rows; r++)
		for (int64_t k = 0; k < c->in[0].cols; k++)
			count += counts_here(c, r, k);
	const num factor = num_div(c->u, DOUT(0, 0), num_exact(count ? (double)count : 1.0));
	for (int64_t r = 0; WANT(0) && r < c->in[0].rows; r++)
		for (int64_t k = 0; k < c->in[0].cols; k++)
			DIN(0, r, k) =
			    counts_here(c, r, k)
			        ? num_mul(c->u, slope(c, IN(0, r, k), IN(1, r, k), class_weight(c, k)), factor)
			        : num_exact(0);
}

void oracle_bce_logits(struct oracle_call *c)
{
	pointwise(c, bce_term);
}

void oracle_bce_logits_back(struct oracle_call *c)
{
	pointwise_back(c, bce_slope);
}

void oracle_bce_logits_weighted(struct oracle_call *c)
{
	pointwise(c, bce_weighted_term);
}

void oracle_bce_logits_weighted_back(struct oracle_call *c)
{
	pointwise_back(c, bce_weighted_slope);
}

void oracle_mse(struct oracle_call *c)
{
	pointwise(c, mse_term);
}

void oracle_mse_back(struct oracle_call *c)
{
	pointwise_back(c, mse_slope);
}

void oracle_mae(struct oracle_call *c)
{
	pointwise(c, mae_term);
}

void oracle_mae_back(struct oracle_call *c)
{
	pointwise_back(c, mae_slope);
}

void oracle_inner(struct oracle_call *c)
{
	struct num_sum s = {0};
	for (int64_t r = 0; r < c->in[0].rows; r++)
		for (int64_t k = 0; k < c->in[0].cols; k++)
			num_sum_add(&s, num_mul(c->u, IN(0, r, k), IN(1, r, k)));
	OUT(0, 0) = num_sum_get(c->u, &s);
}

void oracle_inner_back(struct oracle_call *c)
{
	for (int64_t r = 0; WANT(0) && r < c->in[0].rows; r++)
		for (int64_t k = 0; k < c->in[0].cols; k++)
			DIN(0, r, k) = num_mul(c->u, IN(1, r, k), DOUT(0, 0));
}
