/* Exponential.
 *
 *     Y = exp(X)
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  exp is f32; Y is narrowed once: an f16 result is 0 below 2^-25.
 * Range     0 < Y <= exp(max|X|), which fits in f16 for |X| <= 11.09. Where no X is above 0, Y
 *           <= 1: proved.
 * Error     4 u32 Y (2 units in the last place), narrowed once.
 * Gradient  dX = Y dY from the stored Y, which has 11 bits in f16;  max|dX| <= max|Y| max|dY|.
 * Cost      2 n d elements;  8 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(r->in[0].sign < 0 ? 1.0 : exp(r->in[0].largest));
	out.least = r->in[0].sign > 0 ? 1.0 : exp(-r->in[0].largest);
	out.sign = 1;
	hg__because(how, r->in[0].sign < 0 ? "exp of numbers below 0: at most 1" : "exp of |X| %.3g",
	            r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = hg__bound_mul(r->out.largest, r->dout);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct act_sample rows[] = {
	    {"plain", HG_OK, 0, 1.0, 0.0f, ACT_FLOATS},
	    {"one column more", HG_OK, 1, 1.0, 0.0f, ACT_FLOATS},
	    {"three columns more, near 0", HG_OK, 3, 0.01, 0.0f, ACT_FLOATS},
	    {"up to 8", HG_OK, 0, 7.9, 0.0f, ACT_POSITIVES},
	    {"so far below 0 that halves end", HG_OK, 1, -16.0, 0.0f, ACT_ALIKE},
	    {"X of integers", HG_ERR_DTYPE, 0, 1.0, 0.0f, ACT_INTEGERS},
	    {"X of bytes", HG_ERR_DTYPE, 0, 1.0, 0.0f, ACT_BYTES},
	    {"X missing", HG_ERR_ARG, 0, 1.0, 0.0f, ACT_MISSING},
	};
	return hg__act_sample(rows, sizeof rows / sizeof rows[0], i, x, s);
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 8.0, cost);
}

static const struct hg__about about = {.traits = HG__EXPONENTIAL};

const struct hg__op hg__op_exp = {
    HG__ACT_FIELDS(exp), .words = "exponential",   .traits = HG__ELEMENTWISE,
    .range = range,      .range_back = range_back, .sample = sample,
    .cost = cost,        .about = &about,
};

hg_var hg_exp(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_exp, NULL, &x, 1, NULL, NULL, 0);
}
