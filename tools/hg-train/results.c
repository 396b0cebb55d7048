/* The results of a run as text, for people. */
#include "results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

struct statistics results_statistics(const struct results *r)
{
	struct statistics s = {.epoch_ms = r->runs ? median_ms(r) : (double)NAN, .finite = 1};
	double sum = 0, squares = 0;
	for (int i = 0; i < r->runs; i++) {
		const hg_train_report *report = &r->report[i];
		sum += report->test_accuracy;
		s.peak_bytes = larger(s.peak_bytes, report->peak_bytes);
		s.state_bytes = larger(s.state_bytes, report->state_bytes);
		s.arena_bytes = larger(s.arena_bytes, report->arena_bytes);
		s.skipped += report->steps_skipped;
		s.steps += report->epochs_run;
		s.finite &= report->loss_finite;
		s.nonfinite_logits += report->nonfinite_logits;
		s.captured = report->captured;
		s.casts = report->casts > s.casts ? report->casts : s.casts;
		s.replans += report->replans;
		s.rescaled = report->rescaled > s.rescaled ? report->rescaled : s.rescaled;
		s.promoted = report->promoted > s.promoted ? report->promoted : s.promoted;
		s.together = report->epochs_together > s.together ? report->epochs_together : s.together;
	}
	s.accuracy_mean = r->runs ? sum / r->runs : (double)NAN;
	for (int i = 0; i < r->runs; i++)
		squares += pow(r->report[i].test_accuracy - s.accuracy_mean, 2);
	s.accuracy_std = isnan(s.accuracy_mean) ? (double)NAN
	                 : r->runs > 1          ? sqrt(squares / (r->runs - 1))
	                                        : 0.0;
	return s;
}

static void print_header(const struct results *r, FILE *out)
{
	const hg_model_config *m = &r->config.model;
	const hg_dataset *d = r->dataset;
	fprintf(out, "%s, %d layers, hidden %d", m->name, m->layers, m->hidden);
	if (hg_model_get_info(m->name)->heads)
		fprintf(out, " x %d heads", m->heads);
	fprintf(out, ", %s, on %s\n", r->config.policy.name, r->device_name);
	char *name = tool_printable(d->name ? d->name : r->options->training.data);
	fprintf(out, "%s: %lld nodes, %lld edges, %lld features (%s), %d classes",
	        name ? name : "(no memory for its name)", (long long)r->nodes, (long long)r->edges,
	        (long long)d->features, dataset_features_text(d, r->sparse), (int)d->classes);
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

static void print_accuracy(const struct results *r, const struct statistics *s, FILE *out)
{
	const hg_train_report *last = &r->report[r->runs - 1];
	if (isnan(s->accuracy_mean))
		fputs("  test accuracy   none: there is no test set\n", out);
	else if (r->runs > 1)
		fprintf(out, "  test accuracy   %.2f %% +- %.2f over %d seeds\n", 100 * s->accuracy_mean,
		        100 * s->accuracy_std, r->runs);
	else
		fprintf(out, "  test accuracy   %.2f %%\n", 100 * s->accuracy_mean);
	if (r->runs == 1 && isnan(last->best_val_accuracy))
		fprintf(out, "  best epoch      the last, %d: there is no validation set\n",
		        last->best_epoch);
	else if (r->runs == 1)
		fprintf(out, "  best epoch      %d of %d, validation accuracy %.2f %%\n", last->best_epoch,
		        last->epochs_run, 100 * last->best_val_accuracy);
	if (!s->finite)
		fprintf(out, "  LOSS            not a number%s\n", why_of(r));
	else
		fprintf(out, "  final loss      %.4f\n", last->final_loss);
	if (s->nonfinite_logits)
		fprintf(out,
		        "  OVERFLOW        %lld logits are not finite at the best epoch: the accuracy "
		        "is not reliable\n",
		        (long long)s->nonfinite_logits);
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

/* Where the run ended, and how to continue it. */
static void print_end(const struct results *r, FILE *out)
{
	const int last = r->report[r->runs - 1].epochs_run, left = r->config.epochs - last;
	const int64_t seed = r->options->training.seed + r->runs;
	if (r->left_out)
		fprintf(out,
		        "  interrupted     in epoch %d of seed %lld, which is left out: the figures are of "
		        "%d of %lld seeds\n",
		        r->left_out, (long long)seed, r->runs, (long long)r->options->seeds);
	else if (r->interrupted && r->options->seeds > 1)
		fprintf(out,
		        "  interrupted     after epoch %d of %d of seed %lld: the figures are of %d of "
		        "%lld seeds\n",
		        last, r->config.epochs, (long long)seed - 1, r->runs, (long long)r->options->seeds);
	else if (r->interrupted)
		fprintf(out, "  interrupted     after epoch %d of %d: the figures are of these epochs\n",
		        last, r->config.epochs);
	char *saved = r->saved ? tool_printable(r->saved) : NULL;
	if (saved)
		fprintf(out, "  saved           %s: the state after epoch %d\n", saved, last);
	else if (r->interrupted && !r->options->save && r->options->seeds == 1)
		fputs("  saved           nothing: --save FILE writes the state to continue from\n", out);
	if (r->interrupted && saved && left > 0)
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
	print_accuracy(r, &s, out);
	print_epoch(&s, out);
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
