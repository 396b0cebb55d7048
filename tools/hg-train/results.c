/* The results of a run as text, for people. */
#include "results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "task.h"
#include "tool.h"

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median_ms(const struct results *r)
{
	double *ms = malloc((size_t)r->runs * sizeof *ms), value = (double)NAN;
	for (int i = 0; ms && i < r->runs; i++)
		ms[i] = r->report[i].epoch_ms_median;
	if (ms && r->runs) {
		qsort(ms, (size_t)r->runs, sizeof *ms, by_value);
		value = ms[(r->runs - 1) / 2];
	}
	free(ms);
	return value;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static double test_accuracy(const hg_train_report *report)
{
	return report->test_accuracy;
}

static double test_metric(const hg_train_report *report)
{
	return report->test_metric;
}

int64_t results_seed(const struct results *r, int run)
{
	return r->options->training.seed + run / r->folds;
}

int results_fold(const struct results *r, int run)
{
	return r->options->folds ? run % r->folds : -1;
}

/* Mean and sample standard deviation over the runs; NaN where a run has no value. */
static void over_runs(const struct results *r, double (*of)(const hg_train_report *report),
                      double *mean, double *std)
{
	double sum = 0, squares = 0;
	for (int i = 0; i < r->runs; i++)
		sum += of(&r->report[i]);
	*mean = r->runs ? sum / r->runs : (double)NAN;
	for (int i = 0; i < r->runs; i++)
		squares += pow(of(&r->report[i]) - *mean, 2);
	*std = isnan(*mean) ? (double)NAN : r->runs > 1 ? sqrt(squares / (r->runs - 1)) : 0.0;
}

struct statistics results_statistics(const struct results *r)
{
	struct statistics s = {.epoch_ms = r->runs ? median_ms(r) : (double)NAN, .finite = 1};
	for (int i = 0; i < r->runs; i++) {
		const hg_train_report *report = &r->report[i];
		s.peak_bytes = larger(s.peak_bytes, report->peak_bytes);
		s.state_bytes = larger(s.state_bytes, report->state_bytes);
		s.arena_bytes = larger(s.arena_bytes, report->arena_bytes);
		s.skipped += report->steps_skipped;
		s.steps += report->steps_run;
		s.prepare_share = fmax(s.prepare_share, report->prepare_share);
		s.finite &= report->loss_finite;
		s.nonfinite_logits += report->nonfinite_logits;
		s.captured = report->captured;
		s.casts = report->casts > s.casts ? report->casts : s.casts;
		s.replans += report->replans;
		s.rescaled = report->rescaled > s.rescaled ? report->rescaled : s.rescaled;
		s.promoted = report->promoted > s.promoted ? report->promoted : s.promoted;
		s.together = report->epochs_together > s.together ? report->epochs_together : s.together;
	}
	over_runs(r, test_accuracy, &s.accuracy_mean, &s.accuracy_std);
	over_runs(r, test_metric, &s.metric_mean, &s.metric_std);
	return s;
}

int results_measured(const struct results *r)
{
	return r->tested ? 2 : 1;
}

int results_best(const struct results *r, const hg_train_report *report)
{
	const double value = report->best_val_metric;
	const double best = r->runs ? r->report[r->best_run].best_val_metric : (double)NAN;
	return !r->runs || (isnan(best) && !isnan(value)) ||
	       (hg_metric_rises(report->metric) ? value > best : value < best);
}

static void add_number(struct record *record, const char *name, int64_t value)
{
	char text[24];
	(void)snprintf(text, sizeof text, "%lld", (long long)value);
	record_setting(record, name, text);
}

/* The metric of the report, where the default of the task is known. */
static const char *metric_of(const struct results *r)
{
	const char *name = hg_metric_name(r->runs ? r->report[0].metric : r->config.metric);
	return name ? name : "";
}

void results_settings(struct results *r, const hg_state *state)
{
	struct record *record = &r->record;
	record_state(record, state);
	(void)snprintf(record->metric, sizeof record->metric, "%s", metric_of(r));
	record_setting(record, "train.metric", metric_of(r));
	add_number(record, "train.epochs", r->config.epochs);
	add_number(record, "train.patience", r->config.patience);
	add_number(record, "train.eval_every", r->config.eval_every);
	add_number(record, "train.seed", r->options->training.seed);
	add_number(record, "train.seeds", r->options->seeds);
}

static void print_header(const struct results *r, FILE *out)
{
	const hg_model_config *m = &r->config.model;
	const hg_dataset *d = r->dataset;
	char outputs[64];
	fprintf(out, "%s, %d layers, hidden %d", m->name, m->layers, m->hidden);
	if (hg_model_get_info(m->name)->heads)
		fprintf(out, " x %d heads", m->heads);
	fprintf(out, ", %s, on %s\n", r->config.policy.name, r->device_name);
	char *name = tool_printable(d->name ? d->name : r->options->training.data);
	task_outputs(&r->config, outputs);
	fprintf(out, "%s: %lld nodes, %lld edges, %lld features (%s), %s",
	        name ? name : "(no memory for its name)", (long long)r->nodes, (long long)r->edges,
	        (long long)d->features, dataset_features_text(d, r->sparse), outputs);
	free(name);
	if (d->graph_ptr)
		fprintf(out, ", %lld graphs", (long long)d->graphs);
	fprintf(out, "\nfeatures: %s: %s\n\n", dataset_rows_note(&r->rows), r->rows.why);
}

/* A hint at hg-doctor, unless --doctor was given. */
static const char *why_of(const struct results *r)
{
	return r->options->doctor ? "" : ": hg-doctor, with the same options, explains why";
}

/* A name and a value in two columns: "  test accuracy   81.50 %". */
static void print_row(FILE *out, const char *what, const char *metric)
{
	char row[48];
	(void)snprintf(row, sizeof row, "%s %s", what, metric);
	fprintf(out, "  %-15s ", row);
}

static void print_metric(const struct results *r, const struct statistics *s, FILE *out)
{
	const hg_train_report *last = &r->report[r->runs - 1];
	const char *name = hg_metric_name(last->metric);
	char value[32], deviation[32];
	task_value(last->metric, s->metric_mean, value);
	print_row(out, "test", name);
	if (isnan(last->test_metric) && isnan(s->metric_mean))
		fputs(r->tested ? "not defined on the test set\n" : "none: there is no test set\n", out);
	else if (r->runs > 1) {
		task_deviation(last->metric, s->metric_std, deviation);
		fprintf(out, "%s +- %s over %d seeds\n", value, deviation, r->runs);
	} else
		fprintf(out, "%s\n", value);
	if (r->runs > 1)
		return;
	task_value(last->metric, last->best_val_metric, value);
	if (!last->best_epoch)
		fprintf(out, "  best epoch      before these %d, in the checkpoint, validation %s %s\n",
		        last->epochs_run, name, value);
	else if (!isnan(last->best_val_metric))
		fprintf(out, "  best epoch      %d of %d, validation %s %s\n", last->best_epoch,
		        last->epochs_run, name, value);
	else if (r->validated)
		fprintf(out, "  best epoch      %d of %d: validation %s is not defined\n", last->best_epoch,
		        last->epochs_run, name);
	else
		fprintf(out, "  best epoch      the last, %d: there is no validation set\n",
		        last->best_epoch);
}

/* The metrics of the task beside the one that decided, whose best epoch they are of, too. */
static void print_others(const struct results *r, FILE *out)
{
	const int set = results_measured(r);
	const int64_t cols = r->config.model.out_features;
	for (int k = HG_METRIC_NONE + 1; k < METRICS; k++) {
		const hg_metric metric = (hg_metric)k;
		char value[32], other[32];
		double deviation;
		const double mean = metrics_mean(r->metrics, r->runs, metric, set, &deviation);
		if (metric == r->report[0].metric || isnan(mean) ||
		    !metrics_tells(metric, r->config.loss, cols))
			continue;
		print_row(out, set == 2 ? "test" : "validation", hg_metric_name(metric));
		task_value(metric, mean, value);
		task_deviation(metric, deviation, other);
		if (r->runs > 1)
			fprintf(out, "%s +- %s over %d %s\n", value, other, r->runs,
			        r->options->folds ? "runs" : "seeds");
		else
			fprintf(out, "%s\n", value);
	}
}

static void print_scores(const struct results *r, const struct statistics *s, FILE *out)
{
	const hg_train_report *last = &r->report[r->runs - 1];
	if (r->options->folds)
		folds_print(r->cross, out);
	else
		print_metric(r, s, out);
	print_others(r, out);
	if (!s->finite)
		fprintf(out, "  LOSS            not a number%s\n", why_of(r));
	else
		fprintf(out, "  final loss      %.4f\n", last->final_loss);
	if (s->nonfinite_logits)
		fprintf(out,
		        "  OVERFLOW        %lld logits are not finite at the best epoch: the %s "
		        "is not reliable\n",
		        (long long)s->nonfinite_logits, hg_metric_name(last->metric));
}

/* A loss that is not a number has been reported above, with the hint at hg-doctor. */
static void print_unlearnt(const struct results *r, FILE *out)
{
	const struct learning *l = &r->learning;
	const enum learnt verdict = r->unlearnt ? learning_verdict(l) : LEARNT;
	if (verdict == LEARNT || (verdict == LEARNT_NOT_FINITE && l->applied))
		return;
	fputs("  NOTHING LEARNT  ", out);
	if (r->runs > 1)
		fprintf(out, "in %d of %d runs; the last of them: ", r->unlearnt, r->runs);
	if (!l->applied)
		fputs("every step was skipped", out);
	else if (verdict == LEARNT_NO_GRADIENT)
		fputs("the gradient was 0 in every step", out);
	else
		fprintf(out, "no loss of %lld steps is below the first, %.4f", (long long)l->steps,
		        l->first);
	fprintf(out, "%s\n", verdict == LEARNT_NOT_FINITE ? "" : why_of(r));
}

static void print_epoch(const struct statistics *s, FILE *out)
{
	fprintf(out, "  epoch           %.3g ms (median), queued %s", s->epoch_ms,
	        s->captured ? "as one CUDA graph" : "call by call");
	if (s->together > 1)
		fprintf(out, ", up to %d without a wait", s->together);
	fputc('\n', out);
}

static void print_batches(const struct results *r, const struct statistics *s, FILE *out)
{
	const int64_t batch = r->config.batch_graphs;
	int64_t epochs = 0;
	for (int i = 0; i < r->runs; i++)
		epochs += r->report[i].epochs_run;
	if (batch)
		fprintf(out,
		        "  batches         of %lld graph%s, %lld in an epoch; making them took %.1f %% of "
		        "its time\n",
		        (long long)batch, batch == 1 ? "" : "s", (long long)(s->steps / epochs),
		        100 * s->prepare_share);
}

/* This is about values only: the loss scale raises gradients close to the limit on purpose. */
static void print_headroom(const struct results *r, FILE *out)
{
	const int known = *r->headroom_at != 0, none = known && r->headroom <= 0;
	if (known && !none)
		fprintf(out, "  headroom        %.1f bits at least: %s; measured in the forward pass of ",
		        r->headroom, r->headroom_at);
	if (known && !none && r->observe_every == 1)
		fputs("every step\n", out);
	else if (known && !none)
		fprintf(out, "one step in %d (--observe 1: every step)\n", r->observe_every);
	if (none)
		fprintf(out, "  no headroom     in %s: it was not finite\n", r->headroom_at);
	if (r->overflows)
		fprintf(out, "  overflows       in the forward pass of %lld step%s skipped\n",
		        (long long)r->overflows, r->overflows == 1 ? ", which was" : "s, which were");
}

static void print_doctor(const struct results *r, const struct statistics *s, FILE *out)
{
	const struct bad_step *bad = &r->bad;
	if (!r->options->doctor)
		return;
	fputs("  doctor          ", out);
	if (!bad->runs)
		fprintf(
		    out,
		    "none of %lld steps went bad, and %lld of them, replayed op by op, show nothing%s\n",
		    (long long)s->steps, (long long)bad->replayed,
		    s->skipped ? "; the run recovered from the skipped steps by itself" : "");
	else if (r->options->seeds > 1)
		fprintf(out,
		        "%d of %d runs had a bad step, with %d findings: see above; hg-doctor tries the "
		        "remedies\n",
		        bad->runs, r->runs, bad->findings);
	else
		fprintf(out,
		        "epoch %d (step %lld) was bad, with %d finding%s: see above; hg-doctor tries the "
		        "remedies\n",
		        bad->epoch, (long long)bad->step, bad->findings, bad->findings == 1 ? "" : "s");
}

/* Where an interrupted run ended. A later run that was interrupted is left out. */
static void print_interrupted(const struct results *r, FILE *out)
{
	const int at = r->left_out ? r->runs : r->runs - 1, last = r->report[r->runs - 1].epochs_run;
	const int64_t all = r->options->seeds * r->folds;
	char where[64] = "";
	int length = 0;
	if (r->options->folds)
		length = snprintf(where, sizeof where, " of fold %d", results_fold(r, at));
	if (r->options->seeds > 1)
		(void)snprintf(where + length, sizeof where - (size_t)length, " of seed %lld",
		               (long long)results_seed(r, at));
	if (r->left_out)
		fprintf(out, "  interrupted     in epoch %d%s, which is left out: ", r->left_out, where);
	else
		fprintf(out, "  interrupted     after epoch %d of %d%s: ", last, r->config.epochs, where);
	if (all > 1)
		fprintf(out, "the figures are of %d of %lld %s\n", r->runs, (long long)all,
		        r->options->folds && r->options->seeds > 1 ? "runs"
		        : r->options->folds                        ? "folds"
		                                                   : "seeds");
	else
		fputs("the figures are of these epochs\n", out);
}

static void print_saved_best(const struct results *r, const char *file, FILE *out)
{
	const hg_train_report *best = &r->report[r->best_run];
	char value[32];
	fprintf(out, "  saved           %s: the model of the best epoch", file);
	if (r->options->folds)
		fprintf(out, " of fold %d", results_fold(r, r->best_run));
	if (r->options->seeds > 1)
		fprintf(out, " of seed %lld", (long long)results_seed(r, r->best_run));
	task_value(best->metric, best->best_val_metric, value);
	if (r->several && !isnan(best->best_val_metric))
		fprintf(out, ", validation %s %s", hg_metric_name(best->metric), value);
	fputc('\n', out);
}

/* Where the run ended, and how to continue it. */
static void print_end(const struct results *r, FILE *out)
{
	const int last = r->report[r->runs - 1].epochs_run, left = r->config.epochs - last;
	if (r->interrupted || r->left_out)
		print_interrupted(r, out);
	char *saved = r->saved ? tool_printable(r->saved) : NULL;
	if (saved)
		fprintf(out, "  saved           %s: the state after epoch %d\n", saved, last);
	char *best = r->saved_best ? tool_printable(r->saved_best) : NULL;
	if (best)
		print_saved_best(r, best, out);
	free(best);
	char *weights = r->exported ? tool_printable(r->exported) : NULL;
	if (weights)
		fprintf(out, "  exported        %s: the weights of the best epoch\n", weights);
	free(weights);
	if (!saved && r->interrupted && !r->options->save && !r->several)
		fputs("  saved           nothing: --save FILE writes the state to continue from\n", out);
	if (r->interrupted && saved && left > 0 && r->options->go_on)
		fputs("  to continue     the same command\n", out);
	else if (r->interrupted && saved && left > 0)
		fprintf(out, "  to continue     the same command with --resume %s --epochs %d\n", saved,
		        left);
	free(saved);
}

void results_print(const struct results *r, FILE *out)
{
	const double mib = 1024.0 * 1024.0;
	const struct statistics s = results_statistics(r);
	if (!r->runs) {
		fputs("interrupted before the end of the first epoch: nothing was learnt or saved\n", out);
		return;
	}
	print_header(r, out);
	print_scores(r, &s, out);
	print_epoch(&s, out);
	print_batches(r, &s, out);
	fprintf(out,
	        "  memory          %.2f MiB peak; state tensors %.2f MiB in an arena of %.2f MiB\n",
	        (double)s.peak_bytes / mib, (double)s.state_bytes / mib, (double)s.arena_bytes / mib);
	print_headroom(r, out);
	fprintf(out, "  casts           %d between fp16 and fp32 in a forward pass\n", s.casts);
	if (s.replans || s.rescaled) /* a resumed run may have begun with some */
		fprintf(
		    out,
		    "  guards          %d overflowed; at the end %d result%s stored x 2^-k, %d in fp32\n",
		    s.replans, s.rescaled, s.rescaled == 1 ? "" : "s", s.promoted);
	fprintf(out, "  loss scale      %.8g at the end, %lld of %lld steps skipped\n",
	        (double)r->report[r->runs - 1].loss_scale_final, (long long)s.skipped,
	        (long long)s.steps);
	print_unlearnt(r, out);
	print_doctor(r, &s, out);
	print_end(r, out);
}
