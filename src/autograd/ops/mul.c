/* Product of two matrices, element by element.
 *
 *     Z = X o Y
 *
 * Shapes    X, Y, Z: [n, d].
 * Dtypes    X, Y, Z: state.  The product is f32 and is narrowed once.
 * Range     max|Z| <= max|X| max|Y|, and no |Z| is below min|X| min|Y|. The sign of Z is the
 *           product of the signs of X and Y, where they are known.
 * Error     one rounding in f32 (none for f16 operands), narrowed once.
 * Gradient  dX = Y o dZ,  dY = X o dZ;  max|dX| <= max|Y| max|dZ|,  max|dY| <= max|X| max|dZ|.
 * Cost      3 n d elements;  n d flops.
 * Errors    HG_ERR_SHAPE shapes differ;  HG_ERR_DTYPE;  HG_ERR_ARG an operand is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/pair.h"
#include "halfgraph/ops.h"

enum { X, Y };

static hg_status infer(struct hg__infer *s)
{
	s->saves = HG__SAVE_IN(X) | HG__SAVE_IN(Y);
	return hg__pair_infer(s);
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(hg__bound_mul(r->in[X].largest, r->in[Y].largest));
	out.least = hg__bound_mul(r->in[X].least, r->in[Y].least);
	out.sign = r->in[X].sign * r->in[Y].sign;
	hg__because(how, "|X| %.3g x |Y| %.3g", r->in[X].largest, r->in[Y].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[X] = hg__bound_mul(r->in[Y].largest, r->dout);
	grad->largest[Y] = hg__bound_mul(r->in[X].largest, r->dout);
}

static hg_status product(const struct hg__call *c, struct hg__mat a, struct hg__mat b,
                         struct hg__mat y)
{
	const struct hg__pair_args args = {.pair = HG__PAIR_mul, .a = a, .b = b, .y = y};
	return HG__RUN(c, pair, &args);
}

static hg_status forward(const struct hg__call *c)
{
	return product(c, c->in[X], c->in[Y], c->out);
}

static hg_status backward(const struct hg__call *c)
{
	for (int i = X; i <= Y; i++)
		if (c->din[i].data)
			HG__TRY(product(c, c->in[i == X ? Y : X], c->dout, c->din[i]));
	return HG_OK;
}

static const struct hg__about about = {.operand = {"x", "y"}};

const struct hg__op hg__op_mul = {
    .name = "mul",
    .words = "product of two tensors",
    .traits = HG__ELEMENTWISE,
    .min_in = 2,
    .max_in = 2,
    .same = 1u << X | 1u << Y,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = hg__pair_sample,
    .cost = hg__cost_one_flop,
    .about = &about,
};

hg_var hg_mul(hg_tape *tape, hg_var x, hg_var y)
{
	const hg_var in[] = {x, y};
	return hg__record(tape, &hg__op_mul, NULL, in, 2, NULL, NULL, 0);
}
