/* Cross-entropy of a softmax, the mean over the rows that count.
 *
 *     L = 1/q * sum over rows i that count of (log(sum over c of exp(X[i, c])) - X[i, label_i]),
 *         q their number;  L = 0 if q = 0
 *
 * A row counts if its label is not negative and its mask is not 0, and if it is not padding of a
 * graph that changes (live.c).
 *
 * Shapes    X: [n, d], d >= 1.  label: [n, 1].  mask: [n, 1] or absent (all).  L: [1, 1],
 *           created.  Saved for the backward pass: q f32 [1, 1].
 * Dtypes    X: state.  label: i32.  mask: u8.  L: f32; all arithmetic is f32, in a fixed order.
 * Range     0 <= L <= 2 max|X| + log(d).  L is not narrowed.
 * Error     gamma_{n + d + 6}(u32) (2 max|X| + log(d)).
 * Gradient  dX[i, c] = (softmax(X)[i, c] - [c = label_i]) dL / q for rows that count, else 0;
 *           max|dX| <= |dL| / q. If the labels and the mask are constant, q is known; otherwise
 *           q >= 1 if any row counts.
 * Cost      n d elements, 5 n bytes of labels and masks;  6 n d flops.
 * Errors    HG_ERR_SHAPE label or mask not [n, 1], d = 0;  HG_ERR_DTYPE;  HG_ERR_ARG an operand
 *           is missing.  HG_ERR_RANGE, when the tape is compiled: a label >= d.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/loss.h"
#include "halfgraph/ops_norm.h"

enum { X, LABEL, MASK };

static hg_status infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, X, "logits"));
	HG__TRY(hg__want_dtype(s, LABEL, "label", HG_I32));
	HG__TRY(hg__want_shape(s, LABEL, "label", s->in[X].rows, 1));
	if (s->in[X].cols < 1)
		return hg__infer_fail(s, HG_ERR_SHAPE, "logits has 0 columns, expected at least 1");
	s->saves = HG__SAVE_IN(LABEL);
	return loss_infer(s, 1);
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(2.0 * r->in[X].largest + log((double)r->shape[X].cols));
	hg__on_the_way(&how->rounding, (double)r->shape[X].rows * out.largest);
	hg__because(how, "2 |X| %.3g + log of %lld columns", r->in[X].largest,
	            (long long)r->shape[X].cols);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[X] = r->dout / loss_counted(r);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__softmax_xent_args args = {.x = c->in[X],
	                                           .label = c->in[LABEL],
	                                           .mask = c->in[MASK],
	                                           .loss = c->out,
	                                           .count = c->aux[0],
	                                           .live = c->live};
	return HG__RUN(c, softmax_xent, &args);
}

static hg_status backward(const struct hg__call *c)
{
	if (!c->din[X].data)
		return HG_OK;
	const struct hg__softmax_xent_back_args args = {.x = c->in[X],
	                                                .label = c->in[LABEL],
	                                                .mask = c->in[MASK],
	                                                .count = c->aux[0],
	                                                .dloss = c->dout,
	                                                .dx = c->din[X],
	                                                .live = c->live};
	return HG__RUN(c, softmax_xent_back, &args);
}

static unsigned replaces(const struct hg__node *node, int i)
{
	(void)node;
	return i == X ? HG__SAVE_IN(X) : 0u; /* element for element */
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		double sigma;
		int64_t wider, label_rows, mask_cols; /* the last two: too many */
		int mask, integer, float_label;
	} rows[] = {
	    {"no mask", HG_OK, 1.0, 0, 0, 0, 0, 0, 0},
	    {"mask", HG_OK, 1.0, 0, 0, 0, 1, 0, 0},
	    {"mask, three more classes", HG_OK, 1.0, 3, 0, 0, 1, 0, 0},
	    {"logits far apart", HG_OK, 100.0, 1, 0, 0, 1, 0, 0},
	    {"label has a row too many", HG_ERR_SHAPE, 1.0, 0, 1, 0, 0, 0, 0},
	    {"mask has two columns", HG_ERR_SHAPE, 1.0, 0, 0, 1, 1, 0, 0},
	    {"logits of integers", HG_ERR_DTYPE, 1.0, 0, 0, 0, 0, 1, 0},
	    {"label of floats", HG_ERR_DTYPE, 1.0, 0, 0, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t d = (x->d > 0 ? x->d : 1) + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, d);
	else
		hg__sample_add(s, x->n, d, x->state, HG__FILL_NORMAL, rows[i].sigma, 1);
	if (rows[i].float_label)
		hg__sample_add(s, x->n, 1, HG_F32, HG__FILL_NORMAL, 1.0, 0);
	else
		hg__sample_add(s, x->n + rows[i].label_rows, 1, HG_I32, HG__FILL_LABELS, (double)d, 0);
	if (rows[i].mask)
		hg__sample_add(s, x->n, 1 + rows[i].mask_cols, HG_U8, HG__FILL_MASK, 1.0, 0);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	loss_cost(c, 6.0, cost);
}

static const struct hg__about about = {.traits = HG__ENTROPY, .operand = {"logit"}};

const struct hg__op hg__op_softmax_xent = {
    .name = "softmax_xent",
    .words = "cross-entropy loss",
    .traits = HG__LOSS,
    .min_in = 2,
    .max_in = 3,
    .same = 1u << X,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .replaces = replaces,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_softmax_xent(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask)
{
	const hg_var in[] = {logits, labels, mask};
	return hg__record(tape, &hg__op_softmax_xent, NULL, in, 3, NULL, NULL, 0);
}
