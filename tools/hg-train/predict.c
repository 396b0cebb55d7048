/* --evaluate and --predict: what a trained model makes of a dataset. And its weights, for other
 * programs. */
#include "predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "halfgraph/data.h"
#include "jsonl.h"
#include "stream.h"
#include "task.h"
#include "tool.h"
#include "watch.h"

/* Everything that lives as long as the command. */
struct work {
	const struct options *options;
	const char *path; /* of the dataset; NULL: only the weights are wanted */
	hg_context *ctx;
	hg_predictor *predictor;
	hg_dataset *dataset;
	hg_prediction *prediction;
	hg_evaluation score;
	struct stream json;
	FILE *text;
	char message[HG_DATA_MESSAGE];
};

static void on_log(void *user, hg_log_level level, const char *message)
{
	(void)user;
	(void)level;
	(void)fflush(stdout);
	tool_say("hg-train", "%s", message);
}

/* Puts the file before a message about the dataset's content. */
static hg_status about_file(struct work *w, hg_status status)
{
	char why[HG_DATA_MESSAGE];
	if (status >= 0 || strstr(w->message, w->path) == w->message)
		return status;
	memcpy(why, w->message, sizeof why);
	(void)snprintf(w->message, sizeof w->message, "%s: %.*s", w->path,
	               (int)(sizeof w->message - 3) - (int)strlen(w->path), why);
	return status;
}

static hg_status check_files(struct work *w)
{
	const struct options *o = w->options;
	const struct tool_file files[] = {
	    {o->predict ? "--predict" : "--evaluate", w->path, TOOL_READ, "the dataset itself"},
	    {"--checkpoint", o->checkpoint, TOOL_READ, "the model itself"},
	    {"-o", o->output, TOOL_REPLACED, NULL},
	    {"--export-weights", o->export, TOOL_REPLACED, NULL},
	    {"--json", o->json, TOOL_STREAMED, NULL},
	};
	if (!o->evaluate && (o->json || o->metric)) {
		(void)snprintf(w->message, sizeof w->message, "%s needs --evaluate",
		               o->json ? "--json" : "--metric");
		return HG_ERR_ARG;
	}
	if (o->output && strcmp(o->output, "-") != 0 && !hg_prediction_format(o->output)) {
		(void)snprintf(w->message, sizeof w->message,
		               "-o %.300s: expected a name that ends with .csv, .npz or .h5", o->output);
		return HG_ERR_ARG;
	}
	return tool_files_check(files, sizeof files / sizeof *files, w->message);
}

static hg_status export_weights(struct work *w)
{
	hg_state *state = NULL;
	hg_status status = hg_checkpoint_read(w->options->checkpoint, &state, w->message);
	watch_hold();
	if (status >= 0)
		status = hg_state_export(state, w->options->export, w->message);
	watch_release();
	hg_state_free(state);
	return status;
}

static hg_status load_model(struct work *w)
{
	hg_status status = training_context(&w->options->training, 0, on_log, NULL, &w->ctx);
	if (status < 0) {
		(void)snprintf(w->message, sizeof w->message, "%s", hg_context_error(NULL));
		return status;
	}
	status = hg_model_load(w->ctx, w->options->checkpoint, &w->predictor, w->message);
	if (status == HG_INFO_DIFFERS)
		tool_say("hg-train", "%s", w->message);
	return status;
}

static hg_status load_dataset(struct work *w)
{
	hg_status status = hg_dataset_read(w->path, &w->dataset, w->message);
	const int classes = hg_predictor_loss(w->predictor) == HG_LOSS_CROSS_ENTROPY;
	if (status >= 0 && w->options->evaluate &&
	    !(classes ? (void *)w->dataset->label : (void *)w->dataset->target)) {
		(void)snprintf(w->message, sizeof w->message,
		               "has no %s to evaluate with: --predict needs none",
		               classes ? "labels" : "targets");
		status = HG_ERR_FORMAT;
	}
	if (status >= 0)
		status = hg_predictor_prepare(w->predictor, w->dataset, w->message);
	return about_file(w, status);
}

/* The metric that was asked for, or that of the run. */
static hg_metric metric_of(const struct work *w)
{
	return w->options->metric ? hg_metric_find(w->options->metric)
	                          : hg_predictor_state(w->predictor)->best.metric;
}

