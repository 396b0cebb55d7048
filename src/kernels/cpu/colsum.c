/* Y[0, c] = sum over the rows r of X[r, c]. If copy is present, X is also copied to it, in the same
 * pass. */
#include "kernels/cpu/columns.h"

/* The sums of rows r0 .. r1-1 for the columns c0 .. c0+n-1. */
static void colsum_rows(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n, float *sum,
                        float *unused)
{
	const struct hg__colsum_args *a = env;
	(void)unused;
	for (int64_t r = r0; r < r1; r++) {
		float scratch[HG__WIDTH];
		const float *row = hg__row(&a->x, r, c0, n, scratch);
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			sum[c] += row[c];
		if (a->copy.data)
			hg__row_put(&a->copy, r, c0, n, row);
	}
}

size_t HG__CPU(colsum_workspace)(const hg_context *ctx, const struct hg__colsum_args *a)
{
	(void)ctx;
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

hg_status HG__CPU(colsum)(hg_context *ctx, const struct hg__colsum_args *a)
{
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->x) && a->y.dtype == HG_F32 && a->y.cols == a->x.cols &&
	                    (!a->copy.data || hg__same(&a->x, &a->copy)),
	                "colsum", &a->x, &a->y, &a->copy));
	return HG__CPU(columns)(ctx, a->x.rows, a->x.cols, colsum_rows, a, a->y.data, NULL);
}
