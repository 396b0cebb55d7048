/* The observer: statistics of tensors in some of the steps, computed on the device. They show how
 * near each tensor is to the limits of f16, where the first non-finite value is, and how much f16
 * sums suffer from swamping (terms that are too small to change the sum). */
#ifndef HG_KERNELS_OBSERVE_H
#define HG_KERNELS_OBSERVE_H

#include "core/mat.h"
#include "kernels/step.h"
#include "precision/half.h"

HG_EXTERN_C_BEGIN

/* The observer's kernels run in every step but only work in a step that is due: one whose number is
 * a multiple of `every` and, if `bad` is set, one whose gradients are not finite or whose overflow
 * flag is set, which is known after grad_check. Queued steps after a stop (kernels/step.h) are
 * never due. */
struct hg__due {
	const struct hg__step *step; /* device memory */
	int64_t every;               /* > 0 */
	int bad;
};

/* Statistics of the elements of one tensor, without its padding. They are integer sums and maxima,
 * so they do not depend on the order. All zero: no element was counted. */
#define HG__BINS 32
struct hg__observed {
	/* Bin 0: 0 < |x| < 2^-14. Bin e = 1 .. 30: 2^(e - 15) <= |x| < 2^(e - 14) and |x| <= 65504. Bin
	 * 31: |x| > 65504, or not finite. */
	uint64_t bin[HG__BINS];
	uint64_t zeros, nonfinite;
	/* The number of elements from the first that is not finite to the last, row by row; 0: all are
	 * finite. */
	uint64_t rank;
	/* spmm_probe: the bits of the largest deviation as f32, above 2^32 - 1 - its row, so that of
	 * equal deviations the first row is the maximum; 0: none. */
	uint64_t swamped;
	uint32_t amax; /* bits of the largest finite |x|, as f32 */
	uint32_t unused;
};

/* The last steps that were observed; number `taken` has index taken % HG__OBSERVED_STEPS. */
#define HG__OBSERVED_STEPS 8
struct hg__observed_head {
	int64_t step;
	float scale; /* the loss scale of that step */
	int32_t unused;
};
struct hg__observed_ring {
	int64_t taken;
	struct hg__observed_head head[HG__OBSERVED_STEPS];
};

/* An observed tensor, f16 or f32, aligned as an allocation. first: the number of chunks of
 * HG__OBSERVE_CHUNK elements of storage that the tensors before it have. */
struct hg__watched {
	struct hg__mat mat;
	int64_t first;
};
#define HG__OBSERVE_CHUNK 4096
static inline int64_t hg__observe_chunks(const struct hg__mat *mat)
{
	return (mat->rows * mat->ld + HG__OBSERVE_CHUNK - 1) / HG__OBSERVE_CHUNK;
}

/* Stores the statistics of all tensors for this step, in row `index` = taken % HG__OBSERVED_STEPS:
 *
 *     kept[index * stride + i] = statistics of tensor i, with the swamping from counts[i]
 *     most[i] = max(most[i], amax, or infinity if an element is not finite)
 *
 * spmm_probe has left the swamping in counts. closes: this call also writes the head of the row and
 * increments `taken`. table [count + 1] device; its last row has no tensor, and its `first` is
 * `chunks`. counts [count]: all zero before and after. */
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

/* A call of spmm whose sums ran in f16, with X, w and Y unchanged since, and a sample of rows to
 * recompute. sample [samples] device; record: the index in counts. */
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
/* Measures swamping. For the rows i of the sample and all columns c, with the terms t = alpha r_i
 * f[p, head of c] X[j, c] of spmm, in f64, added in any order:
 *
 *     swamped of the record = max |Y[i, c] - sum of t| / sum of |t|
 *
 * over the elements where Y[i, c] and the sums are finite and sum of |t| > 0. probes [count]
 * device; samples: the largest number of samples of any probe. */
struct hg__spmm_probe_args {
	struct hg__due due;
	const struct hg__probe *probes;
	int64_t count, samples;
	struct hg__observed *counts;
};

/* The functions below are compiled both for the host and for kernels. magnitude: the bits of a
 * number without its sign. */

HG_HD static inline int hg__is_due(const struct hg__due *due)
{
	if (due->step->stop)
		return 0;
	return due->step->step % due->every == 0 ||
	       (due->bad && (due->step->nonfinite != 0 || due->step->overflow_found != 0));
}

#define HG__HALF_INFINITE 0x7C00u
#define HG__FLOAT_INFINITE 0x7F800000u

/* The bin of a half is its exponent. */
HG_HD static inline uint32_t hg__bin_of_half(uint32_t magnitude)
{
	return magnitude >> 10;
}

/* The bin of the half with this exponent; the biases differ by 112. 0x38800000 is 2^-14, 0x477FE000
 * is 65504. */
HG_HD static inline uint32_t hg__bin_of_float(uint32_t magnitude)
{
	return magnitude > 0x477FE000u   ? HG__BINS - 1
	       : magnitude < 0x38800000u ? 0
	                                 : (magnitude >> 23) - 112;
}

/* The magnitude of a finite half, as that of a float. */
static inline uint32_t hg__widened_magnitude(uint32_t magnitude)
{
	return hg__float_bits(hg__half_to_float((hg_half)magnitude));
}

/* A deviation >= 0 and its row, packed so that they can be compared as one number. */
HG_HD static inline uint64_t hg__swamped(uint32_t deviation, int32_t row)
{
	return (uint64_t)deviation << 32 | (UINT32_MAX - (uint32_t)row);
}

/* The largest magnitude of a tensor as the bits of an f32, infinity if an element is not finite. As
 * integers such bits have the order of the numbers. */
HG_HD static inline uint32_t hg__observed_reach(uint32_t amax, uint64_t nonfinite)
{
	return nonfinite ? 0x7F800000u : amax;
}

/* The head of the current step. Its loss scale has not been changed yet. */
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
