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

/* At most HG__WIDTH columns, and as many heads: without columns any number of heads divides them. */
static void short_row(const struct hg__head_dot_args *a, int64_t row, int64_t d)
{
	float xs[HG__WIDTH], as[HG__WIDTH], s[HG__WIDTH];
	hg__dot_heads(a->heads, d, hg__row(&a->x, row, 0, a->x.cols, xs), hg__row(&a->a, 0, 0, a->x.cols, as), s);
	hg__row_put(&a->s, row, 0, a->heads, s);
}

hg_status HG__CPU(head_dot)(hg_context *ctx, const struct hg__head_dot_args *a)
{
	const int64_t rows = a->x.rows, d = a->heads ? a->x.cols / a->heads : 0;
	HG__TRY(hg__need(ctx, a->s.rows == rows && a->s.cols == a->heads && a->a.cols == a->x.cols && d * a->heads == a->x.cols, "head_dot: operands do not fit"));
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		if (a->x.cols <= HG__WIDTH && a->heads <= HG__WIDTH)
			short_row(a, r, d);
		else
			for (int64_t k = 0; k < a->heads; k++) {
				const float s = head_dot(a, r, k, d);
				hg__set(&a->s, r, k, s);
			}
	return HG_OK;
}

/* Columns c0 .. c0+n-1 of dS[row, head of c]: n <= HG__WIDTH. */
static void spread(const struct hg__head_dot_back_args *a, int64_t row, int64_t d, int64_t c0, int64_t n, float *out)
{
	float scratch[HG__WIDTH];
	const int64_t first = c0 / d, heads = (c0 + n - 1) / d - first + 1;
	const float *ds = hg__row(&a->ds, row, first, heads, scratch);
	for (int64_t k = 0, c = 0; k < heads; k++)
		for (const int64_t end = hg__min((first + k + 1) * d - c0, n); c < end; c++)
			out[c] = ds[k];
}

/* dX[i, k*d + c] = dS[i, k] * A[0, k*d + c] */
static void head_dot_dx(const struct hg__head_dot_back_args *a, int64_t row, int64_t d)
{
	for (int64_t c = 0; c < a->dx.cols; c += HG__WIDTH) {
		float as[HG__WIDTH], ds[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->dx.cols - c);
		const float *v = hg__row(&a->a, 0, c, n, as);
		spread(a, row, d, c, n, ds);
		for (int64_t i = 0; i < n; i++)
			ds[i] *= v[i];
		hg__row_put(&a->dx, row, c, n, ds);
	}
}

/* dA[0, k*d + c] = sum over i of dS[i, k] * X[i, k*d + c] */
static void head_dot_da(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n, float *sum, float *unused)
{
	const struct hg__head_dot_back_args *a = env;
	const int64_t d = a->x.cols / a->heads;
	(void)unused;
	for (int64_t r = r0; r < r1; r++) {
		float scratch[HG__WIDTH], ds[HG__WIDTH];
		const float *x = hg__row(&a->x, r, c0, n, scratch);
		spread(a, r, d, c0, n, ds);
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			sum[i] += ds[i] * x[i];
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
