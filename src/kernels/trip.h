#ifndef HG_KERNELS_TRIP_H
#define HG_KERNELS_TRIP_H

#include <stdint.h>
#include <string.h>

#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* A guard on numbers that are about to be stored as halves. It costs a comparison each, and memory
 * is written only where one does not fit: |x| >= 65520, which rounds to infinity, or not a number.
 * Of all that do not, the word keeps the first line of the tape, and of that line the largest |x|
 * (no number counts as the largest):
 *
 *     word = max over them of   (INT32_MAX - line) 2^32 + bits of |x| as f32
 *
 * 0: all fitted. A maximum does not depend on the order. */
struct hg__trip {
	uint64_t *word; /* device memory; NULL: nobody asks */
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
/* -1: none. */
static inline int32_t hg__trip_line(uint64_t word)
{
	return word ? INT32_MAX - (int32_t)(word >> 32) : -1;
}
static inline float hg__trip_most(uint64_t word)
{
	const uint32_t bits = (uint32_t)word;
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

HG_EXTERN_C_END
#endif
