#ifndef HG_KERNELS_CPU_SOFTMAX_H
#define HG_KERNELS_CPU_SOFTMAX_H

#include <math.h>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/rows.h"

/* y[i] = exp(x[i] - max); returns their sum, in the order of hg__sum. y may be x. */
HG__INLINE float hg__exp_row(int64_t n, const float *x, float max, float *y)
{
	hg__v16 sum = {0};
	int64_t i = 0;
	for (; i + HG__LANES <= n; i += HG__LANES) {
		const hg__v16 e = hg__vexp(hg__vload(x + i) - max);
		hg__vstore(y + i, e);
		sum += e;
	}
	if (i < n) {
		const hg__v16 e = hg__vexp(hg__vload_fill(x + i, (int)(n - i), -INFINITY) - max); /* lanes past the end add 0 */
		hg__vstore_n(y + i, e, (int)(n - i));
		sum += e;
	}
	return hg__vsum(sum);
}

/* max and sum of exp(x - max) of a row of any length. */
struct hg__softmax {
	float max, sum;
};
HG__INLINE struct hg__softmax hg__softmax_row(const struct hg__mat *x, int64_t row)
{
	float scratch[HG__WIDTH], e[HG__WIDTH];
	struct hg__softmax s = {-INFINITY, 0.0f};
	for (int64_t c = 0; c < x->cols; c += HG__WIDTH) {
		const int64_t n = hg__min(HG__WIDTH, x->cols - c);
		const float max = hg__max(n, hg__row(x, row, c, n, scratch));
		s.max = max > s.max || max != max ? max : s.max;
	}
	for (int64_t c = 0; c < x->cols; c += HG__WIDTH) {
		const int64_t n = hg__min(HG__WIDTH, x->cols - c);
		s.sum += hg__exp_row(n, hg__row(x, row, c, n, scratch), s.max, e);
	}
	return s;
}

/* Rows that count: label >= 0 (label absent: all), mask != 0 (absent: all). */
HG__INLINE int hg__counts(const struct hg__mat *label, const struct hg__mat *mask, int64_t row)
{
	return (!label || ((const int32_t *)label->data)[row] >= 0) && (!mask->data || ((const uint8_t *)mask->data)[row] != 0);
}

#endif
