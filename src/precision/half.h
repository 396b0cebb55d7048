#ifndef HG_PRECISION_HALF_H
#define HG_PRECISION_HALF_H

#include <stdint.h>
#include <string.h>

#include "halfgraph/dtype.h"

HG_EXTERN_C_BEGIN

/* Exact conversions in software: what F16C and the GPU do in one instruction, in a form a compiler
 * can vectorise (selects, no tables). They ask for the default rounding mode (to nearest, ties to
 * even) and are right with denormals-are-zero set too.
 *
 *     binary16: sign | 5 bits exponent, bias 15 | 10 bits fraction        binary32: bias 127, 23
 *         bits        binary64: bias 1023, 52 bits */

static inline uint32_t hg__float_bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

static inline float hg__float_of_bits(uint32_t u)
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

/* Every half is a float: normals move their exponent by 127 - 15 = 112, infinities and NaNs by
 * twice that, subnormals are fraction * 2^-24. */
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

/* |x| >= 2^-14: move the exponent back and round the 13 lowest bits away: add half of the last kept
 * place less one, plus the last kept bit (ties to even); a carry into the exponent is what rounding
 * up to the next power of two means.
 * |x| < 2^-14: the halves there are the multiples of 2^-24, and so are the floats in [0.5, 1): one
 * addition rounds. */
static inline hg_half hg__half_from_float(float x)
{
	const uint32_t u = hg__float_bits(x), magnitude = u & 0x7FFFFFFFu, sign = (u >> 16) & 0x8000u;
	const uint32_t normal = (magnitude - (112u << 23) + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13;
	const uint32_t subnormal = hg__float_bits(hg__float_of_bits(magnitude) + 0.5f) - 0x3F000000u;
	const uint32_t nan = 0x7E00u | ((magnitude >> 13) & 0x03FFu);
	const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal; /* 2^-14 */
	const uint32_t special = magnitude > 0x7F800000u ? nan : 0x7C00u;
	return (hg_half)(sign | (magnitude < 0x477FF000u ? finite : special)); /* 65520 */
}

/* The half that is nearest, as a float. */
static inline float hg__half_round(float x)
{
	return hg__half_to_float(hg__half_from_float(x));
}

/* The same with one rounding from binary64: 42 bits go; the doubles in [2^28, 2^29) are the
 * multiples of 2^-24. */
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
