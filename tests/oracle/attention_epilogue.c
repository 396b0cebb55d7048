#include "oracle/parts.h"

/* Y = dropout(f(M + b)) with M the result S of attention or its mean over the heads, composed of
 * the oracles of the parts. S may be narrowed before the next part, and the backward pass reads S
 * as it is stored. */
enum { B = 5 };

static struct oracle_call attention(const struct oracle_call *c)
{
	struct oracle_call part = *c;
	part.p = c->weights_p;
	return part;
}

/* A matrix with the columns of all heads, if the result is their mean; else one like it. */
static struct oracle_matrix of_all_heads(const struct oracle_call *c)
{
	struct oracle_matrix m = c->out;
	m.cols *= c->mean ? c->heads : 1;
	return oracle_like(&m);
}

/* S. */
static struct oracle_matrix sum(const struct oracle_call *c)
{
	struct oracle_call part = attention(c);
	part.out = of_all_heads(c);
	oracle_attention(&part);
	oracle_store(c, &part.out);
	return part.out;
}

/* The operand of the epilogue. The caller releases it, if it is not s. */
static struct oracle_matrix mean(const struct oracle_call *c, const struct oracle_matrix *s)
{
	struct oracle_call part = *c;
	if (!c->mean)
		return *s;
	part.in[0] = *s;
	part.out = oracle_like(&c->out);
	part.u = ORACLE_U32;
	oracle_head_mean(&part);
	return part.out;
}

void oracle_attention_epilogue(struct oracle_call *c)
{
	const struct oracle_matrix s = sum(c), m = mean(c, &s);
	oracle_end_sum(c, &m, B, c->then_key);
	if (c->mean)
		oracle_release(m.at);
	oracle_release(s.at);
}

/* dS from the gradient dm of the operand of the epilogue, which is released if it is another. */
static struct oracle_matrix mean_back(const struct oracle_call *c, const struct oracle_matrix *dm)
{
	struct oracle_call part = *c;
	if (!c->mean)
		return *dm;
	part.dout = *dm;
	part.din[0] = of_all_heads(c);
	part.u = ORACLE_U32;
	oracle_head_mean_back(&part);
	oracle_release(dm->at);
	return part.din[0];
}

void oracle_attention_epilogue_back(struct oracle_call *c)
{
	const struct oracle_matrix s = sum(c), m = mean(c, &s),
	                           dm = oracle_end_sum_back(c, &m, B, c->then_key),
	                           ds = mean_back(c, &dm);
	struct oracle_call own = attention(c);
	if (c->mean || c->activation || c->p > 0)
		oracle_store(c, &ds);
	own.din[B].at = NULL;
	own.out = s; /* its shape */
	own.dout = ds;
	own.saved_out = s;
	oracle_attention_back(&own);
	if (c->mean)
		oracle_release(m.at);
	oracle_release(s.at);
	oracle_release(ds.at);
}
