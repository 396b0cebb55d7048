/* The page of a run: what was trained on what, and what came of it. */
#include <math.h>
#include <string.h>

#include "halfgraph/version.h"
#include "page.h"
#include "task.h"

static const char *data_name(const struct results *r)
{
	return r->dataset->name ? r->dataset->name : r->options->training.data;
}

/* The state of the run in a word, and how bad that is. */
static const char *verdict_of(const struct results *r, const char **class)
{
	const struct statistics s = results_statistics(r);
	*class = "bad";
	if (!r->runs)
		return *class = "warn", "nothing done";
	if (!s.finite)
		return "not a number";
	if (r->unlearnt)
		return "nothing learnt";
	if (r->bad.findings)
		return "findings";
	*class = r->interrupted ? "warn" : "good";
	return r->interrupted ? "interrupted" : "done";
}

static void print_head(FILE *out, const struct results *r)
{
	const char *class, *verdict = verdict_of(r, &class);
	page_begin(out);
	(void)fputs("hg-train: ", out);
	page_text(out, data_name(r));
	(void)fprintf(out, ", %s, %s", r->config.model.name, verdict);
	page_begin_body(out, page_train_style);
	(void)fputs("<header>\n", out);
	page_brand(out, "hg-train", strcmp(class, "bad") == 0, class);
	(void)fputs(verdict, out);
	page_brand_end(out);
}

/* What a cross-validation found: where the held-out folds test, the mean of them at their own best
 * epochs; where they validate, at the one epoch, as the paper on GIN does. */
static void print_folds_title(FILE *out, const struct results *r)
{
	const struct folds *f = r->cross;
	const struct folds_choice choice = f->held_out ? folds_one(f) : folds_own(f);
	(void)fprintf(out, "%s %s ", f->held_out ? "Validation" : "Test",
	              page_metric_name(r->record.metric));
	page_metric_mean(out, r->record.metric, choice.mean, choice.over_folds, f->count);
	(void)fputs(" over folds", out);
}

/* "Test accuracy 93.04 %", or what stands in its place. */
static void print_title(FILE *out, const struct results *r)
{
	const struct statistics s = results_statistics(r);
	const hg_train_report *last = r->runs ? &r->report[r->runs - 1] : NULL;
	const char *metric = r->record.metric, *name = page_metric_name(metric);
	(void)fputs("<h1>", out);
	if (!last)
		(void)fputs("Interrupted before the end of the first epoch", out);
	else if (!s.finite)
		(void)fputs("The loss is not a number", out);
	else if (r->unlearnt)
		(void)fputs("Nothing was learnt", out);
	else if (r->options->folds) {
		print_folds_title(out, r);
	} else if (isfinite(s.metric_mean)) {
		(void)fprintf(out, "Test %s ", name);
		page_metric_mean(out, metric, s.metric_mean, s.metric_std, r->runs);
	} else if (isfinite(last->best_val_metric)) {
		(void)fprintf(out, "Validation %s ", name);
		page_metric(out, metric, last->best_val_metric);
	} else {
		(void)fputs("Last training loss ", out);
		page_number(out, last->final_loss);
	}
	(void)fputs("</h1>\n", out);
}

static void print_lead(FILE *out, const struct results *r)
{
	const hg_model_config *m = &r->config.model;
	char outputs[64];
	task_outputs(&r->config, outputs);
	(void)fputs("<p class=\"lead\">", out);
	page_text(out, m->name);
	(void)fprintf(out, " of %d layer%s and %d hidden units, trained in <b>%s</b> on ", m->layers,
	              m->layers == 1 ? "" : "s", m->hidden, r->config.policy.name);
	page_text(out, data_name(r));
	(void)fputs(": ", out);
	page_count(out, r->nodes);
	(void)fputs(" nodes, ", out);
	page_count(out, r->edges);
	(void)fputs(" edges, ", out);
	page_count(out, r->dataset->features);
	(void)fprintf(out, " features, %s", outputs);
	if (r->dataset->graph_ptr) {
		(void)fputs(", ", out);
		page_count(out, r->dataset->graphs);
		(void)fputs(" graphs", out);
	}
	(void)fputs(".</p>\n", out);
}

