/* Statistics of rows that softmax, the cross-entropy loss and the scores share. */
#ifndef HG_KERNELS_CPU_SOFTMAX_H
#define HG_KERNELS_CPU_SOFTMAX_H

#include <math.h>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/rows.h"

/* The maximum of a row and the sum of exp(x - maximum), for a row of any length. Lanes past the end
 * of the row add 0. */
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

/* Whether a row counts for a loss or a score: its label is >= 0 and its mask is not 0. An absent
 * label or mask excludes no row. */
HG__INLINE int hg__counts(const struct hg__mat *label, const struct hg__mat *mask, int64_t row)
{
	return (!label || ((const int32_t *)label->data)[row] >= 0) &&
	       (!mask->data || ((const uint8_t *)mask->data)[row] != 0);
}

#endif
