/* The range rules of a fused chain (fused_chain.h): the rules of its ops are applied one after the
 * other, forward for the bound on Y and backward for the bounds on the gradients. */
#include "autograd/ops/fused_chain.h"

#include <stdio.h>

void hg__fused_chain_add(struct hg__fused_chain *chain, const struct hg__op *op, hg_graph *graph,
                         const int *operand, int operands, const void *attr, size_t bytes)
{
	struct hg__fused_op *added = &chain->op[chain->count++];
	*added = (struct hg__fused_op){.node = {.op = op, .n_in = operands, .graph = graph},
	                               .shape = chain->shape};
	memcpy(added->operand, operand, (size_t)operands * sizeof *operand);
	if (bytes)
		memcpy(added->node.attr, attr, bytes);
}

/* What the rule of one op of the chain reads. before: known of the result of the op before it. */
static struct hg__range range_of(const struct hg__range *r, const struct hg__fused_chain *chain,
                                 int at, const struct hg__known *before)
{
	static const struct hg__shape nothing = {0, 0, HG_F32, 0};
	const struct hg__fused_op *step = &chain->op[at];
	const struct hg__shape *of_before = &chain->op[at > 0 ? at - 1 : 0].shape;
	struct hg__range own = *r;
	own.node = &step->node;
	for (int i = 0; i < HG__MAX_IN; i++) {
		const int k = i < step->node.n_in ? step->operand[i] : FUSED_NONE;
		own.shape[i] = k >= 0 ? r->shape[k] : k == FUSED_BEFORE ? *of_before : nothing;
		own.in[i] = k >= 0 ? r->in[k] : k == FUSED_BEFORE ? *before : hg__at_most(0.0);
	}
	return own;
}

/* For example "row sums 12.3 x |X| 0.5; |X| 6.15 + |b| 1". */
static void add_words(char *because, const char *words)
{
	const size_t length = strlen(because);
	(void)snprintf(because + length, HG__BECAUSE - length, "%s%s", length ? "; " : "", words);
}

/* known[k] is of the operand of op k of the chain, and the last one of Y. The reason joins those of
 * all rules. Results between the ops are intermediate values. Each of them is passed on with its
 * largest element and its sign, which hold up to a relative error that is counted at the end. Its
 * smallest element is not: a relative error of x changes 1 / (1 + exp(x)) by more than a share of
 * itself. */
static void apply_rules(const struct hg__range *r, const struct hg__fused_chain *chain,
                        struct hg__known known[1 + FUSED_MOST], struct hg__derivation *how)
{
	/* This is only read if the chain is empty: otherwise its first op has no op before it. */
	known[0] = r->in[0];
	how->because[0] = 0;
	for (int k = 0; k < chain->count; k++) {
		const struct hg__range own = range_of(r, chain, k, &known[k]);
		struct hg__derivation step = {.rounding = how->rounding};
		known[k + 1] = own.node->op->range(&own, &step);
		known[k + 1].least = 0.0;
		hg__on_the_way(&how->rounding, fmax(step.rounding.inner, known[k + 1].largest));
		how->rounding.depth = fmax(how->rounding.depth, step.rounding.depth);
		add_words(how->because, step.because);
	}
}

struct hg__known hg__fused_chain_range(const struct hg__range *r,
                                       const struct hg__fused_chain *chain,
                                       struct hg__derivation *how)
{
	struct hg__known known[1 + FUSED_MOST];
	apply_rules(r, chain, known, how);
	return known[chain->count];
}

/* A gradient inside the chain as the next op receives it. It is rounded near 0, and to f16 where it
 * is stored in f16. */
static double between(struct hg__gradients *grad, double bound, int half)
{
	const hg_dtype_facts *f16 = hg_dtype_get(HG_F16);
	const double rounded = half ? bound * (1.0 + f16->u) + 0x1p-25 : bound + 0x1p-149;
	if (bound == 0.0)
		return 0.0;
	grad->half = half ? fmax(grad->half, rounded) : grad->half;
	return half && !(rounded < f16->max) ? (double)INFINITY : rounded;
}

void hg__fused_chain_range_back(const struct hg__range *r, const struct hg__fused_chain *chain,
                                struct hg__gradients *grad)
{
	struct hg__known known[1 + FUSED_MOST];
	struct hg__derivation how = {.rounding = grad->rounding};
	double dout = r->dout;
	apply_rules(r, chain, known, &how);
	hg__on_the_way(&grad->rounding, how.rounding.inner);
	for (int i = 0; i < HG__MAX_IN; i++)
		grad->largest[i] = i || chain->count ? 0.0 : dout;
	for (int k = chain->count - 1; k >= 0; k--) {
		const struct hg__fused_op *step = &chain->op[k];
		struct hg__range own = range_of(r, chain, k, &known[k]);
		struct hg__gradients back = {.rounding.inner = grad->rounding.inner};
		own.out = known[k + 1];
		own.dout = dout;
		step->node.op->range_back(&own, &back);
		hg__on_the_way(&grad->rounding, fmax(back.rounding.inner, dout));
		for (int i = 0; i < step->node.n_in; i++) {
			const int of = step->operand[i];
			if (of == FUSED_BEFORE)
				dout = between(grad, back.largest[i],
				               k == chain->stored && r->shape[0].dtype == HG_F16);
			else if (of >= 0) {
				grad->largest[of] += back.largest[i];
				grad->depth[of] = fmax(grad->depth[of], back.depth[i]);
			}
		}
	}
	for (int i = 0; i < HG__MAX_IN; i++)
		grad->depth[i] += chain->count > 1 ? 16.0 + (double)chain->op[0].shape.cols : 0.0;
}
