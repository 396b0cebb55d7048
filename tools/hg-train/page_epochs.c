/* The epochs and the seeds as tables. */
#include <math.h>

#include "page.h"

/* Tables of more rows are for the lines of JSON: of one run, and of all. */
enum { MOST_ROWS = 400, MOST_ROWS_OF_ALL = 8000 };

static void print_cell(FILE *out, double x)
{
	(void)fputs("<td>", out);
	if (isfinite(x))
		(void)fprintf(out, "%.6g", x);
	else
		(void)fputs("&#8211;", out);
	(void)fputs("</td>", out);
}

static void print_epoch(FILE *out, const struct epoch_row *row)
{
	(void)fprintf(out, "<tr><td>%lld</td>", (long long)row->epoch);
	const double value[] = {row->loss, row->train, row->val, row->test, row->scale, row->ms};
	for (size_t i = 0; i < sizeof value / sizeof *value; i++)
		print_cell(out, value[i]);
	(void)fputs("<td class=\"text\">", out);
	if (!row->applied)
		page_text(out, row->outcome);
	(void)fputs("</td></tr>\n", out);
}

static void print_seed(FILE *out, const struct record *r, const struct seed_record *s)
{
	const int64_t share = MOST_ROWS_OF_ALL / r->seeds,
	              most = share < 1           ? 1
	                     : share < MOST_ROWS ? share
	                                         : MOST_ROWS,
	              stride = 1 + (s->rows - 1) / most;
	(void)fputs("<details><summary>", out);
	if (stride > 1)
		(void)fprintf(out, "One in %lld epochs", (long long)stride);
	else
		(void)fputs("Every epoch", out);
	if (s->fold >= 0)
		(void)fprintf(out, " of fold %d", s->fold);
	if (r->seeds > 1)
		(void)fprintf(out, " of seed %lld", (long long)s->seed);
	(void)fputs(" as a table</summary>\n<div class=\"scroll\"><table class=\"num epochs slim\"><tr>"
	            "<th>epoch</th><th>loss</th><th>training</th><th>validation</th><th>test</th>"
	            "<th>loss scale</th><th>ms</th><th class=\"text\">skipped</th></tr>\n",
	            out);
	for (int64_t k = 0; k < s->rows; k++)
		if (k % stride == 0 || k == s->rows - 1 || !s->row[k].applied)
			print_epoch(out, &s->row[k]);
	(void)fputs("</table></div></details>\n", out);
}

void page_epochs(FILE *out, const struct record *r)
{
	for (int i = 0; i < r->seeds; i++)
		if (r->seed[i].rows)
			print_seed(out, r, &r->seed[i]);
}

/* ---- seeds ---- */

static void print_result(FILE *out, const char *metric, int64_t seed, const hg_train_report *p)
{
	(void)fprintf(out, "<tr><td>%lld</td><td>%d</td><td>%d</td><td>", (long long)seed,
	              p->epochs_run, p->best_epoch);
	page_metric(out, metric, p->best_val_metric);
	(void)fputs("</td><td>", out);
	page_metric(out, metric, p->test_metric);
	(void)fputs("</td>", out);
	print_cell(out, p->final_loss);
	(void)fprintf(out, "<td>%lld</td><td>", (long long)p->steps_skipped);
	page_duration(out, 1e3 * p->epoch_ms_median);
	(void)fputs("</td></tr>\n", out);
}

/* The mean and the sample deviation of one column. */
static void print_mean(FILE *out, const struct results *r, const char *metric, int test)
{
	double sum = 0, squares = 0;
	for (int i = 0; i < r->runs; i++)
		sum += test ? r->report[i].test_metric : r->report[i].best_val_metric;
	const double mean = sum / r->runs;
	for (int i = 0; i < r->runs; i++) {
		const double x = test ? r->report[i].test_metric : r->report[i].best_val_metric;
		squares += (x - mean) * (x - mean);
	}
	(void)fputs("<td>", out);
	page_metric_mean(out, metric, mean, sqrt(squares / (r->runs - 1)), r->runs);
	(void)fputs("</td>", out);
}

void page_seeds(FILE *out, const struct results *r)
{
	const char *metric = r->record.metric;
	if (r->runs < 2 || r->options->folds)
		return;
	(void)fprintf(out,
	              "<section>\n<h2>%d seeds</h2>\n<p class=\"soft\">The same run from other "
	              "beginnings: weights, dropout and their order. Validation and test are those of "
	              "the best epoch.</p>\n<div class=\"scroll\"><table class=\"num seeds\"><tr>"
	              "<th>seed</th><th>epochs</th><th>best</th><th>validation</th><th>test</th>"
	              "<th>last loss</th><th>skipped</th><th>epoch</th></tr>\n",
	              r->runs);
	for (int i = 0; i < r->runs; i++)
		print_result(out, metric, r->options->training.seed + i, &r->report[i]);
	(void)fputs("<tr class=\"total\"><td>mean</td><td></td><td></td>", out);
	print_mean(out, r, metric, 0);
	print_mean(out, r, metric, 1);
	(void)fputs("<td></td><td></td><td></td></tr>\n</table></div>\n</section>\n", out);
}
