/* Several runs side by side, from their JSON lines. */
#include <math.h>
#include <string.h>

#include "halfgraph/version.h"
#include "page.h"

static void print_key(FILE *out, const struct record *r, int k)
{
	(void)fputs("<span class=\"key\">", out);
	page_swatch(out, k % PAGE_COLOURS, 0);
	(void)fputs("</span>", out);
	page_text(out, r->name);
}

/* ---- outcomes ---- */

/* Without a summary the run is not over: then what its last epoch tells. */
static const char *state_of(const struct record *r)
{
	return !r->complete     ? "not over"
	       : !r->finite     ? "not a number"
	       : !r->learnt     ? "nothing learnt"
	       : r->interrupted ? "interrupted"
	                        : "done";
}

static int64_t epochs_of(const struct record *r)
{
	int64_t count = 0;
	for (int i = 0; i < r->seeds; i++)
		count += r->seed[i].known ? r->seed[i].epochs : r->seed[i].rows;
	return count;
}

static double last_loss(const struct record *r)
{
	const struct seed_record *s = &r->seed[0];
	return s->known ? s->final_loss : s->rows ? s->row[s->rows - 1].loss : (double)NAN;
}

static int64_t finished(const struct record *r)
{
	int64_t count = 0;
	for (int i = 0; i < r->seeds; i++)
		count += r->seed[i].known;
	return count;
}

static void print_run(FILE *out, const struct record *r, int k)
{
	(void)fputs("<tr><td>", out);
	print_key(out, r, k);
	(void)fprintf(out, "<small>%s</small></td><td>", state_of(r));
	page_metric_mean(out, r->metric, r->complete ? r->test_mean : (double)NAN, r->test_std,
	                 finished(r));
	(void)fputs("</td><td>", out);
	page_metric(out, r->metric, r->seed[0].known ? r->seed[0].val : (double)NAN);
	(void)fputs("</td><td>", out);
	page_number(out, last_loss(r));
	(void)fprintf(out, "</td><td>%d</td><td>", r->seeds);
	page_count(out, epochs_of(r));
	(void)fputs("</td><td>", out);
	page_count(out, r->skipped);
	(void)fputs("</td><td>", out);
	page_duration(out, 1e3 * r->epoch_ms);
	(void)fputs("</td><td>", out);
	page_bytes(out, r->peak_bytes);
	(void)fputs("</td></tr>\n", out);
}

static void print_outcomes(FILE *out, const struct comparison *c)
{
	(void)fputs(
	    "<section>\n<h2>Outcomes</h2>\n<p class=\"soft\">Validation and last loss are "
	    "those of the first seed or fold; the test value is the mean over all of them, "
	    "with their deviation.</p>\n<div class=\"scroll\"><table class=\"num outcomes\"><tr>"
	    "<th>run</th><th>test</th><th>validation</th><th>last loss</th><th>runs</th>"
	    "<th>epochs</th><th>skipped</th><th>epoch</th><th>memory</th></tr>\n",
	    out);
	for (int k = 0; k < c->runs; k++)
		print_run(out, &c->run[k], k);
	(void)fputs("</table></div>\n</section>\n", out);
}

/* ---- settings ---- */

static int differs(const struct comparison *c, const char *name)
{
	const char *first = record_find(&c->run[0], name);
	for (int k = 1; k < c->runs; k++) {
		const char *value = record_find(&c->run[k], name);
		if (!value != !first || (value && strcmp(value, first) != 0))
			return 1;
	}
	return 0;
}

static void print_setting(FILE *out, const struct comparison *c, const char *name)
{
	(void)fputs("<tr><td>", out);
	page_name(out, name);
	for (int k = 0; k < c->runs; k++) {
		const char *value = record_find(&c->run[k], name);
		(void)fputs("</td><td class=\"text\">", out);
		if (value)
			page_text(out, value);
		else
			(void)fputs("&#8211;", out);
	}
	(void)fputs("</td></tr>\n", out);
}

