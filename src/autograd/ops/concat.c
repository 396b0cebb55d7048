/* Columns side by side.
 *
 *     Y = [A B]
 *
 * Shapes    A: [n, p].  B: [n, q].  Y: [n, p + q], created.
 * Dtypes    A, B, Y: state.  Nothing is rounded.
 * Range     max|Y| <= max(max|A|, max|B|): proved wherever A and B fit in f16.
 * Error     0.
 * Gradient  dA, dB: the columns of dY that hold A and B in Y.
 * Cost      2 n (p + q) elements.
 * Errors    HG_ERR_SHAPE rows differ;  HG_ERR_DTYPE;  HG_ERR_ARG an operand is missing.
 * Source    - */
#include "autograd/opkit.h"
#include "halfgraph/ops.h"

enum { A, B };

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, A, "A"));
	HG__TRY(hg__want_state(s, B, "B"));
	HG__TRY(hg__want_equal(s, "B", "rows", s->in[B].rows, "A", "rows", s->in[A].rows));
	s->out = hg__shape_of(s->in[A].rows, s->in[A].cols + s->in[B].cols, s->state);
	s->grads = 1u << A | 1u << B;
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(fmax(r->in[A].largest, r->in[B].largest));
	hg__because(how, "the larger of |A| %.3g, |B| %.3g", r->in[A].largest, r->in[B].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[A] = grad->largest[B] = r->dout;
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__copy_cols_args left = {.src = c->in[A], .dst = c->out, .cols = c->in[A].cols};
	const struct hg__copy_cols_args right = {
	    .src = c->in[B], .dst = c->out, .dst_col = c->in[A].cols, .cols = c->in[B].cols};
	HG__TRY(HG__RUN(c, copy_cols, &left));
	return HG__RUN(c, copy_cols, &right);
}

static hg_status backward(const struct hg__call *c)
{
	if (c->din[A].data) {
		const struct hg__copy_cols_args args = {
		    .src = c->dout, .dst = c->din[A], .cols = c->din[A].cols};
		HG__TRY(HG__RUN(c, copy_cols, &args));
	}
	if (c->din[B].data) {
		const struct hg__copy_cols_args args = {
		    .src = c->dout, .dst = c->din[B], .src_col = c->in[A].cols, .cols = c->din[B].cols};
		HG__TRY(HG__RUN(c, copy_cols, &args));
	}
	return HG_OK;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t a_cols, b_cols; /* columns more */
		int64_t b_rows;         /* rows or columns too many */
		int integer, none;
	} rows[] = {
	    {"equal widths", HG_OK, 0, 0, 0, 0, 0},
	    {"A one wider", HG_OK, 1, 0, 0, 0, 0},
	    {"B three wider", HG_OK, 0, 3, 0, 0, 0},
	    {"A five, B eight wider", HG_OK, 5, 8, 0, 0, 0},
	    {"B has a row too many", HG_ERR_SHAPE, 0, 0, 1, 0, 0},
	    {"A of integers", HG_ERR_DTYPE, 0, 0, 0, 1, 0},
	    {"B missing", HG_ERR_ARG, 0, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, x->d);
	else
		hg__sample_normal(s, x->n, x->d + rows[i].a_cols, x->state);
	if (rows[i].none)
		hg__sample_none(s);
	else
		hg__sample_normal(s, x->n + rows[i].b_rows, x->d + rows[i].b_cols, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 0.0, cost);
}

const struct hg__op hg__op_concat = {
    .name = "concat",
    .words = "concatenation",
    .min_in = 2,
    .max_in = 2,
    .same = 1u << A | 1u << B,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
};

hg_var hg_concat(hg_tape *tape, hg_var a, hg_var b)
{
	const hg_var in[] = {a, b};
	return hg__record(tape, &hg__op_concat, NULL, in, 2, NULL, NULL, 0);
}
