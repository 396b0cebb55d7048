#ifndef HG_AUTOGRAD_OPS_ACT_H
#define HG_AUTOGRAD_OPS_ACT_H

#include "autograd/opkit.h"

/* What the activations share: Y = f(X) element by element, backward from Y alone. f and f' are in
 * the kernels' table of activations. */

static inline hg_status act_infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, 0, "X"));
	s->out = hg__shape_of(s->in[0].rows, s->in[0].cols, s->state);
	s->grads = 1u;
	s->saves = HG__SAVE_OUT;
	return HG_OK;
}

static inline hg_status act_forward(const struct hg__call *c, hg__act act, float p)
{
	const struct hg__act_args args = {.act = act, .p = p, .x = c->in[0], .y = c->out};
	return c->k->act(c->ctx, &args);
}

static inline hg_status act_backward(const struct hg__call *c, hg__act act, float p)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__act_back_args args = {
	    .act = act, .p = p, .y = c->out, .dy = c->dout, .dx = c->din[0]};
	return c->k->act_back(c->ctx, &args);
}

/* One sample of an activation: its width beyond d, the spread of its input, its constant. ALIKE:
 * all elements are the spread, with or without a gradient. */
struct act_sample {
	const char *what;
	hg_status expect;
	int64_t wider;
	double sigma;
	float p;
	enum {
		ACT_FLOATS,
		ACT_POSITIVES,
		ACT_ALIKE,
		ACT_ALIKE_FORWARD,
		ACT_INTEGERS,
		ACT_BYTES,
		ACT_MISSING
	} of;
};

static inline void act_sample(const struct act_sample *row, const struct hg__extent *x,
                              struct hg__sample *s)
{
	hg__sample_begin(s, row->what, row->expect, 0);
	hg__sample_attr(s, &row->p, sizeof row->p);
	if (row->of == ACT_MISSING)
		hg__sample_none(s);
	else if (row->of == ACT_BYTES)
		hg__sample_add(s, x->n, x->d, HG_U8, HG__FILL_MASK, 1.0, 0);
	else if (row->of == ACT_INTEGERS)
		hg__sample_integer(s, x->n, x->d);
	else {
		static const enum hg__fill fill[] = {[ACT_FLOATS] = HG__FILL_NORMAL,
		                                     [ACT_POSITIVES] = HG__FILL_POSITIVE,
		                                     [ACT_ALIKE] = HG__FILL_CONST,
		                                     [ACT_ALIKE_FORWARD] = HG__FILL_CONST};
		hg__sample_add(s, x->n, x->d + row->wider, x->state, fill[row->of], row->sigma,
		               row->of != ACT_ALIKE_FORWARD);
	}
}

#endif
