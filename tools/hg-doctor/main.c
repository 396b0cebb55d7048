/* hg-doctor: find out what went wrong first in a training run, from the command line. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "examine.h"
#include "files.h"
#include "halfgraph/version.h"
#include "html.h"
#include "tool.h"
#include "watch.h"
#include "weights.h"

/* Everything that lives as long as the command. */
struct command {
	struct options options;
	hg_dataset *dataset;
	struct diagnosis diagnosis;
	struct examination examination;
	FILE *text;
	float *weights; /* of the classes; NULL: none */
};

static int report_error(const char *sentence, hg_status status)
{
	(void)fflush(stdout); /* keeps the order of both streams where they go to one file */
	tool_say("hg-doctor", "%s", sentence && *sentence ? sentence : hg_status_text(status));
	return tool_code_of(status);
}

/* Log, for example, why a GPU that is present is not used. */
static void on_log(void *user, hg_log_level level, const char *message)
{
	struct command *c = user;
	if (level > HG_LOG_ERROR && c->examination.trying)
		return;
	(void)fflush(stdout);
	progress_end(&c->examination.progress);
	tool_say("hg-doctor", "%s", message);
}

/* ---- files ---- */

static int outputs_check(const struct options *o)
{
	char message[HG_DATA_MESSAGE] = "";
	const struct tool_file files[] = {
	    {"--data", o->training.data, TOOL_READ, "the dataset itself"},
	    {"--checkpoint", o->checkpoint, TOOL_READ, "the checkpoint to begin from"},
	    {"--json", o->json, TOOL_STREAMED, NULL},
	    {"--html", o->html, TOOL_REPLACED, NULL},
	};
	const hg_status status = tool_files_check(files, sizeof files / sizeof *files, message);
	return status < 0 ? report_error(message, status) : DOCTOR_HEALTHY;
}

/* Open the output before the work, so that a file that cannot be written is reported early. */
static int outputs_open(struct command *c)
{
	struct stream *json = &c->examination.json;
	const int failed = stream_open(json, c->options.json);
	c->text = json->out == stdout ? stderr : stdout;
	if (failed)
		stream_say("hg-doctor", c->options.json, errno);
	return failed ? DOCTOR_BAD_INPUT : DOCTOR_HEALTHY;
}

static void print_page(FILE *out, const void *diagnosis)
{
	diagnosis_html(out, diagnosis);
}

static int write_page(const struct command *c)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_status status = page_write(c->options.html, print_page, &c->diagnosis, message);
	if (status >= 0)
		return DOCTOR_HEALTHY;
	/* not an error of the command line: the file could be written before */
	(void)report_error(message, status);
	return DOCTOR_FAILED;
}

static int json_end(struct command *c)
{
	struct examination *e = &c->examination;
	const int to_stdout = e->json.out == stdout;
	if (stream_close(&e->json) && !e->write_error)
		e->write_error = errno;
	if (!e->write_error)
		return DOCTOR_HEALTHY;
	if (!to_stdout) /* tool_finish reports it */
		stream_say("hg-doctor", c->options.json, e->write_error);
	return DOCTOR_FAILED;
}

/* ---- the work ---- */

static int prepare(struct command *c)
{
	struct diagnosis *d = &c->diagnosis;
	char message[HG_DATA_MESSAGE] = "";
	hg_status status = dataset_load(&c->options.training, &c->dataset, &d->rows, message);
	if (status < 0)
		return report_error(message, status);
	if (status == HG_INFO_SUSPECT)
		tool_say("hg-doctor", "%s", message);
	status = training_config(&c->options.training, c->dataset, &d->config, message);
	if (status >= 0)
		status = weights_make(&c->options.training, c->dataset, &d->config, &c->weights, message);
	if (status < 0)
		return report_error(message, status);
	d->options = &c->options;
	d->dataset = c->dataset;
	d->config.eval_every = d->config.epochs; /* accuracy is not reported */
	d->config.step.per_launch = 1;
	d->config.step.observe_every = -1; /* replays measure more */
	c->examination.diagnosis = d;
	const int code = outputs_check(&c->options);
	return code == DOCTOR_HEALTHY ? outputs_open(c) : code;
}

/* Record facts about the run that only the device knows. */
static void facts_note(struct diagnosis *d, hg_context *ctx, const hg_device_data *data)
{
	d->nodes = hg_graph_rows(data->graph);
	d->edges = hg_graph_edges(data->graph);
	d->sparse = data->x_sparse != NULL;
	(void)snprintf(d->device_name, sizeof d->device_name, "%s", hg_context_device_name(ctx));
}

static int print_report(struct command *c)
{
	struct diagnosis *d = &c->diagnosis;
	struct examination *e = &c->examination;
	errno = 0;
	if (diagnosis_json(e->json.out, d) && !e->write_error)
		e->write_error = errno ? errno : EIO;
	diagnosis_print(c->text, d);
	if (c->options.html && write_page(c))
		return DOCTOR_FAILED;
	return d->interrupted          ? DOCTOR_INTERRUPTED
	       : d->findings || d->bad ? DOCTOR_FINDINGS
	                               : DOCTOR_HEALTHY;
}

static int examine_run(struct command *c)
{
	hg_context *ctx = NULL;
	hg_device_data *data = NULL;
	const struct training *t = &c->options.training;
	hg_status status = training_context(t, (uint64_t)t->seed, on_log, c, &ctx);
	if (status < 0)
		return report_error(hg_context_error(NULL), status);
	hg_upload_config config = dataset_upload_config(t, &c->diagnosis.config);
	status = dataset_upload(t, c->dataset, ctx, &config, &data, c->examination.message);
	const int too_large = status == HG_ERR_RANGE && examination_check_features(&c->examination);
	if (too_large) {
		config.state = HG_F32;
		*c->examination.message = 0;
		status = dataset_upload(t, c->dataset, ctx, &config, &data, c->examination.message);
	}
	if (status >= 0) {
		facts_note(&c->diagnosis, ctx, data);
		status = too_large ? examination_run_features(&c->examination, ctx, data)
		                   : examination_run(&c->examination, ctx, data);
	}
	if (*c->examination.notice)
		tool_say("hg-doctor", "%s", c->examination.notice);
	const int code = status < 0 ? report_error(*c->examination.message ? c->examination.message
	                                                                   : hg_context_error(ctx),
	                                           status)
	                            : print_report(c);
	examination_end(&c->examination);
	hg_device_data_free(data);
	hg_context_free(ctx);
	return code;
}

static int command_run(int argc, char **argv)
{
	static struct command command;
	char message[512];
	int code;
	const struct tool_about about = options_about();
	if (tool_describes(&about, argc, argv, &code))
		return code;
	if (options_parse(&command.options, argc, argv, message, sizeof message)) {
		tool_say("hg-doctor", "%s", message);
		return DOCTOR_BAD_INPUT;
	}
	if (command.options.help) {
		tool_help_print(stdout, &about);
		return DOCTOR_HEALTHY;
	}
	if (command.options.version) {
		printf("hg-doctor (HalfGraph) %s\n", hg_version_string());
		return DOCTOR_HEALTHY;
	}
	/* Ctrl-C ends the training but not the report; this tool shows its own progress line */
	watch_begin(0);
	code = prepare(&command);
	if (code == DOCTOR_HEALTHY)
		code = examine_run(&command);
	if (json_end(&command))
		code = DOCTOR_FAILED;
	free(command.weights);
	hg_dataset_free(command.dataset);
	return code;
}

int main(int argc, char **argv)
{
	tool_begin(argv);
	return tool_finish("hg-doctor", command_run(argc, argv));
}
