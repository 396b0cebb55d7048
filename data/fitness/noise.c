/* How large rounding errors are beside the spread of a column. fitness.h has the formula. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/report.h"
#include "precision/half.h"

/* Quartiles of so many values are right within 2 % of the values (0.43 / sqrt(1024) of them, with
 * one standard deviation). */
#define SAMPLE 1024
/* Fewer do not show a distribution. */
#define LEAST_SAMPLE 8
/* So many values are looked at to find them, because values of 0 do not count. */
#define LOOKS (16 * SAMPLE)
/* A uniform error e in a range r has the median |e| = r / 4 and the deviation r / sqrt(12). */
#define MEDIAN_OF_UNIFORM 0.866

static int compare_floats(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/* The two values around that place are as good; the lower one is taken. */
static double quantile(const float *sorted, int64_t count, int numerator)
{
	return (double)sorted[(count - 1) * numerator / 4];
}

void hg__measure_noise(const struct hg__values *values, hg_fitness_column *facts)
{
	float value[SAMPLE], error[SAMPLE];
	int64_t count = 0;
	const int64_t looks = values->count < LOOKS ? values->count : LOOKS;
	if (facts->error == 0.0)
		return;
	for (int64_t k = 0; k < looks && count < SAMPLE; k++) {
		/* looks <= 2^14, and 2^31 rows or 2^47 edges are more than any memory holds */
		const int64_t i = k * values->count / looks;
		const float x = values->at[i * values->stride], half = hg__half_round(x);
		if (x == 0.0f || !isfinite(half))
			continue;
		error[count] = fabsf(half - x);
		value[count++] = x;
	}
	facts->noise = facts->deviation > 0.0 ? facts->error / facts->deviation : 0.0;
	if (count < LEAST_SAMPLE)
		return;
	qsort(value, (size_t)count, sizeof *value, compare_floats);
	qsort(error, (size_t)count, sizeof *error, compare_floats);
	facts->low = quantile(value, count, 1);
	facts->high = quantile(value, count, 3);
	/* where half of the values are one value, quartiles tell nothing about the others */
	if (facts->low < facts->high)
		facts->noise = quantile(error, count, 2) / MEDIAN_OF_UNIFORM * QUARTILES_OF_NORMAL /
		               (facts->high - facts->low);
}

void hg__by_column_free(struct hg__by_column *sorted)
{
	free(sorted->begin);
	free(sorted->value);
	*sorted = (struct hg__by_column){NULL, NULL};
}

hg_status hg__sort_by_column(const hg_dataset *d, int64_t columns, struct hg__by_column *sorted,
                             char *message)
{
	const int64_t stored = d->feat_rowptr[d->nodes];
	*sorted = (struct hg__by_column){NULL, NULL};
	HG__TRY(hg__data_alloc(columns + 2, sizeof *sorted->begin, "columns of features",
	                       (void **)&sorted->begin, message));
	const hg_status status = hg__data_alloc(stored, sizeof *sorted->value, "columns of features",
	                                        (void **)&sorted->value, message);
	if (status < 0) {
		hg__by_column_free(sorted);
		return status;
	}
	/* begin[c + 2] counts column c, then begin[c + 1] is where its next value goes, which at the
	 * end is where column c + 1 begins */
	int64_t *next = sorted->begin + 1;
	memset(sorted->begin, 0, (size_t)(columns + 2) * sizeof *sorted->begin);
	for (int64_t e = 0; e < stored; e++)
		if (d->feat_col[e] < columns)
			sorted->begin[d->feat_col[e] + 2]++;
	for (int64_t c = 0; c < columns; c++)
		next[c + 1] += next[c];
	for (int64_t e = 0; e < stored; e++)
		if (d->feat_col[e] < columns)
			sorted->value[next[d->feat_col[e]]++] = d->feat_value ? d->feat_value[e] : 1.0f;
	return HG_OK;
}
