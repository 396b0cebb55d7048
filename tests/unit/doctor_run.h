#ifndef HG_TESTS_DOCTOR_RUN_H
#define HG_TESTS_DOCTOR_RUN_H

#include <stdio.h>
#include <string.h>

#include "halfgraph/doctor.h"
#include "unit/train_task.h"

/* What the tests of doctors beside training runs share: a run on a planted task, its doctor, and
 * remedies that are tried. */

struct doctor_run {
	struct planted_run run;
	hg_doctor *doctor;
	/* what the case wants: to examine the next step after every so many steps (0: never), and every
	 * skipped step */
	int every, examine_skipped;
	/* what happened */
	int examinations, findings;
	double loss[256];
	hg_finding first;    /* without its texts, which belong to the report */
	char sentence[1024]; /* of the first finding */
};

static inline void doctor_run_open(struct doctor_run *r, const struct planted *task, hg_dtype state,
                                   int sparse)
{
	memset(r, 0, sizeof *r);
	planted_open(&r->run, test_context(), task, state, sparse);
}

static inline void doctor_run_close(struct doctor_run *r)
{
	hg_doctor_free(r->doctor);
	planted_close(&r->run);
}

/* ---- examinations ---- */

static inline void examine_and_count(struct doctor_run *r, int back)
{
	const hg_doctor_report *report = NULL;
	const hg_status status = hg_doctor_examine(r->doctor, back, &report);
	CHECK_MSG(status == HG_OK, "%s", hg_context_error(r->run.ctx));
	r->examinations++;
	if (report->findings && !r->findings) {
		r->first = report->finding[0];
		(void)snprintf(r->sentence, sizeof r->sentence, "%s", report->finding[0].sentence);
	}
	r->findings += report->findings;
}

static inline int examine_while_training(void *user, const hg_train_event *event)
{
	struct doctor_run *r = user;
	r->loss[event->epoch % 256] = event->loss;
	if (r->every && event->epoch % r->every == 0)
		examine_and_count(r, 0);
	if (r->examine_skipped && !event->step.applied)
		examine_and_count(r, 1);
	return 0;
}

/* Trains for so many epochs, with a doctor from the beginning on. */
static inline void doctor_run_train(struct doctor_run *r, hg_train_config config, int epochs)
{
	config.epochs = epochs;
	config.progress = examine_while_training;
	config.user = r;
	config.step.per_launch = 1;
	planted_begin(&r->run, &config);
	CHECK_OK(hg_doctor_create_train(r->run.train, NULL, &r->doctor));
	CHECK_MSG(hg_train_run(r->run.train, &r->run.report) >= 0, "%s", hg_context_error(r->run.ctx));
}

/* Replaces the doctor by one that knows the features from before they were uploaded; NULL: it does
 * not. */
static inline void doctor_run_tell_features(struct doctor_run *r, const float *features)
{
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	config.features = features;
	hg_doctor_free(r->doctor);
	CHECK_OK(hg_doctor_create_train(r->run.train, &config, &r->doctor));
}

static inline const hg_doctor_report *examine_next(struct doctor_run *r)
{
	const hg_doctor_report *report = NULL;
	CHECK_OK(hg_doctor_examine(r->doctor, 0, &report));
	for (int i = 0; i < report->findings; i++)
		test_note("%s", report->finding[i].sentence);
	return report;
}

/* The first finding of the next step, which must have remedies. */
static inline const hg_finding *first_finding(struct doctor_run *r)
{
	const hg_doctor_report *report = examine_next(r);
	CHECK(report->findings > 0 && report->finding[0].remedies > 0);
	return report->finding;
}

/* ---- remedies ---- */

static inline hg_doctor_trial trial_of(const struct doctor_run *r, const hg_train_config *config)
{
	hg_doctor_trial trial = HG_DOCTOR_TRIAL_INIT;
	trial.config = config;
	trial.data = &r->run.data;
	trial.steps = 4;
	return trial;
}

static inline const hg_remedy *remedy_of(const hg_finding *f, const char *option)
{
	for (int i = 0; i < f->remedies; i++)
		if (strcmp(f->remedy[i].option, option) == 0)
			return &f->remedy[i];
	return NULL;
}

/* ---- tasks ---- */

/* The task with 3000 more edges into node 0, and with features that are all positive, so that sums
 * over neighbours grow. */
enum { HUB = 3000 };
static inline struct planted task_with_hub(void)
{
	struct planted task = task_make();
	for (int e = 0; e < HUB; e++)
		coo_add(&task.edges, 0, test_below(N));
	for (int i = 0; i < N * D; i++)
		task.x[i] = fabsf(task.x[i]) + 1.0f;
	return task;
}

/* The task with features of 10000 and more: f16 cannot hold the sum over ten neighbours, but it can
 * if the features are divided by the sums of their rows. */
static inline struct planted task_with_large_features(void)
{
	struct planted task = task_make();
	for (int i = 0; i < N * D; i++)
		task.x[i] = 1e4f * (fabsf(task.x[i]) + 1.0f);
	return task;
}

/* A GCN of sums, not means, without dropout. */
static inline hg_train_config config_of_sums(const char *policy)
{
	hg_train_config c = config_of("gcn", policy);
	c.model.norm = HG_NORM_NONE;
	c.model.dropout = 0.0f;
	return c;
}

#endif
