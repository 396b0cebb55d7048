/* Binary cross-entropy of logits with a weight for the ones of each column, the mean over the
 * elements that count.
 *
 *     L = 1/q * sum over (i, c) that count of ((1 - t) x + (1 + (w[c] - 1) t) log(1 + exp(-x))),
 *         x = X[i, c], t = T[i, c];  L = 0 if q = 0
 *
 * That is -(w t log s(x) + (1 - t) log(1 - s(x))), s the sigmoid. Which elements count, and q: as
 * in bce_logits.
 *
 * Shapes    X, T: [n, d].  mask: [n, 1], [n, d] or absent (all).  w: [1, d].  L: [1, 1], created.
 *           Saved for the backward pass: q f32 [1, 1].
 * Dtypes    X: state.  T: f16 or f32.  mask: u8.  w, L: f32; all arithmetic is f32, in a fixed
 *           order.
 * Range     |L| <= (1 + max|T|) max|X| + (1 + (1 + max|w|) max|T|) (max|X| + log(2)).  L is not
 *           narrowed.
 * Error     gamma_{n d + 10}(u32) times that.
 * Gradient  dX = (1 - t - (1 + (w - 1) t) / (1 + exp(x))) dL / q for elements that count, else 0. T
 *           and w have no gradient. max|dX| <= (2 + (2 + max|w|) max|T|) |dL| / q, q as in
 *           bce_logits.
 * Cost      2 n d elements, n or n d bytes of the mask;  12 n d flops.
 * Errors    HG_ERR_SHAPE T not [n, d], mask neither [n, 1] nor [n, d], w not [1, d];
 *           HG_ERR_DTYPE;  HG_ERR_ARG an operand is missing.
 * Source    PyTorch's BCEWithLogitsLoss (pos_weight) */
#include "autograd/about.h"
#include "autograd/ops/loss.h"
#include "halfgraph/ops_norm.h"

enum { X, TARGET, MASK, WEIGHT };

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(pointwise_infer(s, "logits", "target"));
	return weights_infer(s, WEIGHT);
}

/* Of 1 + (w - 1) t. */
static double slope_of(const struct hg__range *r)
{
	return 1.0 + hg__bound_mul(1.0 + r->in[WEIGHT].largest, r->in[TARGET].largest);
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double x = r->in[X].largest;
	struct hg__known out = hg__at_most(hg__bound_mul(1.0 + r->in[TARGET].largest, x) +
	                                   hg__bound_mul(slope_of(r), x + log(2.0)));
	hg__on_the_way(&how->rounding, slope_of(r));
	hg__on_the_way(&how->rounding, pointwise_elements(r) * out.largest);
	hg__because(how, "|X| %.3g, |target| %.3g, |weight| %.3g", x, r->in[TARGET].largest,
	            r->in[WEIGHT].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	pointwise_range_back(r, grad, 1.0 + r->in[TARGET].largest + slope_of(r));
}

static hg_status forward(const struct hg__call *c)
{
	return pointwise_forward(c, HG__BCE_WEIGHTED);
}

static hg_status backward(const struct hg__call *c)
{
	return pointwise_backward(c, HG__BCE_WEIGHTED);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider, weight_cols; /* weight_cols: too many */
		int mask, none, half; /* mask 2: of elements; none: no weights; half: weights of f16 */
		int state;            /* targets of the type of the logits */
	} rows[] = {
	    {"weights", HG_OK, 0, 0, 0, 0, 0, 0},
	    {"weights, mask, one column more, targets as the logits", HG_OK, 1, 0, 1, 0, 0, 1},
	    {"weights, mask, three columns more", HG_OK, 3, 0, 1, 0, 0, 0},
	    {"weights, mask of elements, two columns more", HG_OK, 2, 0, 2, 0, 0, 0},
	    {"a weight too many", HG_ERR_SHAPE, 0, 1, 0, 0, 0, 0},
	    {"no weights", HG_ERR_ARG, 0, 0, 1, 1, 0, 0},
	    {"weights of f16", HG_ERR_DTYPE, 0, 0, 0, 0, 1, 0},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t d = x->d + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_normal(s, x->n, d, x->state);
	hg__sample_add(s, x->n, d, rows[i].state ? x->state : HG_F32, HG__FILL_UNIFORM01, 1.0, 0);
	if (rows[i].mask)
		hg__sample_add(s, x->n, rows[i].mask == 2 ? d : 1, HG_U8, HG__FILL_MASK, 1.0, 0);
	else
		hg__sample_none(s);
	if (!rows[i].none)
		hg__sample_add(s, 1, d + rows[i].weight_cols, rows[i].half ? HG_F16 : HG_F32,
		               HG__FILL_POSITIVE, 1.0, 0);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	loss_cost(c, 12.0, cost);
}

static const struct hg__about about = {.traits = HG__ENTROPY, .operand = {"logit", "target"}};

const struct hg__op hg__op_bce_logits_weighted = {
    .name = "bce_logits_weighted",
    .words = "binary cross-entropy loss",
    .traits = HG__LOSS,
    .min_in = 2,
    .max_in = 4,
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

hg_var hg_bce_logits_weighted(hg_tape *tape, hg_var logits, hg_var targets, hg_var mask,
                              hg_var weights)
{
	const hg_var in[] = {logits, targets, mask, weights};
	return hg__record(tape, &hg__op_bce_logits_weighted, NULL, in, 4, NULL, NULL, 0);
}
