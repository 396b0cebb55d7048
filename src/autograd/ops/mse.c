/* Mean squared error over the elements that count.
 *
 *     L = 1/q * sum over (i, c) that count of (X[i, c] - T[i, c])^2;  L = 0 if q = 0
 *
 * An element counts if its mask is not 0: that of its row (mask [n, 1]) or its own (mask [n, d]); q
 * is the number of elements that count.
 *
 * Shapes    X, T: [n, d].  mask: [n, 1], [n, d] or absent (all).  L: [1, 1], created.  Saved for
 *           the backward pass: q f32 [1, 1].
 * Dtypes    X: state.  T: f16 or f32.  mask: u8.  L: f32; all arithmetic is f32, in a fixed
 *           order.
 * Range     0 <= L <= (max|X| + max|T|)^2.  L is not narrowed.
 * Error     gamma_{n d + 4}(u32) L.
 * Gradient  dX = 2 (X - T) dL / q for elements that count, else 0. T has no gradient.  max|dX| <= 2
 *           (max|X| + max|T|) |dL| / q, where q is known if the mask is constant; otherwise q >= d
 *           with a mask of rows, and q >= 1 with one of elements.
 * Cost      2 n d elements, n or n d bytes of the mask;  3 n d flops.
 * Errors    HG_ERR_SHAPE T not [n, d], mask neither [n, 1] nor [n, d];  HG_ERR_DTYPE;  HG_ERR_ARG
 *           an operand is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/loss.h"
#include "halfgraph/ops_norm.h"

enum { X, TARGET };

static hg_status infer(struct hg__infer *s)
{
	return pointwise_infer(s, "X", "target");
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double difference = r->in[X].largest + r->in[TARGET].largest;
	struct hg__known out = hg__at_most(difference * difference);
	hg__on_the_way(&how->rounding, pointwise_elements(r) * out.largest);
	hg__because(how, "(|X| %.3g + |target| %.3g) squared", r->in[X].largest, r->in[TARGET].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	pointwise_range_back(r, grad, 2.0 * (r->in[X].largest + r->in[TARGET].largest));
}

static hg_status forward(const struct hg__call *c)
{
	return pointwise_forward(c, HG__MSE);
}

static hg_status backward(const struct hg__call *c)
{
	return pointwise_backward(c, HG__MSE);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	return pointwise_sample(i, x, HG__FILL_NORMAL, s);
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	loss_cost(c, 3.0, cost);
}

static const struct hg__about about = {.operand = {"x", "target"}, .addends = 3u};

const struct hg__op hg__op_mse = {
    .name = "mse",
    .words = "mean squared error",
    .traits = HG__LOSS,
    .min_in = 2,
    .max_in = 3,
    .same = 1u << X,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_mse(hg_tape *tape, hg_var x, hg_var targets, hg_var mask)
{
	const hg_var in[] = {x, targets, mask};
	return hg__record(tape, &hg__op_mse, NULL, in, 3, NULL, NULL, 0);
}
