/* Batch norms that the nodes around them compute, where their kernels can:
 *
 *     forward    The node that makes what a norm reads computes the statistics. The node that alone
 *                reads the norm's result normalises what the norm reads, so that the result is not
 *                stored.
 *     backward   The node that reads the norm's result also adds up the gradients of gamma and
 *                beta. The node that makes what the norm reads takes its own gradient through the
 *                norm, so that this is not stored.
 *
 * A norm is idle in a pass in which others do all that there is to do. Numbers are rounded as they
 * would be in memory, and the nodes stay on the tape with their bounds and verdicts. Nothing of
 * this happens on a copy that keeps everything (keep.c), or where ops are to be separate, because
 * readers are then not counted (fuse.c). */
#include "autograd/tape.h"

/* Can the result of this node do without memory? It has one reader, nobody keeps it, it has no
 * factor, and no guard has to compare it as it is stored. */
static int needs_no_memory(const struct hg__node *node, const struct hg__value *out)
{
	const int bounded = node->verdict == HG_PROVED || node->verdict == HG_EXACT || node->by_weights;
	return bounded && !out->shift && !node->shadow && !out->keep && out->uses == 1;
}

/* Can all that this node reads stay in memory up to the backward of the nodes around it? What lies
 * in a region has no memory, and what is computed a second time has it twice for a short while. */
static int stays(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                 const struct hg__node *node)
{
	int can = 1;
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__value *x = hg__operand(recording, node, i);
		const unsigned traits = x && x->node >= 0 ? recording->entry[x->node].node.op->traits : 0;
		can &= !x || (!plan->value[node->in[i]].inside && !(traits & HG__RECOMPUTE));
	}
	return can;
}

/* Can the node of entry k compute with norms? */
static int computes_norms(const hg_context *ctx, const struct hg__recording *recording,
                          const struct hg__tape_plan *plan, int64_t k)
{
	const struct hg__node *node = &recording->entry[k].node;
	struct hg__shape in[HG__MAX_IN];
	for (int i = 0; i < HG__MAX_IN; i++)
		in[i] = hg__value_shape(hg__operand(recording, node, i));
	return plan->entry[k].alive && plan->entry[k].region < 0 && node->op->normalises &&
	       node->op->normalises(ctx, in);
}

/* The norm whose result the node of entry k can compute from what the norm reads; -1: none. */
static int32_t norm_before(const hg_context *ctx, const struct hg__recording *recording,
                           const struct hg__tape_plan *plan, int64_t k)
{
	const struct hg__value *x = hg__operand(recording, &recording->entry[k].node, 0);
	if (!x || x->kind != HG__RESULT || plan->entry[x->node].region >= 0 ||
	    !computes_norms(ctx, recording, plan, k))
		return -1;
	const struct hg__node *norm = &recording->entry[x->node].node;
	return norm->op->as_normalised && needs_no_memory(norm, x) && stays(recording, plan, norm)
	           ? x->node
	           : -1;
}

/* Does this node alone contribute to the gradients of its operands but 0, and do these have memory
 * outside of the arena? */
static int has_own_params(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                          const struct hg__node *node)
{
	int own = 1;
	for (int i = 1; i < node->n_in; i++) {
		const struct hg__value *value = hg__operand(recording, node, i);
		own &= !value || !plan->value[node->in[i]].grad ||
		       (value->kind == HG__PARAM && value->uses == 1 && value->root == node->in[i]);
	}
	return own;
}

/* Can the node that makes operand 0 of this norm take its gradient through it? */
static int takes_gradient(const hg_context *ctx, const struct hg__recording *recording,
                          const struct hg__tape_plan *plan, const struct hg__node *norm)
{
	const struct hg__value *x = &recording->value[norm->in[0]], *y = &recording->value[norm->out];
	return x->kind == HG__RESULT && x->uses == 1 && !x->keep && x->dtype == y->dtype &&
	       plan->entry[x->node].back && stays(recording, plan, norm) &&
	       has_own_params(recording, plan, norm) && computes_norms(ctx, recording, plan, x->node);
}

/* Does no other node update the same running statistics? Two would do so in another order. */
static int has_own_buffers(const struct hg__recording *recording, int32_t norm)
{
	const hg_param *buffer = recording->entry[norm].node.buffer[0];
	int own = 1;
	for (int32_t k = 0; k < (int32_t)recording->entries; k++)
		own &= k == norm || recording->entry[k].fused_into >= 0 || !buffer ||
		       recording->entry[k].node.buffer[0] != buffer;
	return own;
}

/* The entry that makes what this norm reads, if it can compute the statistics; else -1. */
static int32_t maker_of_input(const hg_context *ctx, const struct hg__recording *recording,
                              const struct hg__tape_plan *plan, int32_t norm)
{
	const struct hg__value *x = hg__operand(recording, &recording->entry[norm].node, 0);
	return plan->trains && plan->entry[norm].alive && x->kind == HG__RESULT && x->uses &&
	               plan->entry[x->node].statistics < 0 && has_own_buffers(recording, norm) &&
	               stays(recording, plan, &recording->entry[norm].node) &&
	               computes_norms(ctx, recording, plan, x->node)
	           ? x->node
	           : -1;
}

void hg__place_norms(const hg_context *ctx, const struct hg__recording *recording,
                     struct hg__tape_plan *plan)
{
	for (int32_t k = 0; k < (int32_t)recording->entries && !plan->keeps; k++) {
		const struct hg__node *node = &recording->entry[k].node;
		const int32_t norm = norm_before(ctx, recording, plan, k);
		if (norm >= 0) {
			plan->value[node->in[0]].normalised = k;
			plan->entry[norm].has_sums =
			    plan->entry[norm].back && plan->entry[k].back &&
			    has_own_params(recording, plan, &recording->entry[norm].node);
		}
		const int32_t maker =
		    node->op->as_statistics ? maker_of_input(ctx, recording, plan, k) : -1;
		if (maker >= 0) {
			plan->entry[maker].statistics = k;
			plan->entry[k].has_statistics = 1;
		}
		if (plan->entry[k].back && plan->entry[k].region < 0 && node->op->as_gradients &&
		    takes_gradient(ctx, recording, plan, node))
			plan->value[node->in[0]].through = k;
	}
}
