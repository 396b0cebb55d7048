/* The common parts of the losses. Operand 0 is the model's result X [n, d], operand 1 is the labels
 * or targets, and operand 2 is the mask u8 or absent: [n, 1], or for losses by element [n, d]. The
 * loss is f32 [1, 1]. The number of rows (or elements) that count is saved for the backward pass,
 * f32 [1, 1]. Where the rows of X are nodes of a graph that changes, its padding does not count. */
#ifndef HG_AUTOGRAD_OPS_LOSS_H
#define HG_AUTOGRAD_OPS_LOSS_H

#include "autograd/opkit.h"

/* Called after the loss has checked operands 0 and 1. mask_cols: the columns of the mask. */
static inline hg_status loss_infer(struct hg__infer *s, int64_t mask_cols)
{
	s->saves |= HG__SAVE_IN(0) | HG__SAVE_AUX(0);
	if (s->in[2].present) {
		HG__TRY(hg__want_dtype(s, 2, "mask", HG_U8));
		HG__TRY(hg__want_shape(s, 2, "mask", s->in[0].rows, mask_cols));
		s->saves |= HG__SAVE_IN(2);
	}
	s->out = s->aux[0] = hg__shape_of(1, 1, HG_F32);
	s->grads |= 1u;
	return HG_OK;
}

/* Weights of classes or columns, f32 [1, d], a constant without a gradient. */
static inline hg_status weights_infer(struct hg__infer *s, int weight)
{
	HG__TRY(hg__want_dtype(s, weight, "weights", HG_F32));
	HG__TRY(hg__want_shape(s, weight, "weights", 1, s->in[0].cols));
	s->saves |= HG__SAVE_IN(weight);
	return HG_OK;
}

/* The largest weight, and the least if all are above 0 (else 0). Absent weights are 1. Below 2^-60
 * a product with a weight may be a subnormal number, which is rounded more coarsely than bounds
 * count: such a least weight counts as 0, too. */
#define LEAST_WEIGHT 0x1p-60

static inline double weights_most(const struct hg__range *r, int weight)
{
	return r->shape[weight].present ? r->in[weight].largest : 1.0;
}

static inline double weights_least(const struct hg__range *r, int weight)
{
	if (!r->shape[weight].present)
		return 1.0;
	return r->in[weight].sign > 0 && r->in[weight].least >= LEAST_WEIGHT ? r->in[weight].least
	                                                                     : 0.0;
}

static inline void loss_cost(const struct hg__call *c, double flops, struct hg__cost *cost)
{
	hg__cost_stream(c, 0.0, cost);
	cost->flops = flops * (double)c->in[0].rows * (double)c->in[0].cols;
}

/* For bce_logits, bce_logits_weighted (operand 3: the weights), mse and mae, whose loss is a mean
 * over elements of a function of the element and its target. */
static inline hg_status pointwise_infer(struct hg__infer *s, const char *x, const char *target)
{
	HG__TRY(hg__want_state(s, 0, x));
	HG__TRY(hg__want_float(s, 1, target));
	HG__TRY(hg__want_equal(s, target, "rows", s->in[1].rows, x, "rows", s->in[0].rows));
	HG__TRY(hg__want_equal(s, target, "columns", s->in[1].cols, x, "columns", s->in[0].cols));
	s->saves = HG__SAVE_IN(1);
	return loss_infer(s, s->in[2].present && s->in[2].cols != 1 ? s->in[0].cols : 1);
}

static inline hg_status pointwise_forward(const struct hg__call *c, hg__pointwise kind)
{
	const struct hg__pointwise_loss_args args = {.kind = kind,
	                                             .x = c->in[0],
	                                             .target = c->in[1],
	                                             .mask = c->in[2],
	                                             .loss = c->out,
	                                             .count = c->aux[0],
	                                             .weight = c->in[3],
	                                             .live = c->live};
	return HG__RUN(c, pointwise_loss, &args);
}

static inline hg_status pointwise_backward(const struct hg__call *c, hg__pointwise kind)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__pointwise_loss_back_args args = {.kind = kind,
	                                                  .x = c->in[0],
	                                                  .target = c->in[1],
	                                                  .mask = c->in[2],
	                                                  .count = c->aux[0],
	                                                  .dloss = c->dout,
	                                                  .dx = c->din[0],
	                                                  .weight = c->in[3],
	                                                  .live = c->live};
	return HG__RUN(c, pointwise_loss_back, &args);
}

