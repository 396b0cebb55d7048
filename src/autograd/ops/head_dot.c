/* One inner product for each head, or two with the same rows.
 *
 *     S[i, k]     = sum over c < d of X[i, k d + c] a[0, k d + c]
 *     S[i, h + k] = sum over c < d of X[i, k d + c] b[0, k d + c]
 *
 * Shapes    X: [n, h d].  a: [1, h d].  b: [1, h d] or absent.  S: [n, h], [n, 2 h] with b,
 *           created.
 * Dtypes    X, a, b, S: state.  Products and sums are f32 and are narrowed once.
 * Range     max|S| <= d max|X| max(max|a|, max|b|).
 * Error     "sum narrowed once" with depth d.
 * Gradient  dX[i, k d + c] = dS[i, k] a[0, k d + c] + dS[i, h + k] b[0, k d + c],  da[0, k d +
 *           c] = sum over i of dS[i, k] X[i, k d + c], db[0, k d + c] = sum over i of dS[i, h +
 *           k] X[i, k d + c];  max|dX| <= max|dS| (max|a| + max|b|),  max|da|, max|db| <= n
 *           max|dS| max|X|.
 * Cost      n h d + n h + h d elements, with b n h + h d more;  2 n h d flops, with b twice.
 * Errors    HG_ERR_SHAPE heads does not divide cols(X), a or b not [1, cols(X)];  HG_ERR_ARG
 *           heads < 1, X or a is missing;  HG_ERR_DTYPE.
 * Source    Velickovic et al. 2018: with a alone half of GAT's attention score, with b both
 *           halves. */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops.h"

enum { X, A, B };
/* f32 [1, h d], written in the backward pass: da and db before they are narrowed, if a or b is not
 * a parameter */
enum { DA, DB };

static int heads_of(const struct hg__node *node)
{
	struct hg__heads_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.heads;
}

static hg_status infer(struct hg__infer *s)
{
	const int heads = heads_of(s->node);
	HG__TRY(hg__want_state(s, X, "X"));
	HG__TRY(hg__want_state(s, A, "a"));
	HG__TRY(hg__want_heads(s, heads, X, "X"));
	HG__TRY(hg__want_shape(s, A, "a", 1, s->in[X].cols));
	s->out = hg__shape_of(s->in[X].rows, heads, s->state);
	s->aux[DA] = hg__shape_of(1, s->in[X].cols, HG_F32);
	s->grads = 1u << X | 1u << A;
	s->saves = HG__SAVE_IN(X) | HG__SAVE_IN(A) | HG__BACK_AUX(DA);
	if (!s->in[B].present)
		return HG_OK;
	HG__TRY(hg__want_state(s, B, "b"));
	HG__TRY(hg__want_shape(s, B, "b", 1, s->in[X].cols));
	s->out.cols *= 2;
	s->aux[DB] = s->aux[DA];
	s->grads |= 1u << B;
	s->saves |= HG__SAVE_IN(B) | HG__BACK_AUX(DB);
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double d = (double)(r->shape[X].cols / heads_of(r->node)),
	             b = r->shape[B].present ? r->in[B].largest : 0.0;
	struct hg__known out =
	    hg__at_most(hg__bound_mul(d, hg__bound_mul(r->in[X].largest, fmax(r->in[A].largest, b))));
	hg__because(how, "%.0f columns a head x |X| %.3g x |a| %.3g", d, r->in[X].largest,
	            fmax(r->in[A].largest, b));
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double b = r->shape[B].present ? r->in[B].largest : 0.0;
	grad->largest[X] = hg__bound_mul(r->dout, r->in[A].largest + b);
	grad->largest[A] = grad->largest[B] =
	    hg__bound_mul((double)r->shape[X].rows, hg__bound_mul(r->dout, r->in[X].largest));
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__head_dot_args args = {
	    .x = c->in[X], .a = c->in[A], .b = c->in[B], .s = c->out, .heads = heads_of(c->node)};
	return HG__RUN(c, head_dot, &args);
}

/* Whether the kernel, which writes f32, can store the gradient of a vector in its own tensor. This
 * is also true if the gradient is not needed. */
static int is_wide(const struct hg__mat *gradient)
{
	return !gradient->data || gradient->dtype == HG_F32;
}

