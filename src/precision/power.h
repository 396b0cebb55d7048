/* Whole powers, compiled both for the host and for CUDA, so that both compute the same bits. */
#ifndef HG_PRECISION_POWER_H
#define HG_PRECISION_POWER_H

#include <stdint.h>

#include "precision/hostdevice.h"

/* x^n by squaring, n >= 0, |x| <= 1. Each squaring doubles the relative error and adds one
 * rounding, so there are at most n roundings of f64 in all. */
HG_HD static inline double hg__power(double x, int64_t n)
{
	double result = 1.0;
	for (double square = x; n > 0; n /= 2, square *= square)
		if (n % 2)
			result *= square;
	return result;
}

#endif
