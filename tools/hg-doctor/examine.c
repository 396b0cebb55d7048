/* The loop of an examination:
 *
 *    every step: train; if the step went bad, replay it and stop; otherwise, if the number of the
 *    next step is 1, 2, 4, 8, ... or the last, replay that step before it is made
 *
 * A replay changes nothing: the run continues as it would without replays. */
#include "examine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

static hg_status findings_take(struct examination *e, const hg_doctor_report *report)
{
	struct diagnosis *d = e->diagnosis;
	free(d->finding);
	d->findings = 0;
	d->finding = malloc((size_t)(report->findings + 1) * sizeof *d->finding);
	if (!d->finding)
		return HG_ERR_NOMEM;
	for (int i = 0; i < report->findings; i++)
		if (d->bad || !health_mends(&e->health, &d->config.policy, &report->finding[i]))
			d->finding[d->findings++] = report->finding[i];
	return HG_OK;
}

static hg_status replay_step(struct examination *e, int back)
{
	struct diagnosis *d = e->diagnosis;
	const hg_doctor_report *report = NULL;
	const hg_status status = hg_doctor_examine(e->run[e->current].doctor, back, &report);
	d->report = report;
	if (status < 0)
		return status == HG_ERR_STATE && watch_interrupted() ? HG_INFO_STOPPED : status;
	d->replayed++;
	const hg_status taken = findings_take(e, report);
	/* a tensor from whose overflow the run will recover has no headroom, which is not worth
	 * reporting */
	if (d->findings == report->findings && !isnan(report->headroom) &&
	    !(report->headroom >= d->headroom)) {
		d->headroom = report->headroom;
		d->headroom_step = report->step;
		(void)snprintf(d->headroom_at, sizeof d->headroom_at, "%s",
		               report->headroom_at ? report->headroom_at : "");
	}
	return taken;
}

/* Replay the forward pass of an evaluation with the final weights. A separate doctor does this, so
 * that the report of the last step stays valid if the evaluation shows nothing. */
static hg_status replay_evaluation(struct examination *e)
{
	const hg_doctor_report *report = NULL;
	hg_status status = hg_doctor_create_train(e->run[e->current].train, NULL, &e->evaluator);
	if (status >= 0)
		status = hg_doctor_examine_evaluation(e->evaluator, &report);
	if (status < 0 || !report->findings)
		return status;
	e->diagnosis->report = report;
	return findings_take(e, report);
}

/* Replay the next step; `done` steps come before it. */
static hg_status replay_next(struct examination *e, int64_t done)
{
	const hg_status status = replay_step(e, 0);
	if (status == HG_OK && !e->diagnosis->findings)
		e->last_clean = done;
	return status;
}

static void keep_write_error(struct examination *e, int failed)
{
	if (failed && !e->write_error)
		e->write_error = errno ? errno : EIO;
}

static int on_step(void *user, const hg_train_event *event)
{
	struct examination *e = user;
	struct diagnosis *d = e->diagnosis;
	progress_show(&e->progress, event);
	if (history_add(&d->history, event)) {
		e->status = HG_ERR_NOMEM;
		return 1;
	}
	keep_write_error(e, diagnosis_json_step(e->json.out, &d->history));
	d->bad = health_note(&e->health, event);
	if (d->bad)
		e->status = replay_step(e, !event->step.applied);
	else if (health_due(event->epoch, event->epochs))
		e->status = replay_next(e, event->epoch);
	return e->status < 0 || d->bad || d->findings || watch_interrupted() || e->write_error;
}

/* Read the checkpoint once; every run begins from it, also the runs that try a remedy. */
static hg_status checkpoint_load(struct examination *e)
{
	char text[HG_DATA_MESSAGE] = "";
	hg_status status = HG_OK;
	if (!e->state)
		status = hg_checkpoint_read(e->diagnosis->options->checkpoint, &e->state, text);
	if (status < 0) {
		(void)snprintf(e->message, sizeof e->message, "%s", text);
		return status;
	}
	status = hg_train_set_state(e->run[e->current].train, e->state);
	if (status != HG_OK)
		(void)snprintf(status < 0 ? e->message : e->notice, sizeof e->notice, "%s",
		               hg_context_error(e->ctx));
	return status;
}

static hg_status run_begin(struct examination *e, const hg_train_data *data, hg_train_fn step)
{
	hg_train_config config = e->diagnosis->config;
	config.progress = step;
	config.user = e;
	hg_doctor_config examined = HG_DOCTOR_CONFIG_INIT;
	examined.features = e->diagnosis->dataset->feat;
	examined.features_dtype = e->diagnosis->dataset->feat_dtype;
	examined.progress = watch_progress();
	progress_begin(&e->progress, 1);
	hg_status status = hg_train_create(e->ctx, &config, data, &e->run[e->current].train);
	if (status >= 0 && e->diagnosis->options->checkpoint)
		status = checkpoint_load(e);
	return status < 0 ? status
	                  : hg_doctor_create_train(e->run[e->current].train, &examined,
	                                           &e->run[e->current].doctor);
}

