/* One examination: a step is replayed beside the run.
 *
 *     1. Save everything that a step writes.
 *     2. Put the loss scale and the step counter of the examined step in force.
 *     3. Check what the step reads; run forward, backward and update, and check every task.
 *     4. Write the saved state back.
 *     5. Describe the findings.
 *
 * The replayed tape has the nodes of the run's tape, but tensors of its own, so the replay writes
 * nothing else that the run needs. */
#include <math.h>

#include "doctor/check.h"
#include "doctor/doctor.h"
#include "nn/saved.h"

/* ---- the examined step ---- */

static int was_applied(int32_t reason)
{
	return reason == HG_STEP_APPLIED || reason == HG_STEP_APPLIED_GREW;
}

/* Goes back to the last step, which must have been skipped: weights and moments are as they were
 * before it. Its loss scale is in the history; its number is one less than the present one. */
static hg_status go_back(hg_context *ctx, struct hg__step *step)
{
	const int64_t steps = step->scale.steps,
	              last = (steps + HG_LOSS_SCALE_HISTORY - 1) % HG_LOSS_SCALE_HISTORY;
	if (steps < 1)
		return hg__fail(
		    ctx, HG_ERR_STATE,
		    "doctor_examine: no step has been taken yet, so there is none to go back to");
	if (was_applied(step->scale.history[last].reason))
		return hg__fail(ctx, HG_ERR_STATE,
		                "doctor_examine: the last step was applied, so the weights before it are "
		                "gone; it is possible to go back only to a skipped step");
	step->scale.scale = step->scale.history[last].scale;
	step->step--;
	return HG_OK;
}

static hg_status choose_step(struct hg__replay *replay, int back)
{
	hg_context *ctx = replay->ctx;
	HG__TRY(ctx->backend->copy_out(ctx, &replay->step, replay->params->step, sizeof replay->step));
	if (!back)
		return HG_OK;
	HG__TRY(go_back(ctx, &replay->step));
	return ctx->backend->copy_in(ctx, replay->params->step, &replay->step, sizeof replay->step);
}

/* ---- the replay ---- */

/* Memory for what is known of each value, task and tensor. It is the report's. */
static hg_status allocate_lists(struct hg__replay *replay)
{
	hg_context *ctx = replay->ctx;
	struct hg__report_memory **memory = replay->memory;
	const hg_tape *tape = replay->tape;
	const size_t values = (size_t)tape->recording.values,
	             tasks = (size_t)(tape->program.forwards + tape->program.backwards);
	void *list = NULL;
	HG__TRY(hg__report_alloc(ctx, memory, values, sizeof *replay->value, &list));
	replay->value = list;
	HG__TRY(hg__report_alloc(ctx, memory, values, sizeof *replay->grad, &list));
	replay->grad = list;
	HG__TRY(hg__report_alloc(ctx, memory, values, sizeof *replay->rows, &list));
	replay->rows = list;
	HG__TRY(hg__report_alloc(ctx, memory, tasks, sizeof *replay->replayed, &list));
	replay->replayed = list;
	replay->tensor_room = (int)(2 * values);
	HG__TRY(hg__report_alloc(ctx, memory, 2 * values, sizeof *replay->tensor, &list));
	replay->tensor = list;
	for (int kind = 0; kind < HG__FINDING_KINDS; kind++) {
		HG__TRY(hg__report_alloc(ctx, memory, (size_t)replay->most_findings,
		                         sizeof *replay->finding[kind], &list));
		replay->finding[kind] = list;
	}
	return HG_OK;
}

static hg_status replay_step(struct hg__replay *replay)
{
	HG__TRY(allocate_lists(replay));
	hg__rows_infer(replay);
	HG__TRY(hg__check_inputs(replay));
	HG__TRY(hg__check_moments(replay));
	HG__TRY(hg__check_working_copies(replay));
	HG__TRY(hg__replay_run(replay));
	return replay->evaluation ? HG_OK : hg__check_update(replay);
}

/* Features of a training run that were narrowed when they were uploaded. */
static void set_narrowed_features(const hg_doctor *doctor, struct hg__replay *replay)
{
	const hg_tensor *x = doctor->train ? doctor->train->input.x : NULL;
	if (!x || !doctor->config.features || doctor->config.features_dtype != HG_F32 ||
	    hg_tensor_dtype(x) != HG_F16)
		return;
	replay->narrowed = x;
	replay->narrowed_from = doctor->config.features;
}

