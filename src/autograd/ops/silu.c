/* Sigmoid linear unit, or swish.
 *
 *     Y = X s(X),  s(x) = 1 / (1 + exp(-x))
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  s (formulas.h) and the product are f32; Y is narrowed once.
 * Range     max|Y| <= max|X|, because 0 <= s <= 1 holds for the computed s, too: proved for
 *           every input.
 * Error     8 u32 |Y|, narrowed once.  NaN at -infinity.
 * Gradient  dX = s(X) (1 + X s(-X)) dY from X; the factor is off by 18 u32 s(X) (1 + |X| s(-X)).
 *           max|dX| <= 1.1 max|dY|, near X = 2.4.
 * Cost      2 n d elements;  13 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    Elfwing, Uchibe, Doya 2018. */
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 13.0, cost);
}

const struct hg__op hg__op_silu = {
    HG__ACT_FIELDS(silu),
    .words = "SiLU",
    .traits = HG__ELEMENTWISE,
    .range = hg__act_range,
    .range_back = hg__act_range_back,
    .sample = hg__act_sample_any,
    .cost = cost,
};

hg_var hg_silu(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_silu, NULL, &x, 1, NULL, NULL, 0);
}
