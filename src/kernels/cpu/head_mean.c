/* The mean over the heads:
 *
 *     Y[i, c] = 1/h * sum over k of X[i, k*d + c]
 *     dX[i, k*d + c] = dY[i, c] / h */
#include "kernels/cpu/head_mean.h"

HG__NO_WORKSPACE(head_mean, head_mean_args)

hg_status HG__CPU(head_mean)(hg_context *ctx, const struct hg__head_mean_args *a)
{
	const int64_t rows = a->x.rows, d = a->y.cols;
	HG__TRY(HG__FIT(ctx,
	                a->y.rows == rows && a->x.cols == d * a->heads && hg__is_state(&a->x) &&
	                    hg__is_state(&a->y),
	                "head_mean", &a->x, &a->y));
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < d; c += HG__WIDTH) {
			float mean[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, d - c);
			hg__head_mean_row(&a->x, r, a->heads, d, c, n, mean);
			hg__row_put(&a->y, r, c, n, mean);
		}
	return HG_OK;
}

HG__NO_WORKSPACE(head_mean_back, head_mean_args)

/* The arguments have the names of the forward pass: x is dX and y is dY. */
hg_status HG__CPU(head_mean_back)(hg_context *ctx, const struct hg__head_mean_args *a)
{
	const int64_t rows = a->y.rows, d = a->y.cols;
	HG__TRY(HG__FIT(ctx,
	                a->x.rows == rows && a->x.cols == d * a->heads && hg__is_state(&a->x) &&
	                    hg__is_state(&a->y),
	                "head_mean_back", &a->x, &a->y));
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < d; c += HG__WIDTH) {
			float part[HG__WIDTH], scratch[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, d - c);
			memcpy(part, hg__row(&a->y, r, c, n, scratch), (size_t)n * sizeof(float));
			hg__head_mean_row_back(&a->x, r, a->heads, d, c, n, part);
		}
	return HG_OK;
}
