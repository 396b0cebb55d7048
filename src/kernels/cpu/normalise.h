/* Batch norm of a row, for the kernels that apply it. */
#ifndef HG_KERNELS_CPU_NORMALISE_H
#define HG_KERNELS_CPU_NORMALISE_H

#include <math.h>

#include "kernels/cpu/rows.h"
#include "kernels/kernels.h"

/* Rounds n <= HG__WIDTH numbers as a matrix of this type would store them. */
HG__INLINE void hg__round_as(hg_dtype dtype, int64_t n, float *y)
{
	hg_half half[HG__WIDTH];
	if (dtype != HG_F16)
		return;
	hg__narrow(n, y, half);
	hg__widen(n, half, y);
}

/* y = gamma (x - mean) rstd + beta, then relu: n columns from column col on, in f32. y may be x. */
HG__INLINE void hg__normalise_row(const struct hg__normalise *of, int64_t col, int64_t n,
                                  const float *x, float *y)
{
	const float *mean = of->mean + col, *rstd = of->rstd + col, *gamma = of->gamma + col,
	            *beta = of->beta + col;
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		y[c] = gamma[c] * ((x[c] - mean[c]) * rstd[c]) + beta[c];
	if (of->relu)
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			y[c] = y[c] <= 0.0f ? 0.0f : y[c];
}

/* Returns dY where the relu passed its input and 0 elsewhere, in `to`; without a relu it returns dy
 * itself. The input of the relu is computed again from x by the same operations. */
HG__INLINE const float *hg__normalise_passed(const struct hg__normalise *of, int64_t col, int64_t n,
                                             const float *x, const float *dy, float *to)
{
	const float *mean = of->mean + col, *rstd = of->rstd + col, *gamma = of->gamma + col,
	            *beta = of->beta + col;
	if (!of->relu)
		return dy;
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		to[c] = gamma[c] * ((x[c] - mean[c]) * rstd[c]) + beta[c] > 0.0f ? dy[c] : 0.0f;
	return to;
}

/* Adds a row to dgamma = sum of dY xhat and dbeta = sum of dY, of n columns each, where dy has
 * passed relu. */
HG__INLINE void hg__normalise_add(const struct hg__normalise *of, int64_t col, int64_t n,
                                  const float *x, const float *dy, float *dgamma, float *dbeta)
{
	const float *mean = of->mean + col, *rstd = of->rstd + col;
#pragma omp simd
	for (int64_t c = 0; c < n; c++) {
		dgamma[c] += dy[c] * ((x[c] - mean[c]) * rstd[c]);
		dbeta[c] += dy[c];
	}
}

/* The norm of which these are the gradients. */
HG__INLINE struct hg__normalise hg__norm_of(const struct hg__batch_norm_back_args *a)
{
	return (struct hg__normalise){.mean = a->mean.data,
	                              .rstd = a->rstd.data,
	                              .gamma = a->gamma.data,
	                              .beta = a->beta.data,
	                              .live = a->live,
	                              .relu = a->relu};
}

/* dX = gamma rstd (dY - dbeta / n - xhat dgamma / n): n columns of a row that counts. dx may be dy.
 */
HG__INLINE void hg__normalise_back_row(const struct hg__batch_norm_back_args *a, int64_t col,
                                       int64_t n, const float *x, const float *dy, float *dx)
{
	const struct hg__normalise norm = hg__norm_of(a);
	const float rows = (float)hg__live_rows(a->live, &a->x), over_unit = ldexpf(1.0f, -a->shift),
	            *mean = norm.mean + col, *rstd = norm.rstd + col, *gamma = norm.gamma + col,
	            *dgamma = (const float *)a->dgamma.data + col,
	            *dbeta = (const float *)a->dbeta.data + col;
	dy = hg__normalise_passed(&norm, col, n, x, dy, dx);
#pragma omp simd
	for (int64_t c = 0; c < n; c++) {
		const float xhat = (x[c] - mean[c]) * rstd[c];
		dx[c] =
		    gamma[c] * (over_unit * rstd[c]) * (dy[c] - dbeta[c] / rows - xhat * dgamma[c] / rows);
	}
}

/* y: n columns of a row of what X stands for, widened. */
HG__INLINE void hg__read_normalised(const struct hg__normalise *of, const struct hg__mat *x,
                                    int64_t row, int64_t col, int64_t n, float *y)
{
	for (int64_t c = 0; c < n; c += HG__WIDTH) {
		const int64_t count = hg__min(HG__WIDTH, n - c);
		if (row >= hg__live_rows(of->live, x)) {
			memset(y + c, 0, (size_t)count * sizeof *y);
			continue;
		}
		hg__normalise_row(of, col + c, count, hg__row(x, row, col + c, count, y + c), y + c);
		hg__round_as(x->dtype, count, y + c);
	}
}

#endif
