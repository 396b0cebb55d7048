/* The doctor: one step, replayed beside the run.
 *
 *     save all that a step writes; put the loss scale and the counter of the step in question in
 *     force; look at what goes in; run forward, backward and update, node by node, each judged as
 *     it comes; give everything back; then say what was found
 *
 * Replayed is a tape of the same nodes whose tensors are all kept, so nothing that the run
 * remembers is written but what is saved. */
#include "doctor/doctor.h"

#include <math.h>
#include <string.h>

#include "core/versioned.h"

/* ---- making ---- */

static hg_status config_read(hg_context *ctx, const hg_doctor_config *theirs,
                             hg_doctor_config *ours)
{
	const hg_doctor_config usual = HG_DOCTOR_CONFIG_INIT;
	*ours = usual;
	if (theirs && !hg__struct_read(ours, sizeof *ours, theirs))
		return hg__fail(ctx, HG_ERR_ARG,
		                "doctor: config.size is not set (start from HG_DOCTOR_CONFIG_INIT), or a "
		                "field unknown to this version is used");
	if (ours->most_findings < 1)
		return hg__fail(ctx, HG_ERR_ARG, "doctor: most_findings is %d, expected at least 1",
		                ours->most_findings);
	if (ours->features && ours->features_dtype != HG_F16 && ours->features_dtype != HG_F32)
		return hg__fail(ctx, HG_ERR_DTYPE, "doctor: features_dtype is %s, expected f16 or f32",
		                hg_dtype_name(ours->features_dtype));
	return HG_OK;
}

static hg_status make(hg_params *params, hg_optim *optim, const hg_doctor_config *config,
                      hg_doctor **out)
{
	hg_context *ctx = params->ctx;
	hg_doctor_config ours;
	HG__TRY(config_read(ctx, config, &ours));
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_doctor), "doctor", &memory));
	hg_doctor *doctor = memory;
	doctor->ctx = ctx;
	doctor->params = params;
	doctor->optim = optim;
	doctor->config = ours;
	const hg_status status = hg__growth_begin(params, &doctor->growth);
	if (status < 0) {
		hg__host_free(ctx, doctor, sizeof *doctor);
		return status;
	}
	*out = doctor;
	return HG_OK;
}

static hg_status record_tape(hg_doctor *doctor, hg_doctor_record_fn record, void *user)
{
	HG__TRY(hg_tape_create(doctor->params, HG_TRAIN, &doctor->tape));
	hg_tape_observe(doctor->tape, 0);
	doctor->tape->plan.keeps = 1;
	HG__TRY(hg_tape_compile(doctor->tape, record(user, doctor->tape)));
	return doctor->tape->plan.trains
	           ? HG_OK
	           : hg__fail(doctor->ctx, HG_ERR_ARG,
	                      "doctor: what was recorded gives no loss, f32 [1, 1]");
}

/* What the run's tapes assume of its weights is not changed by one that is recorded beside them. */
static hg_status record_own(hg_doctor *doctor, hg_doctor_record_fn record, void *user)
{
	hg_params *params = doctor->params;
	const int64_t count = params->count, reaches = params->reaches;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(doctor->ctx, (size_t)count, sizeof(double),
	                       "doctor: what is assumed of the weights", &memory));
	double *reach = memory;
	for (int64_t i = 0; i < count; i++)
		reach[i] = params->item[i]->reach;
	const hg_status status = record_tape(doctor, record, user);
	for (int64_t i = 0; i < count; i++)
		params->item[i]->reach = reach[i];
	params->reaches = reaches;
	hg__host_free(doctor->ctx, memory, (size_t)count * sizeof(double));
	return status;
}

hg_status hg_doctor_create(hg_params *params, hg_optim *optim, hg_doctor_record_fn record,
                           void *user, const hg_doctor_config *config, hg_doctor **doctor)
{
	if (doctor)
		*doctor = NULL;
	if (!params)
		return HG_ERR_ARG;
	if (!record || !doctor)
		return hg__fail(params->ctx, HG_ERR_ARG, "doctor: %s is NULL",
		                record ? "doctor" : "record");
	if (optim && optim->params != params)
		return hg__fail(params->ctx, HG_ERR_ARG,
		                "doctor: the optimiser belongs to other parameters");
	hg_doctor *made = NULL;
	HG__TRY(make(params, optim, config, &made));
	const hg_status status = record_own(made, record, user);
	if (status < 0) {
		hg_doctor_free(made);
		return status;
	}
	*doctor = made;
	return HG_OK;
}

hg_status hg_doctor_create_train(hg_train *train, const hg_doctor_config *config,
                                 hg_doctor **doctor)
{
	if (doctor)
		*doctor = NULL;
	if (!train)
		return HG_ERR_ARG;
	if (!doctor)
		return hg__fail(train->ctx, HG_ERR_ARG, "doctor: doctor is NULL");
	HG__TRY(make(train->params, train->optim, config, doctor));
	(*doctor)->train = train;
	return HG_OK;
}

