/* Logistic function.
 *
 *     Y = 1 / (1 + exp(-X))
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  Computed from exp(-|X|) in f32 (formulas.h); Y is narrowed once.
 * Range     0 <= Y <= 1, also as computed: proved for every input. Y >= 1/2 where no X is below
 *           0, and Y <= 1/2 where none is above 0.
 * Error     7 u32 Y, narrowed once: an f16 result is 0 below 2^-25.
 * Gradient  dX = Y (1 - Y) dY from the stored Y, so the factor has the rounding error of Y, u16
 *           Y;  max|dX| <= max|dY| / 4.
 * Cost      2 n d elements;  12 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__act_range(r, how);
	out.largest = r->in[0].sign < 0 ? 0.5 : 1.0 / (1.0 + exp(-r->in[0].largest));
	out.least = r->in[0].sign > 0 ? 0.5 : 1.0 / (1.0 + exp(r->in[0].largest));
	out.sign = 1;
	return out;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 12.0, cost);
}

const struct hg__op hg__op_sigmoid = {
    HG__ACT_FIELDS(sigmoid),
    .words = "sigmoid",
    .traits = HG__ELEMENTWISE,
    .range = range,
    .range_back = hg__act_range_back,
    .sample = hg__act_sample_any,
    .cost = cost,
};

hg_var hg_sigmoid(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_sigmoid, NULL, &x, 1, NULL, NULL, 0);
}
