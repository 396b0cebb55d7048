/* The contracts of batch normalisation, for its own kernels and for those that compute it on their
 * way, included by kernels.h. */
#ifndef HG_KERNELS_BATCH_NORM_H
#define HG_KERNELS_BATCH_NORM_H

#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* Batch normalisation, Y = gamma * (X - mean) * rstd + beta, or the maximum of that and 0 (relu).
 * gamma, beta and running statistics f32 [1, cols].
 *
 * train = 1: mean and biased variance of each column in f32, in two passes or from merged moments
 * of pieces of rows (both within gamma_n). mean and rstd = 1/sqrt(var + eps) are saved, f32
 * [1, cols]. Running statistics <- (1 - momentum) * running + momentum * (mean, var * n / (n - 1)),
 * only in columns where both are finite, because a step that is skipped for an overflow must not
 * spoil them. train = 0: the running statistics are used.
 *
 * shift: X is 2^shift times what is stored. mean and rstd are then those of the stored numbers
 * (with eps 4^-shift), running statistics those of X. The bits are those of shift 0, except where
 * the stored numbers underflow.
 *
 * live: the number of rows that count, in device memory, so that matrices of one shape may hold
 * batches of different sizes. Rows from *live on do not change the statistics, and there Y is 0. In
 * [0, rows]; NULL: all rows count.
 *
 * y: absent means that only the statistics are computed, for kernels that normalise X as they read
 * it. has_statistics: mean and rstd are there already, and the running statistics are up to date
 * (only where the backend's takes_norms says that a product can compute them). */
struct hg__batch_norm_args {
	struct hg__mat x, gamma, beta, y, mean, rstd, running_mean, running_var;
	float momentum, eps;
	int train, relu, shift, has_statistics;
	/* Device memory; a value other than 0 leaves the running statistics unchanged (kernels/step.h).
	 * NULL is the same as 0. */
	const int32_t *stop;
	const int64_t *live;
};
/* The gradients of batch normalisation, with xhat = (X - mean) * rstd:
 *
 *     dgamma = sum dY * xhat,    dbeta = sum dY    (f32)
 *     dX = gamma * rstd * (dY - dbeta / n - xhat * dgamma / n)
 *
 * With relu, dY counts where gamma * xhat + beta > 0. That is recomputed exactly as in the forward
 * pass, since X is read anyway; only then is beta needed. shift, mean and rstd are as above. dX is
 * the gradient of X, not of the stored numbers; absent if it is not needed. live: as above; rows
 * from *live on do not count in the sums, and there dX is 0. has_sums: dgamma and dbeta hold the
 * sums already, so that they need not be added up. */
struct hg__batch_norm_back_args {
	struct hg__mat x, gamma, mean, rstd, dy, dx, dgamma, dbeta, beta;
	int relu, shift, has_sums;
	const int64_t *live;
};

/* Batch norm that a kernel applies to a matrix as it reads it, so that the result is never stored.
 * Element [r, c] of a matrix X stands for
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
