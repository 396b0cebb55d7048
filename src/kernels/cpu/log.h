/* log of sixteen lanes. It uses only products, sums and one division, so every instruction set
 * gives the same bits.
 *
 *     x = 2^k m,  sqrt(1/2) <= m < sqrt(2),  f = m - 1 (exact),  log x = k ln 2 + log(1 + f)
 *     s = f / (2 + f):  log(1 + f) = 2 atanh s = 2 s + s R,
 *                       R = 2 s^2 (1/3 + s^2/5 + s^4/7 + s^6/9)
 *     2 s = f - s f,  s f = f^2 / (2 + f) = f^2/2 - s f^2/2:
 *                       log(1 + f) = f - (f^2/2 - s (f^2/2 + R))
 *
 * f itself is exact, so only the correction in brackets has rounding errors, and it is at most a
 * quarter of f. |s| < 0.172, so the terms that R leaves out are below 2 s^11 / 11 = 7e-10, which is
 * 2e-9 of the result. ln 2 is split as in exp.h. If k != 0 the result is at least ln(2) / 2, so
 * nothing cancels. Together the error is below 2 ulp = 4 u of the result (1.38 u measured over all
 * positive floats). A negative x gives NaN, log 0 = -inf, log inf = inf, and NaN stays NaN. A
 * subnormal x is multiplied by 2^24 first, and k is corrected. */
#ifndef HG_KERNELS_CPU_LOG_H
#define HG_KERNELS_CPU_LOG_H

#include "kernels/cpu/simd.h"

HG__INLINE hg__v16 hg__vlog(hg__v16 x)
{
	const int32_t root_half = 0x3F3504F3; /* the bits of sqrt(1/2) */
	const hg__v16 zero = {0};
	const hg__i16 small = x < hg__vset(0x1p-126f);
	/* The sign is cleared, because the integers below would be out of range with it. Negative x are
	 * replaced at the end. */
	const hg__i16 raised = (hg__i16)hg__vselect(small, x * hg__vset(0x1p24f), x) & 0x7FFFFFFF;
	const hg__i16 bits = raised - root_half;
	const hg__v16 k = __builtin_convertvector((bits >> 23) - (small & 24), hg__v16);
	const hg__v16 f = (hg__v16)((bits & 0x7FFFFF) + root_half) - 1.0f, s = f / (f + 2.0f),
	              z = s * s, half = f * f * 0.5f;
	hg__v16 q = hg__vset(2.0f / 9.0f);
	q = q * z + hg__vset(2.0f / 7.0f);
	q = q * z + hg__vset(2.0f / 5.0f);
	q = q * z + hg__vset(2.0f / 3.0f);
	const hg__v16 low = k * hg__vset(0x1.7f7d1cp-20f),
	              y = k * hg__vset(0x1.62e4p-1f) + (f - (half - (s * (half + q * z) + low)));
	/* zero, negative, infinite and NaN x */
	const hg__v16 other =
	    hg__vselect(x == zero, hg__vset(-INFINITY), hg__vselect(x < zero, hg__vset(NAN), x));
	return hg__vselect((x > zero) & (x < hg__vset(INFINITY)), y, other);
}

#endif
