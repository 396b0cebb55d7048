/* Euclidean norm of each row.
 *
 *     Y[i] = sqrt(sum over c of X[i, c]^2)        (0 of no columns)
 *
 * Shapes    X: [n, d].  Y: [n, 1], created.
 * Dtypes    X, Y: state.  Squares, the sum and the root are f32; Y is narrowed once. No square
 *           of an f16 number overflows or underflows in f32.
 * Range     max|Y| <= sqrt(d) max|X|. In f32 a square that underflows may be 2^-150 too large.
 * Error     half of "sum narrowed once" with depth d + 1, relative to the squares; then the
 *           rounding of the root; narrowed once.
 * Gradient  dX[i, c] = (X[i, c] / Y[i]) dY[i], or 0 where Y[i] is 0, with Y[i] recomputed in
 *           f32. No component is longer than its row, so max|dX| <= max|dY|. In f32 it is 1.23
 *           times that, because a square of 1.5 smallest subnormals is stored as 1 of them.
 * Cost      n d + n elements;  2 n d flops.
 * Errors    HG_ERR_DTYPE;  HG_ERR_ARG X is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/row.h"
#include "halfgraph/ops.h"

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(row_infer(s));
	s->saves = HG__SAVE_IN(0);
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double d = (double)r->shape[0].cols;
	/* what the square of an f32 number may lose or gain by underflow */
	const double lost = hg__underflow(r->shape[0].dtype, 1.0, 1.0);
	struct hg__known out = hg__at_most(row_bound(
	    hg__bound_mul(d, hg__bound_mul(r->in[0].largest, r->in[0].largest)),
	    r->in[0].largest > 0.0 ? sqrt(d * (r->in[0].largest * r->in[0].largest + lost)) : 0.0));
	out.least = sqrt(d * fmax(0.0, r->in[0].least * r->in[0].least - lost));
	out.sign = 1;
	hg__because(how, "root of %lld columns x |X| %.3g", (long long)r->shape[0].cols,
	            r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = r->shape[0].dtype == HG_F32 ? 1.23 * r->dout : r->dout; /* 1.5 < 1.23^2 */
}

static hg_status forward(const struct hg__call *c)
{
	return row_forward(c, HG__ROW_NORM);
}

static hg_status backward(const struct hg__call *c)
{
	return row_backward(c, HG__ROW_NORM);
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	row_cost(c, 2.0, cost);
}

static const struct hg__about about = {.operand = {"x"}};

const struct hg__op hg__op_row_norm = {
    .name = "row_norm",
    .words = "length of a row",
    .min_in = 1,
    .max_in = 1,
    .same = 1u,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = row_sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_row_norm(hg_tape *tape, hg_var x)
{
	return hg__record(tape, &hg__op_row_norm, NULL, &x, 1, NULL, NULL, 0);
}
