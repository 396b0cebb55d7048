/* All metrics of the task on the page. */
#include <math.h>

#include "page.h"

/* Is a value of the metric known, of any set? */
static int is_known(const struct results *r, hg_metric metric)
{
	double deviation;
	int known = 0;
	for (int set = 0; set < SETS; set++)
		known |= !isnan(metrics_mean(r->metrics, r->runs, metric, set, &deviation));
	return known;
}

static void print_metric(FILE *out, const struct results *r, hg_metric metric)
{
	const char *name = hg_metric_name(metric);
	(void)fprintf(out, "<tr><td>%s</td>", page_metric_name(name));
	for (int set = 0; set < SETS; set++) {
		double deviation;
		const double mean = metrics_mean(r->metrics, r->runs, metric, set, &deviation);
		(void)fputs("<td>", out);
		page_metric_mean(out, name, mean, deviation, r->runs);
		(void)fputs("</td>", out);
	}
	(void)fputs("</tr>\n", out);
}

void page_metrics(FILE *out, const struct results *r)
{
	if (!r->runs)
		return;
	(void)fputs("<section>\n<h2>Metrics</h2>\n<p class=\"soft\">With the weights of the ", out);
	if (r->validated)
		(void)fprintf(out, "best epoch, which the %s of the validation set decides",
		              page_metric_name(r->record.metric));
	else
		(void)fputs("last epoch, because there is no validation set", out);
	(void)fprintf(out,
	              "%s.</p>\n"
	              "<div class=\"scroll\"><table class=\"num metrics\"><tr><th>metric</th>"
	              "<th>training</th><th>validation</th><th>test</th></tr>\n",
	              r->runs > 1 ? ": means over the runs, and their deviations" : "");
	for (int k = HG_METRIC_NONE + 1; k < METRICS; k++)
		if (metrics_tells((hg_metric)k, r->config.loss, r->config.model.out_features) &&
		    is_known(r, (hg_metric)k))
			print_metric(out, r, (hg_metric)k);
	(void)fputs("</table></div>\n</section>\n", out);
}
