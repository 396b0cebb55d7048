/* The results of a run as JSON lines, for programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "halfgraph/version.h"
#include "jsonl.h"
#include "results.h"
#include "task.h"
#include "tool.h"

/* The number of a fold; null without folds. */
static json_t *fold_number(int fold)
{
	return fold < 0 ? json_null() : json_integer(fold);
}

/* The learning rate as a person types it, 0.01: an f32 has seven digits. */
static double rate_of(const hg_train_config *config, const hg_train_event *e)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%.7g", (double)config->optim.lr * e->step.lr_factor);
	return strtod(text, NULL);
}

int json_epoch(FILE *out, int64_t seed, int fold, const hg_train_config *config,
               const hg_train_event *e)
{
	if (!out)
		return 0;
	return jsonl_write(
	    out,
	    json_pack("{ss sI si sI so so so so so so so so so so so sb ss sI sI so so}", "event",
	              "epoch", "seed", (json_int_t)seed, "epoch", e->epoch, "step",
	              (json_int_t)e->step.steps - 1, "loss", jsonl_number(e->loss), "train_accuracy",
	              jsonl_number(e->train_accuracy), "val_accuracy", jsonl_number(e->val_accuracy),
	              "test_accuracy", jsonl_number(e->test_accuracy), "train_metric",
	              jsonl_number(e->train_metric), "val_metric", jsonl_number(e->val_metric),
	              "test_metric", jsonl_number(e->test_metric), "epoch_ms",
	              jsonl_number(e->epoch_ms), "lr", jsonl_number(rate_of(config, e)), "loss_scale",
	              jsonl_number((double)e->step.loss_scale), "grad_norm",
	              jsonl_number(e->step.grad_norm), "applied", e->step.applied, "outcome",
	              hg_step_reason_text(e->step.reason), "steps", (json_int_t)e->steps, "skipped",
	              (json_int_t)e->skipped, "prepare_ms", jsonl_number(e->prepare_ms), "fold",
	              fold_number(fold)));
}

/* All metrics of the task: {"accuracy": {"train": 0.9, "val": 0.8, "test": 0.8}, ...}, of one run,
 * or as means over several with the deviation on the test set. NULL if memory ran out. */
static json_t *metrics_object(const struct results *r, const struct metrics *m, int runs, int means)
{
	json_t *all = json_object();
	int failed = !all;
	for (int k = HG_METRIC_NONE + 1; k < METRICS && !failed && runs; k++) {
		double mean[SETS], deviation[SETS];
		if (!metrics_has((hg_metric)k, r->config.loss, r->config.model.out_features))
			continue;
		for (int set = 0; set < SETS; set++)
			mean[set] = metrics_mean(m, runs, (hg_metric)k, set, &deviation[set]);
		json_t *one = json_pack("{so so so}", "train", jsonl_number(mean[0]), "val",
		                        jsonl_number(mean[1]), "test", jsonl_number(mean[2]));
		if (means)
			failed = json_object_set_new(one, "test_std", jsonl_number(deviation[2]));
		failed |= json_object_set_new(all, hg_metric_name((hg_metric)k), one);
	}
	if (!failed)
		return all;
	json_decref(all);
	return NULL;
}

/* What came of run `run`. */
static json_t *run_object(const struct results *r, int run, const hg_train_report *p)
{
	return json_pack(
	    "{sI si si so so so so so sI so so}", "seed", (json_int_t)results_seed(r, run), "epochs",
	    p->epochs_run, "best_epoch", p->best_epoch, "val_accuracy",
	    jsonl_number(p->best_val_accuracy), "test_accuracy", jsonl_number(p->test_accuracy),
	    "val_metric", jsonl_number(p->best_val_metric), "test_metric", jsonl_number(p->test_metric),
	    "final_loss", jsonl_number(p->final_loss), "skipped", (json_int_t)p->steps_skipped, "fold",
	    fold_number(results_fold(r, run)), "metrics", metrics_object(r, &r->metrics[run], 1, 0));
}

int json_run(FILE *out, const struct results *r, const hg_train_report *report)
{
	if (!out)
		return 0;
	json_t *o = run_object(r, r->runs, report), *line = json_pack("{ss}", "event", "run");
	const int failed = !o || !line || json_object_update(line, o);
	json_decref(o);
	if (failed) {
		json_decref(line);
		return -1;
	}
	return jsonl_write(out, line);
}