static hg_status run_train(struct examination *e)
{
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	const hg_status status = hg_train_run(e->run[e->current].train, &report);
	return e->status < 0 ? e->status : status;
}

static hg_status run_until_bad(struct examination *e, const hg_train_data *data)
{
	struct diagnosis *d = e->diagnosis;
	hg_status status = run_begin(e, data, on_step);
	e->last_clean = -1;
	if (status >= 0 && !watch_interrupted())
		status = replay_next(e, 0);
	if (status < 0)
		return status;
	keep_write_error(e, stream_begin(&e->json));
	if (d->report)
		history_begin(&d->history, d->report->step, d->report->loss_scale);
	if (d->findings || e->write_error || watch_interrupted())
		return status;
	status = run_train(e);
	if (status < 0)
		return status;
	return d->findings || d->bad || e->write_error || watch_interrupted() ? HG_OK
	                                                                      : replay_evaluation(e);
}

/* ---- a weight that was bad before the step ---- */

static int on_repeated_step(void *user, const hg_train_event *event)
{
	struct examination *e = user;
	progress_show(&e->progress, event);
	if (event->epoch > e->last_clean)
		e->status = replay_step(e, 0);
	return e->status < 0 || e->diagnosis->findings || event->epoch >= e->diagnosis->history.count ||
	       watch_interrupted();
}

/* A weight that is bad before a step was spoilt by an earlier step. That step is over, but the same
 * run makes the same steps again. So train again, and replay every step after the last one whose
 * replay showed nothing. If this finds nothing, the earlier findings are kept. */
static void find_spoiling_step(struct examination *e, const hg_train_data *data)
{
	struct diagnosis *d = e->diagnosis;
	const struct diagnosis before = *d;
	const hg_finding *first = d->findings ? d->finding : NULL;
	if (!first || first->cause != HG_CAUSE_INPUT || first->row_is != HG_ROW_WEIGHT ||
	    e->last_clean < 0)
		return;
	d->finding = NULL;
	d->findings = 0;
	d->bad = NULL;
	e->current = 1;
	hg_status status = run_begin(e, data, on_repeated_step);
	if (status >= 0)
		status = run_train(e);
	if (status < 0 || !d->findings) {
		free(d->finding);
		*d = before;
	} else
		free(before.finding);
	d->bad = before.bad;
}

/* Stop a run that tries a remedy when the user interrupts. */
static int on_remedy_step(void *user, const hg_train_event *event)
{
	progress_show(user, event);
	return watch_interrupted();
}

/* Try the remedies of the findings in order, so that those of the first fault come first. */
static hg_status remedies_try(struct examination *e, const hg_train_data *data)
{
	struct diagnosis *d = e->diagnosis;
	hg_train_config config = d->config;
	hg_doctor_trial trial = HG_DOCTOR_TRIAL_INIT;
	if (!d->findings || d->options->no_try || watch_interrupted())
		return HG_OK;
	e->trying = 1;
	progress_begin(&e->progress, 1);
	config.progress = on_remedy_step;
	config.user = &e->progress;
	trial.config = &config;
	trial.data = data;
	trial.steps = d->config.epochs;
	trial.features = d->dataset->feat;
	trial.features_dtype = d->dataset->feat_dtype;
	trial.from = e->state;
	trial.control = e->state ? &d->control : NULL;
	return hg_doctor_try(e->ctx, &trial, d->finding, d->findings);
}

hg_status examination_run(struct examination *e, hg_context *ctx, const hg_device_data *device)
{
	struct diagnosis *d = e->diagnosis;
	hg_train_data data;
	hg_status status = dataset_train_data(d->dataset, device, &d->rows, &data, e->message);
	e->ctx = ctx;
	e->health.replan = d->config.policy.replan;
	e->health.steps = d->config.epochs;
	d->headroom = (double)NAN;
	if (status >= 0)
		status = run_until_bad(e, &data);
	if (status >= 0) {
		find_spoiling_step(e, &data);
		status = remedies_try(e, &data);
	}
	progress_end(&e->progress);
	d->interrupted = watch_interrupted() != 0;
	return status;
}

hg_status examination_run_features(struct examination *e, hg_context *ctx,
                                   const hg_device_data *device)
{
	struct diagnosis *d = e->diagnosis;
	hg_train_data data;
	hg_status status = dataset_train_data(d->dataset, device, &d->rows, &data, e->message);
	e->ctx = ctx;
	d->headroom = (double)NAN;
	keep_write_error(e, stream_begin(&e->json));
	if (status >= 0)
		status = remedies_try(e, &data);
	progress_end(&e->progress);
	d->interrupted = watch_interrupted() != 0;
	return status;
}

void examination_end(struct examination *e)
{
	hg_doctor_free(e->evaluator);
	for (int i = 0; i < 2; i++) {
		hg_doctor_free(e->run[i].doctor);
		hg_train_free(e->run[i].train);
	}
	hg_state_free(e->state);
	free(e->diagnosis->finding);
	history_end(&e->diagnosis->history);
}
