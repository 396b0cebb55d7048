/* Rectifier.
 *
 *     Y = max(X, 0)
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  Nothing is rounded.
 * Range     max|Y| <= max|X|: proved for every input.
 * Error     0.
 * Gradient  dX = dY where Y > 0, else 0 (0 at the kink);  max|dX| <= max|dY|.
 * Cost      2 n d elements;  n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(r->in[0].largest);
	out.sign = 1;
	hg__because(how, "|X| %.3g", r->in[0].largest);
	return out;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct act_sample rows[] = {
	    {"plain", HG_OK, 0, 1.0, 0.0f, ACT_FLOATS},
	    {"one column more", HG_OK, 1, 1.0, 0.0f, ACT_FLOATS},
	    {"three columns more", HG_OK, 3, 1.0, 0.0f, ACT_FLOATS},
	    {"large values", HG_OK, 0, 8000.0, 0.0f, ACT_FLOATS},
	    {"X of integers", HG_ERR_DTYPE, 0, 1.0, 0.0f, ACT_INTEGERS},
	    {"X of bytes", HG_ERR_DTYPE, 0, 1.0, 0.0f, ACT_BYTES},
	    {"X missing", HG_ERR_ARG, 0, 1.0, 0.0f, ACT_MISSING},
	};
	return hg__act_sample(rows, sizeof rows / sizeof rows[0], i, x, s);
}

const struct hg__op hg__op_relu = {
    HG__ACT_FIELDS(relu),
    .words = "ReLU",
    .traits = HG__ELEMENTWISE,
    .range = range,
    .range_back = hg__act_range_back,
    .sample = sample,
    .cost = hg__cost_one_flop,
};

hg_var hg_relu(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_relu, NULL, &x, 1, NULL, NULL, 0);
}