/* A lower bound on the number of rows that count, or of elements if the mask has several columns.
 * The loss is a mean over them. */
static inline double loss_counted(const struct hg__range *r)
{
	return fmax(1.0, (double)r->node->counted);
}

/* An upper bound on the number of elements that count, which is reached without a mask. The terms
 * of a loss are added before the mean is taken. */
static inline double pointwise_elements(const struct hg__range *r)
{
	return fmax(1.0, (double)r->shape[0].rows * (double)r->shape[0].cols);
}

/* dX is the slope of the loss of one element times dL / q, which may underflow. A row that counts
 * has `cols` elements that count, unless the mask names them one by one. */
static inline void pointwise_range_back(const struct hg__range *r, struct hg__gradients *grad,
                                        double slope)
{
	const int64_t cols = r->shape[0].cols;
	const int each = r->shape[2].present && r->shape[2].cols == cols;
	const double share = cols > 0 ? r->dout / (loss_counted(r) * (each ? 1.0 : (double)cols)) : 0.0;
	hg__on_the_way(&grad->rounding, slope);
	grad->largest[0] = share > 0.0 ? hg__bound_mul(slope, share + 0x1p-149) : 0.0;
}

static inline int pointwise_sample(int i, const struct hg__extent *x, enum hg__fill fill,
                                   struct hg__sample *s)
{
	enum { NO_MASK, BY_ROW, BY_ELEMENT };
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider, target_rows, target_cols, mask_rows, mask_cols; /* but the first: too many */
		int mask, f32_target, integer, byte_target;
	} rows[] = {
	    {"no mask", HG_OK, 0, 0, 0, 0, 0, NO_MASK, 0, 0, 0},
	    {"mask", HG_OK, 0, 0, 0, 0, 0, BY_ROW, 0, 0, 0},
	    {"mask, three columns more, f32 targets", HG_OK, 3, 0, 0, 0, 0, BY_ROW, 1, 0, 0},
	    {"one column more, f32 targets", HG_OK, 1, 0, 0, 0, 0, NO_MASK, 1, 0, 0},
	    {"mask of elements, three columns more", HG_OK, 3, 0, 0, 0, 0, BY_ELEMENT, 0, 0, 0},
	    {"mask of elements, f32 targets", HG_OK, 0, 0, 0, 0, 0, BY_ELEMENT, 1, 0, 0},
	    {"target has a row too many", HG_ERR_SHAPE, 0, 1, 0, 0, 0, NO_MASK, 0, 0, 0},
	    {"target has a column too many", HG_ERR_SHAPE, 0, 0, 1, 0, 0, NO_MASK, 0, 0, 0},
	    {"mask has a row too many", HG_ERR_SHAPE, 0, 0, 0, 1, 0, BY_ROW, 0, 0, 0},
	    {"mask of elements has a column too many", HG_ERR_SHAPE, 1, 0, 0, 0, 1, BY_ELEMENT, 0, 0,
	     0},
	    {"X of integers", HG_ERR_DTYPE, 0, 0, 0, 0, 0, NO_MASK, 0, 1, 0},
	    {"target of bytes", HG_ERR_DTYPE, 0, 0, 0, 0, 0, NO_MASK, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t d = x->d + rows[i].wider;
	const hg_dtype target = rows[i].byte_target ? HG_U8 : rows[i].f32_target ? HG_F32 : x->state;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, d);
	else
		hg__sample_normal(s, x->n, d, x->state);
	hg__sample_add(s, x->n + rows[i].target_rows, d + rows[i].target_cols, target,
	               rows[i].byte_target ? HG__FILL_MASK : fill, 1.0, 0);
	if (rows[i].mask)
		hg__sample_add(s, x->n + rows[i].mask_rows,
		               (rows[i].mask == BY_ELEMENT ? d : 1) + rows[i].mask_cols, HG_U8,
		               HG__FILL_MASK, 1.0, 0);
	return 1;
}

#endif
