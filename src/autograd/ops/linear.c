/* Affine map of every row.
 *
 *     Y = X W + b
 *
 * Shapes    X: [n, k].  W: [k, d].  b: [1, d] or absent.  Y: [n, d], created.
 * Dtypes    X, W, b, Y: state.  Products and sums are f32 and are narrowed once.
 * Range     max|Y| <= k max|X| max|W| + max|b|.
 * Error     |Y - exact| <= E + u16 (|Y| + E) + eta16/2,  E = gamma_{k+1}(u32) (|X||W| + |b|).
 * Gradient  dX = dY W^T,  dW = X^T dY,  db = sum over rows of dY.  max|dX| <= d max|dY| max|W|;
 *           max|dW| <= n max|X| max|dY|;  max|db| <= n max|dY|.
 * Cost      2 n k d flops;  every matrix once.
 * Errors    HG_ERR_SHAPE rows(W) != cols(X), b not [1, d];  HG_ERR_DTYPE;  HG_ERR_ARG an operand
 *           is missing.
 * Source    - */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops.h"
#include "precision/bound.h"

enum { X, W, B };
/* f32 [1, d], written in the backward pass: db before it is narrowed, if b is not a parameter */
enum { DB };

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, X, "X"));
	HG__TRY(hg__want_state(s, W, "W"));
	HG__TRY(hg__want_equal(s, "W", "rows", s->in[W].rows, "X", "columns", s->in[X].cols));
	if (s->in[B].present) {
		HG__TRY(hg__want_state(s, B, "b"));
		HG__TRY(hg__want_shape(s, B, "b", 1, s->in[W].cols));
		s->aux[DB] = hg__shape_of(1, s->in[W].cols, HG_F32);
	}
	s->out = hg__shape_of(s->in[X].rows, s->in[W].cols, s->state);
	s->grads = 1u << X | 1u << W | (s->in[B].present ? 1u << B : 0);
	s->saves = HG__SAVE_IN(X) | HG__SAVE_IN(W) | (s->in[B].present ? HG__BACK_AUX(DB) : 0);
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(
	    hg__bound_mul((double)r->shape[X].cols, hg__bound_mul(r->in[X].largest, r->in[W].largest)) +
	    (r->shape[B].present ? r->in[B].largest : 0.0));
	how->rounding.depth = hg__depth_dot(r->shape[X].dtype, (double)r->shape[X].cols) + 8.0;
	hg__because(how,
	            r->shape[B].present ? "%lld columns x |X| %.3g x |W| %.3g + |b| %.3g"
	                                : "%lld columns x |X| %.3g x |W| %.3g",
	            (long long)r->shape[X].cols, r->in[X].largest, r->in[W].largest, r->in[B].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double n = (double)r->shape[X].rows, d = (double)r->shape[W].cols;
	const hg_dtype state = r->shape[X].dtype;
	grad->largest[X] = hg__bound_mul(d, hg__bound_mul(r->dout, r->in[W].largest));
	grad->largest[W] = hg__bound_mul(n, hg__bound_mul(r->in[X].largest, r->dout));
	grad->largest[B] = hg__bound_mul(n, r->dout);
	grad->depth[X] = hg__depth_dot(state, d) + 8.0;
	grad->depth[W] = hg__depth_dot(state, n) + 8.0;
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__gemm_args args = {.a = c->in[X],
	                                   .b = c->in[W],
	                                   .c = c->out,
	                                   .bias = c->in[B],
	                                   .shift = c->shift[X] - c->shift_out,
	                                   .normalise = c->normalise,
	                                   .statistics = c->statistics};
	return HG__RUN(c, gemm, &args);
}

