/* The range rules of a fused chain (fused_chain.h): the rules of its ops are applied one after the
 * other, forward for the bound on Y and backward for the bounds on the gradients. */
#include "autograd/ops/fused_chain.h"

#include <stdio.h>

void hg__fused_chain_add(struct hg__fused_chain *chain, const struct hg__op *op, hg_graph *graph,
                         const int *operand, int operands, const void *attr, size_t bytes)
{
	struct hg__fused_op *added = &chain->op[chain->count++];
	*added = (struct hg__fused_op){.node = {.op = op, .n_in = operands, .graph = graph}};
	memcpy(added->operand, operand, (size_t)operands * sizeof *operand);
	if (bytes)
		memcpy(added->node.attr, attr, bytes);
}

/* The input of the range rule of one op of the chain. before: the bound on the result of the op
 * before it. */
static struct hg__range range_of(const struct hg__range *r, const struct hg__fused_chain *chain,
                                 const struct hg__fused_op *step, double before)
{
	static const struct hg__shape nothing = {0, 0, HG_F32, 0};
	struct hg__range own = *r;
	own.node = &step->node;
	for (int i = 0; i < HG__MAX_IN; i++) {
		const int k = i < step->node.n_in ? step->operand[i] : FUSED_NONE;
		own.shape[i] = k >= 0 ? r->shape[k] : k == FUSED_BEFORE ? chain->shape : nothing;
		own.sum[i] = k >= 0 ? r->sum[k] : (double)INFINITY;
		own.least[i] = k >= 0 ? r->least[k] : 0.0;
		own.sign[i] = k >= 0 ? r->sign[k] : 0;
		own.in[i] = k >= 0 ? r->in[k] : k == FUSED_BEFORE ? before : 0.0;
		own.din[i] = 0.0;
	}
	return own;
}

/* For example "row sums 12.3 x |X| 0.5; |X| 6.15 + |b| 1". */
static void add_words(char *because, const char *words)
{
	const size_t length = strlen(because);
	(void)snprintf(because + length, HG__BECAUSE - length, "%s%s", length ? "; " : "", words);
}

/* bound[k] is the bound on the operand of op k of the chain, and the last one is the bound on Y.
 * The reason (because) joins those of all rules. Results between the ops are values on the way, and
 * r->depth is that of the longest sum. */
static void bounds_of(struct hg__range *r, const struct hg__fused_chain *chain,
                      double bound[1 + FUSED_MOST], char *because)
{
	/* This is only read if the chain is empty: otherwise its first op has no op before it. */
	bound[0] = r->in[0];
	because[0] = 0;
	for (int k = 0; k < chain->count; k++) {
		struct hg__range own = range_of(r, chain, &chain->op[k], bound[k]);
		own.because[0] = 0;
		own.node->op->range(&own);
		bound[k + 1] = own.out;
		hg__on_the_way(r, fmax(own.inner, own.out));
		r->depth = fmax(r->depth, own.depth);
		add_words(because, own.because);
	}
}

void hg__fused_chain_range(struct hg__range *r, const struct hg__fused_chain *chain)
{
	double bound[1 + FUSED_MOST];
	bounds_of(r, chain, bound, r->because);
	r->out = bound[chain->count];
}

/* A gradient inside the chain as the next op receives it. It is rounded near 0, and to f16 where it
 * is stored in f16. */
static double between(struct hg__range *r, double bound, int half)
{
	const hg_dtype_facts *f16 = hg_dtype_get(HG_F16);
	const double rounded = half ? bound * (1.0 + f16->u) + 0x1p-25 : bound + 0x1p-149;
	if (bound == 0.0)
		return 0.0;
	r->held = half ? fmax(r->held, rounded) : r->held;
	return half && !(rounded < f16->max) ? (double)INFINITY : rounded;
}

void hg__fused_chain_range_back(struct hg__range *r, const struct hg__fused_chain *chain)
{
	char because[HG__BECAUSE];
	double bound[1 + FUSED_MOST], dout = r->dout;
	bounds_of(r, chain, bound, because);
	for (int i = 0; i < HG__MAX_IN; i++)
		r->din[i] = i || chain->count ? 0.0 : dout;
	for (int k = chain->count - 1; k >= 0; k--) {
		const struct hg__fused_op *step = &chain->op[k];
		struct hg__range own = range_of(r, chain, step, bound[k]);
		own.out = bound[k + 1];
		own.dout = dout;
		step->node.op->range_back(&own);
		hg__on_the_way(r, fmax(own.inner, dout));
		for (int i = 0; i < step->node.n_in; i++) {
			const int of = step->operand[i];
			if (of == FUSED_BEFORE)
				dout = between(r, own.din[i], k == chain->stored && r->shape[0].dtype == HG_F16);
			else if (of >= 0) {
				r->din[of] += own.din[i];
				r->depth_in[of] = fmax(r->depth_in[of], own.depth_in[i]);
			}
		}
	}
	for (int i = 0; i < HG__MAX_IN; i++)
		r->depth_in[i] += chain->count > 1 ? 16.0 + (double)chain->shape.cols : 0.0;
}
