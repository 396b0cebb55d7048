/* Sum of each row.
 *
 *     Y[i] = sum over c of X[i, c]        (0 of no columns)
 *
 * Shapes    X: [n, d].  Y: [n, 1], created.
 * Dtypes    X, Y: state.  The sum is f32 and is narrowed once.
 * Range     max|Y| <= d max|X|.
 * Error     "sum narrowed once", depth d.
 * Gradient  dX[i, c] = dY[i];  max|dX| <= max|dY|.
 * Cost      n d + n elements;  n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/ops/row.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(hg__bound_mul((double)r->shape[0].cols, r->in[0].largest));
	out.least = r->in[0].sign ? (double)r->shape[0].cols * r->in[0].least : 0.0;
	out.sign = r->in[0].sign;
	hg__because(how, "%lld columns x |X| %.3g", (long long)r->shape[0].cols, r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = r->dout;
}

static hg_status forward(const struct hg__call *c)
{
	return row_forward(c, HG__ROW_SUM);
}

static hg_status backward(const struct hg__call *c)
{
	return row_backward(c, HG__ROW_SUM);
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	row_cost(c, 1.0, cost);
}

static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	return row_terms(c, e, 1.0, t);
}

static const char *mean(const struct hg__node *node)
{
	(void)node;
	return "row_mean(tape, x)";
}

static const struct hg__about about = {.traits = HG__SUMS_ROW, .sum = sum, .mean = mean};

const struct hg__op hg__op_row_sum = {
    .name = "row_sum",
    .words = "sum of the columns of a row",
    .traits = HG__LINEAR,
    .min_in = 1,
    .max_in = 1,
    .same = 1u,
    .infer = row_infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = row_sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_row_sum(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_row_sum, NULL, &x, 1, NULL, NULL, 0);
}
