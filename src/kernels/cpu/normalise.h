/* Batch norm of a row, for the kernels that apply it. */
#ifndef HG_KERNELS_CPU_NORMALISE_H
#define HG_KERNELS_CPU_NORMALISE_H

#include "kernels/cpu/rows.h"
#include "kernels/normalise.h"

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

/* y: n columns of a row of what X stands for, widened. */
HG__INLINE void hg__normalised_row(const struct hg__normalise *of, const struct hg__mat *x,
                                   int64_t row, int64_t col, int64_t n, float *y)
{
	for (int64_t c = 0; c < n; c += HG__WIDTH) {
		hg_half half[HG__WIDTH];
		const int64_t count = hg__min(HG__WIDTH, n - c);
		if (row >= hg__live_rows(of->live, x)) {
			memset(y + c, 0, (size_t)count * sizeof *y);
			continue;
		}
		hg__normalise_row(of, col + c, count, hg__row(x, row, col + c, count, y + c), y + c);
		if (x->dtype != HG_F16)
			continue;
		hg__narrow(count, y + c, half);
		hg__widen(count, half, y + c);
	}
}

#endif
