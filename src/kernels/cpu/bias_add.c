/* Y = X + b, where b [1, cols] is added to every row. */
#include "kernels/cpu/rows.h"

/* Rows [row, end) of the columns [col, col + n), where n <= HG__WIDTH. */
static void bias_add_rows(const struct hg__bias_add_args *a, int64_t row, int64_t end, int64_t col,
                          int64_t n)
{
	float bs[HG__WIDTH], xs[HG__WIDTH], ys[HG__WIDTH];
	const float *b = hg__row(&a->b, 0, col, n, bs);
	for (; row < end; row++) {
		const float *x = hg__row(&a->x, row, col, n, xs);
		float *y = hg__row_begin(&a->y, row, col, ys);
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			y[c] = x[c] + b[c];
		hg__row_put(&a->y, row, col, n, y);
	}
}

HG__NO_WORKSPACE(bias_add, bias_add_args)

hg_status HG__CPU(bias_add)(hg_context *ctx, const struct hg__bias_add_args *a)
{
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->y) && hg__is_state(&a->b) && a->b.cols == a->x.cols,
	                "bias_add", &a->x, &a->b, &a->y));
	/* b is widened once for 64 rows, which is 1/64 of the work. */
	const int64_t rows = a->x.rows, cols = a->x.cols, block = 64;
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t row = 0; row < rows; row += block)
		for (int64_t col = 0; col < cols; col += HG__WIDTH)
			bias_add_rows(a, row, hg__min(row + block, rows), col, hg__min(HG__WIDTH, cols - col));
	return HG_OK;
}
