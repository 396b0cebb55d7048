#ifndef HG_DOCTOR_SLICES_H
#define HG_DOCTOR_SLICES_H

#include "doctor/scan.h"

HG_EXTERN_C_BEGIN

/* Which slices of a result (its rows, or its columns) have lost more than half of their sum of
 * |wide| to elements that were rounded to zero? In a whole tensor, small numbers beside larger ones
 * of the same row or column are no loss where they are added up. But in a slice that has lost most
 * of its sum nothing is left: what distinguishes one node from another, or moves the weights of one
 * unit, is gone, however large the other slices are. So each slice is counted by itself. */
struct hg__slice_query {
	const struct hg__mat *stored, *wide; /* f16, and the same op in f32 */
	/* the operand with the same rows; for columns it has the same columns, too */
	const struct hg__mat *operand;
	int columns; /* 0: the slices are rows */
	/* A slice counts as zeroed only if */
	double min_operand;     /* the largest |x| of its operand is at least this, */
	double min_zeroed_sum;  /* the |wide| of its zeroed elements add up to more than this, */
	double min_zeroed_amax; /* and the largest of them is larger than this */
};
struct hg__slices {
	int64_t count, zeroed;   /* slices that are not all 0 in the wide result; zeroed ones of them */
	int64_t zeroed_elements; /* in the zeroed slices */
	struct hg__deviation largest_zeroed;
};
HG_NODISCARD hg_status hg__slices_count(hg_context *ctx, const struct hg__slice_query *query,
                                        struct hg__slices *slices);

HG_EXTERN_C_END
#endif
