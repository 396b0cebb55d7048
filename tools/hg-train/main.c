/* hg-train: train a model on a dataset file, from the command line. */
#define _POSIX_C_SOURCE 200809L
#include "progress.h"
#include "results.h"
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
	FILE *json, *text; /* json NULL: none was asked for */
	int write_error;   /* errno of the first JSON line that did not arrive; 0: all did */
};

static int complain(const char *sentence, hg_status status)
{
	fprintf(stderr, "hg-train: %s\n", sentence && *sentence ? sentence : hg_status_text(status));
	return tool_code_of(status);
}

static int choice(const char *text, const char *const *names, int count)
{
	int i = 0;
	while (i < count && strcmp(text, names[i]) != 0)
		i++;
	return i;
}

static void set_int(int *field, int64_t value)
{
	if (value >= 0)
		*field = (int)value;
}

static void set_float(float *field, double value)
{
	if (!isnan(value))
		*field = (float)value;
}

/* The model's defaults, and on top what the command line says. */
static hg_status config_make(const struct options *o, const hg_dataset *d, hg_train_config *config)
{
	static const char *const norms[] = {"none", "left", "right", "both"}, *const reductions[] = {"sum", "mean", "max"};
	hg_train_config c = hg_train_config_default(o->model);
	const hg_status status = hg_policy_parse(o->precision, &c.policy);
	if (status < 0)
		return status;
	set_float(&c.policy.loss_scale.init_scale, o->loss_scale);
	set_int(&c.model.layers, o->layers);
	set_int(&c.model.hidden, o->hidden);
	set_int(&c.model.heads, o->heads);
	set_int(&c.model.out_heads, o->out_heads);
	set_float(&c.model.dropout, o->dropout);
	set_float(&c.model.attention_dropout, o->attention_dropout);
	set_float(&c.model.lambda, o->lambda);
	set_float(&c.optim.lr, o->lr);
	set_float(&c.optim.weight_decay, o->weight_decay);
	set_int(&c.epochs, o->epochs);
	set_int(&c.patience, o->patience);
	set_int(&c.eval_every, o->eval_every);
	set_int(&c.step.per_launch, o->together);
	c.step.eager = o->eager;
	if (o->norm)
		c.model.norm = (hg_norm)choice(o->norm, norms, 4);
	if (o->aggregate)
		c.model.aggregate = strcmp(o->aggregate, "mean") == 0 ? HG_NORM_RIGHT : HG_NORM_NONE;
	c.model.readout = d->graph_ptr ? choice(o->readout ? o->readout : reductions[0], reductions, 3) : -1;
	c.model.in_features = d->features;
	c.model.out_features = d->classes;
	*config = c;
	return HG_OK;
}

static void note_write(struct command *c, int failed)
{
	if (failed && !c->write_error)
		c->write_error = errno ? errno : EIO;
}

static int on_epoch(void *user, const hg_train_event *event)
{
	struct command *c = user;
	progress_show(&c->progress, event);
	note_write(c, json_epoch(c->json, c->options.seed + c->results.runs, event));
	return watch_interrupted() || c->write_error;
}

static void print_line(void *user, const char *text)
{
	const size_t length = strlen(text);
	fprintf(user, "%s%s", text, length && text[length - 1] == '\n' ? "" : "\n");
}

/* Why a GPU that is there is not used, for one. What every seed's context has to say is said once. */
static void on_log(void *user, hg_log_level level, const char *message)
{
	struct command *c = user;
	if (level > HG_LOG_ERROR && c->results.runs)
		return;
	progress_end(&c->progress);
	fprintf(stderr, "hg-train: %s\n", message);
}

static hg_status context_open(struct command *c, hg_context **ctx)
{
	static const char *const devices[] = {"auto", "cpu", "cuda"};
	const struct options *o = &c->options;
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.log = on_log; /* warnings and errors */
	config.log_user = c;
	config.device = (hg_device)choice(o->device, devices, 3);
	config.threads = (int)o->threads;
	config.seed = (uint64_t)(o->seed + c->results.runs);
	return hg_context_create(&config, ctx);
}

/* Facts about the run that only the device side knows. */
static void results_note(struct results *r, hg_context *ctx, const struct device_data *data)
{
	r->device = hg_context_device(ctx);
	r->nodes = hg_graph_rows(data->graph);
	r->edges = hg_graph_edges(data->graph);
	r->sparse = data->x_sparse != NULL;
	(void)snprintf(r->device_name, sizeof r->device_name, "%s", hg_context_device_name(ctx));
}

