#ifndef HG_KERNELS_CPU_SOFTMAX_H
#define HG_KERNELS_CPU_SOFTMAX_H

#include <math.h>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/rows.h"

/* Columns col .. col+15 of a row as a vector; lanes past the last column take `fill`. */
HG__INLINE hg__v16 hg__lanes(const struct hg__mat *m, int64_t row, int64_t col, float fill)
{
	const hg__i16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	const int n = (int)hg__min(HG__LANES, m->cols - col);
	const void *at = hg__at(m, row, col);
	const hg__v16 v = m->dtype == HG_F16 ? hg__vload_half_n((const hg_half *)at, n) : hg__vload_n((const float *)at, n);
	return n == HG__LANES ? v : hg__vselect(lane < n, v, hg__vset(fill));
}

HG__INLINE void hg__lanes_put(const struct hg__mat *m, int64_t row, int64_t col, hg__v16 v)
{
	const int n = (int)hg__min(HG__LANES, m->cols - col);
	void *at = hg__at(m, row, col);
	if (m->dtype == HG_F16)
		hg__vstore_half_n((hg_half *)at, v, n);
	else
		hg__vstore_n((float *)at, v, n);
}

/* max and sum of exp(x - max) of a row of any length; lanes past its end add 0. */
struct hg__softmax {
	float max, sum;
};
HG__INLINE struct hg__softmax hg__softmax_row(const struct hg__mat *x, int64_t row)
{
	hg__v16 max = hg__vset(-INFINITY), sum = {0};
	for (int64_t c = 0; c < x->cols; c += HG__LANES)
		max = hg__vmax(hg__lanes(x, row, c, -INFINITY), max);
	const float largest = hg__vlargest(max);
	for (int64_t c = 0; c < x->cols; c += HG__LANES)
		sum += hg__vexp(hg__lanes(x, row, c, -INFINITY) - largest);
	return (struct hg__softmax){largest, hg__vsum(sum)};
}

/* Rows that count: label >= 0 (label absent: all), mask != 0 (absent: all). */
HG__INLINE int hg__counts(const struct hg__mat *label, const struct hg__mat *mask, int64_t row)
{
	return (!label || ((const int32_t *)label->data)[row] >= 0) && (!mask->data || ((const uint8_t *)mask->data)[row] != 0);
}

#endif
