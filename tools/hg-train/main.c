/* hg-train: train a model on a dataset file from the command line. */
#define _POSIX_C_SOURCE 200809L
#include "checkpoint.h"
#include "explain.h"
#include "findings.h"
#include "halfgraph/version.h"
#include "health.h"
#include "progress.h"
#include "results.h"
#include "stream.h"
#include "tool.h"
#include "watch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Everything that lives as long as the command. */
struct command {
	struct options options;
	hg_dataset *dataset;
	struct results results;
	struct progress progress;
	struct stream json;
	FILE *text;
	int write_error; /* errno of the first JSON line that could not be written; 0: none */
	/* of the current seed: */
	hg_train *train;
	struct health health;
	struct learning learning;
	/* a bad step of this run was reported; later faults follow from it and are not reported */
	int examined;
	hg_doctor *doctor;     /* NULL without --doctor */
	hg_status examination; /* the failure of the doctor, if any */
	/* why a checkpoint was not read or written; "" if it was, or if none was requested */
	char unread[HG_DATA_MESSAGE], unsaved[HG_DATA_MESSAGE];
	/* why the run could not begin; "" if it did */
	char refused[HG_DATA_MESSAGE];
};

static int report_error(const char *sentence, hg_status status)
{
	(void)fflush(stdout); /* keeps the order of both streams where they go to one file */
	tool_say("hg-train", "%s", sentence && *sentence ? sentence : hg_status_text(status));
	return tool_code_of(status);
}

static hg_status config_make(const struct options *o, const hg_dataset *d, hg_train_config *config)
{
	const hg_status status = training_config(&o->training, d, config);
	training_set_int(&config->patience, o->patience);
	training_set_int(&config->eval_every, o->eval_every);
	training_set_int(&config->step.per_launch, o->doctor ? 1 : o->together);
	if (o->observe >= 0)
		config->step.observe_every = o->observe ? (int)o->observe : -1;
	return status;
}

static int64_t seed_of(const struct command *c)
{
	return c->options.training.seed + c->results.runs;
}

static void keep_write_error(struct command *c, int failed)
{
	if (failed && !c->write_error)
		c->write_error = errno ? errno : EIO;
}

/* ---- --doctor ---- */

