/* Sums in 64-bit integers, whose bits do not depend on the order of their terms.
 *
 *     sum of x_k  ~=  2^-s sum of rint(2^s x_k)
 *
 * with s so large that the sums cannot overflow and no larger: sum of |x_k| <= most gives
 *
 *     sum of |rint(2^s x_k)| <= 2^s most + k/2 <= 2^61 + 2^61 < 2^63   for k <= 2^62 terms.
 *
 * Each term is rounded by up to 1/2, so the sum is off by at most k 2^-(s+1). Since
 * 2^60 < 2^s most, that is less than k most 2^-61. With most = k x this is k^2 x 2^-61, where the
 * bound of a sum in f32 of k terms of size x' is k^2 x' 2^-24. So integers are at least as exact
 * down to x' = 2^-37 x: for halves, where x is 65504, down to 2^-21, 8 times the smallest half. */
#ifndef HG_PRECISION_INTEGER_SUM_H
#define HG_PRECISION_INTEGER_SUM_H

#include <math.h>

#include "precision/hostdevice.h"

/* s. most: a bound on the sum of |terms|, finite; 0 gives 0, as all terms are 0. */
HG_HD static inline int hg__integer_scale(double most)
{
	int exponent = 0;
	if (!(most > 0.0))
		return 0;
	(void)frexp(most, &exponent); /* most <= 2^exponent */
	return 61 - exponent;
}

/* The error of such a sum of `terms` terms. */
HG_HD static inline double hg__bound_integer_sum(double terms, double most)
{
	return most < (double)INFINITY ? ldexp(terms, -hg__integer_scale(most) - 1) : most;
}

#endif