/* Is there such an embedding, and can the file hold it? */
static hg_status check_embedding(struct work *w)
{
	const struct options *o = w->options;
	const hg_model_config *m = hg_model_get_config(hg_predictor_model(w->predictor));
	if (!o->embed.wanted)
		return HG_OK;
	if (!hg_predictor_embedding_cols(w->predictor, o->embed.layer)) {
		char layer[24];
		(void)snprintf(layer, sizeof layer, "%d", o->embed.layer);
		(void)snprintf(w->message, sizeof w->message,
		               "--embed %s: the model is a %s of %d layers, %s",
		               o->embed.layer == HG_EMBED_LAST ? "last" : layer, m->name, m->layers,
		               hg_predictor_embedding_cols(w->predictor, 0)
		                   ? "of which 0 is what is before the first"
		                   : "of which the first reads the features themselves");
		return HG_ERR_ARG;
	}
	const char *format = hg_prediction_format(o->output);
	if (o->embed.of_nodes && m->readout >= 0 && format && strcmp(format, ".csv") == 0) {
		(void)snprintf(w->message, sizeof w->message,
		               "-o %.300s: a line per graph has no room for the embeddings of its nodes: "
		               "expected .npz or .h5",
		               o->output);
		return HG_ERR_ARG;
	}
	return HG_OK;
}

static hg_status predict(struct work *w)
{
	hg_predict_config config = HG_PREDICT_CONFIG_INIT;
	config.embed = w->options->embed.wanted;
	config.layer = w->options->embed.layer;
	config.of_nodes = w->options->embed.of_nodes;
	hg_status status =
	    hg_dataset_predict_with(w->dataset, w->predictor, &config, &w->prediction, w->message);
	if (status >= 0 && w->options->evaluate)
		status =
		    hg_prediction_evaluate(w->prediction, w->dataset, metric_of(w), &w->score, w->message);
	return about_file(w, status);
}

/* ---- what is printed ---- */

static const char *const set_names[] = {"training", "validation", "test"};

static void print_head(const struct work *w)
{
	const hg_model_config *m = hg_model_get_config(hg_predictor_model(w->predictor));
	const hg_state_best *best = &hg_predictor_state(w->predictor)->best;
	char *path = tool_printable(w->path), *model = tool_printable(w->options->checkpoint);
	fprintf(w->text, "%s of %s, %d layers, %s, on %s\n", m->name, model ? model : "?", m->layers,
	        hg_params_policy(hg_predictor_params(w->predictor))->name,
	        hg_context_device_name(w->ctx));
	if (best->step)
		fprintf(w->text, "weights: the best epoch, after step %lld\n", (long long)best->step - 1);
	else
		fputs("weights: the last ones: the file has no best epoch\n", w->text);
	fprintf(w->text, "%s: %lld %s, %lld features\n\n", path ? path : "?",
	        (long long)w->prediction->rows, w->prediction->of_graphs ? "graphs" : "nodes",
	        (long long)w->dataset->features);
	free(path);
	free(model);
}

/* What the training reported of the same set, where it had the same metric. */
static double trained_value(const struct work *w, int set)
{
	const hg_state_best *best = &hg_predictor_state(w->predictor)->best;
	return best->metric == w->score.metric ? best->value[set] : (double)NAN;
}

static void print_set(const struct work *w, int set)
{
	const hg_evaluation *s = &w->score;
	char name[48], value[32];
	(void)snprintf(name, sizeof name, "%s %s", set_names[set], hg_metric_name(s->metric));
	fprintf(w->text, "  %-20s ", name);
	if (!s->counted[set]) {
		fprintf(w->text, "none: there is no %s set\n", set_names[set]);
		return;
	}
	task_value(s->metric, s->value[set], value);
	fprintf(w->text, "%s  (", isnan(s->value[set]) ? "not defined" : value);
	if (s->metric == HG_METRIC_ACCURACY && w->prediction->label)
		fprintf(w->text, "%lld of ", (long long)s->right[set]);
	fprintf(w->text, "%lld", (long long)s->counted[set]);
	if (!isnan(trained_value(w, set))) {
		task_value(s->metric, trained_value(w, set), value);
		fprintf(w->text, "; in the training %s", value);
	}
	fputs(")\n", w->text);
}

static void print_score(const struct work *w)
{
	for (int set = 2; set >= 0; set--)
		print_set(w, set);
	if (w->score.nonfinite_logits)
		fprintf(w->text,
		        "  OVERFLOW             %lld logits are not finite: the %s is not reliable\n",
		        (long long)w->score.nonfinite_logits, hg_metric_name(w->score.metric));
}

/* The accuracy of classes has fields of its own, which lines of the training have, too. */
static json_t *accuracy_of(const hg_evaluation *s, int classes, int set)
{
	return jsonl_number(classes && s->counted[set] ? (double)s->right[set] / (double)s->counted[set]
	                                               : (double)NAN);
}

