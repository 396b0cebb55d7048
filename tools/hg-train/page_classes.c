/* Classes: which are confused with which, and how well each of them is told. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

/* A matrix of more classes does not fit a page; then a list of the most frequent mistakes. */
enum { MATRIX_MOST = 40, MISTAKES = 12 };

struct class_counts {
	int64_t right, said, support; /* said: rows that were predicted as the class */
};

static struct class_counts counts_of(const struct judged *j, int64_t c)
{
	struct class_counts n = {j->confusion[c * j->cols + c], 0, 0};
	for (int64_t k = 0; k < j->cols; k++) {
		n.support += j->confusion[c * j->cols + k];
		n.said += j->confusion[k * j->cols + c];
	}
	return n;
}

/* "3", or "3 Neural_Networks" where the classes have names. */
static void print_name(FILE *out, const struct judged *j, int64_t c)
{
	const char *at = j->name, *end = at ? at + j->name_bytes : NULL;
	(void)fprintf(out, "%lld", (long long)c);
	for (int64_t k = 0; at < end && k < c; k++)
		at += strlen(at) + 1;
	if (at < end && *at) {
		(void)fputs(" <span class=\"soft\">", out);
		page_text(out, at);
		(void)fputs("</span>", out);
	}
}

/* The head of a column is its number, and the name shows when it is pointed at. */
static void print_head(FILE *out, const struct judged *j, int64_t c)
{
	const char *at = j->name, *end = at ? at + j->name_bytes : NULL;
	for (int64_t k = 0; at < end && k < c; k++)
		at += strlen(at) + 1;
	if (at < end) {
		(void)fputs("<th title=\"", out);
		page_text(out, at);
		(void)fprintf(out, "\">%lld</th>", (long long)c);
	} else {
		(void)fprintf(out, "<th>%lld</th>", (long long)c);
	}
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : (double)NAN;
}

static void print_ratio(FILE *out, double x)
{
	if (isfinite(x))
		(void)fprintf(out, "<td>%.3f</td>", x);
	else
		(void)fputs("<td>&#8211;</td>", out);
}

/* ---- per class ---- */

static void print_classes(FILE *out, const struct judged *j)
{
	double f1_sum = 0;
	int64_t f1_count = 0, right = 0;
	(void)fputs("<h3>Every class</h3>\n<div class=\"scroll\"><table class=\"num classes slim\"><tr>"
	            "<th>class</th><th>precision</th><th>recall</th><th>F1</th><th>rows</th>"
	            "<th>right</th></tr>\n",
	            out);
	for (int64_t c = 0; c < j->cols; c++) {
		const struct class_counts n = counts_of(j, c);
		const double f1 = ratio(2.0 * (double)n.right, (double)(n.support + n.said));
		f1_sum += isfinite(f1) ? f1 : 0;
		f1_count += isfinite(f1);
		right += n.right;
		(void)fputs("<tr><td>", out);
		print_name(out, j, c);
		(void)fputs("</td>", out);
		print_ratio(out, ratio((double)n.right, (double)n.said));
		print_ratio(out, ratio((double)n.right, (double)n.support));
		print_ratio(out, f1);
		(void)fprintf(out, "<td>%lld</td><td>%lld</td></tr>\n", (long long)n.support,
		              (long long)n.right);
	}
	(void)fputs("<tr class=\"total\"><td>all</td><td></td><td></td>", out);
	print_ratio(out, ratio(f1_sum, (double)f1_count));
	(void)fprintf(out, "<td>%lld</td><td>%lld</td></tr>\n</table></div>\n", (long long)j->counted,
	              (long long)right);
	(void)fputs("<p class=\"soft small\">Precision: of the rows predicted as the class, the part "
	            "that is of it. Recall: of its rows, the part that was found. F1: their harmonic "
	            "mean; below, the mean over the classes. A dash: no such row.</p>\n",
	            out);
}

/* ---- the matrix ---- */

