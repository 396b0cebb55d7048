/* exp and expm1 of sixteen lanes. They use only products and sums, so every instruction set gives
 * the same bits.
 *
 *     x = k ln 2 + r,  |r| <= ln 2 / 2,  exp x = 2^k (1 + p)
 *     p = expm1 r = r + r^2 (1/2 + r/6 + ... + r^5/5040)
 *
 * The truncation error is r^8 / 8! < 6e-9 relative to 1. ln 2 is split in two parts, and the upper
 * part has 15 bits, so k * upper is exact. Together the error is below 1 ulp = 2^-23 of a normal
 * result. A result below the smallest normal number is rounded once more. NaN stays NaN, exp(-inf)
 * = 0, and exp(inf) = inf. */
#ifndef HG_KERNELS_CPU_EXP_H
#define HG_KERNELS_CPU_EXP_H

#include "kernels/cpu/simd.h"

struct hg__expm1 {
	hg__v16 p; /* expm1 r */
	hg__i16 k;
};

HG__INLINE struct hg__expm1 hg__vexp_reduce(hg__v16 x, float low, float high)
{
	x = hg__vselect(x < hg__vset(low), hg__vset(low), x);
	x = hg__vselect(x > hg__vset(high), hg__vset(high), x);
	/* adding 1.5 * 2^23 rounds to an integer, which is then in the low bits */
	const hg__v16 shifted = x * hg__vset(0x1.715476p+0f) + hg__vset(0x1.8p23f);
	const hg__v16 k = shifted - hg__vset(0x1.8p23f);
	const hg__v16 r = (x - k * hg__vset(0x1.62e4p-1f)) - k * hg__vset(0x1.7f7d1cp-20f);
	hg__v16 q = hg__vset(1.0f / 5040.0f);
	q = q * r + hg__vset(1.0f / 720.0f);
	q = q * r + hg__vset(1.0f / 120.0f);
	q = q * r + hg__vset(1.0f / 24.0f);
	q = q * r + hg__vset(1.0f / 6.0f);
	q = q * r + hg__vset(0.5f);
	return (struct hg__expm1){r + r * r * q, (hg__i16)shifted - 0x4B400000};
}

/* 2^k, where -126 <= k <= 127. */
HG__INLINE hg__v16 hg__vpow2(hg__i16 k)
{
	return (hg__v16)((k + 127) << 23);
}

HG__INLINE hg__v16 hg__vexp(hg__v16 x)
{
	/* Below -104 the result is 0 (half of the smallest subnormal is exp(-103.97)). Above 89 it is
	 * infinity (exp(88.73) overflows). */
	const struct hg__expm1 e = hg__vexp_reduce(x, -104.0f, 89.0f);
	const hg__i16 half = e.k >> 1; /* 2^k as two factors, each of which is a normal number */
	return (e.p + 1.0f) * hg__vpow2(half) * hg__vpow2(e.k - half);
}

/* exp(x) - 1 for x <= 0, computed as 2^k p + (2^k - 1). There is no cancellation at k = 0. Below
 * -87 the result is -1. */
HG__INLINE hg__v16 hg__vexpm1(hg__v16 x)
{
	const struct hg__expm1 e = hg__vexp_reduce(x, -87.0f, 0.0f);
	const hg__v16 scale = hg__vpow2(e.k);
	return scale * e.p + (scale - 1.0f);
}

HG__INLINE float hg__exp(float x)
{
	return hg__vexp(hg__vset(x))[0];
}

#endif
