#include <string.h>

#include "autograd/tape.h"

/* A copy of a compiled tape in which every tensor is kept: the same nodes, fused in the same way,
 * of the same types and with the same random keys, so that a run of the copy computes the same
 * bits. Only the lifetimes and the addresses are planned again. What ran as a region (region.h)
 * runs node by node, so its sums are added in another order. */

static hg_status copy_array(hg_context *ctx, const void *from, int64_t count, size_t size,
                            void **to)
{
	HG__TRY(hg__host_alloc(ctx, (size_t)count, size, "a copy of the tape", to));
	if (count)
		memcpy(*to, from, (size_t)count * size);
	return HG_OK;
}

static hg_status copy_recording(hg_context *ctx, const struct hg__recording *from,
                                struct hg__recording *to)
{
	void *memory = NULL;
	HG__TRY(copy_array(ctx, from->value, from->values, sizeof *from->value, &memory));
	to->value = memory;
	to->values = to->value_capacity = from->values;
	HG__TRY(copy_array(ctx, from->entry, from->entries, sizeof *from->entry, &memory));
	to->entry = memory;
	to->entries = to->entry_capacity = from->entries;
	to->tag = from->tag;
	to->random = from->random;
	to->scope = "";
	return HG_OK;
}

static hg_status copy_and_plan(const hg_tape *from, hg_tape *made)
{
	HG__TRY(copy_recording(made->ctx, &from->recording, &made->recording));
	HG__TRY(hg__plan_lifetimes(made->ctx, &made->recording, &made->plan));
	for (int64_t v = 0; v < made->plan.values; v++)
		memcpy(made->plan.value[v].gradient, from->plan.value[v].gradient,
		       sizeof from->plan.value[v].gradient);
	HG__TRY(hg__arena_place(made->ctx, &made->plan));
	return hg__tape_tasks(made);
}

hg_status hg__tape_copy_kept(const hg_tape *from, hg_tape **copy)
{
	void *memory = NULL;
	*copy = NULL;
	HG__TRY(hg__host_alloc(from->ctx, 1, sizeof(hg_tape), "a copy of the tape", &memory));
	hg_tape *made = memory;
	made->ctx = from->ctx;
	made->params = from->params;
	made->mode = from->mode;
	made->plan = (struct hg__tape_plan){
	    .output = from->plan.output, .trains = from->plan.trains, .keeps = 1, .largest_name = ""};
	const hg_status status = copy_and_plan(from, made);
	if (status < 0) {
		hg_tape_free(made);
		return status;
	}
	made->stage = HG__COMPILED;
	*copy = made;
	return HG_OK;
}
