/* Batch norms whose result is never stored. Where one node is all that reads the result, and its
 * kernels can normalise what they read, they read what the batch norm reads. Forward of the batch
 * norm then computes the statistics alone, which saves two passes over the matrix and its memory.
 * The gradient of the result is stored, and backward is as it was. The bits are the same. */
#include "autograd/tape.h"

/* Is the result of this entry a half or a float as it is, without a check of its own? What a guard
 * must compare has to be stored. */
static int is_unchecked(const struct hg__node *node, const struct hg__value *out)
{
	const int bounded = node->verdict == HG_PROVED || node->verdict == HG_EXACT || node->by_weights;
	return bounded && !out->shift && !node->shadow && !out->keep && out->uses == 1;
}

/* Can what this node reads as operand 0 be read again at any time up to the backward of its reader?
 * It can unless it is in a region or computed a second time. */
static int stays(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                 const struct hg__node *node)
{
	const struct hg__value *x = &recording->value[node->in[0]];
	return !plan->value[node->in[0]].inside &&
	       (x->node < 0 || !(recording->entry[x->node].node.op->traits & HG__RECOMPUTE));
}

/* Does the node of entry k normalise its operand 0 as it reads it? */
static int normalises(const hg_context *ctx, const struct hg__recording *recording,
                      const struct hg__tape_plan *plan, int64_t k)
{
	const struct hg__node *node = &recording->entry[k].node;
	const struct hg__value *x = hg__operand(recording, node, 0);
	struct hg__shape in[HG__MAX_IN];
	if (!plan->entry[k].alive || plan->entry[k].region >= 0 || !node->op->normalises || !x ||
	    x->kind != HG__RESULT || plan->entry[x->node].region >= 0)
		return 0;
	const struct hg__node *norm = &recording->entry[x->node].node;
	for (int i = 0; i < HG__MAX_IN; i++)
		in[i] = hg__value_shape(hg__operand(recording, node, i));
	return norm->op->as_normalised && is_unchecked(norm, x) && stays(recording, plan, norm) &&
	       node->op->normalises(ctx, in);
}

void hg__place_norms(const hg_context *ctx, const struct hg__recording *recording,
                     struct hg__tape_plan *plan)
{
	for (int64_t k = 0; k < recording->entries && !plan->keeps; k++)
		if (normalises(ctx, recording, plan, k))
			plan->value[recording->entry[k].node.in[0]].normalised = 1;
}
