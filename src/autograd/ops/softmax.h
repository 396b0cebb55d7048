/* The common parts of softmax and log_softmax of a row: X, Y are [n, d], and the backward pass
 * reads Y. */
#ifndef HG_AUTOGRAD_OPS_SOFTMAX_H
#define HG_AUTOGRAD_OPS_SOFTMAX_H

#include "autograd/opkit.h"

static inline hg_status softmax_infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, 0, "X"));
	s->out = hg__shape_of(s->in[0].rows, s->in[0].cols, s->state);
	s->grads = 1u;
	s->saves = HG__SAVE_OUT;
	return HG_OK;
}

static inline int softmax_sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider;
		double sigma;
		int integer, none; /* 2: an operand of bytes */
	} rows[] = {
	    {"plain", HG_OK, 0, 1.0, 0, 0},
	    {"one column more", HG_OK, 1, 1.0, 0, 0},
	    {"three columns more", HG_OK, 3, 1.0, 0, 0},
	    {"far apart", HG_OK, 0, 100.0, 0, 0},
	    {"300 columns more", HG_OK, 300, 1.0, 0, 0},
	    {"X of integers", HG_ERR_DTYPE, 0, 1.0, 1, 0},
	    {"X of bytes", HG_ERR_DTYPE, 0, 1.0, 2, 0},
	    {"X missing", HG_ERR_ARG, 0, 1.0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].none)
		hg__sample_none(s);
	else if (rows[i].integer == 2)
		hg__sample_add(s, x->n, x->d, HG_U8, HG__FILL_MASK, 1.0, 0);
	else if (rows[i].integer)
		hg__sample_integer(s, x->n, x->d);
	else
		hg__sample_add(s, x->n, x->d + rows[i].wider, x->state, HG__FILL_NORMAL, rows[i].sigma, 1);
	return 1;
}

static inline void softmax_cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 6.0, cost);
}

#endif
