#ifndef HG_BENCH_CHECK_SPMM_H
#define HG_BENCH_CHECK_SPMM_H

#include "check.h"

/* An aggregation to check:  Y[i, c] = r_i * sum over the edges e = (i, j) of w_e s_j X[j, c].
 * Vectors are device memory or NULL; w [m, heads] in place of the weights, absent where its data is
 * NULL: then head c / (cols / heads) of it. */
struct aggregation {
	struct hg__mat x, y, w;
	const float *weight, *row_scale, *col_scale;
	hg_accumulate accumulate;
	int tiles; /* of halves, by tensor cores */
};
hg_status check_spmm(struct bench *b, const struct aggregation *a, struct check *check);

#endif
