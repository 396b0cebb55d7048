#include "doctor/replay.h"

#include <math.h>

#include "doctor/check.h"

/* Runs the tasks of a step as run.c does, and checks each of them as soon as it has run, while its
 * operands and what it made are still there. */

/* The check of one task of a large graph takes seconds, so the user may stop between two tasks. */
static hg_status report_progress(const struct hg__replay *replay, int64_t done)
{
	const hg_progress *watch = replay->progress;
	if (!watch || !watch->step ||
	    !watch->step(watch->user, "replay", done,
	                 replay->tape->program.forwards + replay->tape->program.backwards))
		return HG_OK;
	return hg__fail(replay->ctx, HG_ERR_STATE, "doctor_examine: stopped on request");
}

static hg_status run_forward(struct hg__replay *replay)
{
	const struct hg__program *program = &replay->tape->program;
	for (int64_t i = 0; i < program->forwards; i++) {
		HG__TRY(report_progress(replay, i));
		const struct hg__task *task = &program->forward[i];
		HG__TRY(task->call.node->op->forward(&task->call));
		HG__TRY(hg__check_forward(replay, task));
	}
	replay->loss = (double)NAN;
	if (replay->evaluation) /* its tape ends with the logits */
		return HG_OK;
	return hg_tape_scalar(replay->tape, hg__tape_var(replay->tape, replay->tape->plan.output),
	                      &replay->loss);
}

/* ---- backward ---- */

/* Copies of the gradients to which a task contributes, from before it runs: one for each operand,
 * or nothing. */
struct gradients_before {
	void *memory[HG__MAX_IN];
	size_t bytes[HG__MAX_IN];
};

static void free_copies(hg_context *ctx, struct gradients_before *before)
{
	for (int i = 0; i < HG__MAX_IN; i++)
		hg__device_free(ctx, before->memory[i], before->bytes[i]);
	*before = (struct gradients_before){0};
}

/* The op adds some of its contributions itself; the tape adds the others afterwards. */
static hg_status copy_gradients(struct hg__replay *replay, const struct hg__task *task,
                                struct gradients_before *before)
{
	hg_context *ctx = replay->ctx;
	*before = (struct gradients_before){0};
	for (int i = 0; i < HG__MAX_IN; i++) {
		const int op_adds = task->call.adds >> i & 1u;
		const struct hg__mat *gradient = op_adds ? &task->call.din[i] : &task->add[i];
		const size_t bytes =
		    (size_t)(gradient->rows * gradient->ld) * hg_dtype_size(gradient->dtype);
		replay->before[i] = (struct hg__mat){0};
		if (!gradient->data || (task->is_first[i] && !op_adds) || !bytes)
			continue;
		hg_status status = hg__device_alloc(ctx, bytes, "doctor: a gradient", &before->memory[i]);
		before->bytes[i] = bytes;
		if (status >= 0)
			status = ctx->backend->copy(ctx, before->memory[i], gradient->data, bytes);
		if (status < 0) {
			free_copies(ctx, before);
			return status;
		}
		if (op_adds) {
			replay->before[i] = *gradient;
			replay->before[i].data = before->memory[i];
		}
	}
	return HG_OK;
}

static hg_status add_contributions(struct hg__replay *replay, const struct hg__task *task,
                                   const struct gradients_before *before)
{
	hg_status status = hg__add_parts(replay->ctx, task);
	for (int i = 0; i < HG__MAX_IN && status >= 0; i++)
		if (task->add[i].data) {
			struct hg__mat old = task->add[i];
			old.data = before->memory[i];
			status = hg__check_addition(replay, task, i, &old);
		}
	return status;
}

static hg_status run_backward_task(struct hg__replay *replay, const struct hg__task *task)
{
	struct hg__wide wide = {0};
	struct gradients_before before;
	const int operands_finite = hg__operands_finite(replay, task, 1);
	HG__TRY(copy_gradients(replay, task, &before));
	hg_status status = hg__wide_open(&task->call, hg__entry_of(replay, task)->saves, 1, &wide);
	if (status >= 0)
		status = task->call.node->op->backward(&task->call);
	if (status >= 0)
		status = hg__check_backward(replay, task, &wide, operands_finite);
	hg__wide_close(&wide);
	if (status >= 0)
		status = add_contributions(replay, task, &before);
	free_copies(replay->ctx, &before);
	return status;
}

hg_status hg__replay_run(struct hg__replay *replay)
{
	const struct hg__program *program = &replay->tape->program;
	HG__TRY(run_forward(replay));
	if (!replay->tape->plan.trains)
		return HG_OK;
	HG__TRY(hg__tape_back_begin(replay->tape));
	for (int64_t i = 0; i < program->backwards; i++) {
		HG__TRY(report_progress(replay, program->forwards + i));
		HG__TRY(run_backward_task(replay, &program->backward[i]));
	}
	return HG_OK;
}
