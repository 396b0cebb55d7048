/* Cross-entropy of a softmax with weights of the classes and label smoothing.
 *
 *     L = 1/q * sum over rows i that count of
 *             ((1 - e) w[y] l[i, y] + e/d * sum over c of w[c] l[i, c]),   y = label_i,
 *         l = -log softmax(X);  q the sum of w[y] over these rows;  L = 0 unless q > 0
 *
 * A row counts if its label is not negative and its mask is not 0, and if it is not padding of a
 * graph that changes (live.c).
 *
 * Shapes    X: [n, d], d >= 1.  label: [n, 1].  mask: [n, 1] or absent (all).  w: [1, d] or absent
 *           (all 1).  L: [1, 1], created.  Saved for the backward pass: q f32 [1, 1].
 * Dtypes    X: state.  label: i32.  mask: u8.  w, L: f32; all arithmetic is f32, in a fixed order.
 * Range     0 <= L <= (2 max|X| + log(d)) (1 - e + e max w / min w) for positive weights that are
 *           known (a constant operand); otherwise unknown. L is not narrowed.
 * Error     gamma_{n + 2 d + 10}(u32) times that.
 * Gradient  dX[i, c] = ((1 - e) w[y] (p[c] - [c = y]) + e/d (p[c] sum w - w[c])) dL / q, p the
 *           softmax, for rows that count, else 0. w has no gradient. max|dX| <= max w |dL| / q for
 *           positive weights, where q is at least min w times the number of rows that count.
 * Cost      n d elements, 5 n bytes of labels and masks;  10 n d flops.
 * Errors    HG_ERR_SHAPE label or mask not [n, 1], w not [1, d], d = 0;  HG_ERR_DTYPE;  HG_ERR_ARG
 *           an operand is missing, e not in [0, 1).  HG_ERR_RANGE, when the tape is compiled: a
 *           label >= d.
 * Source    PyTorch's CrossEntropyLoss (weight, label_smoothing); Szegedy et al. 2016 */
#include "autograd/about.h"
#include "autograd/attr.h"
#include "autograd/ops/loss.h"
#include "halfgraph/ops_norm.h"

enum { X, LABEL, MASK, WEIGHT };

static float smoothing_of(const struct hg__node *node)
{
	struct hg__xent_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.smoothing;
}

static hg_status infer(struct hg__infer *s)
{
	const float smoothing = smoothing_of(s->node);
	HG__TRY(hg__want_state(s, X, "logits"));
	HG__TRY(hg__want_dtype(s, LABEL, "label", HG_I32));
	HG__TRY(hg__want_shape(s, LABEL, "label", s->in[X].rows, 1));
	if (s->in[X].cols < 1)
		return hg__infer_fail(s, HG_ERR_SHAPE, "logits has 0 columns, expected at least 1");
	if (!(smoothing >= 0.0f && smoothing < 1.0f))
		return hg__infer_fail(s, HG_ERR_ARG, "smoothing is %g, expected at least 0 and below 1",
		                      (double)smoothing);
	s->saves = HG__SAVE_IN(LABEL);
	HG__TRY(loss_infer(s, 1));
	return s->in[WEIGHT].present ? weights_infer(s, WEIGHT) : HG_OK;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double e = (double)smoothing_of(r->node), d = (double)r->shape[X].cols,
	             term = 2.0 * r->in[X].largest + log(d), most = weights_most(r, WEIGHT),
	             least = weights_least(r, WEIGHT);
	const double spread = e > 0.0 ? 1.0 - e + e * most / least : 1.0;
	struct hg__known out = hg__at_most(least > 0.0 ? hg__bound_mul(term, spread) : INFINITY);
	hg__on_the_way(&how->rounding, (double)r->shape[X].rows * d * hg__bound_mul(term, most));
	hg__on_the_way(&how->rounding, (double)r->shape[X].rows * most);
	hg__because(how, "2 |X| %.3g + log of %lld columns, weights %.3g to %.3g", r->in[X].largest,
	            (long long)r->shape[X].cols, least, most);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double most = weights_most(r, WEIGHT), least = weights_least(r, WEIGHT);
	const double q = least * loss_counted(r);
	hg__on_the_way(&grad->rounding, most * (double)r->shape[X].cols);
	if (q > 0.0)
		hg__on_the_way(&grad->rounding, r->dout / q);
	/* dL / q may underflow */
	grad->largest[X] = r->dout == 0.0 ? 0.0
	                   : q > 0.0      ? hg__bound_mul(most, r->dout / q + 0x1p-149)
	                                  : INFINITY;
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__softmax_xent_args args = {.x = c->in[X],
	                                           .label = c->in[LABEL],
	                                           .mask = c->in[MASK],
	                                           .loss = c->out,
	                                           .count = c->aux[0],
	                                           .weight = c->in[WEIGHT],
	                                           .smoothing = smoothing_of(c->node),
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
	                                                .weight = c->in[WEIGHT],
	                                                .smoothing = smoothing_of(c->node),
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
		int64_t wider, weight_cols; /* weight_cols: too many */
		int mask, weight;           /* weight 2: of integers */
		float smoothing;
	} rows[] = {
	    {"weights", HG_OK, 1.0, 0, 0, 0, 1, 0.0f},
	    {"weights, mask, three more classes", HG_OK, 1.0, 3, 0, 1, 1, 0.0f},
	    {"smoothing, mask", HG_OK, 1.0, 2, 0, 1, 0, 0.25f},
	    {"weights, smoothing", HG_OK, 1.0, 3, 0, 0, 1, 0.1f},
	    {"weights, smoothing, mask, logits far apart", HG_OK, 100.0, 1, 0, 1, 1, 0.1f},
	    {"a weight too many", HG_ERR_SHAPE, 1.0, 0, 1, 0, 1, 0.0f},
	    {"weights of integers", HG_ERR_DTYPE, 1.0, 0, 0, 0, 2, 0.0f},
	    {"smoothing of 1", HG_ERR_ARG, 1.0, 0, 0, 0, 1, 1.0f},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const struct hg__xent_attr attr = {rows[i].smoothing};
	const int64_t d = (x->d > 0 ? x->d : 1) + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_add(s, x->n, d, x->state, HG__FILL_NORMAL, rows[i].sigma, 1);
	hg__sample_add(s, x->n, 1, HG_I32, HG__FILL_LABELS, (double)d, 0);
	if (rows[i].mask)
		hg__sample_add(s, x->n, 1, HG_U8, HG__FILL_MASK, 1.0, 0);
	else
		hg__sample_none(s);
	if (rows[i].weight == 2)
		hg__sample_integer(s, 1, d);
	else if (rows[i].weight)
		hg__sample_add(s, 1, d + rows[i].weight_cols, HG_F32, HG__FILL_POSITIVE, 1.0, 0);
	hg__sample_attr(s, &attr, sizeof attr);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	loss_cost(c, 10.0, cost);
}

static const struct hg__about about = {.traits = HG__ENTROPY, .operand = {"logit"}};

const struct hg__op hg__op_softmax_xent_weighted = {
    .name = "softmax_xent_weighted",
    .words = "cross-entropy loss",
    .traits = HG__LOSS | HG__DIVIDES,
    .min_in = 2,
    .max_in = 4,
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

hg_var hg_softmax_xent_weighted(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask,
                                hg_var weights, float smoothing)
{
	const hg_var in[] = {logits, labels, mask, weights};
	const struct hg__xent_attr attr = {smoothing};
	return hg__record(tape, &hg__op_softmax_xent_weighted, NULL, in, 4, NULL, &attr, sizeof attr);
}
