/* A node and its neighbourhood.
 *
 *     Y = (1 + eps) X + Z
 *
 * Shapes    X, Z, Y: [n, d].  eps: [1, 1].
 * Dtypes    X, Z, Y: state.  eps: f32.  Arithmetic is f32; Y is narrowed once.
 * Range     max|Y| <= (1 + |eps|) max|X| + max|Z|.
 * Error     gamma_3(u32) (|1 + eps| |X| + |Z|), narrowed once.
 * Gradient  dX = (1 + eps) dY,  dZ = dY,  deps = sum over all of dY X;  max|dX| <= (1 + |eps|)
 *           max|dY|;  |deps| <= n d max|dY| max|X|.
 * Cost      3 n d elements;  2 n d flops.
 * Errors    HG_ERR_SHAPE shapes differ, eps not [1, 1];  HG_ERR_DTYPE eps not f32;  HG_ERR_ARG
 *           an operand is missing.
 * Source    Xu, Hu, Leskovec, Jegelka 2019 (GIN). */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "autograd/ops/pair.h"
#include "halfgraph/ops.h"

enum { X, Z, EPS };

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, X, "X"));
	HG__TRY(hg__want_state(s, Z, "Z"));
	HG__TRY(hg__want_dtype(s, EPS, "eps", HG_F32));
	HG__TRY(hg__want_equal(s, "Z", "rows", s->in[Z].rows, "X", "rows", s->in[X].rows));
	HG__TRY(hg__want_equal(s, "Z", "columns", s->in[Z].cols, "X", "columns", s->in[X].cols));
	HG__TRY(hg__want_shape(s, EPS, "eps", 1, 1));
	s->out = hg__shape_of(s->in[X].rows, s->in[X].cols, s->state);
	s->grads = 1u << X | 1u << Z | 1u << EPS;
	s->saves = HG__SAVE_IN(X) | HG__SAVE_IN(EPS);
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out =
	    hg__at_most(hg__bound_mul(1.0 + r->in[EPS].largest, r->in[X].largest) + r->in[Z].largest);
	hg__because(how, "(1 + |eps| %.3g) |X| %.3g + |Z| %.3g", r->in[EPS].largest, r->in[X].largest,
	            r->in[Z].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[X] = hg__bound_mul(1.0 + r->in[EPS].largest, r->dout);
	grad->largest[Z] = r->dout;
	grad->depth[EPS] = (double)r->shape[X].rows * (double)r->shape[X].cols + 8.0;
	grad->largest[EPS] = hg__bound_mul((double)r->shape[X].rows * (double)r->shape[X].cols,
	                                   hg__bound_mul(r->in[X].largest, r->dout));
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__axpby_args args = {.x = c->in[X],
	                                    .z = c->in[Z],
	                                    .y = c->out,
	                                    .alpha = hg__rescaled(c, X, 1.0f),
	                                    .beta = hg__rescaled(c, Z, 1.0f),
	                                    .alpha_p = c->in[EPS].data};
	return HG__RUN(c, axpby, &args);
}

static hg_status backward(const struct hg__call *c)
{
	if (c->din[X].data) {
		const struct hg__axpby_args args = {
		    .x = c->dout, .y = c->din[X], .alpha = 1.0f, .alpha_p = c->in[EPS].data};
		HG__TRY(HG__RUN(c, axpby, &args));
	}
	if (c->din[Z].data)
		HG__TRY(hg__copy_scaled(c, c->dout, 1.0f, c->din[Z]));
	if (c->din[EPS].data) {
		const struct hg__dot_all_args args = {.a = c->dout, .b = c->in[X], .y = c->din[EPS]};
		HG__TRY(HG__RUN(c, dot_all, &args));
		HG__TRY(hg__restore(c, X, c->din[EPS]));
	}
	return HG_OK;
}

/* The samples of ops with two operands of one shape, with an eps, and after the last a bad eps. */
static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	const int pair = hg__pair_sample(i, x, s);
	if (!pair && !hg__pair_sample(i - 1, x, s))
		return 0;
	if (!pair) {
		hg__sample_begin(s, "eps has two columns", HG_ERR_SHAPE, 0);
		hg__sample_normal(s, x->n, x->d, x->state);
		hg__sample_normal(s, x->n, x->d, x->state);
	}
	hg__sample_add(s, 1, pair ? 1 : 2, HG_F32, HG__FILL_NORMAL, 0.5, 1);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 2.0, cost);
}

static const struct hg__about about = {.traits = HG__NEIGHBOURS,
                                       .operand = {"own term", "neighbours", "eps"},
                                       .addends = 1u << X | 1u << Z | 1u << EPS,
                                       .brings = HG__BRINGS_SELF};

const struct hg__op hg__op_combine = {
    .name = "combine",
    .words = "(1 + eps) x own features + neighbours' sum",
    .min_in = 3,
    .max_in = 3,
    .rescaled = 1u << X | 1u << Z,
    .rescales = hg__always,
    .same = 1u << X | 1u << Z,
    .passes = 1u << Z,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_combine(hg_tape *tape, hg_var x, hg_var z, hg_var eps)
{
	const hg_var in[] = {x, z, eps};
	return hg__record(tape, &hg__op_combine, NULL, in, 3, NULL, NULL, 0);
}
