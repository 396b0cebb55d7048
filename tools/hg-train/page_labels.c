/* Several labels: of each one right and wrong predictions, and where the two kinds of mistakes
 * are. */
#include <math.h>

#include "page.h"

enum { TRUE_POSITIVE, FALSE_POSITIVE, FALSE_NEGATIVE, TRUE_NEGATIVE };

static void print_ratio(FILE *out, int64_t a, int64_t b)
{
	if (b > 0)
		(void)fprintf(out, "<td>%.3f</td>", (double)a / (double)b);
	else
		(void)fputs("<td>&#8211;</td>", out);
}

static void print_label(FILE *out, const struct judged *j, int64_t c)
{
	const int64_t *n = j->counts[c];
	const int64_t tp = n[TRUE_POSITIVE], fp = n[FALSE_POSITIVE], fn = n[FALSE_NEGATIVE];
	(void)fprintf(out, "<tr><td>%lld</td>", (long long)c);
	print_ratio(out, tp, tp + fp);
	print_ratio(out, tp, tp + fn);
	print_ratio(out, 2 * tp, 2 * tp + fp + fn);
	if (isfinite(j->area[c]))
		(void)fprintf(out, "<td>%.3f</td>", j->area[c]);
	else
		(void)fputs("<td>&#8211;</td>", out);
	(void)fprintf(out, "<td>%lld</td><td>%lld</td><td>%lld</td><td>%lld</td><td>%lld</td></tr>\n",
	              (long long)(tp + fn), (long long)tp, (long long)fn, (long long)fp,
	              (long long)n[TRUE_NEGATIVE]);
}

void page_labels(FILE *out, const struct judged *j)
{
	(void)fputs("<div class=\"scroll\"><table class=\"num labels\"><tr><th>label</th>"
	            "<th>precision</th><th>recall</th><th>F1</th><th>ROC-AUC</th><th>positive</th>"
	            "<th>found</th><th>missed</th><th>false alarm</th><th>rightly not</th></tr>\n",
	            out);
	for (int64_t c = 0; c < j->cols; c++)
		print_label(out, j, c);
	(void)fputs("</table></div>\n<p class=\"soft small\">A label is predicted where its logit is "
	            "above 0. Positive: rows that have the label. ROC-AUC: how often a row with the "
	            "label has a larger logit than one without. A dash: not defined.</p>\n",
	            out);
}
