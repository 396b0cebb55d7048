#ifndef HG_KERNELS_OBSERVE_H
#define HG_KERNELS_OBSERVE_H

#include "kernels/kernels.h"
#include "precision/half.h"

HG_EXTERN_C_BEGIN

/* What the observer's kernels compute, the same text on the host and in a kernel. magnitude: the bits of a number without its sign. */

HG_HD static inline int hg__is_due(const struct hg__due *due)
{
	return due->step->step % due->every == 0 || (due->bad && due->step->nonfinite != 0);
}

#define HG__HALF_INFINITE 0x7C00u
#define HG__FLOAT_INFINITE 0x7F800000u

/* A half's exponent is its bin. */
HG_HD static inline uint32_t hg__bin_of_half(uint32_t magnitude)
{
	return magnitude >> 10;
}

/* The bin of the half with this exponent: biases differ by 112. 0x38800000: 2^-14, 0x477FE000: 65504. */
HG_HD static inline uint32_t hg__bin_of_float(uint32_t magnitude)
{
	return magnitude > 0x477FE000u ? HG__BINS - 1 : magnitude < 0x38800000u ? 0 : (magnitude >> 23) - 112;
}

/* A finite half's magnitude as a float's. */
static inline uint32_t hg__widened_magnitude(uint32_t magnitude)
{
	return hg__float_bits(hg__half_to_float((hg_half)magnitude));
}

/* A deviation >= 0 and its row, to be compared as one number. */
HG_HD static inline uint64_t hg__swamped(uint32_t deviation, int32_t row)
{
	return (uint64_t)deviation << 32 | (UINT32_MAX - (uint32_t)row);
}

/* What a place says of the step, whose loss scale has not been moved on yet. */
HG_HD static inline struct hg__observed_head hg__observed_head_of(const struct hg__step *step)
{
	struct hg__observed_head head;
	head.step = step->step;
	head.scale = step->scale.scale;
	head.unused = 0;
	return head;
}

HG_EXTERN_C_END
#endif
