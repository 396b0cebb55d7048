/* hg-train: train a model on a dataset file from the command line. */
#define _POSIX_C_SOURCE 200809L
#include "checkpoint.h"
#include "command.h"
#include "compare.h"
#include "config.h"
#include "explain.h"
#include "halfgraph/version.h"
#include "page.h"
#include "predict.h"
#include "task.h"
#include "timing.h"
#include "tool.h"
#include "watch.h"
#include "weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int report_error(const char *sentence, hg_status status)
{
	(void)fflush(stdout); /* keeps the order of both streams where they go to one file */
	tool_say("hg-train", "%s", sentence && *sentence ? sentence : hg_status_text(status));
	return tool_code_of(status);
}

static hg_status config_make(const struct options *o, const hg_dataset *d, hg_train_config *config,
                             char *message)
{
	const hg_status status = training_config(&o->training, d, config, message);
	config->metric = hg_metric_find(o->metric);
	training_set_int(&config->patience, o->patience);
	training_set_int(&config->eval_every, o->eval_every);
	if (o->batch_size > 0)
		config->batch_graphs = o->batch_size;
	training_set_int(&config->step.per_launch, o->doctor ? 1 : o->together);
	if (o->observe >= 0)
		config->step.observe_every = o->observe ? (int)o->observe : -1;
	return status;
}

int64_t command_seed(const struct command *c)
{
	return results_seed(&c->results, c->results.runs);
}

int command_fold(const struct command *c)
{
	return results_fold(&c->results, c->results.runs);
}

void command_wrote(struct command *c, int failed)
{
	if (failed && !c->write_error)
		c->write_error = errno ? errno : EIO;
}

static int on_epoch(void *user, const hg_train_event *event)
{
	struct command *c = user;
	progress_show(&c->progress, event);
	learning_note(&c->learning, event);
	folds_note(&c->folds, event);
	checkpoint_note(&c->options, &c->saving, c->train, event);
	c->results.overflows += event->overflowed;
	command_wrote(
	    c, json_epoch(c->json.out, command_seed(c), command_fold(c), &c->results.config, event));
	if (c->options.html)
		record_event(&c->results.record, command_seed(c), command_fold(c), event);
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

/* The settings of the run, for the page and the JSON lines. */
static hg_status settings_note(struct command *c)
{
	struct results *r = &c->results;
	hg_state *state = NULL;
	if (!c->options.html && !c->options.json)
		return HG_OK;
	const hg_status status = hg_train_get_state(c->train, &state);
	if (status >= 0)
		results_settings(r, state);
	hg_state_free(state);
	return status;
}

/* What the page shows of the first run, which is over and stays as it was. The results are printed
 * even where this fails. */
static void run_note(struct command *c)
{
	struct results *r = &c->results;
	hg_status status = settings_note(c);
	if (status >= 0 && c->options.html)
		status = observed_take(&r->observed, c->train);
	if (status >= 0 && c->options.html)
		status = judged_take(&r->judged, c->train, c->dataset, r->config.loss);
	if (status < 0)
		(void)snprintf(c->untimed, sizeof c->untimed, "%s", hg_status_text(status));
}

/* Time the ops of the last run in the first context: the memory that this takes is then no part of
 * what a run reports as its peak. */
static void times_note(struct command *c, double epoch_ms)
{
	char message[HG_DATA_MESSAGE];
	struct results *r = &c->results;
	const int last = r->runs == r->folds || (r->runs < r->folds && watch_interrupted());
	if (last && timing_take(&c->options, c->train, epoch_ms, &r->timing, message) < 0)
		(void)snprintf(c->untimed, sizeof c->untimed, "%s", message);
}

/* All metrics of the run, whose results are printed even where this fails. */
static void metrics_note(struct command *c, const hg_train_report *report)
{
	struct results *r = &c->results;
	const hg_status status = metrics_take(&r->metrics[r->runs], c->train, c->dataset, report);
	if (status < 0)
		(void)snprintf(c->untimed, sizeof c->untimed, "%s",
		               status == HG_ERR_NOMEM
		                   ? hg_status_text(status)
		                   : hg_context_error(hg_params_context(hg_train_params(c->train))));
}

/* Save the current run, which is the best so far. The results are printed even where a file cannot
 * be written. */
static void run_save(struct command *c)
{
	struct results *r = &c->results;
	const int saved = checkpoint_save(&c->options, c->train, c->unsaved) >= 0;
	r->saved = saved ? c->options.save : NULL;
	r->saved_best = saved ? c->options.save_best : NULL;
	r->exported = saved ? c->options.export : NULL;
	r->best_run = r->runs;
}

static hg_status train_one(struct command *c, hg_context *ctx, const hg_device_data *data)
{
	struct results *r = &c->results;
	hg_train_config config = r->config;
	hg_train_data in;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	float *weights = NULL;
	config.progress = on_epoch;
	config.user = c;
	c->health = (struct health){.replan = config.policy.replan, .steps = config.epochs};
	learning_begin(&c->learning, c->options.resume || c->options.import);
	c->examined = 0;
	hg_status status = dataset_train_data(c->dataset, data, &r->rows, &in, c->refused);
	if (status >= 0)
		status = weights_make(&c->options.training, c->dataset, &config, &weights, c->refused);
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
		command_wrote(c, stream_begin(&c->json));
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
		folds_next(&c->folds, &report);
		metrics_note(c, &report);
		if (c->results.several)
			command_wrote(c, json_run(c->json.out, r, &report));
		if (results_best(r, &report))
			run_save(c);
		r->report[r->runs++] = report;
		learnt_note(r, &c->learning);
	}
	hg_doctor_free(c->doctor);
	c->doctor = NULL;
	if (status >= 0 && r->runs == 1 && !r->left_out)
		run_note(c);
	if (status >= 0 && !r->left_out)
		times_note(c, report.epoch_ms_median);
	/* the next run may fail before it has one of its own */
	hg_train_free(c->train);
	c->train = NULL;
	free(weights);
	return status;
}

