#include "oracle/parts.h"

/* Y = f(X) for the activations. Where X is exact, or a sum of two exact numbers, whose rounding
 * keeps the sign, the branch of f is known. Elsewhere the kernel may take the other branch if x is
 * within its error of 0. f is continuous, so y is then wrong by at most the error of x, times the
 * steepest slope of f. The backward pass decides by the stored y, which is 0 also for a small
 * positive x. */
static int either(num x)
{
	return fabs(x.v) <= x.e;
}

static int either_back(const struct oracle_call *c, num x)
{
	return x.e > 0.0 && (either(x) || fabs(x.v) - x.e <= (c->is_half ? 0x1p-25 : 0x1p-150));
}

/* y of the right branch, where the kernel may have taken the other one. */
static num across(const struct oracle_call *c, num y, num x, double steepest)
{
	return x.e > 0.0 && either(x) ? num_round(8 * c->u, y.v, fmax(y.e, steepest * x.e)) : y;
}

/* f' dy of the right branch, where f' may be that of the other one: at most `slope`. */
static num across_back(const struct oracle_call *c, num g, num x, num dy, double slope)
{
	return either_back(c, x)
	           ? num_round(8 * c->u, g.v, g.e + (slope + 8 * c->u) * (fabs(dy.v) + dy.e))
	           : g;
}

void oracle_relu(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = across(c, IN(0, r, k).v > 0 ? IN(0, r, k) : num_exact(0.0), IN(0, r, k), 1.0);
}

void oracle_relu_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = across_back(c, IN(0, r, k).v > 0 ? DOUT(r, k) : num_exact(0.0), IN(0, r, k),
	                           DOUT(r, k), 1.0);
}

void oracle_leaky_relu(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) =
	    across(c, IN(0, r, k).v > 0 ? IN(0, r, k) : num_mul(c->u, num_exact(c->slope), IN(0, r, k)),
	           IN(0, r, k), 1.0);
}

void oracle_leaky_relu_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = across_back(
	    c, IN(0, r, k).v > 0 ? DOUT(r, k) : num_mul(c->u, num_exact(c->slope), DOUT(r, k)),
	    IN(0, r, k), DOUT(r, k), 1.0);
}

void oracle_elu(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) =
	    across(c,
	           IN(0, r, k).v > 0 ? IN(0, r, k)
	                             : num_mul(c->u, num_exact(c->alpha), num_expm1(c->u, IN(0, r, k))),
	           IN(0, r, k), fmax(1.0, c->alpha));
}

/* f'(x) = y + alpha for x <= 0, from the stored y. */
void oracle_elu_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = across_back(
	    c,
	    IN(0, r, k).v > 0
	        ? DOUT(r, k)
	        : num_mul(c->u, num_add(c->u, SAVED(r, k), num_exact(c->alpha)), DOUT(r, k)),
	    IN(0, r, k), DOUT(r, k), fmax(1.0, c->alpha));
}

void oracle_abs(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = (num){fabs(IN(0, r, k).v), IN(0, r, k).e};
}

void oracle_abs_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = num_mul(c->u, num_exact((IN(0, r, k).v > 0) - (IN(0, r, k).v < 0)), DOUT(r, k));
}

void oracle_exp(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_exp(c->u, IN(0, r, k));
}

/* From the stored y. */
void oracle_exp_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = num_mul(c->u, SAVED(r, k), DOUT(r, k));
}

void oracle_log(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_log(c->u, IN(0, r, k));
}

void oracle_log_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = num_div(c->u, DOUT(r, k), IN(0, r, k));
}

void oracle_sqrt(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_sqrt(c->u, IN(0, r, k));
}

/* From the stored y. */
void oracle_sqrt_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = num_div(c->u, DOUT(r, k), num_mul(c->u, num_exact(2.0), SAVED(r, k)));
}

/* Y = A / B, where B has the shape of A, or is a column or a number. */
static num *divisor(const struct oracle_call *c, const struct oracle_matrix *b, int64_t r,
                    int64_t k)
{
	return oracle_at(b, b->rows == c->out.rows ? r : 0, b->cols == c->out.cols ? k : 0);
}

void oracle_div(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_div(c->u, IN(0, r, k), *divisor(c, &c->in[1], r, k));
}

void oracle_div_back(struct oracle_call *c)
{
	const int64_t count = c->in[1].rows * c->in[1].cols;
	struct num_sum *s = calloc((size_t)count + 1, sizeof *s);
	FOR_OUT(r, k)
	{
		const num b = *divisor(c, &c->in[1], r, k);
		if (WANT(0))
			DIN(0, r, k) = num_div(c->u, DOUT(r, k), b);
		if (s)
			num_sum_add(&s[divisor(c, &c->in[1], r, k) - c->in[1].at],
			            num_mul(c->u, DOUT(r, k), num_div(c->u, IN(0, r, k), b)));
	}
	for (int64_t i = 0; WANT(1) && i < count; i++)
		c->din[1].at[i] = s ? num_div(c->u, num_sub(c->u, num_exact(0.0), num_sum_get(c->u, &s[i])),
		                              c->in[1].at[i])
		                    : num_exact(NAN);
	free(s);
}