static int write_json(const struct work *w)
{
	const hg_model_config *m = hg_model_get_config(hg_predictor_model(w->predictor));
	const hg_evaluation *s = &w->score;
	const int classes = w->prediction->label != NULL;
	if (!w->json.out)
		return 0;
	return jsonl_write(
	    w->json.out,
	    json_pack("{ss ss ss ss sI sI so so so ss so so so sI}", "event", "evaluation", "model",
	              m->name, "precision", hg_params_policy(hg_predictor_params(w->predictor))->name,
	              "device", hg_context_device(w->ctx) == HG_DEVICE_CUDA ? "cuda" : "cpu", "rows",
	              (json_int_t)w->prediction->rows, "step",
	              (json_int_t)hg_predictor_state(w->predictor)->best.step - 1, "train_accuracy",
	              accuracy_of(s, classes, 0), "val_accuracy", accuracy_of(s, classes, 1),
	              "test_accuracy", accuracy_of(s, classes, 2), "metric", hg_metric_name(s->metric),
	              "train_metric", jsonl_number(s->value[0]), "val_metric",
	              jsonl_number(s->value[1]), "test_metric", jsonl_number(s->value[2]),
	              "nonfinite_logits", (json_int_t)s->nonfinite_logits));
}

/* "class and 7 probabilities" */
static void describe_columns(const hg_prediction *p, char text[64])
{
	const char *what = p->probability ? "probabilities" : "predicted targets";
	(void)snprintf(text, 64, "%s%lld %s", p->label ? "class and " : "", (long long)p->cols, what);
}

static hg_status write_prediction(struct work *w)
{
	watch_hold();
	const hg_status status = hg_prediction_write(w->prediction, w->options->output, w->message);
	watch_release();
	if (status >= 0) {
		char *output = tool_printable(w->options->output), columns[64];
		describe_columns(w->prediction, columns);
		fprintf(w->text, "  written         %s: id, %s of %lld %s\n", output ? output : "?",
		        columns, (long long)w->prediction->rows,
		        w->prediction->of_graphs ? "graphs" : "nodes");
		if (w->prediction->embedding)
			fprintf(w->text, "  embedding       %lld columns of %lld %s\n",
			        (long long)w->prediction->embedding_cols,
			        (long long)w->prediction->embedding_rows,
			        w->prediction->of_graphs && !w->prediction->embedding_id ? "graphs" : "nodes");
		free(output);
	}
	return status;
}

/* ---- the command ---- */

static hg_status work_do(struct work *w)
{
	hg_status status = check_files(w);
	if (status >= 0 && w->options->export)
		status = export_weights(w);
	if (status < 0 || !w->path)
		return status;
	status = load_model(w);
	if (status >= 0)
		status = check_embedding(w);
	if (status >= 0)
		status = load_dataset(w);
	if (status >= 0)
		status = predict(w);
	return status;
}

static int report(struct work *w)
{
	if (stream_begin(&w->json) || (w->options->evaluate && write_json(w))) {
		stream_say("hg-train", w->options->json, errno);
		return TOOL_FAILED;
	}
	print_head(w);
	if (w->options->evaluate)
		print_score(w);
	const hg_status status = w->options->predict ? write_prediction(w) : HG_OK;
	if (status >= 0)
		return TOOL_DONE;
	tool_say("hg-train", "%s", w->message);
	return TOOL_FAILED;
}

static int run_streams(struct work *w)
{
	const hg_status status = work_do(w);
	if (status < 0) {
		tool_say("hg-train", "%s", *w->message ? w->message : hg_status_text(status));
		return tool_code_of(status);
	}
	if (stream_open(&w->json, w->options->json)) {
		stream_say("hg-train", w->options->json, errno);
		return TOOL_BAD_INPUT;
	}
	w->text = w->json.out == stdout ? stderr : stdout;
	int code = w->path ? report(w) : TOOL_DONE;
	if (stream_close(&w->json) && code == TOOL_DONE) {
		stream_say("hg-train", w->options->json, errno);
		code = TOOL_FAILED;
	}
	return code;
}

int predict_run(const struct options *o)
{
	const hg_evaluation none = HG_EVALUATION_INIT;
	struct work w = {.options = o, .path = o->predict ? o->predict : o->evaluate, .score = none};
	const int code = run_streams(&w);
	hg_prediction_free(w.prediction);
	hg_dataset_free(w.dataset);
	hg_predictor_free(w.predictor);
	hg_context_free(w.ctx);
	return code;
}
