/* Mean of each row.
 *
 *     Y[i] = 1/d * sum over c of X[i, c]        (0 of no columns)
 *
 * Shapes    X: [n, d].  Y: [n, 1], created.
 * Dtypes    X, Y: state.  The sum and the division are f32; Y is narrowed once.
 * Range     a mean is not larger than its largest term: max|Y| <= max|X|, proved wherever X fits
 *           in f16.
 * Error     "sum narrowed once", depth d + 1.
 * Gradient  dX[i, c] = dY[i] / d;  max|dX| <= max|dY| / d.
 * Cost      n d + n elements;  n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/ops/row.h"
#include "halfgraph/ops.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double d = (double)r->shape[0].cols;
	struct hg__known out = hg__at_most(
	    d > 0.0 ? row_bound(hg__bound_mul(d, r->in[0].largest), r->in[0].largest) : 0.0);
	out.least = d > 0.0 && r->in[0].sign ? r->in[0].least : 0.0;
	out.sign = r->in[0].sign;
	hg__because(how, "|X| %.3g: no larger than its largest term", r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = r->shape[0].cols > 0 ? r->dout / (double)r->shape[0].cols : 0.0;
}

static hg_status forward(const struct hg__call *c)
{
	return row_forward(c, HG__ROW_MEAN);
}

static hg_status backward(const struct hg__call *c)
{
	return row_backward(c, HG__ROW_MEAN);
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	row_cost(c, 1.0, cost);
}

static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	return row_terms(c, e, 1.0 / (double)c->in[0].cols, t);
}

static const struct hg__about about = {.sum = sum};

const struct hg__op hg__op_row_mean = {
    .name = "row_mean",
    .words = "mean of the columns of a row",
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

hg_var hg_row_mean(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_row_mean, NULL, &x, 1, NULL, NULL, 0);
}
