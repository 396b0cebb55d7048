/* The common parts of the reductions of rows, from X [n, d] to Y [n, 1]. */
#ifndef HG_AUTOGRAD_OPS_ROW_H
#define HG_AUTOGRAD_OPS_ROW_H

#include "autograd/about.h"

static inline hg_status row_infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, 0, "X"));
	s->out = hg__shape_of(s->in[0].rows, 1, s->state);
	s->grads = 1u;
	return HG_OK;
}

static inline hg_status row_forward(const struct hg__call *c, hg__row_reduce reduce)
{
	const struct hg__row_reduce_args args = {.reduce = reduce, .x = c->in[0], .y = c->out};
	return HG__RUN(c, row_reduce, &args);
}

static inline hg_status row_backward(const struct hg__call *c, hg__row_reduce reduce)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__row_reduce_back_args args = {
	    .reduce = reduce, .x = c->in[0], .dy = c->dout, .dx = c->din[0]};
	return HG__RUN(c, row_reduce_back, &args);
}

/* Returns `bound`, or infinity if the sum on the way to it, which is at most `sum`, may overflow
 * f32. */
static inline double row_bound(double sum, double bound)
{
	return sum < hg_dtype_get(HG_F32)->max / 2.0 ? bound : (double)INFINITY;
}

static inline int row_sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider;
		enum hg__fill fill;
		double scale;
		enum {
			FLOATS,
			FORWARD,
			INTEGERS,
			BYTES,
			MISSING
		} of; /* FORWARD: the sample has no gradient */
	} rows[] = {
	    {"plain", HG_OK, 0, HG__FILL_NORMAL, 1.0, FLOATS},
	    {"one column more", HG_OK, 1, HG__FILL_NORMAL, 1.0, FLOATS},
	    {"three columns more, large values", HG_OK, 3, HG__FILL_NORMAL, 100.0, FLOATS},
	    {"300 columns more, of one sign", HG_OK, 300, HG__FILL_POSITIVE, 1.0, FLOATS},
	    {"zeros", HG_OK, 0, HG__FILL_CONST, 0.0, FLOATS},
	    {"small values", HG_OK, 1, HG__FILL_CONST, 0x1p-10, FLOATS},
	    {"the smallest half", HG_OK, 1, HG__FILL_CONST, 0x1p-24, FORWARD},
	    {"X of integers", HG_ERR_DTYPE, 0, HG__FILL_NORMAL, 1.0, INTEGERS},
	    {"X of bytes", HG_ERR_DTYPE, 0, HG__FILL_NORMAL, 1.0, BYTES},
	    {"X missing", HG_ERR_ARG, 0, HG__FILL_NORMAL, 1.0, MISSING},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].of == MISSING)
		hg__sample_none(s);
	else if (rows[i].of == BYTES)
		hg__sample_add(s, x->n, x->d, HG_U8, HG__FILL_MASK, 1.0, 0);
	else if (rows[i].of == INTEGERS)
		hg__sample_integer(s, x->n, x->d);
	else
		hg__sample_add(s, x->n, x->d + rows[i].wider, x->state, rows[i].fill, rows[i].scale,
		               rows[i].of == FLOATS);
	return 1;
}

/* Describes an element as a sum of elements. */
static inline hg_status row_terms(const struct hg__call *c, const struct hg__element *e,
                                  double factor, struct hg__terms *t)
{
	if (e->operand < 0)
		*t = (struct hg__terms){.over = HG__OVER_COLUMNS,
		                        .a = c->in[0],
		                        .i = e->row,
		                        .count = c->in[0].cols,
		                        .factor = factor};
	return HG_OK;
}

static inline void row_cost(const struct hg__call *c, double flops, struct hg__cost *cost)
{
	hg__cost_stream(c, 0.0, cost);
	cost->flops = flops * (double)c->in[0].rows * (double)c->in[0].cols;
}

#endif
