#include "oracle/parts.h"

/* Y = dropout(f(S)) with S = spmm(X, w) + (1 + eps) Z + b, composed of the oracles of its parts,
 * between which nothing is rounded. */
enum { X, W, Z, EPS, B };

static const struct oracle_matrix *own(const struct oracle_call *c)
{
	return &c->in[c->self ? X : Z];
}

static num gain(const struct oracle_call *c)
{
	return c->in[EPS].at ? num_add(ORACLE_U32, num_exact(1.0), IN(EPS, 0, 0)) : num_exact(1.0);
}

/* S, the operand of the epilogue. */
static struct oracle_matrix sum(const struct oracle_call *c)
{
	struct oracle_call spmm = *c;
	const num factor = gain(c);
	spmm.out = oracle_like(&c->out);
	oracle_spmm(&spmm);
	if (own(c)->at)
		FOR_OUT(r, k)
	*oracle_at(&spmm.out, r, k) = num_add(ORACLE_U32, *oracle_at(&spmm.out, r, k),
	                                      num_mul(ORACLE_U32, factor, *oracle_at(own(c), r, k)));
	return spmm.out;
}

void oracle_spmm_epilogue(struct oracle_call *c)
{
	const struct oracle_matrix s = sum(c);
	oracle_end_sum(c, &s, B, c->rng_key);
	oracle_release(s.at);
}

/* dX gets (1 + eps) dS where Z is X; otherwise dZ gets it. */
static void back_own(struct oracle_call *c, const struct oracle_matrix *ds)
{
	const num factor = gain(c);
	struct num_sum deps = {0};
	FOR_OUT(r, k)
	{
		const num more = num_mul(ORACLE_U32, factor, *oracle_at(ds, r, k));
		if (c->self && WANT(X))
			DIN(X, r, k) = num_add(ORACLE_U32, DIN(X, r, k), more);
		if (!c->self && WANT(Z))
			DIN(Z, r, k) = more;
		num_sum_add(&deps, num_mul(ORACLE_U32, *oracle_at(ds, r, k), *oracle_at(own(c), r, k)));
	}
	if (WANT(EPS))
		DIN(EPS, 0, 0) = num_sum_get(ORACLE_U32, &deps);
}

void oracle_spmm_epilogue_back(struct oracle_call *c)
{
	const struct oracle_matrix s = sum(c), ds = oracle_end_sum_back(c, &s, B, c->rng_key);
	struct oracle_call spmm = *c;
	if (c->activation || c->p > 0)
		oracle_store(c, &ds);
	spmm.dout = ds;
	oracle_spmm_back(&spmm);
	if (own(c)->at)
		back_own(c, &ds);
	oracle_release(s.at);
	oracle_release(ds.at);
}
