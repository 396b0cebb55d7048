/* --doctor: the steps of a run that went bad, and some that did not, replayed op by op. */
#include "command.h"
#include "findings.h"
#include "watch.h"

#include <math.h>

/* Introduce the findings of a step. why NULL: the step itself showed nothing wrong. */
static void print_step_verdict(struct command *c, const char *why, int evaluation, int findings)
{
	const struct bad_step *bad = &c->results.bad;
	progress_end(&c->progress);
	if (c->options.seeds > 1)
		fprintf(c->text, "seed %lld, ", (long long)command_seed(c));
	if (c->options.folds)
		fprintf(c->text, "fold %d, ", command_fold(c));
	if (evaluation)
		fputs("the evaluation of the trained model, replayed op by op, is wrong:\n\n", c->text);
	else if (why)
		fprintf(c->text, "epoch %d (step %lld) is bad: %s%s\n\n", bad->epoch, (long long)bad->step,
		        why, findings ? "" : "; its replay shows nothing");
	else
		fprintf(
		    c->text,
		    "epoch %d (step %lld), replayed op by op, is wrong although its loss is finite:\n\n",
		    bad->epoch, (long long)bad->step);
}

/* If the step itself showed nothing wrong, findings from which the run recovers by itself do not
 * count. */
static int is_reported(const struct command *c, const char *why, const hg_finding *f)
{
	return why || !health_mends(&c->health, &c->results.config.policy, f);
}

static void print_replay(struct command *c, const hg_doctor_report *report, int epoch, int64_t step,
                         const char *why, int evaluation)
{
	struct bad_step *bad = &c->results.bad;
	const hg_finding *before = NULL;
	int findings = 0;
	if (!why && !evaluation && !isfinite(report->loss)) /* the step itself will show it */
		return;
	for (int i = 0; i < report->findings; i++)
		findings += is_reported(c, why, &report->finding[i]);
	if (!findings && !why)
		return;
	c->examined = 1;
	*bad = (struct bad_step){bad->runs + 1, bad->findings + findings, epoch, step, bad->replayed};
	print_step_verdict(c, why, evaluation, findings);
	for (int i = 0; i < report->findings; i++) {
		if (!is_reported(c, why, &report->finding[i]))
			continue;
		finding_print(c->text, c->dataset, &report->finding[i], before);
		before = &report->finding[i];
		(void)fputc('\n', c->text);
		command_wrote(c, finding_json(c->json.out, c->dataset, &report->finding[i]));
	}
}

/* Replay the next step (bad NULL), or the last one because it went bad. `epoch` epochs are done. */
static hg_status replay_step(struct command *c, int back, int epoch, const hg_train_event *bad,
                             const char *why)
{
	const hg_doctor_report *report = NULL;
	const hg_status status = hg_doctor_examine(c->doctor, back, &report);
	if (status < 0)
		return status == HG_ERR_STATE && watch_interrupted() ? HG_OK : status;
	c->results.bad.replayed++;
	print_replay(c, report, bad ? epoch : epoch + 1, bad ? bad->step.steps - 1 : report->step, why,
	             0);
	return HG_OK;
}

hg_status doctor_begin(struct command *c)
{
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	if (!c->options.doctor)
		return HG_OK;
	config.features = c->dataset->feat;
	config.features_dtype = c->dataset->feat_dtype;
	config.progress = watch_progress();
	const hg_status status = hg_doctor_create_train(c->train, &config, &c->doctor);
	return status < 0 ? status : replay_step(c, 0, 0, NULL, NULL);
}

hg_status doctor_check_step(struct command *c, const hg_train_event *event)
{
	const char *why = health_note(&c->health, event);
	if (!c->doctor || c->examined)
		return HG_OK;
	if (why)
		return replay_step(c, !event->step.applied, event->epoch, event, why);
	return health_due(event->epoch, event->epochs) ? replay_step(c, 0, event->epoch, NULL, NULL)
	                                               : HG_OK;
}

hg_status doctor_end(struct command *c, const hg_train_report *trained)
{
	const hg_doctor_report *report = NULL;
	if (!c->doctor || c->examined || watch_interrupted())
		return HG_OK;
	const hg_status status = hg_doctor_examine_evaluation(c->doctor, &report);
	if (status >= 0)
		print_replay(c, report, trained->epochs_run, report->step, NULL, 1);
	return status == HG_ERR_STATE && watch_interrupted() ? HG_OK : status;
}
