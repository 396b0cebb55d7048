#include "oracle/parts.h"

/* Y[i] = sum, mean or Euclidean norm of row i. */

static num row_sum(const struct oracle_call *c, int64_t r)
{
	struct num_sum s = {0};
	for (int64_t k = 0; k < c->in[0].cols; k++)
		num_sum_add(&s, IN(0, r, k));
	return num_sum_get(c->u, &s);
}

static num row_norm(const struct oracle_call *c, int64_t r)
{
	struct num_sum s = {0};
	for (int64_t k = 0; k < c->in[0].cols; k++)
		num_sum_add(&s, num_mul(c->u, IN(0, r, k), IN(0, r, k)));
	return num_sqrt(c->u, num_sum_get(c->u, &s));
}

#define FOR_IN(r, k)                            \
	for (int64_t r = 0; r < c->in[0].rows; r++) \
		for (int64_t k = 0; k < c->in[0].cols; k++)

void oracle_row_sum(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = row_sum(c, r);
}

void oracle_row_sum_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_IN(r, k)
	DIN(0, r, k) = DOUT(r, 0);
}

void oracle_row_mean(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = c->in[0].cols ? num_div(c->u, row_sum(c, r), num_exact((double)c->in[0].cols))
	                          : num_exact(0.0);
}

void oracle_row_mean_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_IN(r, k)
	DIN(0, r, k) = num_div(c->u, DOUT(r, 0), num_exact((double)c->in[0].cols));
}

void oracle_row_norm(struct oracle_call *c)
{
	FOR_OUT(r, k)
	OUT(r, k) = row_norm(c, r);
}

void oracle_row_norm_back(struct oracle_call *c)
{
	if (WANT(0))
		FOR_IN(r, k)
		{
			const num norm = row_norm(c, r);
			DIN(0, r, k) = norm.v > 0 ? num_mul(c->u, num_div(c->u, IN(0, r, k), norm), DOUT(r, 0))
			                          : num_exact(0.0);
		}
}
