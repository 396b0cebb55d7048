/* Natural logarithm.
 *
 *     Y = log(X)
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  log is f32; Y is narrowed once.
 * Range     max|X| alone gives no bound: log 0 is -infinity, and a negative X gives NaN. Where l
 *           <= X <= max|X| is known with l > 0: max(|log l|, |log max|X||).
 * Error     4 u32 |Y| (2 units in the last place), narrowed once.
 * Gradient  dX = dY / X, from X, because Y determines X poorly where X is near 1;  max|dX| <=
 *           max|dY| / l.
 * Cost      2 n d elements;  8 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/act.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double low = log(r->in[0].least), high = log(r->in[0].largest);
	const int known = r->in[0].sign > 0 && r->in[0].least > 0.0;
	struct hg__known out = hg__at_most(known ? fmax(fabs(low), fabs(high)) : (double)INFINITY);
	out.least = known && low > 0.0 ? low : known && high < 0.0 ? -high : 0.0;
	out.sign = known && low >= 0.0 ? 1 : known && high <= 0.0 ? -1 : 0;
	hg__because(how,
	            known ? "log of numbers from %.3g to %.3g"
	                  : "log of numbers that may be 0 or below it",
	            r->in[0].least, r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = r->in[0].least > 0.0 ? r->dout / r->in[0].least : (double)INFINITY;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct act_sample rows[] = {
	    {"plain", HG_OK, 0, 1.0, 0.0f, ACT_POSITIVES},
	    {"one column more, up to 8000", HG_OK, 1, 8000.0, 0.0f, ACT_POSITIVES},
	    {"three columns more, all 1", HG_OK, 3, 1.0, 0.0f, ACT_ALIKE},
	    {"the smallest half", HG_OK, 0, 0x1p-24, 0.0f, ACT_ALIKE_FORWARD},
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

static const struct hg__about about = {.critical = HG__LOGARITHM, .critical_operand = 0};

const struct hg__op hg__op_log = {
    HG__ACT_FIELDS(log), .words = "logarithm",     .traits = HG__ELEMENTWISE | HG__DIVIDES,
    .range = range,      .range_back = range_back, .sample = sample,
    .cost = cost,        .about = &about,
};

hg_var hg_log(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_log, NULL, &x, 1, NULL, NULL, 0);
}
