/* Give every column of the features mean 0 and standard deviation 1. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* x [nodes, features] := the features as dense f32. */
static hg_status copy_features(const hg_dataset *d, float **x, char *message)
{
	int64_t count = 0;
	if (__builtin_mul_overflow(d->nodes, d->features, &count))
		count = -1; /* more than any memory */
	HG__TRY(hg__data_alloc(count, sizeof **x, "dense features", (void **)x, message));
	if (d->feat) {
		for (int64_t i = 0; i < count; i++)
			(*x)[i] = hg__data_feature(d, i);
		return HG_OK;
	}
	memset(*x, 0, (size_t)count * sizeof **x);
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++)
			(*x)[i * d->features + d->feat_col[e]] = d->feat_value ? d->feat_value[e] : 1.0f;
	return HG_OK;
}

/* The mean first and the deviations from it then, in f64: the difference of two large sums of
 * squares would lose the digits of a column that varies little. Rows are read in order, so that the
 * memory is. */
static void standardize(float *x, int64_t rows, int64_t columns, double *mean, double *scale)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			mean[j] += (double)x[i * columns + j];
	for (int64_t j = 0; j < columns; j++)
		mean[j] /= (double)rows;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			const double from_mean = (double)x[i * columns + j] - mean[j];
			scale[j] += from_mean * from_mean;
		}
	for (int64_t j = 0; j < columns; j++) {
		const double deviation = sqrt(scale[j] / (double)rows);
		/* equal values differ from their mean by the rounding of its sum at most */
		scale[j] = deviation > 1e-12 * fabs(mean[j]) ? 1.0 / deviation : 0.0;
	}
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			x[i * columns + j] = (float)(((double)x[i * columns + j] - mean[j]) * scale[j]);
}

hg_status hg_dataset_standardize(hg_dataset *d, char *message)
{
	float *x = NULL;
	double *mean = NULL;
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "standardize: dataset is NULL");
	if (d->features == 0 || d->nodes == 0)
		return HG_OK;
	hg_status status = copy_features(d, &x, message);
	if (status == HG_OK)
		status = hg__data_alloc(2 * d->features, sizeof *mean, "means of features", (void **)&mean,
		                        message);
	if (status < 0) {
		free(x);
		return status;
	}
	memset(mean, 0, 2 * (size_t)d->features * sizeof *mean);
	standardize(x, d->nodes, d->features, mean, mean + d->features);
	free(mean);
	const hg_dataset fresh = {.features = d->features, .feat_dtype = HG_F32, .feat = x};
	hg__replace_features(d, &fresh);
	return HG_OK;
}