/* Is the name of this setting that of an earlier run too? Then it was printed. */
static int seen_before(const struct comparison *c, int run, const char *name)
{
	for (int k = 0; k < run; k++)
		if (record_find(&c->run[k], name))
			return 1;
	return 0;
}

/* The settings that differ, or those that are the same. Returns how many there are. */
static int print_rows(FILE *out, const struct comparison *c, int different)
{
	int count = 0;
	for (int k = 0; k < c->runs; k++)
		for (int i = 0; i < c->run[k].settings; i++) {
			const char *name = c->run[k].setting[i].name;
			if (seen_before(c, k, name) || differs(c, name) != different)
				continue;
			count++;
			if (out)
				print_setting(out, c, name);
		}
	return count;
}

static void print_table(FILE *out, const struct comparison *c, int different)
{
	(void)fputs("<div class=\"scroll\"><table class=\"num differs\"><tr><th>setting</th>", out);
	for (int k = 0; k < c->runs; k++) {
		(void)fputs("<th class=\"text\">", out);
		print_key(out, &c->run[k], k);
		(void)fputs("</th>", out);
	}
	(void)fputs("</tr>\n", out);
	(void)print_rows(out, c, different);
	(void)fputs("</table></div>\n", out);
}

static void print_settings(FILE *out, const struct comparison *c)
{
	const int different = print_rows(NULL, c, 1), same = print_rows(NULL, c, 0);
	(void)fputs("<section>\n<h2>Settings that differ</h2>\n", out);
	if (different)
		print_table(out, c, 1);
	else
		(void)fputs("<p>None of those that the files tell: the runs were set up alike.</p>\n", out);
	if (same) {
		(void)fprintf(out, "<details><summary>%d settings that are the same</summary>\n", same);
		print_table(out, c, 0);
		(void)fputs("</details>\n", out);
	}
	(void)fputs("</section>\n", out);
}

/* ---- the page ---- */

/* The best run by its test value; -1: they have no common metric, or none has a value. */
static int best_of(const struct comparison *c)
{
	const hg_metric metric = hg_metric_find(c->run[0].metric);
	int best = -1;
	for (int k = 0; k < c->runs; k++) {
		if (metric == HG_METRIC_NONE || strcmp(c->run[k].metric, c->run[0].metric) != 0)
			return -1;
		const double x = c->run[k].test_mean;
		const double most = best < 0 ? (double)NAN : c->run[best].test_mean;
		if (isfinite(x) && (best < 0 || (hg_metric_rises(metric) ? x > most : x < most)))
			best = k;
	}
	return best;
}

static void print_title(FILE *out, const struct comparison *c)
{
	const int best = best_of(c);
	(void)fprintf(out, "<h1>%d runs</h1>\n<p class=\"lead\">", c->runs);
	if (best >= 0) {
		page_text(out, c->run[best].name);
		(void)fprintf(out, " has the best test %s: ", page_metric_name(c->run[best].metric));
		page_metric_mean(out, c->run[best].metric, c->run[best].test_mean, c->run[best].test_std,
		                 finished(&c->run[best]));
		(void)fputs(".", out);
	} else
		(void)fputs("They have no test value of the same metric, by which one would be the best.",
		            out);
	(void)fputs("</p>\n", out);
}

void page_compare_print(FILE *out, const void *comparison)
{
	const struct comparison *c = comparison;
	page_begin(out);
	(void)fprintf(out, "hg-train: %d runs", c->runs);
	page_begin_body(out, page_train_style);
	(void)fputs("<header>\n", out);
	page_brand(out, "hg-train", 0, "good");
	(void)fprintf(out, "%d runs", c->runs);
	page_brand_end(out);
	print_title(out, c);
	(void)fputs("</header>\n<main>\n", out);
	print_outcomes(out, c);
	print_settings(out, c);
	page_curves(out, c->run, c->runs, "A colour for each run, a thin line for each seed or fold. ");
	(void)fprintf(out, "</main>\n<footer>HalfGraph %s.</footer>\n</body>\n</html>\n",
	              hg_version_string());
}
