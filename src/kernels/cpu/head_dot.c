#include "kernels/cpu/columns.h"

/* Columns are grouped by heads: column k * d + c is component c of head k. */

/* S[i, k] = sum over c of X[i, k*d + c] * A[0, k*d + c] */
static float head_dot(const struct hg__head_dot_args *a, int64_t row, int64_t k, int64_t d)
{
	float sum = 0.0f;
	for (int64_t c = 0; c < d; c += HG__WIDTH) {
		float xs[HG__WIDTH], as[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, d - c), col = k * d + c;
		sum += hg__dot(n, hg__row(&a->x, row, col, n, xs), hg__row(&a->a, 0, col, n, as));
	}
	return sum;
}

hg_status HG__CPU(head_dot)(hg_context *ctx, const struct hg__head_dot_args *a)
{
	const int64_t rows = a->x.rows, d = a->heads ? a->x.cols / a->heads : 0;
	HG__TRY(hg__need(ctx, a->s.rows == rows && a->s.cols == a->heads && a->a.cols == a->x.cols && d * a->heads == a->x.cols, "head_dot: operands do not fit"));
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		for (int64_t k = 0; k < a->heads; k++) {
			const float s = head_dot(a, r, k, d);
			hg__row_put(&a->s, r, k, 1, &s);
		}
	return HG_OK;
}

/* dX[i, k*d + c] = dS[i, k] * A[0, k*d + c] */
static void head_dot_dx(const struct hg__head_dot_back_args *a, int64_t row, int64_t d)
{
	for (int64_t k = 0; k < a->heads; k++) {
		const float ds = hg__get(&a->ds, row, k);
		for (int64_t c = 0; c < d; c += HG__WIDTH) {
			float as[HG__WIDTH], dx[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, d - c), col = k * d + c;
			const float *v = hg__row(&a->a, 0, col, n, as);
			for (int64_t i = 0; i < n; i++)
				dx[i] = ds * v[i];
			hg__row_put(&a->dx, row, col, n, dx);
		}
	}
}

/* dA[0, k*d + c] = sum over i of dS[i, k] * X[i, k*d + c] */
static void head_dot_da(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n, float *sum, float *unused)
{
	const struct hg__head_dot_back_args *a = env;
	const int64_t d = a->x.cols / a->heads, first = c0 / d, last = (c0 + n - 1) / d;
	(void)unused;
	for (int64_t r = r0; r < r1; r++) {
		float scratch[HG__WIDTH];
		const float *x = hg__row(&a->x, r, c0, n, scratch);
		for (int64_t k = first; k <= last; k++) {
			const int64_t from = k == first ? 0 : k * d - c0, to = hg__min((k + 1) * d - c0, n);
			const float ds = hg__get(&a->ds, r, k);
			for (int64_t i = from; i < to; i++)
				sum[i] += ds * x[i];
		}
	}
}

hg_status HG__CPU(head_dot_back)(hg_context *ctx, const struct hg__head_dot_back_args *a)
{
	const int64_t rows = a->ds.rows, cols = a->dx.data ? a->dx.cols : a->x.cols;
	const int64_t d = a->heads ? cols / a->heads : 0;
	HG__TRY(hg__need(ctx, a->ds.cols == a->heads && d * a->heads == cols && (!a->da.data || a->da.dtype == HG_F32), "head_dot_back: operands do not fit"));
	if (a->dx.data) {
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
		for (int64_t r = 0; r < rows; r++)
			head_dot_dx(a, r, d);
	}
	return a->da.data ? HG__CPU(columns)(ctx, rows, cols, head_dot_da, a, a->da.data, NULL) : HG_OK;
}
