#ifndef HG_KERNELS_CPU_SOFTMAX_H
#define HG_KERNELS_CPU_SOFTMAX_H

#include <math.h>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/rows.h"

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
	return (!label || ((const int32_t *)label->data)[row] >= 0) &&
	       (!mask->data || ((const uint8_t *)mask->data)[row] != 0);
}

#endif