static hg_status backward(const struct hg__call *c)
{
	const struct hg__mat *da = &c->din[A], *db = &c->din[B];
	const struct hg__head_dot_back_args args = {.x = c->in[X],
	                                            .a = c->in[A],
	                                            .b = c->in[B],
	                                            .ds = c->dout,
	                                            .dx = c->din[X],
	                                            .da = is_wide(da) ? *da : c->aux[DA],
	                                            .db = is_wide(db) ? *db : c->aux[DB],
	                                            .heads = heads_of(c->node),
	                                            .add = (int)(c->adds >> X & 1u)};
	HG__TRY(HG__RUN(c, head_dot_back, &args));
	HG__TRY(is_wide(da) ? HG_OK : hg__copy_scaled(c, c->aux[DA], 1.0f, *da));
	return is_wide(db) ? HG_OK : hg__copy_scaled(c, c->aux[DB], 1.0f, *db);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int heads;                   /* 0: the heads of the extent */
		int64_t wider, cols, a_cols; /* the last two: columns too many */
		int integer, no_heads;
		int two;        /* 1: with b */
		int64_t b_cols; /* columns too many */
	} rows[] = {
	    {"heads", HG_OK, 0, 0, 0, 0, 0, 0, 0, 0},
	    {"one head", HG_OK, 1, 0, 0, 0, 0, 0, 0, 0},
	    {"three heads", HG_OK, 3, 0, 0, 0, 0, 0, 0, 0},
	    {"heads, one column more", HG_OK, 0, 1, 0, 0, 0, 0, 0, 0},
	    {"heads, two vectors", HG_OK, 0, 0, 0, 0, 0, 0, 1, 0},
	    {"one head, two vectors", HG_OK, 1, 0, 0, 0, 0, 0, 1, 0},
	    {"three heads, one column more, two vectors", HG_OK, 3, 1, 0, 0, 0, 0, 1, 0},
	    {"eight heads of 8 columns more, two vectors", HG_OK, 8, 8, 0, 0, 0, 0, 1, 0},
	    {"cols not a multiple of 3", HG_ERR_SHAPE, 3, 0, 1, 1, 0, 0, 0, 0},
	    {"a has a column too many", HG_ERR_SHAPE, 0, 0, 0, 1, 0, 0, 0, 0},
	    {"b has a column too many", HG_ERR_SHAPE, 0, 0, 0, 0, 0, 0, 1, 1},
	    {"X of integers", HG_ERR_DTYPE, 1, 0, 0, 0, 1, 0, 0, 0},
	    {"no head", HG_ERR_ARG, 1, 0, 0, 0, 0, 1, 0, 0},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int heads = rows[i].heads ? rows[i].heads : x->heads;
	const int64_t cols = heads * (x->d + rows[i].wider);
	const struct hg__heads_attr attr = {rows[i].no_heads ? 0 : heads};
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_attr(s, &attr, sizeof attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, cols);
	else
		hg__sample_normal(s, x->n, cols + rows[i].cols, x->state);
	hg__sample_normal(s, 1, cols + rows[i].a_cols, x->state);
	if (rows[i].two)
		hg__sample_normal(s, 1, cols + rows[i].b_cols, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	/* the operations for each element of S */
	hg__cost_stream(c, 2.0 * (double)(c->in[X].cols / heads_of(c->node)), cost);
}

/* S[i, k] = sum over c of X[i, k d + c] a[0, k d + c], and from column h on with b. da[0, k d + c]
 * = sum over i of dS[i, k] X[i, k d + c]. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	const int heads = heads_of(c->node);
	const int64_t d = c->in[X].cols / heads;
	if (e->operand < 0)
		*t = (struct hg__terms){.over = HG__OVER_COLUMNS,
		                        .a = c->in[X],
		                        .b = c->in[e->col < heads ? A : B],
		                        .transposed = 1,
		                        .i = e->row,
		                        .first = e->col % heads * d,
		                        .count = d,
		                        .factor = 1.0};
	else if (e->operand != X)
		*t = (struct hg__terms){.over = HG__OVER_ROWS,
		                        .a = c->dout,
		                        .b = c->in[X],
		                        .i = e->col / d + (e->operand == B ? heads : 0),
		                        .j = e->col,
		                        .count = c->dout.rows,
		                        .factor = 1.0};
	return HG_OK;
}

static int heads_in(const struct hg__node *node, int operand, int64_t cols, struct hg__heads_in *in)
{
	(void)cols;
	in->heads = heads_of(node);
	in->of = node->in[B] >= 0 ? HG__OF_BOTH : HG__OF_NEITHER;
	return operand < 0;
}

static const struct hg__about about = {.sum = sum, .heads = heads_in};

const struct hg__op hg__op_head_dot = {
    .name = "head_dot",
    .words = "dot product with the attention vector",
    .traits = HG__LINEAR,
    .min_in = 2,
    .max_in = 3,
    .same = 1u << X | 1u << A | 1u << B,
    .adds = 1u << X,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_head_dot(hg_tape *tape, hg_var x, hg_var a, int heads)
{
	const hg_var in[] = {x, a};
	const struct hg__heads_attr attr = {heads};
	return hg__record(tape, &hg__op_head_dot, NULL, in, 2, NULL, &attr, sizeof attr);
}

hg_var hg_head_dot_pair(hg_tape *tape, hg_var x, hg_var a, hg_var b, int heads)
{
	const hg_var in[] = {x, a, b};
	const struct hg__heads_attr attr = {heads};
	return hg__record(tape, &hg__op_head_dot, NULL, in, 3, NULL, &attr, sizeof attr);
}