/* Returns NULL if memory ran out; then the enclosing json_pack fails. */
static json_t *seeds(const struct results *r)
{
	json_t *list = json_array();
	int failed = 0;
	for (int i = 0; i < r->runs; i++)
		failed |= json_array_append_new(list, run_object(r, i, &r->report[i]));
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

/* Each value as a text; NULL if memory ran out. */
static json_t *settings(const struct results *r)
{
	json_t *all = json_object();
	int failed = 0;
	for (int i = 0; i < r->record.settings; i++)
		failed |= json_object_set_new(all, r->record.setting[i].name,
		                              json_string(r->record.setting[i].value));
	if (!failed)
		return all;
	json_decref(all);
	return NULL;
}

/* The name of the dataset, which may hold any bytes. */
static json_t *data_name(const struct results *r)
{
	char *name = tool_printable(r->dataset->name ? r->dataset->name : r->options->training.data);
	json_t *text = name ? json_string(name) : NULL;
	free(name);
	return text;
}

static json_t *choice(struct folds_choice c)
{
	return json_pack("{so so so}", "mean", jsonl_number(c.mean), "std_over_folds",
	                 jsonl_number(c.over_folds), "std_over_seeds", jsonl_number(c.over_seeds));
}

/* The run whose model --save-best wrote; null if it wrote none. */
static json_t *saved_best(const struct results *r)
{
	const int run = r->best_run;
	return r->saved_best ? json_pack("{sI so si so}", "seed", (json_int_t)results_seed(r, run),
	                                 "fold", fold_number(results_fold(r, run)), "best_epoch",
	                                 r->report[run].best_epoch, "val_metric",
	                                 jsonl_number(r->report[run].best_val_metric))
	                     : json_null();
}

/* The cross-validation; null without --folds. */
static json_t *folds_object(const struct results *r)
{
	const struct folds *f = r->cross;
	if (!r->options->folds)
		return json_null();
	json_t *epochs = json_array();
	int failed = !epochs;
	for (int64_t k = 0; k < f->seeds; k++)
		failed |= json_array_append_new(epochs, json_integer(f->epoch[k]));
	if (failed) {
		json_decref(epochs);
		return NULL;
	}
	return json_pack("{si ss si si so so so}", "count", f->count, "validate",
	                 f->held_out ? "held-out" : "next", "seeds", (int)f->seeds, "partial",
	                 f->partial, "own_epochs", choice(folds_own(f)), "one_epoch",
	                 choice(folds_one(f)), "epochs", epochs);
}

/* The verdict in hg-doctor's terms; null without --doctor. */
static json_t *verdict(const struct results *r)
{
	return r->options->doctor ? json_string(r->bad.findings ? "findings"
	                                        : r->bad.runs   ? "unexplained"
	                                                        : "healthy")
	                          : json_null();
}

/* That of the report, where the default of the task is known. */
static const char *metric_name(const struct results *r)
{
	const char *name = hg_metric_name(r->runs ? r->report[0].metric : r->config.metric);
	return name ? name : "";
}

int json_summary(FILE *out, const struct results *r)
{
	if (!out)
		return 0;
	const struct statistics s = results_statistics(r);
	const hg_model_config *m = &r->config.model;
	json_t *o =
	    json_pack("{ss ss ss ss ss ss si si sI sI so so ss ss so so so so so}", "event", "summary",
	              "version", hg_version_string(), "model", m->name, "precision",
	              r->config.policy.name, "device", r->device == HG_DEVICE_CUDA ? "cuda" : "cpu",
	              "device_name", r->device_name, "layers", m->layers, "hidden", m->hidden, "nodes",
	              (json_int_t)r->nodes, "edges", (json_int_t)r->edges, "seeds", seeds(r), "folds",
	              folds_object(r), "loss", task_loss_name(r->config.loss), "metric", metric_name(r),
	              "test_metric_mean", jsonl_number(s.metric_mean), "test_metric_std",
	              jsonl_number(s.metric_std), "data", data_name(r), "settings", settings(r),
	              "metrics", metrics_object(r, r->metrics, r->runs, 1));
	json_t *totals = json_pack(
	    "{so so so sI sI sI sI sI so sb sb si si si si si so so so sb sb ss sb so sb sI sI so}",
	    "test_accuracy_mean", jsonl_number(s.accuracy_mean), "test_accuracy_std",
	    jsonl_number(s.accuracy_std), "epoch_ms_median", jsonl_number(s.epoch_ms), "peak_bytes",
	    (json_int_t)s.peak_bytes, "state_bytes", (json_int_t)s.state_bytes, "arena_bytes",
	    (json_int_t)s.arena_bytes, "steps_skipped", (json_int_t)s.skipped, "nonfinite_logits",
	    (json_int_t)s.nonfinite_logits, "loss_scale_final",
	    jsonl_number(r->runs ? (double)r->report[r->runs - 1].loss_scale_final : (double)NAN),
	    "loss_finite", s.finite, "captured", s.captured, "epochs_together", s.together, "casts",
	    s.casts, "replans", s.replans, "rescaled", s.rescaled, "promoted", s.promoted, "headroom",
	    *r->headroom_at ? jsonl_number(r->headroom) : json_null(), "headroom_at",
	    *r->headroom_at ? json_string(r->headroom_at) : json_null(), "verdict", verdict(r),
	    "learnt", !r->unlearnt, "row_normalize", r->rows.normalize, "row_normalize_why",
	    r->rows.why, "saved", r->saved != NULL, "saved_best", saved_best(r), "interrupted",
	    r->interrupted, "batch_graphs", (json_int_t)r->config.batch_graphs, "steps",
	    (json_int_t)s.steps, "prepare_share", jsonl_number(s.prepare_share));
	const int failed = !o || !totals || json_object_update(o, totals) ||
	                   json_object_set(o, "config", r->options->given);
	json_decref(totals);
	if (failed) {
		json_decref(o);
		return -1;
	}
	return jsonl_write(out, o);
}
