/* Values, times and sizes on the page. */
#include <math.h>
#include <string.h>

#include "page.h"
#include "task.h"

#define DASH "&#8211;"

void page_metric(FILE *out, const char *metric, double value)
{
	char text[32];
	if (!isfinite(value)) {
		(void)fputs(DASH, out);
		return;
	}
	task_value(hg_metric_find(metric), value, text);
	page_text(out, text);
}

void page_metric_mean(FILE *out, const char *metric, double mean, double deviation, int64_t of)
{
	char text[32];
	page_metric(out, metric, mean);
	if (of < 2 || !isfinite(mean) || !isfinite(deviation))
		return;
	task_value(hg_metric_find(metric), deviation, text);
	text[strcspn(text, " ")] = 0; /* the unit stands behind the mean */
	(void)fprintf(out, " &#177; %s", text);
}

void page_duration(FILE *out, double us)
{
	if (!isfinite(us))
		(void)fputs(DASH, out);
	else if (us >= 1e6)
		(void)fprintf(out, "%.3g s", us / 1e6);
	else if (us >= 1e3)
		(void)fprintf(out, "%.3g ms", us / 1e3);
	else
		(void)fprintf(out, "%.3g &#181;s", us);
}

void page_bytes(FILE *out, double bytes)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	int k = 0;
	if (!isfinite(bytes)) {
		(void)fputs(DASH, out);
		return;
	}
	for (; bytes >= 1000 && k < 4; k++)
		bytes /= 1024;
	(void)fprintf(out, k && bytes < 100 ? "%.3g %s" : "%.0f %s", bytes, unit[k]);
}

void page_share(FILE *out, double part, double whole)
{
	if (whole > 0 && isfinite(part))
		(void)fprintf(out, part / whole < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * part / whole);
	else
		(void)fputs(DASH, out);
}

const char *page_metric_name(const char *metric)
{
	static const char *const names[][2] = {
	    {"roc-auc", "ROC-AUC"},   {"mae", "MAE"},
	    {"rmse", "RMSE"},         {"micro-f1", "micro-F1"},
	    {"macro-f1", "macro-F1"}, {"average-precision", "average precision"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i][0], metric) == 0)
			return names[i][1];
	return metric;
}
