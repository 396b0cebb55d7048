/* Metrics of the order of logits: how far the positives come before the negatives. Equal logits are
 * one threshold.
 *
 *     area               sum over thresholds of p (N before + n / 2) / (P N), where p positives and
 *                        n negatives have this logit, N before of all N negatives a smaller one,
 *                        and P is the number of positives
 *     average precision  sum over thresholds, largest first, of p / P * (positives so far / all so
 *                        far)
 *
 * The first is the rank statistic of Mann and Whitney with mean ranks, which is the trapezoidal
 * area under the ROC curve. */
#include "nn/metric.h"

#include <stdlib.h>

struct scored {
	double score;
	int positive;
};

static int smaller_first(const void *a, const void *b)
{
	const double x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
	return (x > y) - (x < y);
}

/* The difference of two infinities of one sign is 0, not NaN: the logits are equal. */
static double difference(double a, double b)
{
	return isinf(a) && isinf(b) && (a > 0.0) == (b > 0.0) ? 0.0 : a - b;
}

/* Rows that have a truth in column c, sorted; two classes are one column. Returns their number, or
 * -1 if a logit is NaN. */
static int64_t sort_column(const hg_metric_data *d, int64_t c, struct scored *s)
{
	int64_t count = 0;
	for (int64_t r = 0; r < d->rows; r++) {
		const float *x = d->logits + r * d->cols;
		if (d->labels ? !hg__metric_has_label(d, r) : !hg__metric_has_target(d, r, c))
			continue;
		s[count].positive = d->labels ? d->labels[r] == 1 : d->targets[r * d->cols + c] > 0.5f;
		s[count].score = d->labels ? difference((double)x[1], (double)x[0]) : (double)x[c];
		if (isnan(s[count++].score))
			return -1;
	}
	qsort(s, (size_t)count, sizeof *s, smaller_first);
	return count;
}

/* The end of the rows with the score of row i. */
static int64_t same_score(const struct scored *s, int64_t i, int64_t count)
{
	int64_t end = i + 1;
	while (end < count && s[end].score <= s[i].score)
		end++;
	return end;
}

static int64_t positives_in(const struct scored *s, int64_t begin, int64_t end)
{
	int64_t positives = 0;
	for (int64_t i = begin; i < end; i++)
		positives += s[i].positive;
	return positives;
}

static double area(const struct scored *s, int64_t count, int64_t positives)
{
	double twice = 0.0; /* exact up to 2^53 */
	int64_t before = 0;
	for (int64_t i = 0, end; i < count; i = end) {
		end = same_score(s, i, count);
		const int64_t p = positives_in(s, i, end), n = end - i - p;
		twice += (double)p * (double)(2 * before + n);
		before += n;
	}
	return twice / 2.0 / (double)positives / (double)(count - positives);
}

static double average_precision(const struct scored *s, int64_t count, int64_t positives)
{
	/* From the smallest logit: so far are those at and above a threshold. */
	double sum = 0.0;
	int64_t left = positives;
	for (int64_t i = 0, end; i < count; i = end) {
		end = same_score(s, i, count);
		const int64_t p = positives_in(s, i, end);
		sum += (double)p * ((double)left / (double)(count - i));
		left -= p;
	}
	return sum / (double)positives;
}

/* The mean over the columns that have both a 0 and a 1. */
static hg_status mean_of_columns(const hg_metric_data *d,
                                 double (*of)(const struct scored *s, int64_t n, int64_t positives),
                                 double *value)
{
	struct scored *s = calloc((size_t)d->rows + 1, sizeof *s);
	double sum = 0.0;
	int64_t columns = 0;
	if (!s)
		return HG_ERR_NOMEM;
	for (int64_t c = 0; c < (d->labels ? 1 : d->cols); c++) {
		const int64_t count = sort_column(d, c, s), positives = positives_in(s, 0, count);
		if (count < 0)
			sum = (double)NAN;
		if (count >= 0 && (positives == 0 || positives == count))
			continue;
		columns++;
		sum += count < 0 ? 0.0 : of(s, count, positives);
	}
	free(s);
	*value = columns ? sum / (double)columns : (double)NAN;
	return HG_OK;
}

hg_status hg__metric_roc_auc(const hg_metric_data *d, double *value)
{
	return mean_of_columns(d, area, value);
}

hg_status hg__metric_average_precision(const hg_metric_data *d, double *value)
{
	return mean_of_columns(d, average_precision, value);
}
