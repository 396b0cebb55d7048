#include "oracle/parts.h"

/* Y = dropout(f(X + b)), composed of the oracles of its parts, between which nothing is rounded. */

/* The values between the parts: sum = X + b, act = f(sum). */
struct between {
	struct oracle_matrix sum, act;
};

static void copy(const struct oracle_matrix *from, const struct oracle_matrix *to)
{
	for (int64_t i = 0; i < to->rows * to->cols; i++)
		to->at[i] = from->at[i];
}

/* Calls the oracle of one part. */
static struct oracle_call part(const struct oracle_call *c, const struct oracle_matrix *x,
                               const struct oracle_matrix *y)
{
	struct oracle_call own = *c;
	own.in[0] = *x;
	own.out = *y;
	return own;
}

static void middle(const struct oracle_call *c, struct between *m)
{
	m->sum = oracle_like(&c->out);
	m->act = oracle_like(&c->out);
	struct oracle_call add = part(c, &c->in[0], &m->sum), act = part(c, &m->sum, &m->act);
	if (c->in[1].at)
		oracle_bias_add(&add);
	else
		copy(&c->in[0], &m->sum);
	if (c->activation)
		c->activation->forward(&act);
	else
		copy(&m->sum, &m->act);
}

static void middle_release(struct between *m)
{
	oracle_release(m->sum.at);
	oracle_release(m->act.at);
}

void oracle_epilogue(struct oracle_call *c)
{
	struct between m;
	middle(c, &m);
	struct oracle_call drop = part(c, &m.act, &c->out);
	oracle_dropout(&drop);
	middle_release(&m);
}

/* f(sum) as the backward pass computes it: the stored y (1 - p) where the element was kept.
 * Elsewhere the gradient is 0 anyway. */
static void find_act(const struct oracle_call *c, const struct oracle_matrix *act)
{
	const num keep = num_sub(c->u, num_exact(1.0), num_exact(c->p));
	FOR_OUT(r, k)
	*oracle_at(act, r, k) = c->p > 0 ? num_mul(c->u, SAVED(r, k), keep) : SAVED(r, k);
}

void oracle_epilogue_back(struct oracle_call *c)
{
	struct between m;
	middle(c, &m);
	const struct oracle_matrix dact = oracle_like(&c->out), dsum = oracle_like(&c->out);
	struct oracle_call drop = part(c, &m.act, &c->out), act = part(c, &m.sum, &m.act),
	                   add = part(c, &c->in[0], &m.sum);
	drop.din[0] = dact;
	oracle_dropout_back(&drop);
	find_act(c, &m.act);
	act.saved_out = m.act;
	act.dout = dact;
	act.din[0] = dsum;
	if (c->activation)
		c->activation->backward(&act);
	else
		copy(&dact, &dsum);
	add.dout = dsum;
	if (c->in[1].at)
		oracle_bias_add_back(&add);
	else if (WANT(0))
		copy(&dsum, &c->din[0]);
	oracle_release(dact.at);
	oracle_release(dsum.at);
	middle_release(&m);
}

static struct oracle_call behind(const struct oracle_call *c, const struct oracle_matrix *s, int b,
                                 uint64_t key)
{
	struct oracle_call part = *c;
	part.in[0] = *s;
	part.in[1] = c->in[b];
	part.din[0].at = part.din[1].at = 0;
	part.alpha = part.slope = c->act_p;
	part.u = ORACLE_U32;
	part.rng_key = key;
	return part;
}

void oracle_end_sum(struct oracle_call *c, const struct oracle_matrix *s, int b, uint64_t key)
{
	struct oracle_call part = behind(c, s, b, key);
	oracle_epilogue(&part);
}

struct oracle_matrix oracle_end_sum_back(struct oracle_call *c, const struct oracle_matrix *s,
                                         int b, uint64_t key)
{
	const struct oracle_matrix ds = oracle_like(&c->out);
	struct oracle_call part = behind(c, s, b, key);
	part.din[0] = ds;
	part.din[1] = c->din[b];
	oracle_epilogue_back(&part);
	return ds;
}

void oracle_store(const struct oracle_call *c, const struct oracle_matrix *m)
{
	for (int64_t i = 0; i < m->rows * m->cols; i++)
		m->at[i] = num_store(c->is_half, m->at[i]);
}
