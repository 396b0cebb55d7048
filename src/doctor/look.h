#ifndef HG_DOCTOR_LOOK_H
#define HG_DOCTOR_LOOK_H

#include "doctor/host.h"

HG_EXTERN_C_BEGIN

/* An element that is far from what the wide run says. */
struct hg__off {
	int64_t row, col;
	double got, wide, by; /* by: how far, as the list measures it */
};
#define HG__OFFS 16

/* An element that is not finite. */
struct hg__bad {
	int64_t row, col;
	double got;
};
#define HG__BADS 32 /* rows of which one is kept, and as many columns */

/* One float tensor as the host sees it, once through, beside the wide result where there is one.
 * Some megabytes of host memory, however large it is. */
struct hg__look {
	int64_t zeros, subnormals, nonfinite, bin[32];
	double amax;      /* of the finite ones */
	double row_sum;   /* their sizes over a row, the largest sum */
	int64_t row, col; /* the first that is not finite */
	double got;
	/* those of them that are this tensor's own doing, and of each row and each column that has
	 * any, one; of rows as evenly as there is room, the first of all at the beginning */
	int64_t own;
	double largest; /* of their sizes in the wide result; 0 where there is none */
	struct hg__bad bad[2 * HG__BADS];
	int bads;
	/* beside the wide result: */
	/* sum of |wide|; and of that what is stored as zero */
	double mass, lost;
	int64_t gone;                /* elements that are stored as zero and are none */
	struct hg__off largest_lost; /* the largest of them */
	/* the farthest off, first; relatively to the wide one */
	struct hg__off far[HG__OFFS], rel[HG__OFFS];
};
/* got: f16 or f32. wide: f32; NULL: none. */
HG_NODISCARD hg_status hg__look_at(hg_context *ctx, const struct hg__mat *got,
                                   const struct hg__mat *wide, struct hg__look *look);
/* The same. good 0: what is not finite in the wide result, either, is not its own doing. */
HG_NODISCARD hg_status hg__look_for(hg_context *ctx, const struct hg__mat *got,
                                    const struct hg__mat *wide, int good, struct hg__look *look);
/* The same beside a compact array of the host. */
HG_NODISCARD hg_status hg__look_beside(hg_context *ctx, const struct hg__mat *got,
                                       const float *host, struct hg__look *look);

HG_EXTERN_C_END
#endif
