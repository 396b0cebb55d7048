/* The table of metrics, and the checks before one is computed. */
#include "nn/metric.h"

#include <string.h>

#include "core/versioned.h"

/* What truth a metric is of. */
enum { CLASSES = 1, TWO_CLASSES = 2, LABELS = 4, NUMBERS = 8 };

static const struct row {
	const char *name;
	int of, rises;
	hg_status (*compute)(const hg_metric_data *d, double *value);
} metrics[] = {
    [HG_METRIC_ACCURACY] = {"accuracy", CLASSES | LABELS, 1, hg__metric_accuracy},
    [HG_METRIC_MICRO_F1] = {"micro-f1", CLASSES | LABELS, 1, hg__metric_micro_f1},
    [HG_METRIC_MACRO_F1] = {"macro-f1", CLASSES | LABELS, 1, hg__metric_macro_f1},
    [HG_METRIC_ROC_AUC] = {"roc-auc", TWO_CLASSES | LABELS, 1, hg__metric_roc_auc},
    [HG_METRIC_AVERAGE_PRECISION] = {"average-precision", TWO_CLASSES | LABELS, 1,
                                     hg__metric_average_precision},
    [HG_METRIC_MAE] = {"mae", NUMBERS, 0, hg__metric_mae},
    [HG_METRIC_RMSE] = {"rmse", NUMBERS, 0, hg__metric_rmse},
};
#define METRICS ((int)(sizeof metrics / sizeof metrics[0]))

static const struct row *find_row(hg_metric metric)
{
	const int k = (int)metric;
	return k > 0 && k < METRICS ? &metrics[k] : NULL;
}

const char *hg_metric_name(hg_metric metric)
{
	const struct row *row = find_row(metric);
	return row ? row->name : NULL;
}

hg_metric hg_metric_find(const char *name)
{
	for (int k = 1; name && k < METRICS; k++)
		if (strcmp(metrics[k].name, name) == 0)
			return (hg_metric)k;
	return HG_METRIC_NONE;
}

int hg_metric_rises(hg_metric metric)
{
	const struct row *row = find_row(metric);
	return !row || row->rises;
}

int hg_metric_fits(hg_metric metric, int classes, int64_t cols)
{
	const struct row *row = find_row(metric);
	if (!row)
		return 0;
	return classes ? row->of & CLASSES || (row->of & TWO_CLASSES && cols == 2)
	               : (row->of & (LABELS | NUMBERS)) != 0;
}

/* Every label is below cols, and every target of a metric of labels is 0 or 1. */
static int in_range(const hg_metric_data *d, int of)
{
	for (int64_t r = 0; d->labels && r < d->rows; r++)
		if (d->labels[r] >= d->cols)
			return 0;
	for (int64_t r = 0; d->targets && of & LABELS && r < d->rows; r++)
		for (int64_t c = 0; c < d->cols; c++) {
			const float t = d->targets[r * d->cols + c];
			if (hg__metric_has_target(d, r, c) && !(t <= 0.0f && t >= 0.0f) &&
			    !(t <= 1.0f && t >= 1.0f))
				return 0;
		}
	return 1;
}

hg_status hg_metric_compute(hg_metric metric, const hg_metric_data *data, double *value)
{
	const struct row *row = find_row(metric);
	hg_metric_data d = HG_METRIC_DATA_INIT;
	if (!value)
		return HG_ERR_ARG;
	*value = (double)NAN;
	if (!row || !data || !hg__struct_read(&d, sizeof d, data) || d.rows < 0 || d.cols < 0 ||
	    !d.labels == !d.targets || (d.rows && d.cols && !d.logits))
		return HG_ERR_ARG;
	if (!hg_metric_fits(metric, d.labels != NULL, d.cols))
		return HG_ERR_UNSUPPORTED;
	return in_range(&d, row->of) ? row->compute(&d, value) : HG_ERR_RANGE;
}