static int stops(const struct command *c)
{
	return watch_interrupted() || c->write_error;
}

/* Train every fold, or the only split, with the data of the current seed. */
static hg_status folds_train(struct command *c, hg_context *ctx, const hg_device_data *data)
{
	hg_status status = HG_OK;
	for (int k = 0; status >= 0 && k < c->results.folds && (k == 0 || !stops(c)); k++) {
		c->progress.run = c->results.runs;
		if (c->options.folds)
			status = dataset_use_fold(&c->options.training, c->dataset, k, c->refused);
		if (status >= 0)
			status = train_one(c, ctx, data);
	}
	return status;
}

/* Train one seed in a context of its own, because a context has one seed. */
static int seed_run(struct command *c)
{
	hg_context *ctx = NULL;
	hg_device_data *data = NULL;
	const struct training *t = &c->options.training;
	hg_status status = training_context(t, (uint64_t)command_seed(c), on_log, c, &ctx);
	if (status < 0)
		return report_error(hg_context_error(NULL), status);
	hg_upload_config config = dataset_upload_config(t, &c->results.config);
	config.on_host = c->options.features_on_host;
	status = dataset_upload(t, c->dataset, ctx, &config, &data, c->refused);
	if (status >= 0) {
		results_note(&c->results, ctx, data);
		status = folds_train(c, ctx, data);
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

/* Returns 0, or -1 if the page cannot be written, which has been said. */
static int page_end(const struct command *c)
{
	char message[HG_DATA_MESSAGE];
	hg_status status = HG_OK;
	if (!c->options.html)
		return 0;
	status = c->results.record.failed
	             ? HG_ERR_NOMEM
	             : page_write(c->options.html, page_run_print, &c->results, message);
	if (status < 0)
		(void)report_error(c->results.record.failed ? NULL : message, status);
	return status < 0 ? -1 : 0;
}

static int seeds_run(struct command *c)
{
	int code = TOOL_DONE;
	progress_begin(&c->progress, c->options.seeds * c->results.folds);
	for (int64_t k = 0; k < c->options.seeds && code == TOOL_DONE && !stops(c); k++)
		code = seed_run(c);
	folds_end(&c->folds);
	c->results.interrupted = watch_interrupted() != 0;
	if (code != TOOL_DONE)
		return code;
	command_wrote(c, stream_begin(&c->json)); /* of a run that was interrupted before it began */
	command_wrote(c, json_summary(c->json.out, &c->results));
	results_print(&c->results, c->text);
	const int no_page = page_end(c);
	if (c->write_error && c->json.out == stdout)
		return TOOL_FAILED; /* tool_finish reports it */
	if (c->write_error) {
		stream_say("hg-train", c->options.json, c->write_error);
		return TOOL_FAILED;
	}
	if (*c->unsaved || *c->untimed) {
		tool_say("hg-train", "%s", *c->unsaved ? c->unsaved : c->untimed);
		return TOOL_FAILED;
	}
	if (no_page)
		return TOOL_FAILED;
	return watch_interrupted() ? TOOL_INTERRUPTED : c->results.unlearnt ? TOOL_BAD_RUN : TOOL_DONE;
}

/* Is there something in a mask of the dataset, or NULL, by which this run can be judged? */
static int has_set(const struct command *c, const uint8_t *mask)
{
	return dataset_has_split(c->dataset, task_loss(&c->options.training, c->dataset), mask);
}

/* Check everything that can be checked before the work begins. */
static int command_prepare(struct command *c)
{
	char message[HG_DATA_MESSAGE] = "";
	const struct training *t = &c->options.training;
	hg_status status = dataset_load(t, &c->dataset, &c->results.rows, message);
	const int validated = status >= 0 && has_set(c, c->dataset->val_mask);
	if (status >= 0 && c->options.patience > 0 && !validated)
		status = dataset_refuse(t, "has no validation set, and --patience needs one", message);
	if (status >= 0 && c->options.save_best && c->options.seeds > 1 && !validated)
		status = dataset_refuse(t,
		                        "has no validation set, by which --save-best of several seeds "
		                        "chooses one",
		                        message);
	if (status >= 0 && c->options.batch_size > 0 && !c->dataset->graph_ptr)
		status = dataset_refuse(t, "is one graph, and --batch-size needs many", message);
	if (status >= 0 && t->schedule && strcmp(t->schedule, "plateau") == 0 && !validated)
		status =
		    dataset_refuse(t, "has no validation set, and --schedule plateau needs one", message);
	if (status < 0)
		return report_error(message, status);
	if (status == HG_INFO_SUSPECT)
		tool_say("hg-train", "%s", message);
	status = config_make(&c->options, c->dataset, &c->results.config, message);
	if (status < 0)
		return report_error(message, status);
	c->text = c->options.json && strcmp(c->options.json, "-") == 0 ? stderr : stdout;
	status = checkpoint_continue(&c->options, &c->results.config.epochs, c->text, message);
	if (status < 0)
		return report_error(message, status);
	c->results.options = &c->options;
	c->results.validated = validated;
	c->results.tested = has_set(c, c->dataset->test_mask);
	c->results.dataset = c->dataset;
	c->results.folds = c->options.folds ? c->dataset->folds : 1;
	c->results.several = c->options.folds || c->options.seeds > 1;
	c->results.cross = &c->folds;
	c->results.report =
	    calloc((size_t)c->options.seeds * (size_t)c->results.folds, sizeof *c->results.report);
	c->results.metrics =
	    calloc((size_t)c->options.seeds * (size_t)c->results.folds, sizeof *c->results.metrics);
	if (!c->results.report || !c->results.metrics ||
	    folds_begin(&c->folds, c->options.folds ? c->dataset->folds : 0, training_held_out(t),
	                c->options.seeds, c->results.config.epochs))
		return report_error(NULL, HG_ERR_NOMEM);
	status = files_check(&c->options, message);
	if (status < 0)
		return report_error(message, status);
	if (c->options.save_config)
		status = tool_config_write(c->options.given, c->options.save_config, message);
	if (status < 0)
		return report_error(message, status);
	const int failed = stream_open(&c->json, c->options.json);
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
	timing_free(&c->results.timing);
	judged_free(&c->results.judged);
	observed_free(&c->results.observed);
	record_free(&c->results.record);
	free(c->results.report);
	free(c->results.metrics);
	folds_free(&c->folds);
	hg_dataset_free(c->dataset);
	return code;
}

static int command_run(struct command *c, int argc, char **argv)
{
	char message[512];
	int code;
	const struct tool_about about = options_about();
	if (tool_describes(&about, argc, argv, &code))
		return code;
	if (options_parse(&c->options, argc, argv, message, sizeof message)) {
		tool_say("hg-train", "%s", message);
		return TOOL_BAD_INPUT;
	}
	if (c->options.help) {
		tool_help_print(stdout, &about);
		return TOOL_DONE;
	}
	if (c->options.version) {
		printf("hg-train (HalfGraph) %s\n", hg_version_string());
		return TOOL_DONE;
	}
	/* Ctrl-C ends the training but not the summary; this tool shows its own progress line */
	watch_begin(0);
	if (c->options.compare)
		return compare_run(&c->options);
	if (!options_train(&c->options))
		return predict_run(&c->options);
	code = command_prepare(c);
	/* --continue may leave nothing to do */
	if (code == TOOL_DONE && c->results.config.epochs > 0)
		code = seeds_run(c);
	return command_finish(c, code);
}

int main(int argc, char **argv)
{
	tool_begin(argv);
	tool_outlive_reader();
	static struct command command;
	const int code = command_run(&command, argc, argv);
	options_free(&command.options);
	return tool_finish("hg-train", code);
}