void oracle_add(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_add(c->u, IN(0, r, k), IN(1, r, k));
}

void oracle_add_back(struct oracle_call *c)
{
	for (int i = 0; i < 2; i++)
		if (WANT(i))
			FOR_OUT(r, k)
	DIN(i, r, k) = DOUT(r, k);
}

void oracle_sub(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_sub(c->u, IN(0, r, k), IN(1, r, k));
}

void oracle_sub_back(struct oracle_call *c)
{
	FOR_OUT(r, k)
	{
		if (WANT(0))
			DIN(0, r, k) = DOUT(r, k);
		if (WANT(1))
			DIN(1, r, k) = (num){-DOUT(r, k).v, DOUT(r, k).e};
	}
}

void oracle_mul(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_mul(c->u, IN(0, r, k), IN(1, r, k));
}

void oracle_mul_back(struct oracle_call *c)
{
	FOR_OUT(r, k)
	for (int i = 0; i < 2; i++)
		if (WANT(i))
			DIN(i, r, k) = num_mul(c->u, IN(1 - i, r, k), DOUT(r, k));
}

void oracle_scale(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_mul(c->u, num_exact(c->alpha), IN(0, r, k));
}

void oracle_scale_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = num_mul(c->u, num_exact(c->alpha), DOUT(r, k));
}

void oracle_cast(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = IN(0, r, k);
}

void oracle_cast_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = DOUT(r, k);
}

void oracle_bias_add(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = num_add(c->u, IN(0, r, k), IN(1, 0, k));
}

void oracle_bias_add_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = DOUT(r, k);
	for (int64_t k = 0; WANT(1) && k < c->out.cols; k++) {
		struct num_sum s = {0};
		for (int64_t r = 0; r < c->out.rows; r++)
			num_sum_add(&s, DOUT(r, k));
		DIN(1, 0, k) = num_sum_get(c->u, &s);
	}
}

/* Y = (1 + eps) X + Z. */
void oracle_combine(struct oracle_call *c)
{
	const num a = num_add(c->u, num_exact(1.0), IN(2, 0, 0));
	FOR_OUT(r, k)
	OUT(r, k) = num_add(c->u, num_mul(c->u, a, IN(0, r, k)), IN(1, r, k));
}

void oracle_combine_back(struct oracle_call *c)
{
	const num a = num_add(c->u, num_exact(1.0), IN(2, 0, 0));
	struct num_sum s = {0};
	FOR_OUT(r, k)
	{
		if (WANT(0))
			DIN(0, r, k) = num_mul(c->u, a, DOUT(r, k));
		if (WANT(1))
			DIN(1, r, k) = DOUT(r, k);
		num_sum_add(&s, num_mul(c->u, DOUT(r, k), IN(0, r, k)));
	}
	if (WANT(2))
		DIN(2, 0, 0) = num_sum_get(c->u, &s);
}

void oracle_concat(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = k < c->in[0].cols ? IN(0, r, k) : IN(1, r, k - c->in[0].cols);
}

void oracle_concat_back(struct oracle_call *c)
{
	const int64_t split = c->in[0].cols;
	FOR_OUT(r, k)
	{
		if (k < split && WANT(0))
			DIN(0, r, k) = DOUT(r, k);
		if (k >= split && WANT(1))
			DIN(1, r, k - split) = DOUT(r, k);
	}
}

/* Philox4x32-10, written from the paper: ten rounds, each with two multiplications 32 x 32 -> 64,
 * and a Weyl sequence of keys. */
uint32_t oracle_random_word(uint64_t key, uint64_t row, uint32_t column, uint64_t step)
{
	uint32_t counter[4] = {(uint32_t)row, (uint32_t)(row >> 32), column / 4, (uint32_t)step},
	         k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
	for (int round = 0; round < 10; round++) {
		const uint64_t left = (uint64_t)counter[0] * 3528531795u,
		               right = (uint64_t)counter[2] * 3449720151u;
		const uint32_t next[4] = {(uint32_t)(right >> 32) ^ counter[1] ^ k[0], (uint32_t)right,
		                          (uint32_t)(left >> 32) ^ counter[3] ^ k[1], (uint32_t)left};
		for (int i = 0; i < 4; i++)
			counter[i] = next[i];
		k[0] += 2654435769u;
		k[1] += 3144134277u;
	}
	return counter[column % 4];
}

static num dropped(const struct oracle_call *c, int64_t r, int64_t k, num x)
{
	if (c->eval)
		return x;
	const double threshold = floor(c->p * 4294967296.0 + 0.5);
	const double kept = (double)oracle_random_word(c->rng_key, (uint64_t)r, (uint32_t)k,
	                                               (uint64_t)c->step) >= threshold;
	const num factor =
	    num_div(c->u, num_exact(1.0), num_sub(c->u, num_exact(1.0), num_exact(c->p)));
	return kept != 0.0 ? num_mul(c->u, factor, x) : num_exact(0.0);
}

void oracle_dropout(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = dropped(c, r, k, IN(0, r, k));
}

void oracle_dropout_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_OUT(r, k)
	DIN(0, r, k) = dropped(c, r, k, DOUT(r, k));
}
