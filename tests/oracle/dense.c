#include "oracle/parts.h"

/* Y = X W + b. */
void oracle_linear(struct oracle_call *c)
{
	FOR_OUT(r, k)
	{
		struct num_sum s = {0};
		for (int64_t i = 0; i < c->in[0].cols; i++)
			num_sum_add(&s, num_mul(c->u, IN(0, r, i), IN(1, i, k)));
		if (c->in[2].at)
			num_sum_add(&s, IN(2, 0, k));
		OUT(r, k) = num_sum_get(c->u, &s);
	}
}

void oracle_linear_back(struct oracle_call *c)
{
	for (int64_t r = 0; WANT(0) && r < c->in[0].rows; r++)
		for (int64_t i = 0; i < c->in[0].cols; i++) {
			struct num_sum s = {0};
			for (int64_t k = 0; k < c->out.cols; k++)
				num_sum_add(&s, num_mul(c->u, DOUT(r, k), IN(1, i, k)));
			DIN(0, r, i) = num_sum_get(c->u, &s);
		}
	for (int64_t i = 0; WANT(1) && i < c->in[1].rows; i++)
		for (int64_t k = 0; k < c->out.cols; k++) {
			struct num_sum s = {0};
			for (int64_t r = 0; r < c->out.rows; r++)
				num_sum_add(&s, num_mul(c->u, IN(0, r, i), DOUT(r, k)));
			DIN(1, i, k) = num_sum_get(c->u, &s);
		}
	for (int64_t k = 0; c->in[2].at && WANT(2) && k < c->out.cols; k++) {
		struct num_sum s = {0};
		for (int64_t r = 0; r < c->out.rows; r++)
			num_sum_add(&s, DOUT(r, k));
		DIN(2, 0, k) = num_sum_get(c->u, &s);
	}
}

/* Y[i, c] = 1/h sum_k X[i, k d + c]. */
void oracle_head_mean(struct oracle_call *c)
{
	FOR_OUT(r, k)
	{
		struct num_sum s = {0};
		for (int64_t h = 0; h < c->heads; h++)
			num_sum_add(&s, IN(0, r, h * c->out.cols + k));
		OUT(r, k) = num_mul(c->u, num_sum_get(c->u, &s), num_round(c->u, 1.0 / c->heads, 0));
	}
}

void oracle_head_mean_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	for (int64_t h = 0; h < c->heads; h++)
		DIN(0, r, h * c->out.cols + k) =
		    num_mul(c->u, DOUT(r, k), num_round(c->u, 1.0 / c->heads, 0));
}

/* S[i, v h + k] = <X[i, head k], vector v[head k]>, one vector or two. */
void oracle_head_dot(struct oracle_call *c)
{
	const int64_t d = c->in[0].cols / c->heads;
	FOR_OUT(r, h)
	{
		struct num_sum s = {0};
		const int v = h < c->heads ? 1 : 2;
		const int64_t head = h % c->heads;
		for (int64_t k = 0; k < d; k++)
			num_sum_add(&s, num_mul(c->u, IN(0, r, head * d + k), IN(v, 0, head * d + k)));
		OUT(r, h) = num_sum_get(c->u, &s);
	}
}

void oracle_head_dot_back(struct oracle_call *c)
{
	const int64_t d = c->in[0].cols / c->heads, vectors = c->out.cols / c->heads;
	for (int64_t k = 0; k < c->in[0].cols; k++) {
		struct num_sum s[2] = {0};
		for (int64_t r = 0; r < c->out.rows; r++) {
			num dx = num_exact(0);
			for (int v = 0; v < vectors; v++) {
				const num ds = DOUT(r, v * c->heads + k / d);
				dx = num_add(c->u, dx, num_mul(c->u, ds, IN(1 + v, 0, k)));
				num_sum_add(&s[v], num_mul(c->u, ds, IN(0, r, k)));
			}
			if (WANT(0))
				DIN(0, r, k) = dx;
		}
		for (int v = 0; v < vectors; v++)
			if (WANT(1 + v))
				DIN(1 + v, 0, k) = num_sum_get(c->u, &s[v]);
	}
}

/* Normalisation of a line of `count` elements, which are `stride` apart in X: a column for batch
 * norm, a row for layer norm.
 *     mean = sum x / n,  var = sum (x - mean)^2 / n,  rstd = 1 / sqrt(var + eps),
 *     y = gamma (x - mean) rstd + beta */
struct line {
	num mean, rstd;
};

static struct line statistics(const struct oracle_call *c, const num *x, int64_t count,
                              int64_t stride)
{
	struct num_sum sum = {0}, square = {0};
	const num n = num_exact((double)count);
	for (int64_t i = 0; i < count; i++)
		num_sum_add(&sum, x[i * stride]);
	const num mean = num_div(c->u, num_sum_get(c->u, &sum), n);
	for (int64_t i = 0; i < count; i++) {
		const num t = num_sub(c->u, x[i * stride], mean);
		num_sum_add(&square, num_mul(c->u, t, t));
	}
	const num var = num_div(c->u, num_sum_get(c->u, &square), n), eps = num_round(c->u, c->eps, 0);
	return (struct line){mean,
	                     num_div(c->u, num_exact(1.0), num_sqrt(c->u, num_add(c->u, var, eps)))};
}

static num normalised(const struct oracle_call *c, const struct line *l, num x)
{
	return num_mul(c->u, num_sub(c->u, x, l->mean), l->rstd);
}

/* The gradient, in a form that both norms have in common: with g = dy * gamma and xhat = (x - mean)
 * rstd,
 *     dx = rstd (g - mean(g) - xhat mean(g xhat)). */
