/* Absolute value.
 *
 *     Y = |X|
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  Nothing is rounded.
 * Range     max|Y| <= max|X|, as near to 0 as X, not below it: proved for every input.
 * Error     0.
 * Gradient  dX = dY where X > 0, -dY where X < 0, 0 at the kink;  max|dX| <= max|dY|.
 * Cost      2 n d elements;  n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__act_range(r, how);
	out.least = r->in[0].least;
	out.sign = 1;
	return out;
}

const struct hg__op hg__op_abs = {
    HG__ACT_FIELDS(abs),
    .words = "absolute value",
    .traits = HG__ELEMENTWISE,
    .range = range,
    .range_back = hg__act_range_back,
    .sample = hg__act_sample_any,
    .cost = hg__cost_one_flop,
};

hg_var hg_abs(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_abs, NULL, &x, 1, NULL, NULL, 0);
}
