/* Multiplication by a constant.
 *
 *     Y = factor X
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  The product is f32 and is narrowed once.
 * Range     max|Y| <= |factor| max|X|.
 * Error     one rounding.
 * Gradient  dX = factor dY;  max|dX| <= |factor| max|dY|.
 * Cost      2 n d elements;  n d flops.
 * Errors    HG_ERR_ARG factor not finite, X is missing;  HG_ERR_DTYPE.
 * Source    - */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops.h"

static float factor_of(const struct hg__node *node)
{
	struct hg__scale_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.factor;
}

static hg_status infer(struct hg__infer *s)
{
	const float factor = factor_of(s->node);
	HG__TRY(hg__want_attr(s, isfinite(factor), "factor", (double)factor, "a finite number"));
	HG__TRY(hg__want_state(s, 0, "X"));
	s->out = hg__shape_of(s->in[0].rows, s->in[0].cols, s->state);
	s->grads = 1u;
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out =
	    hg__at_most(hg__bound_mul(fabs((double)factor_of(r->node)), r->in[0].largest));
	out.least = fabs((double)factor_of(r->node)) * r->in[0].least;
	out.sign = factor_of(r->node) < 0.0f ? -r->in[0].sign : r->in[0].sign;
	hg__because(how, "|factor| %.3g x |X| %.3g", fabs((double)factor_of(r->node)),
	            r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = hg__bound_mul(fabs((double)factor_of(r->node)), r->dout);
}

static hg_status forward(const struct hg__call *c)
{
	return hg__copy_scaled(c, c->in[0], hg__rescaled(c, 0, factor_of(c->node)), c->out);
}

static hg_status backward(const struct hg__call *c)
{
	return c->din[0].data ? hg__copy_scaled(c, c->dout, factor_of(c->node), c->din[0]) : HG_OK;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__scale_attr attr;
		int64_t wider;
		int integer;
	} rows[] = {
	    {"half", HG_OK, {0.5f}, 0, 0},
	    {"a third, negative", HG_OK, {-1.0f / 3.0f}, 1, 0},
	    {"zero", HG_OK, {0.0f}, 0, 0},
	    {"a thousand", HG_OK, {1000.0f}, 3, 0},
	    {"factor infinite", HG_ERR_ARG, {INFINITY}, 0, 0},
	    {"factor not a number", HG_ERR_ARG, {NAN}, 0, 0},
	    {"X of integers", HG_ERR_DTYPE, {0.5f}, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_attr(s, &rows[i].attr, sizeof rows[i].attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, x->d);
	else
		hg__sample_normal(s, x->n, x->d + rows[i].wider, x->state);
	return 1;
}

static int constants(const struct hg__node *node, struct hg__named *named)
{
	struct hg__scale_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	named[0] = (struct hg__named){"factor", (double)attr.factor};
	return 1;
}

static const struct hg__about about = {.traits = HG__RESCALES, .constants = constants};

const struct hg__op hg__op_scale = {
    .name = "scale",
    .words = "product with a constant",
    .traits = HG__LINEAR | HG__ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .rescaled = 1u,
    .rescales = hg__always,
    .same = 1u,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = hg__cost_one_flop,
    .about = &about,
};

hg_var hg_scale(hg_tape *tape, hg_var x, float factor)
{
	const struct hg__scale_attr attr = {factor};
	return hg__record(tape, &hg__op_scale, NULL, &x, 1, NULL, &attr, sizeof attr);
}
