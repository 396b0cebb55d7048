#ifndef HG_KERNELS_OBSERVE_H
#define HG_KERNELS_OBSERVE_H

#include "core/mat.h"
#include "kernels/step.h"
#include "precision/half.h"

HG_EXTERN_C_BEGIN

/* The observer's kernels run in a step that is due, and else do nothing: one whose number is a
 * multiple of `every`; with `bad` also one whose gradients are not finite, once grad_check has
 * looked.
 * A step behind one that stopped the launch (kernels/step.h) is never due. */
struct hg__due {
	const struct hg__step *step; /* device memory */
	int64_t every;               /* > 0 */
	int bad;
};

/* What is counted of the elements of one tensor, padding not among them. Integers alone, sums and
 * maxima: the order does not matter. All zero: nothing seen. */
#define HG__BINS 32
struct hg__observed {
	/* 0: 0 < |x| < 2^-14.  e = 1 .. 30: 2^(e - 15) <= |x| < 2^(e - 14), and |x| <= 65504.  31:
	 * |x| > 65504, or not a finite number */
	uint64_t bin[HG__BINS];
	uint64_t zeros, nonfinite;
	/* elements from the first that is not finite to the last, row by row; 0: all are finite */
	uint64_t rank;
	uint64_t
	    /* spmm_probe: the bits of the largest deviation, f32, and below them 2^32 - 1 - its row, so
	     * that the first of equals is the larger; 0: none */
	    swamped;
	uint32_t amax; /* bits of the largest |x| among the finite ones, as f32 */
	uint32_t unused;
};

/* The last steps that were looked at, number `taken` in place taken % HG__OBSERVED_STEPS. */
#define HG__OBSERVED_STEPS 8
struct hg__observed_head {
	int64_t step;
	float scale; /* the loss scale in force */
	int32_t unused;
};
struct hg__observed_ring {
	int64_t taken;
	struct hg__observed_head head[HG__OBSERVED_STEPS];
};

/* A tensor, f16 or f32, its memory aligned as an allocation's; and the chunks of HG__OBSERVE_CHUNK
 * elements of storage that those before it have. */
struct hg__watched {
	struct hg__mat mat;
	int64_t first;
};
#define HG__OBSERVE_CHUNK 4096
static inline int64_t hg__observe_chunks(const struct hg__mat *mat)
{
	return (mat->rows * mat->ld + HG__OBSERVE_CHUNK - 1) / HG__OBSERVE_CHUNK;
}

/* kept[place * stride + i] = what is counted of tensor i, and what spmm_probe has left in
 * counts[i];  most[i] = max(most[i], amax, or infinity where an element is not finite).  closes:
 * the place gets its head and is taken. table [count + 1] device, its last row without a tensor;
 * chunks: `first` there. counts [count]: all zero before and after. */
struct hg__observe_args {
	struct hg__due due;
	const struct hg__watched *table;
	int64_t count, chunks;
	struct hg__observed *counts, *kept;
	uint32_t *most;
	int64_t stride;
	struct hg__observed_ring *ring;
	int closes;
};

/* A call of spmm whose sums ran in f16, X, w and Y still as they were, and rows to do again. sample
 * [samples] device; record: of the counts. */
struct hg__probe {
	const int64_t *rowptr;
	const int32_t *col;
	const uint32_t *edge;
	struct hg__mat x, w, y;
	const float *row_scale, *col_scale;
	const int32_t *sample;
	int64_t samples;
	float alpha;
	int32_t heads, record;
};
/* For the rows i of the sample and all columns c, with t = alpha r_i f[p, head of c] X[j, c] as in
 * spmm, in f64, added in any order:
 *
 *     swamped of the record = max |Y[i, c] - sum of t| / sum of |t|,  where Y[i, c] and the sums
 *         are finite and sum of |t| > 0
 *
 * probes [count] device; samples: the most of any. */
struct hg__spmm_probe_args {
	struct hg__due due;
	const struct hg__probe *probes;
	int64_t count, samples;
	struct hg__observed *counts;
};

/* What they compute, the same text on the host and in a kernel. magnitude: the bits of a number
 * without its sign. */

HG_HD static inline int hg__is_due(const struct hg__due *due)
{
	if (due->step->stop)
		return 0;
	return due->step->step % due->every == 0 ||
	       (due->bad && (due->step->nonfinite != 0 || due->step->tripped != 0));
}

#define HG__HALF_INFINITE 0x7C00u
#define HG__FLOAT_INFINITE 0x7F800000u

/* A half's exponent is its bin. */
HG_HD static inline uint32_t hg__bin_of_half(uint32_t magnitude)
{
	return magnitude >> 10;
}

/* The bin of the half with this exponent: biases differ by 112. 0x38800000: 2^-14, 0x477FE000:
 * 65504. */
HG_HD static inline uint32_t hg__bin_of_float(uint32_t magnitude)
{
	return magnitude > 0x477FE000u   ? HG__BINS - 1
	       : magnitude < 0x38800000u ? 0
	                                 : (magnitude >> 23) - 112;
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

/* How far a tensor went, as the bits of an f32: as integers they are in the order of the numbers,
 * and infinity is above them all. */
HG_HD static inline uint32_t hg__observed_reach(uint32_t amax, uint64_t nonfinite)
{
	return nonfinite ? 0x7F800000u : amax;
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
