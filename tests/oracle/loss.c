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

/* max(x, 0) - x t + log(1 + exp(-|x|)). */
static num bce_term(const struct oracle_call *c, num x, num t)
{
	const num soft = num_log1p(c->u, num_exp(c->u, num_exact(-fabs(x.v))));
	return num_add(c->u, num_sub(c->u, num_exact(fmax(x.v, 0)), num_mul(c->u, x, t)), soft);
}

static num bce_slope(const struct oracle_call *c, num x, num t)
{
	const num e = num_exp(c->u, num_exact(-fabs(x.v))), one = num_add(c->u, num_exact(1), e);
	return num_sub(c->u, x.v >= 0 ? num_div(c->u, num_exact(1), one) : num_div(c->u, e, one), t);
}

static num mse_term(const struct oracle_call *c, num x, num t)
{
	const num d = num_sub(c->u, x, t);
	return num_mul(c->u, d, d);
}

static num mse_slope(const struct oracle_call *c, num x, num t)
{
	return num_mul(c->u, num_exact(2), num_sub(c->u, x, t));
}

/* The mean over the rows that count, and over all columns. */
static void pointwise(struct oracle_call *c, num (*term)(const struct oracle_call *, num, num))
{
	struct num_sum s = {0};
	for (int64_t r = 0; r < c->in[0].rows; r++)
		for (int64_t k = 0; counts(c, r, 2) && k < c->in[0].cols; k++)
			num_sum_add(&s, term(c, IN(0, r, k), IN(1, r, k)));
	OUT(0, 0) =
	    s.count ? num_div(c->u, num_sum_get(c->u, &s), num_exact((double)s.count)) : num_exact(0);
}

static void pointwise_back(struct oracle_call *c,
                           num (*slope)(const struct oracle_call *, num, num))
{
	int64_t count = 0;
	for (int64_t r = 0; r < c->in[0].rows; r++)
		count += counts(c, r, 2) ? c->in[0].cols : 0;
	const num factor = num_div(c->u, DOUT(0, 0), num_exact(count ? (double)count : 1.0));
	for (int64_t r = 0; WANT(0) && r < c->in[0].rows; r++)
		for (int64_t k = 0; k < c->in[0].cols; k++)
			DIN(0, r, k) = counts(c, r, 2)
			                   ? num_mul(c->u, slope(c, IN(0, r, k), IN(1, r, k)), factor)
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

void oracle_mse(struct oracle_call *c)
{
	pointwise(c, mse_term);
}

void oracle_mse_back(struct oracle_call *c)
{
	pointwise_back(c, mse_slope);
}
