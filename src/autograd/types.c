/* The float type in which a node runs: the policy's, unless an operand is f32 and has to stay so.
 * Operands in another type are cast first. */
#include "autograd/tape.h"
#include "precision/range.h"

/* Is operand i stored x 2^-k although this op cannot read that? */
int hg__cannot_read(const hg_tape *tape, const struct hg__node *node, int i)
{
	const struct hg__value *x = hg__operand(&tape->recording, node, i);
	return x && x->shift &&
	       !(node->op->rescaled >> i & 1u && tape->params->policy.accumulate == HG_ACC_F32);
}

/* Can this f32 value be narrowed without a cast by the user? Yes where its bound proves that it
 * fits. Yes also for a result that the policy guards, with one exception: if an operand of it
 * overflowed earlier, only a guard on the weights will do. With a guard on the result itself one
 * node after the other would overflow, each at the cost of a step, until all of them are f32. What
 * the user cast to f32 stays f32. Scalars stay f32, too: narrowing them saves nothing. */
static int can_narrow(const hg_policy *policy, const struct hg__value *value)
{
	struct hg__narrowing n[HG__ASSUMPTIONS];
	for (int a = HG__UNCONDITIONAL; a <= HG__ASSUMED; a++)
		n[a] = (struct hg__narrowing){.bound = value->known[a].largest,
		                              .rounding.depth = 1.0,
		                              .state = HG_F16,
		                              .unproved = policy->unproved};
	const struct hg__decision r = hg__decide(n);
	const int guards = r.verdict == HG_GUARDED && value->kind == HG__RESULT &&
	                   (r.by_weights || !(value->f32_reasons & HG__F32_OPERAND));
	return !(value->f32_reasons & (HG__F32_CAST | HG__F32_PROMOTED)) &&
	       value->rows * value->cols > 1 && (r.verdict == HG_PROVED || guards);
}

/* The type in which a node runs: the policy's, or f32 if an operand is f32 and cannot be narrowed,
 * or has to be widened because the op cannot read it as it is stored. */
hg_dtype hg__node_type(const hg_tape *tape, const struct hg__node *node)
{
	const hg_policy *policy = &tape->params->policy;
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__value *x = hg__operand(&tape->recording, node, i);
		if (!x || !(node->op->same >> i & 1u))
			continue;
		if ((x->dtype == HG_F32 && x->cast_view[HG_F16] < 0 && !can_narrow(policy, x)) ||
		    hg__cannot_read(tape, node, i))
			return HG_F32;
	}
	return policy->state;
}

/* Is the result f32 because the user cast it, or an operand of it, to f32? */
static int is_f32_by_cast(const struct hg__recording *recording, const struct hg__node *node)
{
	int by_cast = (node->op->traits & HG__CASTS) != 0;
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__value *x = hg__operand(recording, node, i);
		by_cast |= x && node->op->same >> i & 1u && x->f32_reasons & HG__F32_CAST;
	}
	return by_cast;
}

/* The value with the same numbers in another float type: one that exists, the f32 master of a
 * parameter, or a cast that is recorded here. That cast is not the user's, so it does not count as
 * one. */
static hg_status find_cast_view(hg_tape *tape, int32_t index, hg_dtype dtype, int32_t *out)
{
	struct hg__recording *recording = &tape->recording;
	const struct hg__value *value = &recording->value[index];
	if (value->cast_view[dtype] >= 0)
		*out = value->cast_view[dtype];
	else if (value->kind == HG__PARAM && dtype == HG_F32)
		return hg__tape_master(tape, index, out);
	else {
		*out = hg__tape_index(tape, recording->cast(tape, hg__tape_var(tape, index), dtype));
		if (*out < 0)
			return recording->status;
		recording->value[*out].f32_reasons &= ~(unsigned)HG__F32_CAST;
		recording->value[index].cast_view[dtype] = *out;
		recording->value[*out].cast_view[recording->value[index].dtype] = index;
	}
	return HG_OK;
}

/* Brings the operands in op->same to one type. Other operands stay as they are, unless the op
 * cannot read how they are stored: then they become f32. */
hg_status hg__unify_operands(hg_tape *tape, struct hg__node *node, hg_dtype dtype)
{
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__value *x = hg__operand(&tape->recording, node, i);
		if (x && node->op->same >> i & 1u && hg__is_float(x->dtype))
			HG__TRY(find_cast_view(tape, node->in[i], dtype, &node->in[i]));
		else if (hg__cannot_read(tape, node, i))
			HG__TRY(find_cast_view(tape, node->in[i], HG_F32, &node->in[i]));
	}
	return HG_OK;
}

/* Is an operand of this node promoted or rescaled, or f32 because one of its own operands is? */
static int is_f32_by_operand(const struct hg__recording *recording, const struct hg__node *node)
{
	int by_operand = 0;
	for (int i = 0; i < node->n_in; i++) {
		const struct hg__value *x = hg__operand(recording, node, i);
		by_operand |= x && (x->f32_reasons & (HG__F32_PROMOTED | HG__F32_OPERAND) || x->shift);
	}
	return by_operand;
}

unsigned hg__f32_reasons_of(const struct hg__recording *recording, const struct hg__node *node,
                            hg_dtype dtype)
{
	unsigned reasons = node->verdict == HG_PROMOTED ? HG__F32_PROMOTED : 0u;
	if (dtype == HG_F32 && is_f32_by_cast(recording, node))
		reasons |= HG__F32_CAST;
	if (dtype == HG_F32 && is_f32_by_operand(recording, node))
		reasons |= HG__F32_OPERAND;
	return reasons;
}