void hg_doctor_free(hg_doctor *doctor)
{
	if (!doctor)
		return;
	hg_context *ctx = doctor->ctx;
	hg_tape_free(doctor->tape);
	hg__page_free(ctx, &doctor->pages);
	hg__growth_free(ctx, &doctor->growth);
	hg__host_free(ctx, doctor, sizeof *doctor);
}

/* ---- the step in question ---- */

static int was_applied(int32_t reason)
{
	return reason == HG_STEP_APPLIED || reason == HG_STEP_APPLIED_GREW;
}

/* The last step, if it was skipped: weights and moments are what they were, its loss scale is
 * remembered, its number is one less. */
static hg_status go_back(hg_context *ctx, struct hg__step *step)
{
	const int64_t steps = step->scale.steps,
	              place = (steps + HG_LOSS_SCALE_HISTORY - 1) % HG_LOSS_SCALE_HISTORY;
	if (steps < 1)
		return hg__fail(
		    ctx, HG_ERR_STATE,
		    "doctor_examine: no step has been taken yet, so there is none to go back to");
	if (was_applied(step->scale.history[place].reason))
		return hg__fail(ctx, HG_ERR_STATE,
		                "doctor_examine: the last step was applied, so the weights before it are "
		                "gone; only a skipped one can be taken again");
	step->scale.scale = step->scale.history[place].scale;
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

/* ---- the report ---- */

/* Room for what is learnt of each value, each launch and each tensor; it goes with the report. */
static hg_status make_room(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	const size_t values = (size_t)tape->values,
	             launches = (size_t)(tape->program.forwards + tape->program.backwards);
	void *memory = NULL;
	HG__TRY(hg__page_take(replay->ctx, replay->pages, values, sizeof *replay->value, &memory));
	replay->value = memory;
	HG__TRY(hg__page_take(replay->ctx, replay->pages, values, sizeof *replay->grad, &memory));
	replay->grad = memory;
	HG__TRY(hg__page_take(replay->ctx, replay->pages, values, sizeof *replay->rows, &memory));
	replay->rows = memory;
	HG__TRY(hg__page_take(replay->ctx, replay->pages, launches, sizeof *replay->event, &memory));
	replay->event = memory;
	replay->tensor_room = (int)(2 * values);
	HG__TRY(hg__page_take(replay->ctx, replay->pages, 2 * values, sizeof *replay->tensor, &memory));
	replay->tensor = memory;
	for (int i = 0; i < 2; i++) {
		HG__TRY(hg__page_take(replay->ctx, replay->pages, (size_t)replay->most,
		                      sizeof *replay->found[i], &memory));
		replay->found[i] = memory;
	}
	return HG_OK;
}

static void least_headroom(hg_doctor_report *report)
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

static hg_status explain(struct hg__replay *replay, struct hg__found *found)
{
	HG__TRY(hg__check_growth(replay, found));
	HG__TRY(hg__trace_chain(replay, found));
	HG__TRY(hg__write_sentence(replay, found));
	return hg__list_remedies(replay, found);
}

/* Findings are listed in the order of the step, as both lists are. Of two findings of one node the
 * one that is not finite comes first. Where there is no room for all, what is silent stays out. */
static hg_status list_findings(struct hg__replay *replay, hg_finding *list, int *count)
{
	const int room = replay->most - replay->founds[0],
	          silent = replay->founds[1] < room ? replay->founds[1] : room;
	for (int l = 0, s = 0; l < replay->founds[0] || s < silent;) {
		struct hg__found *const nonfinite = l < replay->founds[0] ? &replay->found[0][l] : NULL,
		                        *const finite = s < silent ? &replay->found[1][s] : NULL;
		const int takes_nonfinite = nonfinite && (!finite || nonfinite->event <= finite->event);
		struct hg__found *found = takes_nonfinite ? nonfinite : finite;
		HG__TRY(explain(replay, found));
		list[(*count)++] = found->finding;
		l += takes_nonfinite;
		s += !takes_nonfinite;
	}
	return HG_OK;
}

static hg_status fill_report(struct hg__replay *replay, hg_doctor_report *report)
{
	void *memory = NULL;
	HG__TRY(hg__page_take(replay->ctx, replay->pages, (size_t)replay->most, sizeof(hg_finding),
	                      &memory));
	hg_finding *list = memory;
	*report = (hg_doctor_report){.size = sizeof *report,
	                             .step = replay->step.step,
	                             .loss = replay->loss,
	                             .loss_scale = (double)replay->step.scale.scale,
	                             .finding = list,
	                             .tensor = replay->tensor,
	                             .tensors = replay->tensors};
	HG__TRY(list_findings(replay, list, &report->findings));
	least_headroom(report);
	return HG_OK;
}

static hg_status look_into(struct hg__replay *replay)
{
	HG__TRY(make_room(replay));
	hg__rows_learn(replay);
	HG__TRY(hg__check_inputs(replay));
	HG__TRY(hg__check_moments(replay));
	HG__TRY(hg__check_copies(replay));
	HG__TRY(hg__replay_run(replay));
	return replay->evaluation ? HG_OK : hg__check_update(replay);
}

/* What a later examination holds its gradients against: the loss's own, the first one of
 * backward. */
static void remember_gradient(hg_doctor *doctor, const struct hg__replay *replay)
{
	int i = 0;
	while (i < replay->tensors && !replay->tensor[i].backward)
		i++;
	if (i < replay->tensors && !replay->founds[0])
		doctor->steepest =
		    fmax(doctor->steepest, replay->tensor[i].amax / (double)replay->step.scale.scale);
}

/* Features that an upload may have narrowed. */
static void know_upload(const hg_doctor *doctor, struct hg__replay *replay)
{
	const hg_tensor *x = doctor->train ? doctor->train->input.x : NULL;
	if (!x || !doctor->config.features || doctor->config.features_dtype != HG_F32 ||
	    hg_tensor_dtype(x) != HG_F16)
		return;
	replay->x = x;
	replay->uploaded = doctor->config.features;
}

/* Everything goes back to where it was, whatever was found and whatever failed. */
static hg_status examine(hg_doctor *doctor, int back, int evaluation)
{
	struct hg__replay replay = {.ctx = doctor->ctx,
	                            .tape = doctor->tape,
	                            .params = doctor->params,
	                            .optim = doctor->optim,
	                            .features = doctor->train ? doctor->train->input.x_sparse : NULL,
	                            .config = doctor->train ? &doctor->train->config : NULL,
	                            .progress = doctor->config.progress,
	                            .silent = doctor->config.silent && !evaluation,
	                            .most = doctor->config.most_findings,
	                            .evaluation = evaluation,
	                            .growth = &doctor->growth,
	                            .steepest = doctor->steepest,
	                            .pages = &doctor->pages};
	struct hg__saved_state saved = {0};
	know_upload(doctor, &replay);
	if (doctor->optim) /* as the run's next step will do */
		HG__TRY(hg__optim_ready(doctor->optim));
	HG__TRY(hg__saved_state_open(&saved, doctor->params, doctor->optim));
	hg_status status = choose_step(&replay, back);
	if (status >= 0)
		status = look_into(&replay);
	const hg_status closed = hg__saved_state_close(&saved);
	HG__TRY(status);
	HG__TRY(closed);
	if (!evaluation)
		HG__TRY(hg__check_statistics(&replay));
	remember_gradient(doctor, &replay);
	return fill_report(&replay, &doctor->report);
}

/* A run's own tape, copied for as long as it is looked at. */
static hg_status examine_copy(hg_doctor *doctor, const hg_tape *tape, int back, int evaluation,
                              const hg_doctor_report **report)
{
	hg__page_free(doctor->ctx, &doctor->pages);
	if (tape)
		HG__TRY(hg__tape_copy_kept(tape, &doctor->tape));
	const hg_status status = examine(doctor, back, evaluation);
	if (tape) {
		hg_tape_free(doctor->tape);
		doctor->tape = NULL;
	}
	HG__TRY(status);
	*report = &doctor->report;
	return HG_OK;
}

hg_status hg_doctor_examine(hg_doctor *doctor, int back, const hg_doctor_report **report)
{
	if (report)
		*report = NULL;
	if (!doctor)
		return HG_ERR_ARG;
	if (!report || (back != 0 && back != 1))
		return hg__fail(doctor->ctx, HG_ERR_ARG,
		                report ? "doctor_examine: back is %d, expected 0 or 1"
		                       : "doctor_examine: report is NULL",
		                back);
	if (doctor->train && !doctor->train->tape)
		return hg__fail(
		    doctor->ctx, HG_ERR_STATE,
		    "doctor_examine: the run has no tape: it failed while it was recorded again");
	return examine_copy(doctor, doctor->train ? doctor->train->tape : NULL, back, 0, report);
}

hg_status hg_doctor_examine_evaluation(hg_doctor *doctor, const hg_doctor_report **report)
{
	if (report)
		*report = NULL;
	if (!doctor)
		return HG_ERR_ARG;
	if (!report)
		return hg__fail(doctor->ctx, HG_ERR_ARG, "doctor_examine_evaluation: report is NULL");
	if (!doctor->train || !doctor->train->evaluator.tape)
		return hg__fail(doctor->ctx, HG_ERR_STATE, "doctor_examine_evaluation: %s",
		                doctor->train ? "the run has no tape: it failed while it was recorded again"
		                              : "expected the doctor of a training run");
	return examine_copy(doctor, doctor->train->evaluator.tape, 0, 1, report);
}
