/* Leaky rectifier.
 *
 *     Y = X where X > 0, else slope X        0 <= slope <= 1
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  The product is f32 and is narrowed once.
 * Range     max|Y| <= max|X|: proved for every input.
 * Error     one rounding of each negative element.
 * Gradient  dX = dY where X > 0, else slope dY;  max|dX| <= max|dY|.
 * Cost      2 n d elements;  n d flops.
 * Errors    HG_ERR_ARG slope outside [0, 1], X is missing;  HG_ERR_DTYPE.
 * Source    Maas, Hannun, Ng 2013. */
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct act_sample rows[] = {
	    {"slope 0.2", HG_OK, 0, 1.0, 0.2f, ACT_FLOATS},
	    {"slope 0", HG_OK, 1, 1.0, 0.0f, ACT_FLOATS},
	    {"slope 1", HG_OK, 3, 1.0, 1.0f, ACT_FLOATS},
	    {"large values", HG_OK, 0, 8000.0, 0.01f, ACT_FLOATS},
	    {"slope negative", HG_ERR_ARG, 0, 1.0, -0.1f, ACT_FLOATS},
	    {"slope above 1", HG_ERR_ARG, 0, 1.0, 1.5f, ACT_FLOATS},
	    {"slope not a number", HG_ERR_ARG, 0, 1.0, NAN, ACT_FLOATS},
	    {"X of integers", HG_ERR_DTYPE, 0, 1.0, 0.2f, ACT_INTEGERS},
	};
	return hg__act_sample(rows, sizeof rows / sizeof rows[0], i, x, s);
}

const struct hg__op hg__op_leaky_relu = {
    HG__ACT_FIELDS(leaky_relu), .words = "LeakyReLU",
    .traits = HG__ELEMENTWISE,  .constant = {"slope", "0 <= slope <= 1", 0.0f, 1.0f},
    .range = hg__act_range,     .range_back = hg__act_range_back,
    .sample = sample,           .cost = hg__cost_one_flop,
};

hg_var hg_leaky_relu(hg_tape *tape, hg_var x, float slope)
{
	const struct hg__act_attr attr = {slope};
	return hg__record(tape, &hg__op_leaky_relu, NULL, &x, 1, NULL, &attr, sizeof attr);
}
