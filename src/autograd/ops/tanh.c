/* Hyperbolic tangent.
 *
 *     Y = tanh(X)
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  Computed from exp(-2 |X|) - 1 in f32 (formulas.h); Y is narrowed once.
 * Range     max|Y| <= min(1, max|X|), and |Y| <= 1 also as computed: proved for every input. Y
 *           has the sign of X.
 * Error     10 u32 |Y|, narrowed once.
 * Gradient  dX = (1 - Y^2) dY from the stored Y, so the factor has an error of 2 u16 Y^2 from
 *           its rounding;  max|dX| <= max|dY|.
 * Cost      2 n d elements;  12 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__act_range(r, how);
	how->rounding.depth = 12.0; /* |Y| <= |X|, except for its error */
	out.least = tanh(r->in[0].least);
	out.sign = r->in[0].sign;
	return out;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 12.0, cost);
}

const struct hg__op hg__op_tanh = {
    HG__ACT_FIELDS(tanh), .words = "hyperbolic tangent",    .traits = HG__ELEMENTWISE,
    .range = range,       .range_back = hg__act_range_back, .sample = hg__act_sample_any,
    .cost = cost,
};

hg_var hg_tanh(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_tanh, NULL, &x, 1, NULL, NULL, 0);
}
