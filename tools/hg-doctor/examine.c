/* The loop.
 *
 *     every step: train; if it went bad, replay it and stop; else replay the next one, if its
 *     number is 1, 2, 4, 8, ... or the last, before it is made
 *
 * A replay changes nothing: the run goes on as if nobody had looked. */
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

static hg_status replay(struct examination *e, int back)
{
	struct diagnosis *d = e->diagnosis;
	const hg_doctor_report *report = NULL;
	const hg_status status = hg_doctor_examine(e->run[e->turn].doctor, back, &report);
	d->report = report;
	if (status < 0)
		return status == HG_ERR_STATE && watch_interrupted() ? HG_INFO_STOPPED : status;
	d->replayed++;
	const hg_status taken = findings_take(e, report);
	/* what the run will mend has no room, and says nothing of it */
	if (d->findings == report->findings && !isnan(report->headroom) &&
	    !(report->headroom >= d->headroom)) {
		d->headroom = report->headroom;
		d->headroom_step = report->step;
		(void)snprintf(d->headroom_at, sizeof d->headroom_at, "%s",
		               report->headroom_at ? report->headroom_at : "");
	}
	return taken;
}

/* What the run has learnt is looked at as it is used: the forward pass of an evaluation, by a
 * doctor of its own, so that the last step's replay can still be told of where this one shows
 * nothing. */
static hg_status replay_evaluation(struct examination *e)
{
	const hg_doctor_report *report = NULL;
	hg_status status = hg_doctor_create_train(e->run[e->turn].train, NULL, &e->evaluator);
	if (status >= 0)
		status = hg_doctor_examine_evaluation(e->evaluator, &report);
	if (status < 0 || !report->findings)
		return status;
	e->diagnosis->report = report;
	return findings_take(e, report);
}

/* Replay the next step, which has `done` before it. */
static hg_status look(struct examination *e, int64_t done)
{
	const hg_status status = replay(e, 0);
	if (status == HG_OK && !e->diagnosis->findings)
		e->clean = done;
	return status;
}

static void note_write(struct examination *e, int failed)
{
	if (failed && !e->write_error)
		e->write_error = errno ? errno : EIO;
}

static int on_step(void *user, const hg_train_event *event)
{
	struct examination *e = user;
	struct diagnosis *d = e->diagnosis;
	progress_show(&e->progress, event);
	if (course_note(&d->course, event)) {
		e->status = HG_ERR_NOMEM;
		return 1;
	}
	note_write(e, diagnosis_json_step(e->json.out, &d->course));
	d->bad = health_note(&e->health, event);
	if (d->bad)
		e->status = replay(e, !event->step.applied);
	else if (health_due(event->epoch, event->epochs))
		e->status = look(e, event->epoch);
	return e->status < 0 || d->bad || d->findings || watch_interrupted() || e->write_error;
}

/* Read once: every run begins from it, also those that try a remedy. */
static hg_status checkpoint_load(struct examination *e)
{
	char said[HG_DATA_MESSAGE] = "";
	hg_status status = HG_OK;
	if (!e->state)
		status = hg_checkpoint_read(e->diagnosis->options->checkpoint, &e->state, said);
	if (status < 0) {
		(void)snprintf(e->message, sizeof e->message, "%s", said);
		return status;
	}
	status = hg_train_set_state(e->run[e->turn].train, e->state);
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
	hg_status status = hg_train_create(e->ctx, &config, data, &e->run[e->turn].train);
	if (status >= 0 && e->diagnosis->options->checkpoint)
		status = checkpoint_load(e);
	return status < 0
	           ? status
	           : hg_doctor_create_train(e->run[e->turn].train, &examined, &e->run[e->turn].doctor);
}

static hg_status run_train(struct examination *e)
{
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	const hg_status status = hg_train_run(e->run[e->turn].train, &report);
	return e->status < 0 ? e->status : status;
}

static hg_status train(struct examination *e, const hg_train_data *data)
{
	struct diagnosis *d = e->diagnosis;
	hg_status status = run_begin(e, data, on_step);
	e->clean = -1;
	if (status >= 0 && !watch_interrupted())
		status = look(e, 0);
	if (status < 0)
		return status;
	note_write(e, stream_begin(&e->json));
	if (d->report)
		course_begin(&d->course, d->report->step, d->report->loss_scale);
	if (d->findings || e->write_error || watch_interrupted())
		return status;
	status = run_train(e);
	if (status < 0)
		return status;
	return d->findings || d->bad || e->write_error || watch_interrupted() ? HG_OK
	                                                                      : replay_evaluation(e);
}

/* ---- a weight that was bad before the step ---- */

static int on_retrace(void *user, const hg_train_event *event)
{
	struct examination *e = user;
	progress_show(&e->progress, event);
	if (event->epoch > e->clean)
		e->status = replay(e, 0);
	return e->status < 0 || e->diagnosis->findings || event->epoch >= e->diagnosis->course.count ||
	       watch_interrupted();
}

/* Weights that are bad before a step were spoilt by an earlier one. It is over, but the same run
 * makes the same steps: train again, and replay every step behind the last one whose replay showed
 * nothing. Where this does not work out, what was found before is still true. */
static void retrace(struct examination *e, const hg_train_data *data)
{
	struct diagnosis *d = e->diagnosis;
	const struct diagnosis before = *d;
	const hg_finding *first = d->findings ? d->finding : NULL;
	if (!first || first->cause != HG_CAUSE_INPUT || first->row_is != HG_ROW_WEIGHT || e->clean < 0)
		return;
	d->finding = NULL;
	d->findings = 0;
	d->bad = NULL;
	e->turn = 1;
	hg_status status = run_begin(e, data, on_retrace);
	if (status >= 0)
		status = run_train(e);
	if (status < 0 || !d->findings) {
		free(d->finding);
		*d = before;
	} else
		free(before.finding);
	d->bad = before.bad;
}

/* A run that tries a remedy ends when the user wants it to. */
static int on_trial(void *user, const hg_train_event *event)
{
	progress_show(user, event);
	return watch_interrupted();
}

/* Those of the first finding first: what went wrong first is to be mended first. */
static hg_status remedies_try(struct examination *e, const hg_train_data *data)
{
	struct diagnosis *d = e->diagnosis;
	hg_train_config config = d->config;
	hg_doctor_trial trial = HG_DOCTOR_TRIAL_INIT;
	if (!d->findings || d->options->no_try || watch_interrupted())
		return HG_OK;
	e->trying = 1;
	progress_begin(&e->progress, 1);
	config.progress = on_trial;
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

hg_status examination_run(struct examination *e, hg_context *ctx, const struct device_data *device)
{
	struct diagnosis *d = e->diagnosis;
	const hg_train_data data = dataset_to_train(d->dataset, device, &d->rows);
	e->ctx = ctx;
	e->health.replan = d->config.policy.replan;
	e->health.steps = d->config.epochs;
	d->headroom = (double)NAN;
	hg_status status = train(e, &data);
	if (status >= 0) {
		retrace(e, &data);
		status = remedies_try(e, &data);
	}
	progress_end(&e->progress);
	d->interrupted = watch_interrupted() != 0;
	return status;
}

hg_status examination_run_beyond(struct examination *e, hg_context *ctx,
                                 const struct device_data *device)
{
	struct diagnosis *d = e->diagnosis;
	const hg_train_data data = dataset_to_train(d->dataset, device, &d->rows);
	e->ctx = ctx;
	d->headroom = (double)NAN;
	note_write(e, stream_begin(&e->json));
	const hg_status status = remedies_try(e, &data);
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
	course_end(&e->diagnosis->course);
}