/* The share of its row decides how strong the colour is. At most 44 %: a number on it then has a
 * contrast of 4.5 in both colour schemes. */
static void print_cell(FILE *out, const struct judged *j, int64_t i, int64_t k, int64_t support)
{
	const int64_t n = j->confusion[i * j->cols + k];
	const double part = support ? (double)n / (double)support : 0;
	if (!n) {
		(void)fprintf(out, "<td%s></td>", i == k ? " class=\"right\"" : "");
		return;
	}
	(void)fprintf(out,
	              "<td%s style=\"background:color-mix(in srgb,var(--%s) %.0f%%,transparent)\">"
	              "%lld</td>",
	              i == k ? " class=\"right\"" : "", i == k ? "good" : "bad", 6 + 38 * part,
	              (long long)n);
}

static void print_matrix(FILE *out, const struct judged *j)
{
	(void)fputs("<h3>Confusion matrix</h3>\n<p class=\"soft\">A row is the true class, a column "
	            "the predicted one; the colour is the share of the row.</p>\n"
	            "<div class=\"scroll\"><table class=\"matrix\"><tr><th>true \\ predicted</th>",
	            out);
	for (int64_t k = 0; k < j->cols; k++)
		print_head(out, j, k);
	(void)fputs("</tr>\n", out);
	for (int64_t i = 0; i < j->cols; i++) {
		const struct class_counts n = counts_of(j, i);
		(void)fputs("<tr><th>", out);
		print_name(out, j, i);
		(void)fputs("</th>", out);
		for (int64_t k = 0; k < j->cols; k++)
			print_cell(out, j, i, k, n.support);
		(void)fputs("</tr>\n", out);
	}
	(void)fputs("</table></div>\n", out);
}

/* ---- mistakes ---- */

struct mistake {
	int64_t count, truth, said;
};

static int by_count(const void *a, const void *b)
{
	const struct mistake *x = a, *y = b;
	return x->count != y->count   ? (x->count < y->count) - (x->count > y->count)
	       : x->truth != y->truth ? (x->truth > y->truth) - (x->truth < y->truth)
	                              : (x->said > y->said) - (x->said < y->said);
}

static void print_mistakes(FILE *out, const struct judged *j)
{
	struct mistake *all = calloc((size_t)(j->cols * j->cols) + 1, sizeof *all);
	int64_t count = 0;
	for (int64_t i = 0; all && i < j->cols; i++)
		for (int64_t k = 0; k < j->cols; k++)
			if (i != k && j->confusion[i * j->cols + k])
				all[count++] = (struct mistake){j->confusion[i * j->cols + k], i, k};
	if (all)
		qsort(all, (size_t)count, sizeof *all, by_count);
	if (count) {
		(void)fputs(
		    "<h3>Most frequent mistakes</h3>\n<div class=\"scroll\"><table class=\"num slim\">"
		    "<tr><th>rows of class</th><th>taken for</th><th>rows</th><th>of the class"
		    "</th></tr>\n",
		    out);
		for (int64_t m = 0; m < count && m < MISTAKES; m++) {
			(void)fputs("<tr><td>", out);
			print_name(out, j, all[m].truth);
			(void)fputs("</td><td>", out);
			print_name(out, j, all[m].said);
			(void)fprintf(out, "</td><td>%lld</td><td>", (long long)all[m].count);
			page_share(out, (double)all[m].count, (double)counts_of(j, all[m].truth).support);
			(void)fputs("</td></tr>\n", out);
		}
		(void)fputs("</table></div>\n", out);
	}
	free(all);
}

void page_classes(FILE *out, const struct judged *j)
{
	if (j->missed)
		(void)fprintf(out,
		              "<p><span class=\"badge bad\">%lld rows</span> have no prediction: their "
		              "logits are not numbers.</p>\n",
		              (long long)j->missed);
	if (j->cols <= MATRIX_MOST)
		print_matrix(out, j);
	if (j->cols > 6)
		print_mistakes(out, j);
	print_classes(out, j);
}
