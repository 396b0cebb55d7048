/* Row normalisation of feature matrices in host memory. */
#ifndef HG_CORE_NORMALIZE_H
#define HG_CORE_NORMALIZE_H

#include "precision/half.h"

HG_EXTERN_C_BEGIN

/* Element i of an f16 or f32 array. */
static inline double hg__float_of(const void *x, hg_dtype dtype, int64_t i)
{
	return dtype == HG_F16 ? (double)hg__half_to_float(((const hg_half *)x)[i])
	                       : (double)((const float *)x)[i];
}

/* Divides a row by the sum of its |x|, in f64, and narrows once to the row's type (f16 or f32). A
 * row of zeros stays zero. */
static inline void hg__row_normalize(void *x, hg_dtype dtype, int64_t count)
{
	double sum = 0.0;
	for (int64_t i = 0; i < count; i++) {
		const double value = hg__float_of(x, dtype, i);
		sum += value < 0.0 ? -value : value;
	}
	for (int64_t i = 0; sum > 0.0 && i < count; i++) {
		const double share = hg__float_of(x, dtype, i) / sum;
		if (dtype == HG_F16)
			((hg_half *)x)[i] = hg__half_from_double(share);
		else
			((float *)x)[i] = (float)share;
	}
}

HG_EXTERN_C_END
#endif
