/* y = sum over all r, c of A[r, c] B[r, c]. A row is added in f32 in pieces of HG__WIDTH columns,
 * the pieces and rows of a block in f64, and then the blocks in order. */
#include "kernels/cpu/rows.h"

/* A block needs 8 bytes of workspace, so 256 rows need the 32 bytes that hg__reduction_bytes
 * reserves for them. */
#define BLOCK_ROWS 64

static double dot_row(const struct hg__dot_all_args *a, int64_t row)
{
	double sum = 0.0;
	for (int64_t c = 0; c < a->a.cols; c += HG__WIDTH) {
		float as[HG__WIDTH], bs[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->a.cols - c);
		sum += (double)hg__dot(n, hg__row(&a->a, row, c, n, as), hg__row(&a->b, row, c, n, bs));
	}
	return sum;
}

size_t HG__CPU(dot_all_workspace)(const hg_context *ctx, const struct hg__dot_all_args *a)
{
	(void)ctx;
	return hg__reduction_bytes(a->a.rows, a->a.cols);
}

hg_status HG__CPU(dot_all)(hg_context *ctx, const struct hg__dot_all_args *a)
{
	HG__TRY(HG__FIT(ctx, hg__same(&a->a, &a->b) && a->y.dtype == HG_F32, "dot_all", &a->a, &a->b,
	                &a->y));
	const int64_t rows = a->a.rows, blocks = hg__ceil_div(rows, BLOCK_ROWS);
	void *memory;
	HG__TRY(hg__workspace(ctx, (size_t)blocks * sizeof(double), &memory));
	double *part = memory, total = 0.0;
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->a.cols)) schedule(static)
	for (int64_t b = 0; b < blocks; b++) {
		part[b] = 0.0;
		for (int64_t r = b * BLOCK_ROWS; r < hg__min((b + 1) * BLOCK_ROWS, rows); r++)
			part[b] += dot_row(a, r);
	}
	for (int64_t b = 0; b < blocks; b++)
		total += part[b];
	*(float *)a->y.data = (float)total;
	return HG_OK;
}
