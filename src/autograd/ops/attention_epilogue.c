/* Attention with an epilogue, in one pass. When the tape is compiled, this op replaces attention
 * and what comes after it (attention_epilogue_fuse.c).
 *
 *     Y = dropout(f(M + b))
 *     M = S, or M[i, c] = 1/h sum over the heads k of S[i, k d + c]
 *     S[i, c] = sum over edges e = (i, j) of mask[e, k] p[e, k] V[j, c],  k the head of column c
 *
 * with the masks, p and V of attention.c; f: relu, leaky_relu, elu or none. Each part but the sum
 * may be absent.
 *
 * Shapes    those of attention.c;  b: [1, h d] or absent.  Y: [rows, h d], created. With the mean M
 *           over the heads: b [1, d], Y [rows, d].
 *           Kept: what attention keeps, S in place of its result, and Y if there is an f. On an
 *           EVAL tape S is not stored, except for a mean.
 * Dtypes    as in attention.c;  b, Y: state.
 * Range     the rules of the parts, one after the other. No part makes a bound smaller, so where Y
 *           needs no guard, S needs none either.
 * Error     attention's error, then the parts' f32 errors, and Y is narrowed once; S may be
 *           narrowed before b is added, or before the mean. With f32 state the bits are those of
 *           the chain op by op, except for elu's gradient behind dropout.
 * Gradient  dM = f'(Y) dropout(dY), as in epilogue.c;  db = its column sums in f32;  dS = dM, or
 *           dS[i, k d + c] = dM[i, c] / h, narrowed once;  then the gradients of attention, from S
 *           and dS.
 * Cost      attention's, n h d elements of Y and d of b forward;  3 n h d more backward where there
 *           is an f, dropout or a mean.
 * Errors    attention's;  HG_ERR_SHAPE b;  HG_ERR_DTYPE;  HG_ERR_ARG a constant outside the range
 *           of its part.
 * Source    - */
#include "autograd/ops/attention.h"
#include "autograd/ops/epilogue.h"

enum {
	Q = ATTENTION_Q,
	K = ATTENTION_K,
	V = ATTENTION_V,
	C = ATTENTION_C,
	BIAS = ATTENTION_BIAS,
	B = ATTENTION_EPILOGUE_B
};
/* SUM [rows, h d]: S. DS, the same: dS, if it differs from dY. DB: ops/attention.h. A mean always
 * has both, because neither Y nor dY has room for them. */
enum { SUM = ATTENTION_PLUS + 1, DS, DB = ATTENTION_EPILOGUE_DB };

