/* Division.
 *
 *     Y[i, c] = A[i, c] / B[i, c]
 *
 * Shapes    A, Y: [n, d].  B: [n, d], or [n, 1] with one divisor for each row, or [1, 1] with
 *           one for all.
 * Dtypes    A, B, Y: state.  The quotient is f32 and is narrowed once.
 * Range     max|A| and max|B| alone give no bound, because B may be near 0. Where |B| >= l > 0
 *           is known (a constant, an exponential, a sum of such): max|Y| <= max|A| / l.
 * Error     one rounding in f32, narrowed once.
 * Gradient  dA = dY / B,  dB = - (sum of dY (A / B)) / B over the elements that share a divisor,
 *           summed in f32 along a row and in f64 over all rows.  max|dA| <= max|dY| / l,
 *           max|dB| <= q max|dY| max|A| / l^2, where q elements share a divisor.
 * Cost      2 n d elements, and B;  n d flops.
 * Errors    HG_ERR_SHAPE B has none of the three shapes;  HG_ERR_DTYPE;  HG_ERR_ARG an operand
 *           is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops.h"

enum { A, B };

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, A, "A"));
	HG__TRY(hg__want_state(s, B, "B"));
	const int one = s->in[B].cols == 1 && (s->in[B].rows == 1 || s->in[B].rows == s->in[A].rows);
	if (!one)
		HG__TRY(hg__want_shape(s, B, "B", s->in[A].rows, s->in[A].cols));
	s->out = hg__shape_of(s->in[A].rows, s->in[A].cols, s->state);
	s->grads = 1u << A | 1u << B;
	s->saves = HG__SAVE_IN(A) | HG__SAVE_IN(B);
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out =
	    hg__at_most(r->in[B].least > 0.0 ? r->in[A].largest / r->in[B].least : (double)INFINITY);
	out.least = r->in[B].largest > 0.0 ? r->in[A].least / r->in[B].largest : 0.0;
	out.sign = r->in[A].sign * r->in[B].sign;
	how->rounding.depth = 2.0;
	hg__because(how,
	            r->in[B].least > 0.0 ? "|A| %.3g / |B|, which is at least %.3g"
	                                 : "|A| %.3g / |B|, which may be %.3g",
	            r->in[A].largest, r->in[B].least);
	return out;
}

/* `each` is the number of elements of A that share one element of B as divisor. */
static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double inverse = r->in[B].least > 0.0 ? 1.0 / r->in[B].least : (double)INFINITY,
	             of = (double)r->shape[B].rows * (double)r->shape[B].cols;
	const double each = of > 0.0 ? (double)r->shape[A].rows * (double)r->shape[A].cols / of : 0.0;
	const double lost = hg__underflow(r->shape[A].dtype, 1.0, 1.0),
	             quotient = inverse * r->in[A].largest + lost,
	             sum = hg__bound_mul(each, quotient * r->dout + lost);
	grad->largest[A] = inverse * r->dout;
	grad->largest[B] = r->in[B].least > 0.0
	                       ? sum * inverse
	                       : (double)INFINITY; /* 0/0 is possible, even where no term is added */
	grad->depth[B] = each + 8.0;
	hg__on_the_way(&grad->rounding, fmax(quotient, sum));
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__div_args args = {.a = c->in[A], .b = c->in[B], .y = c->out};
	return HG__RUN(c, div, &args);
}

static hg_status backward(const struct hg__call *c)
{
	if (c->din[A].data) {
		const struct hg__div_args args = {.a = c->dout, .b = c->in[B], .y = c->din[A]};
		HG__TRY(HG__RUN(c, div, &args));
	}
	if (c->din[B].data) {
		const struct hg__div_back_args args = {
		    .a = c->in[A], .b = c->in[B], .dy = c->dout, .db = c->din[B]};
		HG__TRY(HG__RUN(c, div_back, &args));
	}
	return HG_OK;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider;
		enum { EACH, ROW, ONE, TWO_MORE, ROW_TWO_MORE, NONE } b;
		double sigma;
		int integer;
	} rows[] = {
	    {"B of A's shape", HG_OK, 0, EACH, 1.0, 0},
	    {"B for a row", HG_OK, 0, ROW, 1.0, 0},
	    {"B for all", HG_OK, 0, ONE, 1.0, 0},
	    {"B for a row, one column more", HG_OK, 1, ROW, 1.0, 0},
	    {"B for all, three columns more, large values", HG_OK, 3, ONE, 1000.0, 0},
	    {"B of A's shape, three columns more", HG_OK, 3, EACH, 1.0, 0},
	    {"B for a row, 300 columns more", HG_OK, 300, ROW, 1.0, 0},
	    {"B has two rows and two columns too many", HG_ERR_SHAPE, 0, TWO_MORE, 1.0, 0},
	    {"B has two rows too many", HG_ERR_SHAPE, 0, ROW_TWO_MORE, 1.0, 0},
	    {"A of integers", HG_ERR_DTYPE, 0, EACH, 1.0, 1},
	    {"B missing", HG_ERR_ARG, 0, NONE, 1.0, 0},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t d = x->d + rows[i].wider;
	const struct {
		int64_t rows, cols;
	} b[] = {[EACH] = {x->n, d},
	         [ROW] = {x->n, 1},
	         [ONE] = {1, 1},
	         [TWO_MORE] = {x->n + 2, d + 2},
	         [ROW_TWO_MORE] = {x->n + 2, 1}};
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, d);
	else
		hg__sample_add(s, x->n, d, x->state, HG__FILL_NORMAL, rows[i].sigma, 1);
	if (rows[i].b == NONE)
		hg__sample_none(s);
	else
		hg__sample_add(s, b[rows[i].b].rows, b[rows[i].b].cols, x->state, HG__FILL_POSITIVE, 3.0,
		               1);
	return 1;
}

static const struct hg__about about = {
    .operand = {"dividend", "divisor"}, .critical = HG__DIVISOR, .critical_operand = 1};

const struct hg__op hg__op_div = {
    .name = "div",
    .words = "division",
    .traits = HG__LINEAR | HG__DIVIDES,
    .min_in = 2,
    .max_in = 2,
    .same = 1u << A | 1u << B,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = hg__cost_one_flop,
    .about = &about,
};

hg_var hg_div(hg_tape *tape, hg_var a, hg_var b)
{
	const hg_var in[] = {a, b};
	return hg__record(tape, &hg__op_div, NULL, in, 2, NULL, NULL, 0);
}
