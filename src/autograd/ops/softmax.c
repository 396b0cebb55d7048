/* Softmax of each row.
 *
 *     Y[i, c] = exp(X[i, c] - M_i) / sum over c' of exp(X[i, c'] - M_i)
 *     M_i = max over c of X[i, c]
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  All arithmetic is f32; Y is narrowed once: an f16 result is 0 below
 *           2^-25.
 * Range     exp(X - M) is in (0, 1], and 1 at the maximum, so the sum is at least as large as
 *           each term: 0 < Y <= 1, proved for every input.
 * Error     |Y - exact| <= gamma_{d + 10}(u32) Y + 2 u32 max|X| Y, narrowed once.
 * Gradient  dX = Y (dY - sum over the row of Y dY), with the saved Y;  max|dX| <= max|dY| / 2,
 *           apart from the rounding of Y (hg__shares_back).
 * Cost      2 n d elements (a row is read once into cache);  6 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/ops/softmax.h"
#include "autograd/about.h"
#include "halfgraph/ops_norm.h"

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	/* Each term of the sum is at most exp(0). The difference of two rounded numbers is within 2 u32
	 * max|X| of their own difference. */
	struct hg__known out = hg__at_most(1.0);
	out.least = r->shape[0].cols > 0
	                ? exp(-2.0 * r->in[0].largest * (1.0 + 0x1p-23)) / (double)r->shape[0].cols
	                : 0.0;
	out.sign = 1;
	hg__because(how, "a share of its row: at most 1");
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	hg__shares_back(r, grad, (double)r->shape[0].cols);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__softmax_args args = {.x = c->in[0], .y = c->out};
	return HG__RUN(c, softmax, &args);
}

static hg_status backward(const struct hg__call *c)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__softmax_back_args args = {.y = c->out, .dy = c->dout, .dx = c->din[0]};
	return HG__RUN(c, softmax_back, &args);
}

static const struct hg__about about = {.traits = HG__SHARES, .operand = {"x"}, .noise = 0x1p-20};

const struct hg__op hg__op_softmax = {
    .name = "softmax",
    .words = "softmax over the columns",
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

hg_var hg_softmax(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_softmax, NULL, &x, 1, NULL, NULL, 0);
}
