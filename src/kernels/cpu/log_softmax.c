#include "kernels/cpu/softmax.h"

/* Y = X - max - log(sum exp(X - max)) per row */
static void forward(const struct hg__log_softmax_args *a, int64_t row)
{
	const struct hg__softmax s = hg__softmax_row(&a->x, row);
	const float log_sum = logf(s.sum);
	for (int64_t c = 0; c < a->x.cols; c += HG__WIDTH) {
		float xs[HG__WIDTH], ys[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - c);
		const float *x = hg__row(&a->x, row, c, n, xs);
		float *y = hg__row_begin(&a->y, row, c, ys);
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			y[i] = x[i] - s.max - log_sum;
		hg__row_put(&a->y, row, c, n, y);
	}
}

hg_status HG__CPU(log_softmax)(hg_context *ctx, const struct hg__log_softmax_args *a)
{
	HG__TRY(hg__need(ctx, hg__same(&a->x, &a->y), "log_softmax: X and Y differ in shape or are not floats"));
	const int64_t rows = a->x.rows;
#pragma omp parallel for num_threads(hg__team(ctx, 4 * rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		forward(a, r);
	return HG_OK;
}

/* dX = dY - exp(Y) * sum over the row of dY */
static void backward(const struct hg__log_softmax_back_args *a, int64_t row)
{
	float ys[HG__WIDTH], ds[HG__WIDTH], e[HG__WIDTH], sum = 0.0f;
	const int64_t cols = a->y.cols;
	for (int64_t c = 0; c < cols; c += HG__WIDTH) {
		const int64_t n = hg__min(HG__WIDTH, cols - c);
		sum += hg__sum(n, hg__row(&a->dy, row, c, n, ds));
	}
	for (int64_t c = 0; c < cols; c += HG__WIDTH) {
		const int64_t n = hg__min(HG__WIDTH, cols - c);
		const float *dy = hg__row(&a->dy, row, c, n, ds);
		(void)hg__exp_row(n, hg__row(&a->y, row, c, n, ys), 0.0f, e);
		for (int64_t i = 0; i < n; i++)
			e[i] = dy[i] - e[i] * sum;
		hg__row_put(&a->dx, row, c, n, e);
	}
}

hg_status HG__CPU(log_softmax_back)(hg_context *ctx, const struct hg__log_softmax_back_args *a)
{
	HG__TRY(hg__need(ctx, hg__same(&a->y, &a->dy) && hg__same(&a->y, &a->dx), "log_softmax_back: operands do not fit"));
	const int64_t rows = a->y.rows;
#pragma omp parallel for num_threads(hg__team(ctx, 4 * rows * a->y.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		backward(a, r);
	return HG_OK;
}