static struct hg__attention_epilogue_attr attr_of(const struct hg__node *node)
{
	struct hg__attention_epilogue_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

/* ---- recording ---- */

static hg_status infer(struct hg__infer *s)
{
	const struct hg__attention_epilogue_attr attr = attr_of(s->node);
	HG__TRY(hg__op_attention.infer(s));
	const struct hg__shape sum = s->out;
	s->saves &= ~HG__SAVE_OUT; /* attention keeps it, but here S is in its place */
	if (s->mode == HG_TRAIN || attr.mean) {
		s->aux[SUM] = sum;
		s->saves |= HG__SAVE_AUX(SUM);
	}
	if (attr.mean)
		s->out = hg__shape_of(sum.rows, sum.cols / attr.attention.heads, s->state);
	HG__TRY(hg__epilogue_infer_behind(s, &attr.act_drop, B, DB, DS));
	if (attr.mean) {
		s->aux[DS] = sum;
		s->saves |= HG__BACK_AUX(DS);
	}
	return HG_OK;
}

/* ---- range ---- */

/* Adds the mean over the heads and what comes after it. dS is stored, and no gradient behind it. */
static void add_mean(struct hg__fused_chain *chain, const struct hg__range *r,
                     const struct hg__attention_epilogue_attr *attr)
{
	const struct hg__heads_attr heads = {attr->attention.heads};
	const int before = FUSED_BEFORE;
	chain->shape.cols /= heads.heads;
	chain->stored = chain->count;
	hg__fused_chain_add(chain, &hg__op_head_mean, NULL, &before, 1, &heads, sizeof heads);
	hg__epilogue_add_to_chain(chain, &attr->act_drop, FUSED_BEFORE,
	                          r->shape[B].present ? B : FUSED_NONE);
}

static struct hg__fused_chain chain_of(const struct hg__range *r)
{
	const struct hg__attention_epilogue_attr attr = attr_of(r->node);
	const struct hg__attention_layout layout =
	    hg__attention_layout(attr.attention.score, r->shape[K].present, r->shape[V].present);
	const struct hg__attention_place *v = &layout.side[SIDE_V];
	int operands[BIAS + 1];
	struct hg__fused_chain chain = {
	    .shape = hg__shape_of(r->shape[Q].rows,
	                          r->shape[v->operand].cols / (v->operand == Q ? layout.parts : 1),
	                          r->shape[Q].dtype)};
	for (int i = Q; i <= BIAS; i++)
		operands[i] = r->shape[i].present ? i : FUSED_NONE;
	hg__fused_chain_add(&chain, &hg__op_attention, r->node->graph, operands, BIAS + 1,
	                    &attr.attention, sizeof attr.attention);
	if (attr.mean)
		add_mean(&chain, r, &attr);
	else
		hg__epilogue_end_chain(&chain, r, &attr.act_drop, B);
	return chain;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const struct hg__attention_epilogue_attr attr = attr_of(r->node);
	const struct hg__fused_chain chain = chain_of(r);
	const struct hg__known out = hg__fused_chain_range(r, &chain, how);
	how->rounding.depth += EPILOGUE_DEPTH;
	if (attr.mean) /* the sum of the heads, and the division */
		how->rounding.depth += (double)attr.attention.heads + 1.0;
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const struct hg__fused_chain chain = chain_of(r);
	hg__fused_chain_range_back(r, &chain, grad);
}

/* ---- running ---- */

static struct hg__act_drop act_drop_of(const struct hg__call *c)
{
	const struct hg__attention_epilogue_attr attr = attr_of(c->node);
	struct hg__act_drop act_drop = hg__epilogue_of(c, &attr.act_drop);
	act_drop.key = attr.key;
	return act_drop;
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__sum_epilogue epilogue = {.b = c->in[B], .act_drop = act_drop_of(c)};
	struct hg__mat y = c->aux[SUM].cols ? c->aux[SUM] : c->out;
	y.data = c->aux[SUM].data;
	return hg__attention_forward(c, y, c->out, &epilogue);
}

static hg_status backward(const struct hg__call *c)
{
	const struct hg__act_drop act_drop = act_drop_of(c);
	const struct hg__epilogue_back_args end = hg__epilogue_back_of(c, &act_drop, B, DB, c->aux[DS]);
	HG__TRY(hg__attention_backward(c, c->aux[SUM], &end));
	return hg__epilogue_narrow(c, &end, B);
}

static unsigned replaces(const struct hg__node *node, int i)
{
	return hg__attention_replaces(node, i, HG__SAVE_AUX(SUM));
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__attention_cost(c, cost);
	cost->bytes += hg__mat_bytes(&c->aux[SUM]) + hg__mat_bytes(&c->in[B]);
	cost->flops += 3.0 * (double)c->out.rows * (double)c->out.cols; /* one for each part */
	if (attr_of(c->node).mean)
		cost->flops += (double)c->aux[SUM].rows * (double)c->aux[SUM].cols;
}

/* ---- for the doctor ---- */

/* The gradient behind attention: dS if there is one, otherwise dY. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	if (e->operand <= BIAS)
		HG__TRY(hg__attention_sum(c, e, c->aux[SUM], c->aux[DS].data ? c->aux[DS] : c->dout, t));
	if (e->operand < 0) {
		t->bias = (struct hg__added){.x = c->in[B], .col = e->col, .factor = 1.0};
		t->attention.mean = attr_of(c->node).mean;
	}
	return HG_OK;
}

/* The columns of a mean over the heads belong to all of them. */
static int heads(const struct hg__node *node, int operand, int64_t cols, struct hg__heads_in *in)
{
	return (operand >= 0 || !attr_of(node).mean) && hg__attention_heads(node, operand, cols, in);
}

static double kept(const struct hg__node *node)
{
	return 1.0 - (double)attr_of(node).act_drop.p;
}

static const struct hg__about about = {.traits = HG__NEIGHBOURS,
                                       .rows = HG__ROWS_NODES,
                                       .noise = 0x1p-20, /* as in a softmax */
                                       .addends = 1u << B,
                                       .operand_brings = {[B] = HG__BRINGS_BIAS},
                                       .sum = sum,
                                       .constants = hg__attention_constants,
                                       .heads = heads,
                                       .kept = kept};

const struct hg__op hg__op_attention_epilogue = {
    .name = "attention_epilogue",
    .words = "weighted mean over neighbours, by attention, with what follows it",
    .traits = HG__GRAPH | HG__TRANSPOSE | HG__UNIT_EDGES | HG__RANDOM | HG__GUARDS_STORE |
              HG__COUNTS_EDGES | HG__DENSE | HG__TILES,
    .min_in = 1,
    .max_in = 6,
    .same = 1u << Q | 1u << K | 1u << V | 1u << BIAS | 1u << B,
    .edges = 1u << BIAS,
    .one_type = 1u << Q | 1u << K | 1u << V | 1u << BIAS,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .replaces = replaces,
    .prepare = hg__attention_prepare,
    .staged = hg__attention_staged,
    .sample = hg__attention_epilogue_sample,
    .cost = cost,
    .about = &about,
};