static hg_status train_one(struct command *c, hg_context *ctx, const struct device_data *data)
{
	struct results *r = &c->results;
	const hg_dataset *d = c->dataset;
	hg_train_config config = r->config;
	hg_train_data in = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	hg_train *train = NULL;
	in.input.graph = data->graph;
	in.input.x = data->x;
	in.input.x_sparse = data->x_sparse;
	in.labels = d->label;
	in.train_mask = d->train_mask;
	in.val_mask = d->val_mask;
	in.test_mask = d->test_mask;
	config.progress = on_epoch;
	config.user = c;
	hg_status status = hg_train_create(ctx, &config, &in, &train);
	if (status >= 0 && c->options.print_plan && !r->runs)
		status = hg_tape_print(hg_train_tape(train), print_line, c->text);
	if (status >= 0)
		status = hg_train_run(train, &report);
	if (status >= 0)
		r->report[r->runs++] = report;
	hg_train_free(train);
	return status;
}

/* One seed: a context of its own, because the seed is the context's. */
static int seed_run(struct command *c)
{
	hg_context *ctx = NULL;
	struct device_data data;
	hg_status status = context_open(c, &ctx);
	if (status < 0)
		return complain(hg_context_error(NULL), status);
	status = dataset_upload(c->dataset, &c->options, ctx, c->results.config.policy.state, &data);
	if (status >= 0) {
		results_note(&c->results, ctx, &data);
		status = train_one(c, ctx, &data);
	}
	progress_end(&c->progress);
	const int code = status < 0 ? complain(hg_context_error(ctx), status) : TOOL_DONE;
	dataset_release(&data);
	hg_context_free(ctx);
	return code;
}

static int seeds_run(struct command *c)
{
	int code = TOOL_DONE;
	progress_begin(&c->progress, c->options.seeds);
	for (int64_t k = 0; k < c->options.seeds && code == TOOL_DONE && !watch_interrupted() && !c->write_error; k++) {
		c->progress.run = k;
		code = seed_run(c);
	}
	c->results.interrupted = watch_interrupted() != 0;
	if (code != TOOL_DONE)
		return code;
	note_write(c, json_summary(c->json, &c->results));
	results_print(&c->results, c->text);
	if (c->write_error && c->json == stdout)
		return TOOL_FAILED; /* tool_finish says so */
	if (c->write_error) {
		fprintf(stderr, "hg-train: %s: %s\n", c->options.json, strerror(c->write_error));
		return TOOL_FAILED;
	}
	return watch_interrupted() ? TOOL_INTERRUPTED : TOOL_DONE;
}

/* The dataset is read and everything checked before the JSON file is touched. */
static int command_prepare(struct command *c)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_status status = dataset_load(&c->options, &c->dataset, message);
	if (status < 0)
		return complain(message, status);
	status = config_make(&c->options, c->dataset, &c->results.config);
	if (status < 0)
		return complain(NULL, status);
	c->results.options = &c->options;
	c->results.dataset = c->dataset;
	c->results.report = calloc((size_t)c->options.seeds, sizeof *c->results.report);
	if (!c->results.report)
		return complain(NULL, HG_ERR_NOMEM);
	c->text = stdout;
	if (!c->options.json)
		return TOOL_DONE;
	const int to_stdout = strcmp(c->options.json, "-") == 0;
	c->text = to_stdout ? stderr : stdout;
	if (!to_stdout && tool_same_file(c->options.json, c->options.data)) {
		fprintf(stderr, "hg-train: --json %s is the dataset itself: it is left as it is\n", c->options.json);
		return TOOL_BAD_INPUT;
	}
	c->json = to_stdout ? stdout : fopen(c->options.json, "w");
	if (c->json)
		return TOOL_DONE;
	fprintf(stderr, "hg-train: %s: %s\n", c->options.json, strerror(errno));
	return TOOL_BAD_INPUT;
}

static int command_finish(struct command *c, int code)
{
	if (c->json && c->json != stdout && fclose(c->json) && code == TOOL_DONE) {
		fprintf(stderr, "hg-train: %s: %s\n", c->options.json, strerror(errno));
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
		fprintf(stderr, "hg-train: %s\n", message);
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
	watch_begin(0); /* Ctrl-C ends the training, not the summary; a progress line it has of its own */
	int code = command_prepare(&command);
	if (code == TOOL_DONE)
		code = seeds_run(&command);
	return command_finish(&command, code);
}

int main(int argc, char **argv)
{
	tool_begin();
	return tool_finish("hg-train", command_run(argc, argv));
}
