#ifndef HG_DOCTOR_LINES_H
#define HG_DOCTOR_LINES_H

#include "doctor/look.h"

HG_EXTERN_C_BEGIN

/* Rows, or columns, of a result of which more than half, by |wide|, was rounded to zero. got: f16,
 * wide: f32. */
struct hg__lines_ask {
	const struct hg__mat *got, *wide;
	const struct hg__mat *beside; /* the operand that has the same rows, or columns and rows */
	int columns;
	/* a line counts as lost if its operand reaches this size, */
	double operand;
	double mass; /* the |wide| that are lost add up to more than this, */
	double size; /* and the largest of them exceeds this */
};
struct hg__lines {
	int64_t lines, lost;         /* that should hold anything; of those, that are lost */
	int64_t gone;                /* elements of the lost ones */
	struct hg__off largest_lost; /* the largest of them */
};
HG_NODISCARD hg_status hg__lines_lost(hg_context *ctx, const struct hg__lines_ask *ask,
                                      struct hg__lines *lines);

HG_EXTERN_C_END
#endif
