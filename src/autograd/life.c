/* Makes and frees a tape. */
#include "autograd/tape.h"
#include "halfgraph/ops.h"

static uint32_t next_tag(hg_params *params)
{
	return (params->tapes++ + (uint32_t)((uintptr_t)params >> 6) % HG__TAPE_TAGS) % HG__TAPE_TAGS +
	       1;
}

hg_status hg_tape_create(hg_params *params, hg_mode mode, hg_tape **tape)
{
	if (tape)
		*tape = NULL;
	if (!params || !tape)
		return hg__fail(hg_params_context(params), HG_ERR_ARG, "hg_tape_create: %s is NULL",
		                params ? "tape" : "params");
	if (mode != HG_TRAIN && mode != HG_EVAL)
		return hg__fail(params->ctx, HG_ERR_ARG,
		                "hg_tape_create: mode is %d, expected HG_TRAIN or HG_EVAL", (int)mode);
	void *memory = NULL;
	HG__TRY(hg__host_alloc(params->ctx, 1, sizeof(hg_tape), "a tape", &memory));
	hg_tape *made = memory;
	made->ctx = params->ctx;
	made->params = params;
	made->mode = mode;
	made->recording.cast = hg_cast;
	made->recording.tag = next_tag(params);
	made->recording.scope = "";
	made->plan.output = -1;
	made->observing.spare = HG__ROOM_SPARE;
	*tape = made;
	return HG_OK;
}

void hg_tape_free(hg_tape *tape)
{
	if (!tape)
		return;
	hg_context *ctx = tape->ctx;
	hg__program_free(ctx, &tape->program);
	hg__tape_plan_free(ctx, &tape->plan);
	hg__recording_free(ctx, &tape->recording);
	hg__host_free(ctx, tape, sizeof *tape);
}

int hg__tape_separates(const hg_tape *tape)
{
	return tape->ctx->separate_ops || tape->params->policy.accumulate != HG_ACC_F32;
}