/* The saved state is written back whatever was found and whatever failed. */
static hg_status replay_and_restore(const hg_doctor *doctor, struct hg__replay *replay, int back)
{
	const struct hg__live live = {.params = doctor->params, .optim = doctor->optim};
	struct hg__saved saved = {0};
	if (doctor->optim) /* as the run's next step will do */
		HG__TRY(hg__optim_ready(doctor->optim));
	HG__TRY(hg__saved_init(&saved, &live, HG__SAVED_REPLAY, 0, "doctor: the state to return to"));
	hg_status status = hg__saved_take(&saved);
	if (status >= 0) {
		status = choose_step(replay, back);
		if (status >= 0)
			status = replay_step(replay);
		const hg_status restored = hg__saved_restore(&saved);
		status = status < 0 ? status : restored;
	}
	hg__saved_fini(&saved);
	return status;
}

/* ---- the report ---- */

static void set_least_headroom(hg_doctor_report *report)
{
	report->headroom = NAN;
	report->headroom_at = "";
	for (int i = 0; i < report->tensors; i++) {
		const hg_doctor_tensor *t = &report->tensor[i];
		if (t->dtype != HG_F16 || report->headroom <= t->headroom)
			continue;
		report->headroom = t->headroom;
		report->headroom_at = t->name;
	}
}

static hg_status complete_finding(struct hg__replay *replay, struct hg__finding *finding)
{
	HG__TRY(hg__check_weight_growth(replay, finding));
	HG__TRY(hg__trace_chain(replay, finding));
	HG__TRY(hg__write_sentence(replay, finding));
	return hg__list_remedies(replay, finding);
}

/* Merges both lists in the order of the step; at the same task, what is not finite comes first. If
 * there is no room for all findings, silent ones are left out. */
static hg_status merge_findings(struct hg__replay *replay, hg_finding *list, int *count)
{
	const int room = replay->most_findings - replay->findings[HG__NONFINITE],
	          nonfinite = replay->findings[HG__NONFINITE],
	          silent = replay->findings[HG__SILENT] < room ? replay->findings[HG__SILENT] : room;
	for (int n = 0, s = 0; n < nonfinite || s < silent;) {
		struct hg__finding *a = n < nonfinite ? &replay->finding[HG__NONFINITE][n] : NULL,
		                   *b = s < silent ? &replay->finding[HG__SILENT][s] : NULL;
		const int takes_a = a && (!b || a->position <= b->position);
		struct hg__finding *next = takes_a ? a : b;
		HG__TRY(complete_finding(replay, next));
		list[(*count)++] = next->reported;
		n += takes_a;
		s += !takes_a;
	}
	return HG_OK;
}

static hg_status fill_report(struct hg__replay *replay, hg_doctor_report *report)
{
	void *memory = NULL;
	HG__TRY(hg__report_alloc(replay->ctx, replay->memory, (size_t)replay->most_findings,
	                         sizeof(hg_finding), &memory));
	hg_finding *list = memory;
	*report = (hg_doctor_report){.size = sizeof *report,
	                             .step = replay->step.step,
	                             .loss = replay->loss,
	                             .loss_scale = (double)replay->step.scale.scale,
	                             .finding = list,
	                             .tensor = replay->tensor,
	                             .tensors = replay->tensors};
	HG__TRY(merge_findings(replay, list, &report->findings));
	set_least_headroom(report);
	return HG_OK;
}

/* Later examinations compare their gradients with the loss's own gradient, which is the first one
 * of the backward pass (converged.c). */
static void note_loss_gradient(hg_doctor *doctor, const struct hg__replay *replay)
{
	int i = 0;
	while (i < replay->tensors && !replay->tensor[i].backward)
		i++;
	if (i < replay->tensors && !replay->findings[HG__NONFINITE])
		doctor->largest_loss_gradient =
		    fmax(doctor->largest_loss_gradient,
		         replay->tensor[i].amax / (double)replay->step.scale.scale);
}

hg_status hg__examine(hg_doctor *doctor, int back, int evaluation)
{
	struct hg__replay replay = {.ctx = doctor->ctx,
	                            .tape = doctor->tape,
	                            .params = doctor->params,
	                            .optim = doctor->optim,
	                            .config = doctor->train ? &doctor->train->config : NULL,
	                            .progress = doctor->config.progress,
	                            .memory = &doctor->memory,
	                            .wants_silent = doctor->config.silent && !evaluation,
	                            .most_findings = doctor->config.most_findings,
	                            .evaluation = evaluation,
	                            .sparse_features =
	                                doctor->train ? doctor->train->input.x_sparse : NULL,
	                            .initial_weights = &doctor->initial_weights,
	                            .largest_loss_gradient = doctor->largest_loss_gradient};
	set_narrowed_features(doctor, &replay);
	HG__TRY(replay_and_restore(doctor, &replay, back));
	if (!evaluation)
		HG__TRY(hg__check_statistics(&replay));
	note_loss_gradient(doctor, &replay);
	return fill_report(&replay, &doctor->report);
}
