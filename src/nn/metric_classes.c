/* Metrics that count right and wrong predictions, of classes or of several labels.
 *
 *     accuracy   right / all
 *     F1         2 TP / (2 TP + FP + FN) */
#include "nn/metric.h"

#include <stdlib.h>

/* Of one class or column. */
struct outcomes {
	int64_t true_positive, false_positive, false_negative, seen;
};

/* The first largest logit of a row; -1 if one is NaN. */
static int64_t predicted_class(const hg_metric_data *d, int64_t r)
{
	const float *x = d->logits + r * d->cols;
	int64_t best = 0;
	for (int64_t c = 0; c < d->cols; c++) {
		if (isnan(x[c]))
			return -1;
		best = x[c] > x[best] ? c : best;
	}
	return best;
}

/* Is a logit on the right side of 0 for this target? A NaN is on neither side. */
static int is_right(float x, float target)
{
	return target > 0.5f ? x > 0.0f : x <= 0.0f;
}

/* ---- accuracy ---- */

int64_t hg__metric_count_right(const hg_metric_data *d, int64_t *counted)
{
	int64_t right = 0;
	*counted = 0;
	for (int64_t r = 0; r < d->rows; r++)
		if (hg__metric_has_label(d, r)) {
			++*counted;
			right += predicted_class(d, r) == d->labels[r];
		}
	return right;
}

static double accuracy_of_classes(const hg_metric_data *d)
{
	int64_t counted;
	const int64_t right = hg__metric_count_right(d, &counted);
	return counted ? (double)right / (double)counted : (double)NAN;
}

hg_status hg__metric_accuracy(const hg_metric_data *d, double *value)
{
	double sum = 0.0;
	int64_t columns = 0;
	if (d->labels) {
		*value = accuracy_of_classes(d);
		return HG_OK;
	}
	for (int64_t c = 0; c < d->cols; c++) {
		int64_t right = 0, counted = 0;
		for (int64_t r = 0; r < d->rows; r++)
			if (hg__metric_has_target(d, r, c)) {
				counted++;
				right += is_right(d->logits[r * d->cols + c], d->targets[r * d->cols + c]);
			}
		columns += counted > 0;
		sum += counted ? (double)right / (double)counted : 0.0;
	}
	*value = columns ? sum / (double)columns : (double)NAN;
	return HG_OK;
}

/* ---- F1 ---- */

static void count_class(const hg_metric_data *d, int64_t r, struct outcomes *of)
{
	const int64_t predicted = predicted_class(d, r), label = d->labels[r];
	of[label].seen++;
	if (predicted == label) {
		of[label].true_positive++;
		return;
	}
	of[label].false_negative++;
	if (predicted >= 0) {
		of[predicted].seen++;
		of[predicted].false_positive++;
	}
}

static void count_target(float x, float target, struct outcomes *of)
{
	const int right = is_right(x, target);
	of->seen++;
	of->true_positive += right && target > 0.5f;
	of->false_negative += !right && target > 0.5f;
	of->false_positive += !right && target <= 0.5f;
}

/* [cols], to be freed; NULL: no memory. */
static struct outcomes *count_outcomes(const hg_metric_data *d)
{
	struct outcomes *of = calloc((size_t)d->cols + 1, sizeof *of);
	for (int64_t r = 0; of && r < d->rows; r++) {
		if (d->labels && hg__metric_has_label(d, r))
			count_class(d, r, of);
		for (int64_t c = 0; d->targets && c < d->cols; c++)
			if (hg__metric_has_target(d, r, c))
				count_target(d->logits[r * d->cols + c], d->targets[r * d->cols + c], &of[c]);
	}
	return of;
}

static double f1(const struct outcomes *o)
{
	const int64_t all = 2 * o->true_positive + o->false_positive + o->false_negative;
	return all ? 2.0 * (double)o->true_positive / (double)all : 0.0;
}

hg_status hg__metric_micro_f1(const hg_metric_data *d, double *value)
{
	struct outcomes *of = count_outcomes(d), total = {0};
	if (!of)
		return HG_ERR_NOMEM;
	for (int64_t c = 0; c < d->cols; c++) {
		total.true_positive += of[c].true_positive;
		total.false_positive += of[c].false_positive;
		total.false_negative += of[c].false_negative;
		total.seen += of[c].seen;
	}
	free(of);
	*value = total.seen ? f1(&total) : (double)NAN;
	return HG_OK;
}

hg_status hg__metric_macro_f1(const hg_metric_data *d, double *value)
{
	struct outcomes *of = count_outcomes(d);
	double sum = 0.0;
	int64_t seen = 0;
	if (!of)
		return HG_ERR_NOMEM;
	for (int64_t c = 0; c < d->cols; c++) {
		seen += of[c].seen > 0;
		sum += of[c].seen ? f1(&of[c]) : 0.0;
	}
	free(of);
	*value = seen ? sum / (double)seen : (double)NAN;
	return HG_OK;
}
