#ifndef HG_BENCH_CHECK_SPMM_H
#define HG_BENCH_CHECK_SPMM_H

#include "check.h"

/* An aggregation to check: Y[i, c] = r_i * sum over the edges e = (i, j) of w_e s_j X[j, c].
 * Vectors are device memory or NULL. If w [m, heads] has data, its column c / (cols / heads)
 * replaces the weights. */
struct aggregation {
	struct hg__mat x, y, w;
	const float *weight, *row_scale, *col_scale;
	hg_accumulate accumulate;
	int tiles; /* computed on f16 by tensor cores */
};
hg_status check_spmm(struct bench *b, const struct aggregation *a, struct check *check);

#endif
