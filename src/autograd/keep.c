#include <string.h>

#include "autograd/tape.h"

/* A copy of a compiled tape in which every tensor is kept: the same nodes, fused in the same way,
 * of the same types and with the same random keys, so that a run of the copy computes the same
 * bits. Only the lifetimes and the addresses are planned again. */

static hg_status copy_array(hg_context *ctx, const void *from, int64_t count, size_t size,
                            void **to)
{
	HG__TRY(hg__host_alloc(ctx, (size_t)count, size, "a copy of the tape", to));
	if (count)
		memcpy(*to, from, (size_t)count * size);
	return HG_OK;
}

static hg_status copy_and_plan(const hg_tape *from, hg_tape *made)
{
	void *memory = NULL;
	HG__TRY(copy_array(made->ctx, from->recording.value, from->recording.values,
	                   sizeof *from->recording.value, &memory));
	made->recording.value = memory;
	made->recording.values = made->recording.value_capacity = from->recording.values;
	HG__TRY(copy_array(made->ctx, from->recording.entry, from->recording.entries,
	                   sizeof *from->recording.entry, &memory));
	made->recording.entry = memory;
	made->recording.entries = made->recording.entry_capacity = from->recording.entries;
	HG__TRY(hg__plan_lives(made->ctx, &made->recording, &made->plan));
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
	made->recording.tag = from->recording.tag;
	made->plan.output = from->plan.output;
	made->plan.trains = from->plan.trains;
	made->recording.random = from->recording.random;
	made->plan.keeps = 1;
	made->recording.scope = made->plan.largest_name = "";
	const hg_status status = copy_and_plan(from, made);
	if (status < 0) {
		hg_tape_free(made);
		return status;
	}
	made->stage = HG__COMPILED;
	*copy = made;
	return HG_OK;
}
