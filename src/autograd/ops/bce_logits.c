/* Binary cross-entropy of logits, the mean over the elements that count.
 *
 *     L = 1/q * sum over (i, c) that count of (max(x, 0) - x t + log(1 + exp(-|x|))),
 *         x = X[i, c], t = T[i, c];  L = 0 if q = 0
 *
 * An element counts if its mask is not 0: that of its row (mask [n, 1]) or its own (mask [n, d]); q
 * is the number of elements that count.
 *
 * Shapes    X, T: [n, d].  mask: [n, 1], [n, d] or absent (all).  L: [1, 1], created.  Saved for
 *           the backward pass: q f32 [1, 1].
 * Dtypes    X: state.  T: f16 or f32.  mask: u8.  L: f32; all arithmetic is f32, in a fixed
 *           order.
 * Range     |L| <= max|X| (1 + max|T|) + log(2).  L is not narrowed.
 * Error     gamma_{n d + 6}(u32) (max|X| (1 + max|T|) + log(2)).
 * Gradient  dX = (1 / (1 + exp(-x)) - t) dL / q for elements that count, else 0. T has no
 *           gradient. max|dX| <= (1 + max|T|) |dL| / q, where q is known if the mask is constant;
 *           otherwise q >= d with a mask of rows, and q >= 1 with one of elements.
 * Cost      2 n d elements, n or n d bytes of the mask;  8 n d flops.
 * Errors    HG_ERR_SHAPE T not [n, d], mask neither [n, 1] nor [n, d];  HG_ERR_DTYPE;  HG_ERR_ARG
 *           an operand is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/loss.h"
#include "halfgraph/ops_norm.h"

enum { X, TARGET };

static hg_status infer(struct hg__infer *s)
{
	return pointwise_infer(s, "logits", "target");
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out =
	    hg__at_most(hg__bound_mul(r->in[X].largest, 1.0 + r->in[TARGET].largest) + log(2.0));
	hg__on_the_way(&how->rounding, pointwise_elements(r) * out.largest);
	hg__because(how, "|X| %.3g (1 + |target| %.3g) + log 2", r->in[X].largest,
	            r->in[TARGET].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	pointwise_range_back(r, grad, 1.0 + r->in[TARGET].largest);
}

static hg_status forward(const struct hg__call *c)
{
	return pointwise_forward(c, HG__BCE_LOGITS);
}

static hg_status backward(const struct hg__call *c)
{
	return pointwise_backward(c, HG__BCE_LOGITS);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	return pointwise_sample(i, x, HG__FILL_UNIFORM01, s);
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	loss_cost(c, 8.0, cost);
}

static const struct hg__about about = {.traits = HG__ENTROPY, .operand = {"logit", "target"}};

const struct hg__op hg__op_bce_logits = {
    .name = "bce_logits",
    .words = "binary cross-entropy loss",
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

hg_var hg_bce_logits(hg_tape *tape, hg_var logits, hg_var targets, hg_var mask)
{
	const hg_var in[] = {logits, targets, mask};
	return hg__record(tape, &hg__op_bce_logits, NULL, in, 3, NULL, NULL, 0);
}
