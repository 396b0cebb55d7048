/* Gaussian error linear unit, with the exact error function.
 *
 *     Y = X Phi(X),  Phi(x) = (1 + erf(x / sqrt 2)) / 2
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  Phi (formulas.h) and the product are f32; Y is narrowed once.
 * Range     max|Y| <= max|X|, because 0 <= Phi <= 1 holds for the computed Phi, too: proved for
 *           every input.
 * Error     (16 + x^2 / 2) u32 |Y|, narrowed once.  NaN at -infinity.
 * Gradient  dX = (Phi(X) + X phi(X)) dY from X, phi(x) = exp(-x^2 / 2) / sqrt(2 pi); the factor
 *           is off by (18 + x^2 / 2) u32 (Phi + |X| phi).  max|dX| <= 1.13 max|dY|, at X = sqrt
 *           2.
 * Cost      2 n d elements;  32 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    Hendrycks, Gimpel 2016. */
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 32.0, cost);
}

const struct hg__op hg__op_gelu = {
    HG__ACT_FIELDS(gelu),
    .words = "GELU",
    .traits = HG__ELEMENTWISE,
    .range = hg__act_range,
    .range_back = hg__act_range_back,
    .sample = hg__act_sample_any,
    .cost = cost,
};

hg_var hg_gelu(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_gelu, NULL, &x, 1, NULL, NULL, 0);
}
