#include <math.h>

#include "doctor/replay.h"

/* Forward and backward as run.c does them, node by node, each node judged as soon as it has run:
 * what it had is still there, and what it made. */

/* A node of a large graph takes seconds here: nobody waits for all of them who wants no answer any
 * more. */
static hg_status tell(const struct hg__replay *replay, int64_t done)
{
	const hg_progress *watch = replay->progress;
	if (!watch || !watch->step ||
	    !watch->step(watch->user, "replay", done,
	                 replay->tape->program.forwards + replay->tape->program.backwards))
		return HG_OK;
	return hg__fail(replay->ctx, HG_ERR_STATE, "doctor_examine: stopped on request");
}

static hg_status forward(struct hg__replay *replay)
{
	const struct hg__program *program = &replay->tape->program;
	for (int64_t i = 0; i < program->forwards; i++) {
		HG__TRY(tell(replay, i));
		const struct hg__task *launch = &program->forward[i];
		HG__TRY(launch->call.node->op->forward(&launch->call));
		HG__TRY(hg__judge_forward(replay, launch));
	}
	replay->loss = (double)NAN;
	if (replay->evaluation) /* its tape ends with the logits */
		return HG_OK;
	return hg_tape_scalar(replay->tape, hg__tape_var(replay->tape, replay->tape->plan.output),
	                      &replay->loss);
}

/* The gradients that this node's contributions are added to, as they were before: for each operand,
 * or nothing. */
struct before {
	void *memory[HG__MAX_IN];
	size_t bytes[HG__MAX_IN];
};

static void forget(hg_context *ctx, struct before *before)
{
	for (int i = 0; i < HG__MAX_IN; i++)
		hg__device_free(ctx, before->memory[i], before->bytes[i]);
	*before = (struct before){0};
}

static hg_status remember(struct hg__replay *replay, const struct hg__task *launch,
                          struct before *before)
{
	hg_context *ctx = replay->ctx;
	*before = (struct before){0};
	for (int i = 0; i < HG__MAX_IN; i++) {
		const int adds =
		    launch->call.adds >> i & 1u; /* by itself; else what it makes is added later */
		const struct hg__mat *sum = adds ? &launch->call.din[i] : &launch->add[i];
		const size_t bytes = (size_t)(sum->rows * sum->ld) * hg_dtype_size(sum->dtype);
		replay->before[i] = (struct hg__mat){0};
		if (!sum->data || (launch->first[i] && !adds) || !bytes)
			continue;
		hg_status status = hg__device_alloc(ctx, bytes, "doctor: a gradient", &before->memory[i]);
		before->bytes[i] = bytes;
		if (status >= 0)
			status = ctx->backend->copy(ctx, before->memory[i], sum->data, bytes);
		if (status < 0) {
			forget(ctx, before);
			return status;
		}
		if (adds) {
			replay->before[i] = *sum;
			replay->before[i].data = before->memory[i];
		}
	}
	return HG_OK;
}

/* What could not be written straight into a gradient is added to it now. */
static hg_status add_parts(struct hg__replay *replay, const struct hg__task *launch,
                           struct before before)
{
	hg_status status = hg__add_parts(replay->tape->ctx, launch);
	for (int i = 0; i < HG__MAX_IN && status >= 0; i++)
		if (launch->add[i].data) {
			struct hg__mat old = launch->add[i];
			old.data = before.memory[i];
			status = hg__judge_added(replay, launch, i, &old);
		}
	return status;
}

static hg_status back(struct hg__replay *replay, const struct hg__task *launch)
{
	struct hg__wide wide = {0};
	struct before before;
	const int good = hg__operands_good(replay, launch, 1);
	HG__TRY(remember(replay, launch, &before));
	hg_status status = hg__wide_open(&launch->call, hg__entry_of(replay, launch)->saves, 1, &wide);
	if (status >= 0)
		status = launch->call.node->op->backward(&launch->call);
	if (status >= 0)
		status = hg__judge_backward(replay, launch, &wide, good);
	hg__wide_close(&wide);
	if (status >= 0)
		status = add_parts(replay, launch, before);
	forget(replay->ctx, &before);
	return status;
}

hg_status hg__replay_run(struct hg__replay *replay)
{
	const struct hg__program *program = &replay->tape->program;
	HG__TRY(forward(replay));
	if (!replay->tape->plan.trains)
		return HG_OK;
	HG__TRY(hg__tape_back_begin(replay->tape));
	for (int64_t i = 0; i < program->backwards; i++) {
		HG__TRY(tell(replay, program->forwards + i));
		HG__TRY(back(replay, &program->backward[i]));
	}
	return HG_OK;
}
