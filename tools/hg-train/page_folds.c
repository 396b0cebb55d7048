/* A cross-validation as tables. */
#include <math.h>

#include "page.h"

/* Mean and sample deviation over the seeds of one value of a fold. */
static double over_seeds(const struct results *r, int fold, int test, double *deviation,
                         int64_t *count)
{
	double sum = 0, squares = 0;
	*count = 0;
	for (int i = fold; i < r->runs; i += r->folds, ++*count)
		sum += test ? r->report[i].test_metric : r->report[i].best_val_metric;
	const double mean = *count ? sum / (double)*count : (double)NAN;
	for (int i = fold; i < r->runs; i += r->folds) {
		const double x = test ? r->report[i].test_metric : r->report[i].best_val_metric;
		squares += (x - mean) * (x - mean);
	}
	*deviation = *count > 1 ? sqrt(squares / (double)(*count - 1)) : 0.0;
	return mean;
}

static void print_choice(FILE *out, const struct results *r, const char *name,
                         struct folds_choice c, const char *text)
{
	const struct folds *f = r->cross;
	(void)fprintf(out, "<tr><td>%s<small>%s</small></td><td>", name, text);
	page_metric(out, r->record.metric, c.mean);
	(void)fputs("</td><td>", out);
	page_metric(out, r->record.metric, f->partial == 1 ? (double)NAN : c.over_folds);
	(void)fputs("</td><td>", out);
	page_metric(out, r->record.metric, f->seeds > 1 ? c.over_seeds : (double)NAN);
	(void)fputs("</td></tr>\n", out);
}

static void print_choices(FILE *out, const struct results *r)
{
	const struct folds *f = r->cross;
	(void)fputs("<div class=\"scroll\"><table class=\"num choices\"><tr><th>epochs</th>"
	            "<th>mean</th><th>deviation over folds</th><th>over seeds</th></tr>\n",
	            out);
	print_choice(out, r, "own epochs", folds_own(f), "each fold at its own best epoch");
	print_choice(out, r, "one epoch", folds_one(f), "all folds at the best epoch on average");
	(void)fputs("</table></div>\n", out);
}

/* Of one seed also what belongs to the run alone. */
static void print_fold(FILE *out, const struct results *r, int fold)
{
	const char *metric = r->record.metric;
	(void)fprintf(out, "<tr><td>%d</td>", fold);
	if (r->options->seeds == 1)
		(void)fprintf(out, "<td>%d</td><td>%d</td>", r->report[fold].epochs_run,
		              r->report[fold].best_epoch);
	for (int test = 0; test < 2; test++) {
		double deviation;
		int64_t count;
		const double mean = over_seeds(r, fold, test, &deviation, &count);
		(void)fputs("<td>", out);
		page_metric_mean(out, metric, mean, deviation, count);
		(void)fputs("</td>", out);
	}
	if (r->options->seeds == 1) {
		(void)fputs("<td>", out);
		page_number(out, r->report[fold].final_loss);
		(void)fprintf(out, "</td><td>%lld</td><td>", (long long)r->report[fold].steps_skipped);
		page_duration(out, 1e3 * r->report[fold].epoch_ms_median);
		(void)fputs("</td>", out);
	}
	(void)fputs("</tr>\n", out);
}

static void print_folds(FILE *out, const struct results *r)
{
	const int one = r->options->seeds == 1;
	(void)fprintf(out,
	              "<h3>each fold</h3>\n<div class=\"scroll\"><table class=\"num folds\"><tr>"
	              "<th>fold</th>%s<th>validation</th><th>test</th>%s</tr>\n",
	              one ? "<th>epochs</th><th>best</th>" : "",
	              one ? "<th>last loss</th><th>skipped</th><th>epoch</th>" : "");
	for (int fold = 0; fold < r->folds && fold < r->runs; fold++)
		print_fold(out, r, fold);
	(void)fputs("</table></div>\n", out);
}

/* Each seed with all of its folds. */
static void print_seeds(FILE *out, const struct results *r)
{
	const struct folds *f = r->cross;
	const char *metric = r->record.metric;
	(void)fputs("<h3>each seed</h3>\n<div class=\"scroll\"><table class=\"num seeds\"><tr>"
	            "<th>seed</th><th>own epochs</th><th>one epoch</th><th>which</th></tr>\n",
	            out);
	for (int64_t s = 0; s < f->seeds; s++) {
		(void)fprintf(out, "<tr><td>%lld</td><td>", (long long)(r->options->training.seed + s));
		page_metric_mean(out, metric, f->own_mean[s], f->own_std[s], f->count);
		(void)fputs("</td><td>", out);
		page_metric_mean(out, metric, f->one_mean[s], f->one_std[s], f->count);
		(void)fprintf(out, "</td><td>%d</td></tr>\n", f->epoch[s]);
	}
	(void)fputs("</table></div>\n", out);
}

void page_folds(FILE *out, const struct results *r)
{
	const struct folds *f = r->cross;
	if (!r->options->folds || !r->runs)
		return;
	(void)fprintf(out,
	              "<section>\n<h2>%d folds</h2>\n<p class=\"soft\">Each was held out once%s; %s. "
	              "Validation and test are those of the best epoch of each run%s.</p>\n",
	              f->count, r->options->seeds > 1 ? " with every seed" : "",
	              f->held_out ? "it validates, and nothing tests"
	                          : "it tests, and the next one validates",
	              r->options->seeds > 1 ? ", as means over the seeds with their deviation" : "");
	print_choices(out, r);
	print_folds(out, r);
	if (r->options->seeds > 1)
		print_seeds(out, r);
	(void)fputs("</section>\n", out);
}
