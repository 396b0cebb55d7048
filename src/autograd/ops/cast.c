/* The same values in another float type.
 *
 *     Y = X
 *
 * Shapes    X, Y: [n, d].
 * Dtypes    X: f16 or f32.  Y: the requested type.
 * Range     max|Y| <= max|X|. This bound decides whether a narrowing to f16 is proved.
 * Error     one rounding if f32 is narrowed to f16, else 0.
 * Gradient  dX = dY.
 * Cost      2 n d elements.
 * Errors    HG_ERR_DTYPE X or the requested type is not a float;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops.h"

static hg_dtype dtype_of(const struct hg__node *node)
{
	struct hg__cast_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.dtype;
}

static hg_status infer(struct hg__infer *s)
{
	const hg_dtype dtype = dtype_of(s->node);
	const char *name = hg_dtype_name(dtype);
	if (dtype != HG_F16 && dtype != HG_F32)
		return hg__infer_fail(s, HG_ERR_DTYPE, "dtype is %s, expected f16 or f32",
		                      name ? name : "not a type");
	HG__TRY(hg__want_float(s, 0, "X"));
	s->out = hg__shape_of(s->in[0].rows, s->in[0].cols, dtype);
	s->grads = 1u;
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(r->in[0].largest);
	/* A number of at least half of the smallest f16 number may be rounded up to it. */
	out.row_sum = 2.0 * r->in[0].row_sum;
	out.least = r->in[0].least;
	out.sign = r->in[0].sign;
	hg__because(how, "|X| %.3g", r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = r->dout;
}

static hg_status forward(const struct hg__call *c)
{
	return hg__copy_scaled(c, c->in[0], hg__rescaled(c, 0, 1.0f), c->out);
}

static hg_status backward(const struct hg__call *c)
{
	return c->din[0].data ? hg__copy_scaled(c, c->dout, 1.0f, c->din[0]) : HG_OK;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider;
		hg_dtype from, to; /* HG_DTYPE_COUNT: the state type */
	} rows[] = {
	    {"state to f16", HG_OK, 0, HG_DTYPE_COUNT, HG_F16},
	    {"state to f32, one column more", HG_OK, 1, HG_DTYPE_COUNT, HG_F32},
	    {"f16 to f32", HG_OK, 3, HG_F16, HG_F32},
	    {"f32 to f16, eight columns more", HG_OK, 8, HG_F32, HG_F16},
	    {"to i32", HG_ERR_DTYPE, 0, HG_DTYPE_COUNT, HG_I32},
	    {"from i32", HG_ERR_DTYPE, 0, HG_I32, HG_F32},
	    {"to no type", HG_ERR_DTYPE, 0, HG_DTYPE_COUNT, HG_DTYPE_COUNT},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const struct hg__cast_attr attr = {rows[i].to};
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_attr(s, &attr, sizeof attr);
	if (rows[i].from == HG_I32)
		hg__sample_integer(s, x->n, x->d);
	else
		hg__sample_normal(s, x->n, x->d + rows[i].wider,
		                  rows[i].from == HG_DTYPE_COUNT ? x->state : rows[i].from);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 0.0, cost);
}

static const struct hg__about about = {.traits = HG__PROPORTIONAL};

const struct hg__op hg__op_cast = {
    .name = "cast",
    .words = "conversion between fp16 and fp32",
    .traits = HG__LINEAR | HG__ELEMENTWISE | HG__CASTS,
    .min_in = 1,
    .max_in = 1,
    .rescaled = 1u,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_cast(hg_tape *tape, hg_var x, hg_dtype dtype)
{
	const struct hg__cast_attr attr = {dtype};
	return hg__record(tape, &hg__op_cast, NULL, &x, 1, NULL, &attr, sizeof attr);
}
