#ifndef HG_DOCTOR_SCAN_H
#define HG_DOCTOR_SCAN_H

#include "doctor/host.h"

HG_EXTERN_C_BEGIN

/* What one pass over a float tensor finds: counts, a histogram, elements that are not finite and,
 * beside the wide result (the same op in f32 on the same operands), the elements that differ most
 * from it. The host reads a few megabytes at a time, however large the tensor is. */

/* An element that differs from the wide result. */
struct hg__deviation {
	int64_t row, col;
	double stored, wide;
	double by; /* the measure that a list of deviations is sorted by */
};
#define HG__DEVIATIONS 16

/* An element that is not finite. */
struct hg__nonfinite {
	int64_t row, col;
	double stored;
};
#define HG__SAMPLES 32 /* as many rows and as many columns */

struct hg__scan {
	int64_t zeros, subnormals, nonfinite, bin[32];
	double amax;                /* max |x| of the finite elements */
	double max_row_sum;         /* the largest sum of |x| over a row */
	struct hg__nonfinite first; /* the first element that is not finite */
	/* How many of these elements the op itself introduced: its operands are finite, or at least the
	 * wide result is finite at this element. Samples of them: one of each row and one of each
	 * column that has any, rows evenly spaced where there are too many, the very first sample
	 * first. */
	int64_t introduced;
	double introduced_amax; /* the largest |wide| among them; 0 without a wide result */
	struct hg__nonfinite sample[2 * HG__SAMPLES];
	int samples;
	/* beside the wide result, where both are finite: */
	double abs_sum, zeroed_abs_sum; /* sum of |wide|; and over the elements stored as 0 */
	int64_t zeroed;                 /* elements that are stored as 0 although wide is not 0 */
	struct hg__deviation largest_zeroed;
	/* the largest |stored - wide|, and the largest |stored - wide| / |wide|, in falling order */
	struct hg__deviation farthest[HG__DEVIATIONS], farthest_relative[HG__DEVIATIONS];
};

/* stored: f16 or f32. wide: f32; NULL: there is no wide result. */
HG_NODISCARD hg_status hg__scan_tensor(hg_context *ctx, const struct hg__mat *stored,
                                       const struct hg__mat *wide, struct hg__scan *seen);
/* The same for a result of an op. operands_finite 0: elements that are not finite in the wide
 * result either come from the operands, so the op did not introduce them. */
HG_NODISCARD hg_status hg__scan_result(hg_context *ctx, const struct hg__mat *stored,
                                       const struct hg__mat *wide, int operands_finite,
                                       struct hg__scan *seen);
/* The same with a compact array of the host in place of a wide result. */
HG_NODISCARD hg_status hg__scan_beside_host(hg_context *ctx, const struct hg__mat *stored,
                                            const float *host, struct hg__scan *seen);

HG_EXTERN_C_END
#endif
