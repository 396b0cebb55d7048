/* dst[:, dst_col + c] = src[:, src_col + c], for 0 <= c < cols. The types may differ. */
#include "kernels/cpu/rows.h"

HG__NO_WORKSPACE(copy_cols, copy_cols_args)

hg_status HG__CPU(copy_cols)(hg_context *ctx, const struct hg__copy_cols_args *a)
{
	HG__TRY(HG__FIT(ctx,
	                a->src.rows == a->dst.rows && hg__is_state(&a->src) && hg__is_state(&a->dst),
	                "copy_cols", &a->src, &a->dst));
	const int64_t rows = a->src.rows, cols = a->cols;
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t row = 0; row < rows; row++)
		for (int64_t col = 0; col < cols; col += HG__WIDTH) {
			float scratch[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, cols - col);
			hg__row_put(&a->dst, row, a->dst_col + col, n,
			            hg__row(&a->src, row, a->src_col + col, n, scratch));
		}
	return HG_OK;
}
