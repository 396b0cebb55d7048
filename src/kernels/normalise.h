/* Batch norm that a kernel applies to a matrix as it reads it, so that the result of the norm is
 * never stored. */
#ifndef HG_KERNELS_NORMALISE_H
#define HG_KERNELS_NORMALISE_H

#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* Element [r, c] of a matrix X stands for
 *
 *     narrow(gamma[c] (x - mean[c]) rstd[c] + beta[c]),  or the maximum of that and 0 with relu,
 *
 * and for 0 in rows from *live on (live NULL: there are none). narrow: to the type of X. These are
 * the bits that the kernel batch_norm would have stored. The vectors are f32, one element for each
 * column of X. */
struct hg__normalise {
	const float *mean; /* NULL: X stands for itself */
	const float *rstd, *gamma, *beta;
	const int64_t *live;
	int relu;
};

HG_EXTERN_C_END
#endif