/* Introduce the findings of a step. why NULL: the step itself showed nothing wrong. */
static void print_step_verdict(struct command *c, const char *why, int evaluation, int findings)
{
	const struct bad_step *bad = &c->results.bad;
	progress_end(&c->progress);
	if (c->options.seeds > 1)
		fprintf(c->text, "seed %lld, ", (long long)seed_of(c));
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
		keep_write_error(c, finding_json(c->json.out, c->dataset, &report->finding[i]));
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

/* Create the doctor and replay the step that is about to begin. */
static hg_status doctor_begin(struct command *c)
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

/* Replay the first bad step of a run op by op; while nothing goes wrong, replay a step now and
 * then. A replay does not change the run. */
static hg_status doctor_check_step(struct command *c, const hg_train_event *event)
{
	const char *why = health_note(&c->health, event);
	if (!c->doctor || c->examined)
		return HG_OK;
	if (why)
		return replay_step(c, !event->step.applied, event->epoch, event, why);
	return health_due(event->epoch, event->epochs) ? replay_step(c, 0, event->epoch, NULL, NULL)
	                                               : HG_OK;
}

/* Replay an evaluation with the final weights. */
static hg_status doctor_end(struct command *c, const hg_train_report *trained)
{
	const hg_doctor_report *report = NULL;
	if (!c->doctor || c->examined || watch_interrupted())
		return HG_OK;
	const hg_status status = hg_doctor_examine_evaluation(c->doctor, &report);
	if (status >= 0)
		print_replay(c, report, trained->epochs_run, report->step, NULL, 1);
	return status == HG_ERR_STATE && watch_interrupted() ? HG_OK : status;
}

static int on_epoch(void *user, const hg_train_event *event)
{
	struct command *c = user;
	progress_show(&c->progress, event);
	learning_note(&c->learning, event);
	c->results.overflows += event->step.reason == HG_STEP_SKIPPED_FORWARD;
	keep_write_error(c, json_epoch(c->json.out, seed_of(c), event));
	c->examination = doctor_check_step(c, event);
	return watch_interrupted() || c->write_error || c->examination < 0;
}

/* Log, for example, why a GPU that is present is not used. Each seed has a context of its own, so
 * later seeds do not repeat the message. */
static void on_log(void *user, hg_log_level level, const char *message)
{
	struct command *c = user;
	if (level > HG_LOG_ERROR && c->results.runs)
		return;
	(void)fflush(stdout);
	progress_end(&c->progress);
	tool_say("hg-train", "%s", message);
}

/* Record facts about the run that only the device knows. */
static void results_note(struct results *r, hg_context *ctx, const hg_device_data *data)
{
	r->device = hg_context_device(ctx);
	r->nodes = hg_graph_rows(data->graph);
	r->edges = hg_graph_edges(data->graph);
	r->sparse = data->x_sparse != NULL;
	(void)snprintf(r->device_name, sizeof r->device_name, "%s", hg_context_device_name(ctx));
}

/* Keep the smallest headroom of all runs, with a copy of the name, which must outlive its run. */
static hg_status headroom_note(struct results *r, hg_step *step, hg_train_report *report)
{
	hg_observer observer = HG_OBSERVER_INIT;
	const hg_status status = hg_step_observer(step, &observer);
	r->observe_every = observer.every;
	if (report->headroom_name && (!*r->headroom_at || report->headroom < r->headroom)) {
		r->headroom = report->headroom;
		(void)snprintf(r->headroom_at, sizeof r->headroom_at, "%s", report->headroom_name);
	}
	report->headroom_name = NULL;
	return status;
}

static void learnt_note(struct results *r, const struct learning *learning)
{
	if (learning_verdict(learning) == LEARNT)
		return;
	r->unlearnt++;
	r->learning = *learning;
}

static hg_status train_one(struct command *c, hg_context *ctx, const hg_device_data *data)
{
	struct results *r = &c->results;
	hg_train_config config = r->config;
	hg_train_data in;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	config.progress = on_epoch;
	config.user = c;
	c->health = (struct health){.replan = config.policy.replan, .steps = config.epochs};
	learning_begin(&c->learning, c->options.resume != NULL);
	c->examined = 0;
	hg_status status = dataset_train_data(c->dataset, data, &r->rows, &in, c->refused);
	if (status >= 0)
		status = hg_train_create(ctx, &config, &in, &c->train);
	if (status >= 0)
		status = checkpoint_resume(&c->options, c->train, c->unread);
	if (status == HG_ERR_RANGE && config.policy.unproved == HG_UNPROVED_REFUSE) {
		(void)snprintf(c->refused, sizeof c->refused, "%s",
		               *c->unread ? c->unread : hg_context_error(ctx));
		explain_refused(&c->options, ctx, &config, &in, c->text);
	}
	if (status >= 0 && !r->runs)
		status = explain_run(&c->options, c->train, &config.policy, c->text);
	if (status >= 0)
		keep_write_error(c, stream_begin(&c->json));
	if (status >= 0)
		status = doctor_begin(c);
	if (status >= 0)
		status = hg_train_run(c->train, &report);
	if (c->examination < 0)
		status = c->examination;
	if (status >= 0)
		status = doctor_end(c, &report);
	if (status >= 0)
		status = headroom_note(r, hg_train_step(c->train), &report);
	if (status >= 0 && r->runs && watch_interrupted()) {
		r->left_out = report.epochs_run;
	} else if (status >= 0) {
		r->report[r->runs++] = report;
		learnt_note(r, &c->learning);
		/* the results are printed even where the checkpoint cannot be written */
		r->saved = checkpoint_save(&c->options, c->train, c->unsaved) < 0 ? NULL : c->options.save;
	}
	hg_doctor_free(c->doctor);
	c->doctor = NULL;
	hg_train_free(c->train);
	return status;
}

/* Train one seed in a context of its own, because a context has one seed. */
static int seed_run(struct command *c)
{
	hg_context *ctx = NULL;
	hg_device_data *data = NULL;
	const struct training *t = &c->options.training;
	hg_status status = training_context(t, (uint64_t)seed_of(c), on_log, c, &ctx);
	if (status < 0)
		return report_error(hg_context_error(NULL), status);
	const hg_upload_config config = dataset_upload_config(t, &c->results.config);
	status = dataset_upload(t, c->dataset, ctx, &config, &data, c->refused);
	if (status >= 0) {
		results_note(&c->results, ctx, data);
		status = train_one(c, ctx, data);
	}
	progress_end(&c->progress);
	const int code = status < 0 ? report_error(*c->refused  ? c->refused
	                                           : *c->unread ? c->unread
	                                                        : hg_context_error(ctx),
	                                           status)
	                            : TOOL_DONE;
	hg_device_data_free(data);
	hg_context_free(ctx);
	return code;
}

static int seeds_run(struct command *c)
{
	int code = TOOL_DONE;
	progress_begin(&c->progress, c->options.seeds);
	for (int64_t k = 0;
	     k < c->options.seeds && code == TOOL_DONE && !watch_interrupted() && !c->write_error;
	     k++) {
		c->progress.run = k;
		code = seed_run(c);
	}
	c->results.interrupted = watch_interrupted() != 0;
	if (code != TOOL_DONE)
		return code;
	keep_write_error(c, stream_begin(&c->json)); /* of a run that was interrupted before it began */
	keep_write_error(c, json_summary(c->json.out, &c->results));
	results_print(&c->results, c->text);
	if (c->write_error && c->json.out == stdout)
		return TOOL_FAILED; /* tool_finish reports it */
	if (c->write_error) {
		stream_say("hg-train", c->options.json, c->write_error);
		return TOOL_FAILED;
	}
	if (*c->unsaved) {
		tool_say("hg-train", "%s", c->unsaved);
		return TOOL_FAILED;
	}
	return watch_interrupted() ? TOOL_INTERRUPTED : c->results.unlearnt ? TOOL_BAD_RUN : TOOL_DONE;
}

/* Check everything that can be checked before the work begins. */
static int command_prepare(struct command *c)
{
	char message[HG_DATA_MESSAGE] = "";
	const struct training *t = &c->options.training;
	hg_status status = dataset_load(t, &c->dataset, &c->results.rows, message);
	if (status >= 0 && c->options.patience > 0 && !dataset_has_validation(c->dataset))
		status = dataset_refuse(t, "has no validation set, and --patience needs one", message);
	if (status < 0)
		return report_error(message, status);
	if (status == HG_INFO_SUSPECT)
		tool_say("hg-train", "%s", message);
	status = config_make(&c->options, c->dataset, &c->results.config);
	if (status < 0)
		return report_error(NULL, status);
	c->results.options = &c->options;
	c->results.dataset = c->dataset;
	c->results.report = calloc((size_t)c->options.seeds, sizeof *c->results.report);
	if (!c->results.report)
		return report_error(NULL, HG_ERR_NOMEM);
	status = files_check(&c->options, message);
	if (status < 0)
		return report_error(message, status);
	const int failed = stream_open(&c->json, c->options.json);
	c->text = c->json.out == stdout ? stderr : stdout;
	if (!failed)
		return TOOL_DONE;
	stream_say("hg-train", c->options.json, errno);
	return TOOL_BAD_INPUT;
}

static int command_finish(struct command *c, int code)
{
	if (stream_close(&c->json) && code == TOOL_DONE) {
		stream_say("hg-train", c->options.json, errno);
		code = TOOL_FAILED;
	}
	free(c->results.report);
	hg_dataset_free(c->dataset);
	return code;
}

static int command_run(int argc, char **argv)
{
	static struct command command;
	char message[512];
	if (options_parse(&command.options, argc, argv, message, sizeof message)) {
		tool_say("hg-train", "%s", message);
		return TOOL_BAD_INPUT;
	}
	if (command.options.help) {
		options_help(stdout);
		return TOOL_DONE;
	}
	if (command.options.version) {
		printf("hg-train (HalfGraph) %s\n", hg_version_string());
		return TOOL_DONE;
	}
	/* Ctrl-C ends the training but not the summary; this tool shows its own progress line */
	watch_begin(0);
	int code = command_prepare(&command);
	if (code == TOOL_DONE)
		code = seeds_run(&command);
	return command_finish(&command, code);
}

int main(int argc, char **argv)
{
	tool_begin(argv);
	tool_outlive_reader();
	return tool_finish("hg-train", command_run(argc, argv));
}
