/* Where the operands of calls lie, and what guards a result. */
#include "autograd/tape.h"

/* The arena. Before it is allocated, kernels are planned with addresses that nothing reads: they
 * say that an operand is present, and they are aligned as the real ones will be. */
static char *base_of(const hg_tape *tape)
{
	void *arena = tape->program.arena.data;
	return arena ? arena : (void *)(uintptr_t)HG__ALIGN;
}

struct hg__mat hg__in_arena(const hg_tape *tape, const struct hg__value *value, hg_dtype dtype,
                            int32_t span)
{
	/* no span: only the backward pass uses this buffer */
	char *place = span >= 0 ? base_of(tape) + tape->plan.span[span].offset : NULL;
	const struct hg__mat mat = {place, value->rows, value->cols, hg__leading(value->cols), dtype};
	return mat;
}

/* An empty tensor has no memory. It gets an address all the same, because NULL means absent. */
static struct hg__mat of_tensor(const hg_tape *tape, const hg_tensor *tensor)
{
	struct hg__mat mat = tensor->mat;
	if (!mat.data)
		mat.data = base_of(tape);
	return mat;
}

struct hg__mat hg__mat_of(const hg_tape *tape, int32_t index)
{
	const struct hg__mat none = {NULL, 0, 0, 0, HG_F32};
	if (index < 0)
		return none;
	const struct hg__value *value = &tape->recording.value[index];
	return value->node < 0 ? of_tensor(tape, value->tensor)
	                       : hg__in_arena(tape, value, value->dtype, tape->plan.value[index].span);
}

/* d(scale * loss) / d(loss) = scale. The address is that of the optimiser's own number, so the
 * captured step follows the scale. */
static struct hg__mat loss_scale(const hg_tape *tape)
{
	const struct hg__mat scale = {&tape->params->step->scale.scale, 1, 1, 1, HG_F32};
	return scale;
}

struct hg__mat hg__grad_of(const hg_tape *tape, int32_t index)
{
	const struct hg__value *root = &tape->recording.value[index];
	if (tape->plan.trains && index == tape->plan.output)
		return loss_scale(tape);
	return root->kind == HG__PARAM
	           ? root->param->grad->mat
	           : hg__in_arena(tape, root, hg__grad_dtype(root), tape->plan.value[index].grad_span);
}

int hg__is_store_guarded(const hg_tape *tape, const struct hg__node *node)
{
	const int guarded = node->verdict == HG_GUARDED && !node->by_weights &&
	                    tape->recording.value[node->out].dtype == HG_F16;
	return guarded && tape->plan.trains && tape->params->policy.replan;
}

/* The store guard of an entry. A copy of a tape that keeps everything (keep.c) runs a step of
 * another tape once more, so it leaves the overflow flag alone. */
struct hg__overflow_flag hg__store_guard(const hg_tape *tape, int64_t k)
{
	struct hg__overflow_flag flag = {NULL, (int32_t)k};
	if (hg__is_store_guarded(tape, &tape->recording.entry[k].node) && !tape->plan.keeps)
		flag.word = &tape->params->step->overflow;
	return flag;
}
