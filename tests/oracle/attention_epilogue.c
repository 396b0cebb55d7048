#include "oracle/parts.h"

/* Y = dropout(f(S + b)) with S of attention, composed of the oracles of its parts. S may be
 * narrowed before b is added, and the backward pass reads S as it is stored. */
enum { B = 5 };

static struct oracle_call attention(const struct oracle_call *c)
{
	struct oracle_call part = *c;
	part.p = c->weights_p;
	return part;
}

/* S, the operand of the epilogue. */
static struct oracle_matrix sum(const struct oracle_call *c)
{
	struct oracle_call part = attention(c);
	part.out = oracle_like(&c->out);
	oracle_attention(&part);
	for (int64_t i = 0; i < part.out.rows * part.out.cols; i++)
		part.out.at[i] = num_store(c->is_half, part.out.at[i]);
	return part.out;
}

void oracle_attention_epilogue(struct oracle_call *c)
{
	const struct oracle_matrix s = sum(c);
	oracle_end_sum(c, &s, B, c->then_key);
	oracle_release(s.at);
}

void oracle_attention_epilogue_back(struct oracle_call *c)
{
	const struct oracle_matrix s = sum(c), ds = oracle_end_sum_back(c, &s, B, c->then_key);
	struct oracle_call own = attention(c);
	own.din[B].at = NULL;
	own.dout = ds;
	own.saved_out = s;
	oracle_attention_back(&own);
	oracle_release(s.at);
	oracle_release(ds.at);
}
