/* Difference of two matrices.
 *
 *     Z = X - Y
 *
 * Shapes    X, Y, Z: [n, d].
 * Dtypes    X, Y, Z: state.  The difference is f32 and is narrowed once.
 * Range     max|Z| <= max|X| + max|Y|, or the larger of both where X and Y are known to have the
 *           same sign.
 * Error     one rounding.
 * Gradient  dX = dZ,  dY = -dZ.
 * Cost      3 n d elements;  n d flops.
 * Errors    HG_ERR_SHAPE shapes differ;  HG_ERR_DTYPE;  HG_ERR_ARG an operand is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/pair.h"
#include "halfgraph/ops.h"

enum { X, Y };

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const int alike = r->in[X].sign && r->in[X].sign == r->in[Y].sign,
	          apart = r->in[X].sign && r->in[X].sign == -r->in[Y].sign;
	struct hg__known out = hg__at_most(alike ? fmax(r->in[X].largest, r->in[Y].largest)
	                                         : r->in[X].largest + r->in[Y].largest);
	out.sign = apart ? r->in[X].sign : 0;
	out.least = apart ? r->in[X].least + r->in[Y].least : 0.0;
	hg__because(how, alike ? "|X| %.3g or |Y| %.3g" : "|X| %.3g + |Y| %.3g", r->in[X].largest,
	            r->in[Y].largest);
	return out;
}

static hg_status forward(const struct hg__call *c)
{
	return hg__pair_sum(c, -1.0f);
}

static hg_status backward(const struct hg__call *c)
{
	return hg__pair_sum_back(c, -1.0f);
}

static const struct hg__about about = {.operand = {"x", "y"}, .addends = 1u << X | 1u << Y};

const struct hg__op hg__op_sub = {
    .name = "sub",
    .words = "difference of two tensors",
    .traits = HG__ELEMENTWISE,
    .min_in = 2,
    .max_in = 2,
    .rescaled = 1u << X | 1u << Y,
    .rescales = hg__always,
    .same = 1u << X | 1u << Y,
    .passes = 1u << X,
    .infer = hg__pair_infer,
    .range = range,
    .range_back = hg__pair_sum_range_back,
    .forward = forward,
    .backward = backward,
    .sample = hg__pair_sample,
    .cost = hg__cost_one_flop,
    .about = &about,
};

hg_var hg_sub(hg_tape *tape, hg_var x, hg_var y)
{
	const hg_var in[] = {x, y};
	return hg__record(tape, &hg__op_sub, NULL, in, 2, NULL, NULL, 0);
}