static void line_back(struct oracle_call *c, const struct line *l, const num *x, const num *g,
                      num *dx, int64_t count, int64_t stride)
{
	struct num_sum sum = {0}, dot = {0};
	for (int64_t i = 0; i < count; i++) {
		num_sum_add(&sum, g[i]);
		num_sum_add(&dot, num_mul(c->u, g[i], normalised(c, l, x[i * stride])));
	}
	const num n = num_exact((double)count);
	const num mean_g = num_div(c->u, num_sum_get(c->u, &sum), n),
	          mean_dot = num_div(c->u, num_sum_get(c->u, &dot), n);
	for (int64_t i = 0; i < count; i++) {
		const num back = num_mul(c->u, normalised(c, l, x[i * stride]), mean_dot);
		dx[i * stride] = num_mul(c->u, l->rstd, num_sub(c->u, num_sub(c->u, g[i], mean_g), back));
		/* The kernels may multiply by gamma at the end, which is one product more. */
		dx[i * stride] = num_round(3 * c->u, dx[i * stride].v, dx[i * stride].e);
	}
}

static struct line column_line(const struct oracle_call *c, int64_t k)
{
	if (!c->eval)
		return statistics(c, &IN(0, 0, k), c->in[0].rows, c->in[0].cols);
	const num eps = num_round(c->u, c->eps, 0),
	          var = num_add(c->u, num_exact(c->running_var[k]), eps);
	return (struct line){num_exact(c->running_mean[k]),
	                     num_div(c->u, num_exact(1.0), num_sqrt(c->u, var))};
}

/* relu in the same node. Its input has an error, so where the error reaches 0 the branch is not
 * known. */
static num rectified(const struct oracle_call *c, num y)
{
	return c->act && y.v <= 0 ? (num){0.0, y.v + y.e > 0 ? y.v + y.e : 0.0} : y;
}

static num passed(const struct oracle_call *c, num y, num dout)
{
	const num none = {0.0, fabs(y.v) <= y.e ? fabs(dout.v) + dout.e : 0.0},
	          all = {dout.v, dout.e + none.e};
	return c->act ? (y.v > 0 ? all : none) : dout;
}

void oracle_batch_norm(struct oracle_call *c)
{
	for (int64_t k = 0; c->out.rows && k < c->out.cols; k++) {
		const struct line l = column_line(c, k);
		for (int64_t r = 0; r < c->out.rows; r++)
			OUT(r, k) = rectified(
			    c, num_add(c->u, num_mul(c->u, IN(1, 0, k), normalised(c, &l, IN(0, r, k))),
			               IN(2, 0, k)));
	}
}

/* Sums over rows of dY and of dY * xhat: the gradients of beta and gamma. */
static void gain_gradient(struct oracle_call *c, int64_t k, const struct num_sum *shift,
                          const struct num_sum *gain)
{
	if (WANT(1))
		DIN(1, 0, k) = num_sum_get(c->u, gain);
	if (WANT(2))
		DIN(2, 0, k) = num_sum_get(c->u, shift);
}

void oracle_batch_norm_back(struct oracle_call *c)
{
	num *g = oracle_scratch(c->out.rows);
	for (int64_t k = 0; k < c->out.cols; k++) {
		const struct line l =
		    c->out.rows ? column_line(c, k) : (struct line){num_exact(0), num_exact(0)};
		struct num_sum shift = {0}, gain = {0};
		for (int64_t r = 0; r < c->out.rows; r++) {
			const num xhat = normalised(c, &l, IN(0, r, k));
			const num dy =
			    passed(c, num_add(c->u, num_mul(c->u, IN(1, 0, k), xhat), IN(2, 0, k)), DOUT(r, k));
			g[r] = num_mul(c->u, dy, IN(1, 0, k));
			num_sum_add(&shift, dy);
			num_sum_add(&gain, num_mul(c->u, dy, xhat));
		}
		gain_gradient(c, k, &shift, &gain);
		if (WANT(0) && c->out.rows)
			line_back(c, &l, &IN(0, 0, k), g, &DIN(0, 0, k), c->out.rows, c->out.cols);
	}
	oracle_release(g);
}

void oracle_layer_norm(struct oracle_call *c)
{
	for (int64_t r = 0; c->out.cols && r < c->out.rows; r++) {
		const struct line l = statistics(c, &IN(0, r, 0), c->out.cols, 1);
		for (int64_t k = 0; k < c->out.cols; k++)
			OUT(r, k) = num_add(c->u, num_mul(c->u, IN(1, 0, k), normalised(c, &l, IN(0, r, k))),
			                    IN(2, 0, k));
	}
}

void oracle_layer_norm_back(struct oracle_call *c)
{
	num *g = oracle_scratch(c->out.cols);
	for (int64_t r = 0; WANT(0) && c->out.cols && r < c->out.rows; r++) {
		const struct line l = statistics(c, &IN(0, r, 0), c->out.cols, 1);
		for (int64_t k = 0; k < c->out.cols; k++)
			g[k] = num_mul(c->u, DOUT(r, k), IN(1, 0, k));
		line_back(c, &l, &IN(0, r, 0), g, &DIN(0, r, 0), c->out.cols, 1);
	}
	for (int64_t k = 0; k < c->out.cols; k++) {
		struct num_sum shift = {0}, gain = {0};
		for (int64_t r = 0; r < c->out.rows; r++) {
			const struct line l = statistics(c, &IN(0, r, 0), c->out.cols, 1);
			num_sum_add(&shift, DOUT(r, k));
			num_sum_add(&gain, num_mul(c->u, DOUT(r, k), normalised(c, &l, IN(0, r, k))));
		}
		gain_gradient(c, k, &shift, &gain);
	}
	oracle_release(g);
}
