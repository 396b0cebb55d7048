/* A row added to every row.
 *
 *     Y[i, c] = X[i, c] + b[0, c]
 *
 * Shapes    X: [n, d].  b: [1, d].  Y: [n, d], created.
 * Dtypes    X, b, Y: state.  The sum is f32 and is narrowed once.
 * Range     max|Y| <= max|X| + max|b|.
 * Error     |Y - exact| <= u16 |Y| (+ eta16/2): one rounding; f32 state: u32 |Y|.
 * Gradient  dX = dY,  db = sum over rows of dY;  max|db| <= n max|dY|.
 * Cost      2 n d + d elements;  n d flops.
 * Errors    HG_ERR_SHAPE b not [1, d];  HG_ERR_DTYPE;  HG_ERR_ARG an operand is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/pair.h"
#include "halfgraph/ops.h"

enum { X, B };
/* f32 [1, d], written in the backward pass: db before it is narrowed, if b is not a parameter */
enum { DB };

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, X, "X"));
	HG__TRY(hg__want_state(s, B, "b"));
	HG__TRY(hg__want_shape(s, B, "b", 1, s->in[X].cols));
	s->out = hg__shape_of(s->in[X].rows, s->in[X].cols, s->state);
	s->aux[DB] = hg__shape_of(1, s->in[X].cols, HG_F32);
	s->grads = 1u << X | 1u << B;
	s->saves = HG__BACK_AUX(DB);
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(r->in[X].largest + r->in[B].largest);
	hg__because(how, "|X| %.3g + |b| %.3g", r->in[X].largest, r->in[B].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[X] = r->dout;
	grad->largest[B] = hg__bound_mul((double)r->shape[X].rows, r->dout);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__bias_add_args args = {.x = c->in[X], .b = c->in[B], .y = c->out};
	return HG__RUN(c, bias_add, &args);
}

static hg_status backward(const struct hg__call *c)
{
	const int wanted = c->din[B].data != NULL, direct = c->din[B].dtype == HG_F32;
	struct hg__colsum_args both = {
	    .x = c->dout, .y = direct ? c->din[B] : c->aux[DB], .copy = c->din[X]};
	if (c->din[X].data == c->dout.data)
		both.copy.data = NULL;
	if (!wanted)
		return c->din[X].data ? hg__copy_scaled(c, c->dout, 1.0f, c->din[X]) : HG_OK;
	HG__TRY(HG__RUN(c, colsum, &both));
	return direct ? HG_OK : hg__copy_scaled(c, c->aux[DB], 1.0f, c->din[B]);
}

/* db: the sum over the rows of dY. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	if (e->operand == B)
		*t = (struct hg__terms){
		    .over = HG__OVER_ROWS, .a = c->dout, .i = e->col, .count = c->dout.rows, .factor = 1.0};
	return HG_OK;
}

static const struct hg__about about = {
    .operand = {"x", "bias"}, .addends = 1u << B, .brings = HG__BRINGS_BIAS, .sum = sum};

const struct hg__op hg__op_bias_add = {
    .name = "bias_add",
    .words = "adding the bias",
    .min_in = 2,
    .max_in = 2,
    .same = 1u << X | 1u << B,
    .passes = 1u << X,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = hg__pair_sample_row,
    .cost = hg__cost_one_flop,
    .about = &about,
};

hg_var hg_bias_add(hg_tape *tape, hg_var x, hg_var b)
{
	const hg_var in[] = {x, b};
	return hg__record(tape, &hg__op_bias_add, NULL, in, 2, NULL, NULL, 0);
}