static hg_status backward(const struct hg__call *c)
{
	const int through_aux = c->din[B].data && c->din[B].dtype != HG_F32;
	const struct hg__linear_back_args args = {.x = c->in[X],
	                                          .w = c->in[W],
	                                          .dy = c->dout,
	                                          .dx = c->din[X],
	                                          .dw = c->din[W],
	                                          .db = through_aux ? c->aux[DB] : c->din[B],
	                                          .shift = c->shift[X],
	                                          .normalise = c->normalise,
	                                          .dgamma = c->norm_sums[0],
	                                          .dbeta = c->norm_sums[1],
	                                          .through = c->through};
	HG__TRY(HG__RUN(c, linear_back, &args));
	return through_aux ? hg__copy_scaled(c, c->aux[DB], 1.0f, c->din[B]) : HG_OK;
}

static int normalises(const hg_context *ctx, const struct hg__shape *in)
{
	return ctx->backend->takes_norms &&
	       ctx->backend->takes_norms(ctx, in[X].dtype, in[X].rows, in[X].cols, in[W].cols);
}

/* b is added without a factor. */
static int rescales(const struct hg__node *node)
{
	return node->n_in <= B || node->in[B] < 0;
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t inner, w_rows, b_cols; /* the differences from k, k, d */
		int bias, integer;
	} rows[] = {
	    {"with bias", HG_OK, 0, 0, 0, 1, 0},
	    {"without bias", HG_OK, 0, 0, 0, 0, 0},
	    {"three more inner columns", HG_OK, 3, 3, 0, 1, 0},
	    {"one more inner column, no bias", HG_OK, 1, 1, 0, 0, 0},
	    {"W has a row too many", HG_ERR_SHAPE, 0, 1, 0, 0, 0},
	    {"b has a column too many", HG_ERR_SHAPE, 0, 0, 1, 1, 0},
	    {"X of integers", HG_ERR_DTYPE, 0, 0, 0, 1, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t k = x->d, d = x->d + 2;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, k);
	else
		hg__sample_normal(s, x->n, k + rows[i].inner, x->state);
	hg__sample_normal(s, k + rows[i].w_rows, d, x->state);
	if (rows[i].bias)
		hg__sample_normal(s, 1, d + rows[i].b_cols, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 2.0 * (double)c->in[X].cols, cost);
}

/* Y = X W, dX = dY W^T, dW = X^T dY, and db is the sum over the rows of dY. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	const struct hg__terms of[] = {
	    {.over = HG__OVER_COLUMNS,
	     .a = c->in[X],
	     .b = c->in[W],
	     .i = e->row,
	     .j = e->col,
	     .count = c->in[X].cols,
	     .factor = ldexp(1.0, c->shift[X] - c->shift_out)},
	    {.over = HG__OVER_COLUMNS,
	     .a = c->dout,
	     .b = c->in[W],
	     .transposed = 1,
	     .i = e->row,
	     .j = e->col,
	     .count = c->dout.cols,
	     .factor = 1.0},
	    {.over = HG__OVER_ROWS,
	     .a = c->dout,
	     .b = c->in[X],
	     .i = e->col,
	     .j = e->row,
	     .count = c->dout.rows,
	     .factor = ldexp(1.0, c->shift[X])},
	    {.over = HG__OVER_ROWS, .a = c->dout, .i = e->col, .count = c->dout.rows, .factor = 1.0},
	};
	*t = of[1 + e->operand];
	return HG_OK;
}

static const struct hg__about about = {
    .traits = HG__RESCALES | HG__UNITS | HG__PROPORTIONAL, .addends = 1u << B, .sum = sum};

const struct hg__op hg__op_linear = {
    .name = "linear",
    .words = "matrix product with the weights",
    .min_in = 2,
    .max_in = 3,
    .rescaled = 1u << X,
    .rescales = rescales,
    .same = 1u << X | 1u << W | 1u << B,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .normalises = normalises,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_linear(hg_tape *tape, hg_var x, hg_var w, hg_var b)
{
	const hg_var in[] = {x, w, b};
	return hg__record(tape, &hg__op_linear, NULL, in, 3, NULL, NULL, 0);
}
