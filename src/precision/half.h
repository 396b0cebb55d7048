/* Conversions between f16 and f32 or f64 in software, with the same result as F16C and a GPU. They
 * select between cases without branches or tables, so a compiler can vectorise them. */
#ifndef HG_PRECISION_HALF_H
#define HG_PRECISION_HALF_H

#include <stdint.h>
#include <string.h>

#include "halfgraph/dtype.h"
#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* The conversions need the default rounding mode (to nearest, ties to even). They are also right
 * where the denormals-are-zero mode of the CPU is set.
 *
 *     binary16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits
 *     binary32: 1 sign bit, 8 exponent bits (bias 127), 23 fraction bits
 *     binary64: 1 sign bit, 11 exponent bits (bias 1023), 52 fraction bits */

HG_HD static inline uint32_t hg__float_bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

HG_HD static inline float hg__float_of_bits(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

static inline uint64_t hg__double_bits(double x)
{
	uint64_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

/* Every half is a float. The exponent of a normal number grows by 127 - 15 = 112, that of
 * infinities and NaNs by twice as much. Subnormals are fraction * 2^-24. */
static inline float hg__half_to_float(hg_half h)
{
	const uint32_t magnitude = h & 0x7FFFu, sign = (uint32_t)(h & 0x8000u) << 16;
	const uint32_t normal = (magnitude << 13) + (112u << 23);
	const uint32_t special = normal + (112u << 23);
	const uint32_t quiet = magnitude > 0x7C00u ? 0x00400000u : 0u;
	const uint32_t subnormal = hg__float_bits((float)(int32_t)magnitude * 0x1p-24f);
	const uint32_t finite = magnitude < 0x0400u ? subnormal : normal;
	return hg__float_of_bits(sign | (magnitude < 0x7C00u ? finite : special | quiet));
}

/* For |x| >= 2^-14 the exponent moves back by 112 and the 13 lowest fraction bits are rounded off.
 * Adding 0x0FFF (half of the last kept bit, less one) plus the last kept bit rounds to nearest,
 * ties to even. A carry into the exponent is right: the number was rounded up to the next power of
 * two.
 *
 * For |x| < 2^-14 the halves are the multiples of 2^-24, and so are the floats in [0.5, 1). Adding
 * 0.5 therefore rounds to the right multiple. */
HG_HD static inline hg_half hg__half_from_float(float x)
{
	const uint32_t u = hg__float_bits(x), magnitude = u & 0x7FFFFFFFu, sign = (u >> 16) & 0x8000u;
	const uint32_t normal = (magnitude - (112u << 23) + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13;
	const uint32_t subnormal = hg__float_bits(hg__float_of_bits(magnitude) + 0.5f) - 0x3F000000u;
	const uint32_t nan = 0x7E00u | ((magnitude >> 13) & 0x03FFu);
	const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal; /* 2^-14 */
	const uint32_t special = magnitude > 0x7F800000u ? nan : 0x7C00u;
	return (hg_half)(sign | (magnitude < 0x477FF000u ? finite : special)); /* 65520 */
}

/* The nearest half, as a float. */
static inline float hg__half_round(float x)
{
	return hg__half_to_float(hg__half_from_float(x));
}

/* The nearest half of a double, with a single rounding: going through f32 would round twice. The
 * method is that of hg__half_from_float. 42 fraction bits are rounded off, and the doubles in
 * [2^28, 2^29) are the multiples of 2^-24. */
static inline hg_half hg__half_from_double(double x)
{
	const uint64_t u = hg__double_bits(x), magnitude = u & 0x7FFFFFFFFFFFFFFFu;
	const uint32_t sign = (uint32_t)(u >> 48) & 0x8000u;
	if (magnitude > 0x7FF0000000000000u)
		return (hg_half)(sign | 0x7E00u | ((uint32_t)(magnitude >> 42) & 0x03FFu));
	if (magnitude >= 0x40EFFE0000000000u) /* 65520 */
		return (hg_half)(sign | 0x7C00u);
	if (magnitude >= 0x3F10000000000000u) /* 2^-14 */
		return (hg_half)(sign | (uint32_t)((magnitude - (1008ull << 52) + 0x1FFFFFFFFFFu +
		                                    ((magnitude >> 42) & 1u)) >>
		                                   42));
	return (hg_half)(sign |
	                 (uint32_t)(hg__double_bits((x < 0 ? -x : x) + 0x1p28) - 0x41B0000000000000u));
}

HG_EXTERN_C_END
#endif
