/* Square root.
 *
 *     Y = sqrt(X)
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  The root is f32 and is narrowed once.
 * Range     max|Y| <= sqrt(max|X|) where X is known not to be below 0: proved wherever X fits in
 *           f16. Other X have no bound, because the root of a negative number is NaN.
 * Error     one rounding in f32, narrowed once.
 * Gradient  dX = dY / (2 Y) from the stored Y. The root of an f16 number is at least 2^-12, so Y
 *           has 11 bits in f16. dX is infinite at 0.  max|dX| <= max|dY| / (2 sqrt(l)) where X
 *           >= l > 0.
 * Cost      2 n d elements;  n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const int known = r->in[0].sign > 0;
	struct hg__known out = hg__at_most(known ? sqrt(r->in[0].largest) : (double)INFINITY);
	out.least = known ? sqrt(r->in[0].least) : 0.0;
	out.sign = 1;
	hg__because(how, known ? "root of X %.3g" : "root of numbers that may be below 0, |X| %.3g",
	            r->in[0].largest);
	return out;
}

/* The stored Y may be smaller by one rounding. */
static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = r->in[0].sign > 0 && r->in[0].least > 0.0
	                       ? (0.5 + 0x1p-10) / sqrt(r->in[0].least) * r->dout
	                       : (double)INFINITY;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct act_sample rows[] = {
	    {"plain", HG_OK, 0, 1.0, 0.0f, ACT_POSITIVES},
	    {"one column more, up to 60000", HG_OK, 1, 60000.0, 0.0f, ACT_POSITIVES},
	    {"three columns more, the smallest half", HG_OK, 3, 0x1p-24, 0.0f, ACT_ALIKE},
	    {"zeros", HG_OK, 0, 0.0, 0.0f, ACT_ALIKE_FORWARD},
	    {"X of integers", HG_ERR_DTYPE, 0, 1.0, 0.0f, ACT_INTEGERS},
	    {"X of bytes", HG_ERR_DTYPE, 0, 1.0, 0.0f, ACT_BYTES},
	    {"X missing", HG_ERR_ARG, 0, 1.0, 0.0f, ACT_MISSING},
	};
	return hg__act_sample(rows, sizeof rows / sizeof rows[0], i, x, s);
}

static const struct hg__about about = {.critical = HG__ROOT, .critical_operand = 0};

const struct hg__op hg__op_sqrt = {
    HG__ACT_FIELDS(sqrt),
    .words = "square root",
    .traits = HG__ELEMENTWISE | HG__DIVIDES,
    .range = range,
    .range_back = range_back,
    .sample = sample,
    .cost = hg__cost_one_flop,
    .about = &about,
};

hg_var hg_sqrt(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_sqrt, NULL, &x, 1, NULL, NULL, 0);
}
