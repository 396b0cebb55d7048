/* The mean over heads, for n columns of one row:
 *
 *     Y[i, c] = 1/h * sum over k of X[i, k*d + c],  added in order
 *     dX[i, k*d + c] = dY[i, c] / h
 *
 * for the kernels of head_mean and of the epilogues that begin with it. */
#ifndef HG_KERNELS_CPU_HEAD_MEAN_H
#define HG_KERNELS_CPU_HEAD_MEAN_H

#include "kernels/cpu/rows.h"

/* y[0 .. n-1]: columns col .. col + n - 1 of the mean over x of `heads` heads of d columns. */
static inline void hg__head_mean_row(const struct hg__mat *x, int64_t row, int64_t heads, int64_t d,
                                     int64_t col, int64_t n, float *y)
{
	float scratch[HG__WIDTH];
	for (int64_t i = 0; i < n; i++)
		y[i] = 0.0f;
	for (int64_t k = 0; k < heads; k++) {
		const float *head = hg__row(x, row, k * d + col, n, scratch);
		for (int64_t i = 0; i < n; i++)
			y[i] += head[i];
	}
	for (int64_t i = 0; i < n; i++)
		y[i] /= (float)heads;
}

/* Stores the gradient of x; dy: the same columns of that of the mean, overwritten with the share of
 * one head. */
static inline void hg__head_mean_row_back(const struct hg__mat *dx, int64_t row, int64_t heads,
                                          int64_t d, int64_t col, int64_t n, float *dy)
{
	for (int64_t i = 0; i < n; i++)
		dy[i] /= (float)heads;
	for (int64_t k = 0; k < heads; k++)
		hg__row_put(dx, row, k * d + col, n, dy);
}

#endif
