/* Logarithm of the softmax of each row.
 *
 *     Y[i, c] = X[i, c] - M_i - log(sum over c' of exp(X[i, c'] - M_i))
 *     M_i = max over c of X[i, c]
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  All arithmetic is f32; Y is narrowed once.
 * Range     -2 max|X| - log(d) <= Y <= 0. The sum of a row is at least the 1 of its maximum, so
 *           its logarithm is not below 0, also when it is rounded.
 * Error     |Y - exact| <= gamma_{d + 8}(u32) + gamma_4(u32) |Y|, narrowed once. The range is at
 *           least log 2 = 1 / 1.45 (for d = 1 the result is exact), so this is within the gamma
 *           of 16 + 1.5 d roundings of it.
 * Gradient  dX = dY - exp(Y) * sum over the row of dY. P = exp(Y) <= 1 gives dY the weight 1 - P
 *           and the d - 1 others the weight P, so max|dX| <= max(1, d - 1) max|dY|.
 * Cost      2 n d elements (a row is read once into cache);  6 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/softmax.h"
#include "halfgraph/ops_norm.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(
	    r->shape[0].cols > 0 ? 2.0 * r->in[0].largest + log((double)r->shape[0].cols) : 0.0);
	how->rounding.depth = 16.0 + 1.5 * (double)r->shape[0].cols;
	out.sign = -1;
	hg__because(how, "2 |X| %.3g + log of %lld columns", r->in[0].largest,
	            (long long)r->shape[0].cols);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double d = (double)r->shape[0].cols;
	hg__on_the_way(&grad->rounding, hg__bound_mul(d + 1.0, r->dout));
	grad->largest[0] = hg__bound_mul(fmax(1.0, d - 1.0), r->dout);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__log_softmax_args args = {.x = c->in[0], .y = c->out};
	return HG__RUN(c, log_softmax, &args);
}

static hg_status backward(const struct hg__call *c)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__log_softmax_back_args args = {.y = c->out, .dy = c->dout, .dx = c->din[0]};
	return HG__RUN(c, log_softmax_back, &args);
}

static const struct hg__about about = {.operand = {"x"}, .noise = 0x1p-20};

const struct hg__op hg__op_log_softmax = {
    .name = "log_softmax",
    .words = "log-softmax over the columns",
    .min_in = 1,
    .max_in = 1,
    .same = 1u,
    .infer = softmax_infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = softmax_sample,
    .cost = softmax_cost,
    .about = &about,
};

hg_var hg_log_softmax(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_log_softmax, NULL, &x, 1, NULL, NULL, 0);
}
