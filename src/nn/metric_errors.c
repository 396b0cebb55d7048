/* Metrics of real targets, each the mean over the columns that have one of
 *
 *     MAE     1/q * sum of |x - t|
 *     RMSE    sqrt(1/q * sum of (x - t)^2)
 *
 * where q is the number of targets of the column. */
#include "nn/metric.h"

static double absolute(double x)
{
	return fabs(x);
}

static double square(double x)
{
	return x * x;
}

static double same(double x)
{
	return x;
}

static double mean_of_columns(const hg_metric_data *d, double (*of)(double error),
                              double (*finish)(double mean))
{
	double sum = 0.0;
	int64_t columns = 0;
	for (int64_t c = 0; c < d->cols; c++) {
		double column = 0.0;
		int64_t counted = 0;
		for (int64_t r = 0; r < d->rows; r++)
			if (hg__metric_has_target(d, r, c)) {
				const int64_t at = r * d->cols + c;
				counted++;
				column += of((double)d->logits[at] - (double)d->targets[at]);
			}
		columns += counted > 0;
		sum += counted ? finish(column / (double)counted) : 0.0;
	}
	return columns ? sum / (double)columns : (double)NAN;
}

hg_status hg__metric_mae(const hg_metric_data *d, double *value)
{
	*value = mean_of_columns(d, absolute, same);
	return HG_OK;
}

hg_status hg__metric_rmse(const hg_metric_data *d, double *value)
{
	*value = mean_of_columns(d, square, sqrt);
	return HG_OK;
}
