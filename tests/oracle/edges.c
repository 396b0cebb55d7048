#include "oracle/parts.h"

/* Values of edges from those of one of their nodes, and the other way round. */

static int32_t end_of(const struct oracle_call *c, int64_t e)
{
	return c->at_source ? c->graph.src[e] : c->graph.dst[e];
}

/* Z[e, k] = X[end of e, k]. */
void oracle_gather(struct oracle_call *c)
{
	FOR_OUT(e, k) OUT(e, k) = IN(0, end_of(c, e), k);
}

/* The sums of column k of the values at the edges, by node. The caller frees them. */
static struct num_sum *sums_of(const struct oracle_call *c, const struct oracle_matrix *z,
                               int64_t nodes, int64_t k)
{
	struct num_sum *s = calloc((size_t)nodes + 1, sizeof *s);
	for (int64_t e = 0; s && e < c->graph.m; e++)
		num_sum_add(&s[end_of(c, e)], *oracle_at(z, e, k));
	return s;
}

/* In f16 arithmetic the sum of every batch is multiplied by a factor, and each product can have an
 * absolute error of 2^-25. A row has at most as many batches as edges, and two parts more. */
static num scaled(const struct oracle_call *c, num factor, const struct num_sum *s)
{
	num y = num_mul(c->u, factor, num_sum_get(c->u, s));
	if (c->u > ORACLE_U32)
		y.e += (double)(s->count + 2) * 0x1p-25 + 2 * c->u * fabs(factor.v) * s->mag;
	return y;
}

void oracle_gather_back(struct oracle_call *c)
{
	for (int64_t k = 0; WANT(0) && k < c->out.cols; k++) {
		struct num_sum *s = sums_of(c, &c->dout, c->in[0].rows, k);
		for (int64_t i = 0; s && i < c->in[0].rows; i++)
			DIN(0, i, k) = scaled(c, num_exact(1), &s[i]);
		free(s);
	}
}

/* The first edge at node i that attains the maximum of column k; -1 if there is none. */
static int64_t first_max(const struct oracle_call *c, int64_t i, int64_t k)
{
	int64_t best = -1;
	for (int64_t e = 0; e < c->graph.m; e++)
		if (end_of(c, e) == i && (best < 0 || IN(0, e, k).v > IN(0, best, k).v))
			best = e;
	return best;
}

/* Y[i, k] = sum (reduce 0), mean (1) or maximum (2) of Z[e, k] over the edges e at node i. */
void oracle_scatter(struct oracle_call *c)
{
	for (int64_t k = 0; k < c->out.cols; k++) {
		struct num_sum *s = sums_of(c, &c->in[0], c->out.rows, k);
		for (int64_t i = 0; s && i < c->out.rows; i++) {
			const int64_t best = c->reduce == 2 ? first_max(c, i, k) : -1;
			const num mean = num_round(ORACLE_U32, 1 / fmax((double)s[i].count, 1.0), 0);
			OUT(i, k) = best >= 0        ? IN(0, best, k)
			            : c->reduce == 2 ? num_exact(0)
			                             : scaled(c, c->reduce == 1 ? mean : num_exact(1), &s[i]);
		}
		free(s);
	}
}

void oracle_scatter_back(struct oracle_call *c)
{
	for (int64_t k = 0; WANT(0) && k < c->out.cols; k++) {
		struct num_sum *s = sums_of(c, &c->in[0], c->out.rows, k);
		for (int64_t e = 0; s && e < c->graph.m; e++) {
			const int32_t i = end_of(c, e);
			const num mean = num_round(ORACLE_U32, 1 / (double)s[i].count, 0);
			if (c->reduce == 2)
				DIN(0, e, k) = first_max(c, i, k) == e ? DOUT(i, k) : num_exact(0);
			else
				DIN(0, e, k) = c->reduce == 1 ? num_mul(ORACLE_U32, mean, DOUT(i, k)) : DOUT(i, k);
		}
		free(s);
	}
}
