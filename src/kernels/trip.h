/* The overflow flag: guards on numbers that are about to be stored as halves. A guard costs one
 * comparison for each number, and memory is written only where a number does not fit. */
#ifndef HG_KERNELS_TRIP_H
#define HG_KERNELS_TRIP_H

#include <stdint.h>
#include <string.h>

#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* A number does not fit if |x| >= 65520, which rounds to infinity, or if it is a NaN. Of all such
 * numbers the flag keeps the first line of the tape, and for that line the largest |x| (a NaN
 * counts as the largest):
 *
 *     flag = maximum over these numbers of   (INT32_MAX - line) 2^32 + bits of |x| as f32
 *
 * 0 means that every number did fit. A maximum does not depend on the order, so neither does the
 * flag. */
struct hg__trip {
	uint64_t *word; /* device memory; NULL: no guard */
	int32_t line;
};
#define HG__TRIP_LEAST 65520.0f

HG_HD static inline int hg__trips(float x)
{
	return !(x < HG__TRIP_LEAST && x > -HG__TRIP_LEAST);
}
HG_HD static inline uint64_t hg__trip_word(int32_t line, float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return (uint64_t)(INT32_MAX - line) << 32 | (bits & 0x7FFFFFFFu);
}
/* The first line of the tape that overflowed; -1: none. */
static inline int32_t hg__trip_line(uint64_t word)
{
	return word ? INT32_MAX - (int32_t)(word >> 32) : -1;
}
/* The largest |x| of that line. */
static inline float hg__trip_most(uint64_t word)
{
	const uint32_t bits = (uint32_t)word;
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

HG_EXTERN_C_END
#endif
