/* Dropout.
 *
 *     Y = X B / (1 - p),  B[r, c] = 1 with probability 1 - p, else 0;  Y = X on an EVAL tape
 *
 * B is a function of the tape node's key, the step and the element's position (core/rng.h), so the
 * backward pass recomputes it and nothing is saved.
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X, Y: state.  The product is f32 and is narrowed once.
 * Range     max|Y| <= max|X| / (1 - p).
 * Error     gamma_2(u32), narrowed once.
 * Gradient  dX = dY B / (1 - p);  max|dX| <= max|dY| / (1 - p).
 * Cost      2 n d elements;  one product and a quarter of a Philox block each.
 * Errors    HG_ERR_ARG p outside [0, 1), X is missing;  HG_ERR_DTYPE.
 * Source    Srivastava et al. 2014; Salmon et al. 2011 (counter-based numbers). */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops.h"

static float p_of(const struct hg__node *node)
{
	struct hg__dropout_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.p;
}

static hg_status infer(struct hg__infer *s)
{
	const float p = p_of(s->node);
	HG__TRY(hg__want_attr(s, p >= 0.0f && p < 1.0f, "p", (double)p, "0 <= p < 1"));
	HG__TRY(hg__want_state(s, 0, "X"));
	s->out = hg__shape_of(s->in[0].rows, s->in[0].cols, s->state);
	s->grads = 1u;
	return HG_OK;
}

static double gain(const struct hg__range *r)
{
	return r->mode == HG_TRAIN ? 1.0 / (1.0 - (double)p_of(r->node)) : 1.0;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(hg__bound_mul(gain(r), r->in[0].largest));
	/* An f16 number that is not 0 is at least the smallest one, so rounding increases it by at most
	 * half of itself. */
	out.row_sum = 1.5 * gain(r) * r->in[0].row_sum;
	hg__because(how, "1/(1 - p) = %.3g x |X| %.3g", gain(r), r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = hg__bound_mul(gain(r), r->dout);
}

static hg_status mask(const struct hg__call *c, struct hg__mat x, struct hg__mat y)
{
	const float p = p_of(c->node);
	if (c->mode == HG_EVAL || p == 0.0f)
		return hg__copy_scaled(c, x, 1.0f, y);
	const struct hg__dropout_args args = {
	    .x = x, .y = y, .p = p, .key = c->node->rng_key, .step = c->step};
	return HG__RUN(c, dropout, &args);
}

static hg_status forward(const struct hg__call *c)
{
	return mask(c, c->in[0], c->out);
}

static hg_status backward(const struct hg__call *c)
{
	return c->din[0].data ? mask(c, c->dout, c->din[0]) : HG_OK;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__dropout_attr attr;
		int64_t wider;
		int integer;
	} rows[] = {
	    {"p 0.5", HG_OK, {0.5f}, 0, 0},
	    {"p 0", HG_OK, {0.0f}, 0, 0},
	    {"p 0.9, one column more", HG_OK, {0.9f}, 1, 0},
	    {"p 0.1, three columns more", HG_OK, {0.1f}, 3, 0},
	    {"p 1", HG_ERR_ARG, {1.0f}, 0, 0},
	    {"p negative", HG_ERR_ARG, {-0.1f}, 0, 0},
	    {"p not a number", HG_ERR_ARG, {NAN}, 0, 0},
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

static double kept(const struct hg__node *node)
{
	struct hg__dropout_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return 1.0 - (double)attr.p;
}

static int constants(const struct hg__node *node, struct hg__named *named)
{
	named[0] = (struct hg__named){"factor", 1.0 / kept(node)};
	return 1;
}

static const struct hg__about about = {
    .traits = HG__PROPORTIONAL, .constants = constants, .kept = kept};

const struct hg__op hg__op_dropout = {
    .name = "dropout",
    .words = "dropout",
    .traits = HG__LINEAR | HG__ELEMENTWISE | HG__RANDOM,
    .min_in = 1,
    .max_in = 1,
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

hg_var hg_dropout(hg_tape *tape, hg_var x, float p)
{
	const struct hg__dropout_attr attr = {p};
	return hg__record(tape, &hg__op_dropout, NULL, &x, 1, NULL, &attr, sizeof attr);
}
