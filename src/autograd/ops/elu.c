/* Exponential linear unit.
 *
 *     Y = X where X > 0, else alpha (exp(X) - 1)        alpha > 0
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  exp and the product are f32; Y is narrowed once.
 * Range     max|Y| <= max(max|X|, alpha min(1, max|X|)): proved wherever X and alpha fit in f16.
 * Error     |Y - exact| <= alpha gamma_4(u32), narrowed once, on negative elements; 0 on the
 *           others.
 * Gradient  dX = dY where Y > 0, else (Y + alpha) dY, since alpha exp(X) = Y + alpha;  max|dX|
 *           <= max(1, alpha) max|dY|.
 * Cost      2 n d elements;  3 n d flops.
 * Errors    HG_ERR_ARG alpha not positive and finite, X is missing;  HG_ERR_DTYPE.
 * Source    Clevert, Unterthiner, Hochreiter 2016. */
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	/* 1 - exp(-t) <= min(1, t) */
	struct hg__known out = hg__at_most(
	    fmax(r->in[0].largest, (double)hg__act_p(r->node) * fmin(1.0, r->in[0].largest)));
	hg__because(how, "|X| %.3g, or alpha %.3g", r->in[0].largest, (double)hg__act_p(r->node));
	return out;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct act_sample rows[] = {
	    {"alpha 1", HG_OK, 0, 1.0, 1.0f, ACT_FLOATS},
	    {"alpha 0.5", HG_OK, 1, 1.0, 0.5f, ACT_FLOATS},
	    {"alpha 3", HG_OK, 3, 1.0, 3.0f, ACT_FLOATS},
	    {"large values", HG_OK, 0, 8000.0, 1.0f, ACT_FLOATS},
	    {"alpha 0", HG_ERR_ARG, 0, 1.0, 0.0f, ACT_FLOATS},
	    {"alpha negative", HG_ERR_ARG, 0, 1.0, -1.0f, ACT_FLOATS},
	    {"alpha infinite", HG_ERR_ARG, 0, 1.0, INFINITY, ACT_FLOATS},
	    {"X of integers", HG_ERR_DTYPE, 0, 1.0, 1.0f, ACT_INTEGERS},
	};
	return hg__act_sample(rows, sizeof rows / sizeof rows[0], i, x, s);
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 3.0, cost);
}

const struct hg__op hg__op_elu = {
    HG__ACT_FIELDS(elu),
    .words = "ELU",
    .traits = HG__ELEMENTWISE,
    /* from the smallest to the largest positive f32 */
    .constant = {"alpha", "alpha > 0", 0x1p-149f, 0x1.fffffep127f},
    .range = range,
    .range_back = hg__act_range_back,
    .sample = sample,
    .cost = cost,
};

hg_var hg_elu(hg_tape *tape, hg_var x, float alpha)
{
	const struct hg__act_attr attr = {alpha};
	return hg__record(tape, &hg__op_elu, NULL, &x, 1, NULL, &attr, sizeof attr);
}
