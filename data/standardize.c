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
static void measure(const float *x, int64_t rows, int64_t columns, double *mean, double *deviation)
{
	memset(mean, 0, (size_t)columns * sizeof *mean);
	memset(deviation, 0, (size_t)columns * sizeof *deviation);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			mean[j] += (double)x[i * columns + j];
	for (int64_t j = 0; j < columns; j++)
		mean[j] /= (double)rows;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			const double from_mean = (double)x[i * columns + j] - mean[j];
			deviation[j] += from_mean * from_mean;
		}
	for (int64_t j = 0; j < columns; j++) {
		deviation[j] = sqrt(deviation[j] / (double)rows);
		/* equal values differ from their mean by the rounding of its sum at most */
		if (!(deviation[j] > 1e-12 * fabs(mean[j])))
			deviation[j] = 0.0;
	}
}

/* scale receives 1 / deviation, 0 for 0. */
static void standardize(float *x, int64_t rows, int64_t columns, const double *mean,
                        const double *deviation, double *scale)
{
	for (int64_t j = 0; j < columns; j++)
		scale[j] = deviation[j] > 0.0 ? 1.0 / deviation[j] : 0.0;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			x[i * columns + j] = (float)(((double)x[i * columns + j] - mean[j]) * scale[j]);
}

/* mean, deviation := those that lead from the values before the first of two steps to the ones
 * after the second: ((x - m) / s - mean) / deviation = (x - (m + s mean)) / (s deviation). What
 * became 0 in the first step stays 0. */
static void compose(const double *m, const double *s, int64_t columns, double *mean,
                    double *deviation)
{
	for (int64_t j = 0; j < columns; j++) {
		mean[j] = m[j] + s[j] * mean[j];
		deviation[j] *= s[j];
	}
}

/* What a step needs: dense values, and of each column its mean, its deviation and room. */
struct columns {
	float *x;
	double *mean, *deviation, *scale;
};

static void columns_free(struct columns *c)
{
	free(c->x);
	free(c->mean);
	free(c->deviation);
	free(c->scale);
}

static hg_status columns_alloc(const hg_dataset *d, struct columns *c, char *message)
{
	*c = (struct columns){.x = NULL};
	HG__TRY(copy_features(d, &c->x, message));
	HG__TRY(hg__data_alloc(d->features, sizeof *c->mean, "means of features", (void **)&c->mean,
	                       message));
	HG__TRY(hg__data_alloc(d->features, sizeof *c->scale, "deviations of features",
	                       (void **)&c->scale, message));
	return hg__data_alloc(d->features, sizeof *c->deviation, "deviations of features",
	                      (void **)&c->deviation, message);
}

/* mean NULL: that of the values. */
static hg_status standardize_with(hg_dataset *d, const double *mean, const double *deviation,
                                  char *message)
{
	struct columns c;
	const hg_status status = columns_alloc(d, &c, message);
	if (status < 0) {
		columns_free(&c);
		return status;
	}
	const size_t bytes = (size_t)d->features * sizeof *mean;
	if (mean) {
		memcpy(c.mean, mean, bytes);
		memcpy(c.deviation, deviation, bytes);
	} else {
		measure(c.x, d->nodes, d->features, c.mean, c.deviation);
	}
	standardize(c.x, d->nodes, d->features, c.mean, c.deviation, c.scale);
	free(c.scale);
	if (d->feat_mean)
		compose(d->feat_mean, d->feat_deviation, d->features, c.mean, c.deviation);
	const hg_dataset fresh = {.features = d->features,
	                          .feat_dtype = HG_F32,
	                          .feat = c.x,
	                          .feat_mean = c.mean,
	                          .feat_deviation = c.deviation};
	hg__replace_features(d, &fresh);
	return HG_OK;
}

hg_status hg__standardize_as(hg_dataset *d, const double *mean, const double *deviation,
                             char *message)
{
	return standardize_with(d, mean, deviation, message);
}

hg_status hg_dataset_standardize(hg_dataset *d, char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "standardize: dataset is NULL");
	return d->features == 0 || d->nodes == 0 ? HG_OK : standardize_with(d, NULL, NULL, message);
}
