/* The overflow flag: guards on numbers that are about to be stored as halves. A guard costs one
 * comparison for each number, and memory is written only where a number does not fit. */
#ifndef HG_KERNELS_OVERFLOW_H
#define HG_KERNELS_OVERFLOW_H

#include <stdint.h>
#include <string.h>

#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* A number does not fit if |x| >= 65520, which rounds to infinity, or if it is a NaN. Of all such
 * numbers the flag keeps the first node of the tape, and for that node the largest |x| (a NaN
 * counts as the largest):
 *
 *     word = maximum over these numbers of   (INT32_MAX - node) 2^32 + bits of |x| as f32
 *
 * 0 means that every number fits. A maximum does not depend on the order, so neither does the
 * flag. */
struct hg__overflow_flag {
	uint64_t *word; /* device memory; NULL: no guard */
	int32_t node;   /* the node of the tape that stores the numbers */
};
#define HG__OVERFLOW_LEAST 65520.0f

/* A NaN overflows, too: both comparisons fail for it. */
HG_HD static inline int hg__overflows_half(float x)
{
	return !(x < HG__OVERFLOW_LEAST && x > -HG__OVERFLOW_LEAST);
}
HG_HD static inline uint64_t hg__overflow_word(int32_t node, float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return (uint64_t)(INT32_MAX - node) << 32 | (bits & 0x7FFFFFFFu);
}
/* The first node of the tape that overflowed; -1: none. */
static inline int32_t hg__overflow_node(uint64_t word)
{
	return word ? INT32_MAX - (int32_t)(word >> 32) : -1;
}
/* The largest |x| of that node. */
static inline float hg__overflow_amax(uint64_t word)
{
	const uint32_t bits = (uint32_t)word;
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

HG_EXTERN_C_END
#endif
