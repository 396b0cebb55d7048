/* Inner product with a gradient that somebody else computed: a loss whose gradient is that matrix.
 *
 *     L = sum over (i, c) of Y[i, c] G[i, c]
 *
 * Where Y is a result that another program goes on computing with, and G the gradient of that
 * program's loss with respect to Y, the gradients of L are those of that loss.
 *
 * Shapes    Y, G: [n, d].  L: [1, 1], created.
 * Dtypes    Y: state.  G: f16 or f32.  L: f32; products and sums are f32, in a fixed order.
 * Range     |L| <= n d max|Y| max|G|.  L is not narrowed.
 * Error     gamma_{n d + 1}(u32) sum of |Y G|.
 * Gradient  dY = dL G, narrowed once. G has no gradient.  max|dY| <= |dL| max|G|.
 * Cost      2 n d elements;  2 n d flops.
 * Errors    HG_ERR_SHAPE G not [n, d];  HG_ERR_DTYPE;  HG_ERR_ARG an operand is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops_norm.h"

enum { Y, G };

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, Y, "Y"));
	HG__TRY(hg__want_float(s, G, "G"));
	HG__TRY(hg__want_shape(s, G, "G", s->in[Y].rows, s->in[Y].cols));
	s->out = hg__shape_of(1, 1, HG_F32);
	s->saves = HG__SAVE_IN(G);
	s->grads = 1u << Y;
	return HG_OK;
}

static double elements(const struct hg__range *r)
{
	return (double)r->shape[Y].rows * (double)r->shape[Y].cols;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double each = hg__bound_mul(r->in[Y].largest, r->in[G].largest);
	struct hg__known out = hg__at_most(hg__bound_mul(elements(r), each));
	how->rounding.depth = elements(r) + 8.0;
	hg__because(how, "%.3g elements, |Y| %.3g x |G| %.3g", elements(r), r->in[Y].largest,
	            r->in[G].largest);
	return out;
}

/* The product dL G is f32 and may underflow. */
static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double product = hg__bound_mul(r->dout, r->in[G].largest);
	grad->largest[Y] = product > 0.0 ? product + 0x1p-149 : 0.0;
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__dot_all_args args = {.a = c->in[Y], .b = c->in[G], .y = c->out};
	return HG__RUN(c, dot_all, &args);
}

/* The slope of a product does not depend on Y, which is not kept: G takes its place. */
static hg_status backward(const struct hg__call *c)
{
	const struct hg__pointwise_loss_back_args args = {
	    .kind = HG__PRODUCT, .x = c->in[G], .target = c->in[G], .dloss = c->dout, .dx = c->din[Y]};
	return c->din[Y].data ? HG__RUN(c, pointwise_loss_back, &args) : HG_OK;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider, rows, cols; /* of both; rows and columns that G has too many */
		int f32, y_integer, g_integer;
	} rows[] = {
	    {"G in the state type", HG_OK, 0, 0, 0, 0, 0, 0},
	    {"G in f32", HG_OK, 0, 0, 0, 1, 0, 0},
	    {"three columns more, G in f32", HG_OK, 3, 0, 0, 1, 0, 0},
	    {"one column more", HG_OK, 1, 0, 0, 0, 0, 0},
	    {"G has a row too many", HG_ERR_SHAPE, 0, 1, 0, 0, 0, 0},
	    {"G has a column too many", HG_ERR_SHAPE, 0, 0, 1, 0, 0, 0},
	    {"Y of integers", HG_ERR_DTYPE, 0, 0, 0, 0, 1, 0},
	    {"G of integers", HG_ERR_DTYPE, 0, 0, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t d = x->d + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].y_integer)
		hg__sample_integer(s, x->n, d);
	else
		hg__sample_normal(s, x->n, d, x->state);
	if (rows[i].g_integer)
		hg__sample_integer(s, x->n, d);
	else
		hg__sample_add(s, x->n + rows[i].rows, d + rows[i].cols, rows[i].f32 ? HG_F32 : x->state,
		               HG__FILL_NORMAL, 1.0, 0);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 0.0, cost);
	cost->flops = 2.0 * (double)c->in[Y].rows * (double)c->in[Y].cols;
}

static const struct hg__about about = {.operand = {"y", "gradient from outside"}};

const struct hg__op hg__op_inner = {
    .name = "inner",
    .words = "inner product with a gradient from outside",
    .traits = HG__LOSS,
    .min_in = 2,
    .max_in = 2,
    .same = 1u << Y,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_inner(hg_tape *tape, hg_var y, hg_var gradient)
{
	const hg_var in[] = {y, gradient};
	return hg__record(tape, &hg__op_inner, NULL, in, 2, NULL, NULL, 0);
}