/* What a reader must know before any figure. */
static void print_warnings(FILE *out, const struct results *r, const struct statistics *s)
{
	const hg_train_report *last = &r->report[r->runs - 1];
	(void)fputs("<p class=\"soft\">On ", out);
	page_text(out, r->device_name);
	(void)fputs(". ", out);
	if (r->left_out)
		(void)fprintf(out, "Interrupted in %s %d of %lld, which is left out. ",
		              r->options->folds ? "run" : "seed", r->runs + 1,
		              (long long)r->options->seeds * r->folds);
	else if (r->interrupted)
		(void)fprintf(out, "Interrupted after epoch %d of %d: the page is about these. ",
		              last->epochs_run, r->config.epochs);
	if (!s->finite || r->unlearnt)
		(void)fputs("hg-doctor, with the same options, explains why. ", out);
	if (s->nonfinite_logits)
		(void)fprintf(out, "%lld logits of the best epoch are not finite. ",
		              (long long)s->nonfinite_logits);
	if (r->overflows)
		(void)fprintf(out, "The forward pass of %lld step%s overflowed and was skipped. ",
		              (long long)r->overflows, r->overflows == 1 ? "" : "s");
	(void)fputs("</p>\n", out);
}

const char *page_first_of(const struct results *r)
{
	return r->options->folds ? " of the first fold" : r->runs > 1 ? " of the first seed" : "";
}

static void print_box(FILE *out, const char *below)
{
	(void)fprintf(out, "</b><span>%s</span></div>", below);
}

static void print_strip(FILE *out, const struct results *r, const struct statistics *s)
{
	const hg_train_report *last = &r->report[r->runs - 1];
	const struct seed_record *curve = r->record.seeds ? &r->record.seed[0] : NULL;
	char below[160];
	(void)fputs("<div class=\"strip\"><div><b>", out);
	if (curve && curve->rows) {
		page_number(out, curve->row[0].loss);
		(void)fputs(" &#8594; ", out);
		page_number(out, r->report[0].final_loss);
	}
	(void)snprintf(below, sizeof below, "training loss%s, first and last epoch", page_first_of(r));
	print_box(out, below);
	(void)fputs("<div><b>", out);
	page_metric(out, r->record.metric, r->report[0].best_val_metric);
	(void)snprintf(below, sizeof below, "validation %s%s, best epoch %d",
	               page_metric_name(r->record.metric), page_first_of(r), r->report[0].best_epoch);
	print_box(out, below);
	(void)fputs("<div><b>", out);
	page_count(out, s->steps);
	(void)snprintf(below, sizeof below, "%s%s, %lld skipped",
	               r->config.batch_graphs ? "steps" : "epochs",
	               r->options->folds ? " of all runs"
	               : r->runs > 1     ? " of all seeds"
	                                 : "",
	               (long long)s->skipped);
	print_box(out, below);
	(void)fputs("<div><b>", out);
	page_duration(out, 1e3 * s->epoch_ms);
	print_box(out, s->captured ? "an epoch, as one CUDA graph" : "an epoch, median");
	(void)fputs("<div><b>", out);
	page_bytes(out, (double)s->peak_bytes);
	print_box(out, "most memory of the device");
	(void)fputs("<div><b>", out);
	page_number(out, (double)last->loss_scale_final);
	print_box(out, "loss scale at the end");
	if (*r->headroom_at) {
		(void)fputs("<div><b>", out);
		(void)fprintf(out, r->headroom > 0 ? "%.1f bits" : "none", r->headroom);
		(void)fputs("</b><span>least headroom, ", out);
		page_name(out, r->headroom_at);
		(void)fputs("</span></div>", out);
	}
	(void)fputs("</div>\n", out);
}

static void print_note(char *note, size_t size, const struct results *r)
{
	const char *rate = record_find(&r->record, "optim.lr");
	(void)snprintf(note, size, "%s%s%s%s",
	               r->options->folds ? "A thin line for each run. "
	               : r->runs > 1     ? "A thin line for each seed. "
	                                 : "",
	               rate ? "The learning rate is " : "", rate ? rate : "",
	               rate ? " in every epoch. " : "");
}

void page_run_print(FILE *out, const void *results)
{
	const struct results *r = results;
	const struct statistics s = results_statistics(r);
	char note[160];
	print_head(out, r);
	print_title(out, r);
	print_lead(out, r);
	if (r->runs) {
		print_warnings(out, r, &s);
		print_strip(out, r, &s);
	}
	(void)fputs("</header>\n<main>\n", out);
	print_note(note, sizeof note, r);
	page_curves(out, &r->record, 1, note);
	page_seeds(out, r);
	page_folds(out, r);
	page_metrics(out, r);
	page_judged(out, r);
	page_times(out, &r->timing);
	page_settings(out, r);
	page_observed(out, r);
	(void)fprintf(out,
	              "</main>\n<footer>HalfGraph %s. Timing a step and predicting do not change the "
	              "run, not by one bit.</footer>\n</body>\n</html>\n",
	              hg_version_string());
}
