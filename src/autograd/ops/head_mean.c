/* Mean over heads.
 *
 *     Y[i, c] = 1/h * sum over k < h of X[i, k d + c]
 *
 * Shapes    X: [n, h d].  Y: [n, d], created.
 * Dtypes    X, Y: state.  The sum and the division are f32; Y is narrowed once.
 * Range     max|Y| <= max|X|: proved for every input.
 * Error     "sum narrowed once", depth h + 1.
 * Gradient  dX[i, k d + c] = dY[i, c] / h;  max|dX| <= max|dY| / h.
 * Cost      n h d + n d elements;  n h d flops.
 * Errors    HG_ERR_SHAPE heads does not divide cols(X);  HG_ERR_ARG heads < 1, X is missing;
 *           HG_ERR_DTYPE.
 * Source    Velickovic et al. 2018: the last layer of GAT. */
#include "autograd/opkit.h"
#include "halfgraph/ops.h"

static int heads_of(const struct hg__node *node)
{
	struct hg__heads_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.heads;
}

static hg_status infer(struct hg__infer *s)
{
	const int heads = heads_of(s->node);
	HG__TRY(hg__want_state(s, 0, "X"));
	HG__TRY(hg__want_heads(s, heads, 0, "X"));
	s->out = hg__shape_of(s->in[0].rows, s->in[0].cols / heads, s->state);
	s->grads = 1u;
	return HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(r->in[0].largest);
	hg__on_the_way(&how->rounding, (double)heads_of(r->node) * r->in[0].largest);
	hg__because(how, "a mean: |X| %.3g", r->in[0].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = r->dout / (double)heads_of(r->node);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__head_mean_args args = {.x = c->in[0], .y = c->out, .heads = heads_of(c->node)};
	return HG__RUN(c, head_mean, &args);
}

/* The arguments have the names of the forward pass: x has h d columns and y has d. */
static hg_status backward(const struct hg__call *c)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__head_mean_args args = {
	    .x = c->din[0], .y = c->dout, .heads = heads_of(c->node)};
	return HG__RUN(c, head_mean_back, &args);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int heads;           /* 0: the heads of the extent */
		int64_t wider, cols; /* the last: columns too many */
		int integer, no_heads;
	} rows[] = {
	    {"heads", HG_OK, 0, 0, 0, 0, 0},
	    {"one head", HG_OK, 1, 0, 0, 0, 0},
	    {"three heads", HG_OK, 3, 0, 0, 0, 0},
	    {"heads, one column more", HG_OK, 0, 1, 0, 0, 0},
	    {"cols not a multiple of 3", HG_ERR_SHAPE, 3, 0, 1, 0, 0},
	    {"X of integers", HG_ERR_DTYPE, 1, 0, 0, 1, 0},
	    {"no head", HG_ERR_ARG, 1, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int heads = rows[i].heads ? rows[i].heads : x->heads;
	const struct hg__heads_attr attr = {rows[i].no_heads ? 0 : heads};
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_attr(s, &attr, sizeof attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, heads * x->d);
	else
		hg__sample_normal(s, x->n, heads * (x->d + rows[i].wider) + rows[i].cols, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, (double)heads_of(c->node), cost);
}

const struct hg__op hg__op_head_mean = {
    .name = "head_mean",
    .words = "mean over the heads",
    .traits = HG__LINEAR,
    .min_in = 1,
    .max_in = 1,
    .same = 1u,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
};

hg_var hg_head_mean(hg_tape *tape, hg_var x, int heads)
{
	const struct hg__heads_attr attr = {heads};
	return hg__record(tape, &hg__op_head_mean, NULL, &x, 1, NULL, &attr, sizeof attr);
}
