/* Dot products of every row with one or two vectors, for each head:
 *
 *     S[i, v * heads + k] = sum over c of X[i, k*d + c] V[0, k*d + c]
 *     dX[i, k*d + c] = dS[i, k] A[0, k*d + c] + dS[i, heads + k] B[0, k*d + c]
 *     dV[0, k*d + c] = sum over i of dS[i, v * heads + k] X[i, k*d + c]
 *
 * V = A for v = 0 and B for v = 1. Columns are grouped by heads: column k * d + c is component c
 * of head k. */
#include "kernels/cpu/columns.h"

static int64_t vector_count(const struct hg__mat *s, int heads)
{
	return heads && s->cols == 2 * (int64_t)heads ? 2 : 1;
}

/* One element of S. */
static float head_dot_element(const struct hg__head_dot_args *a, const struct hg__mat *vector,
                              int64_t row, int64_t k, int64_t d)
{
	float sum = 0.0f;
	for (int64_t c = 0; c < d; c += HG__WIDTH) {
		float xs[HG__WIDTH], as[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, d - c), col = k * d + c;
		sum += hg__dot(n, hg__row(&a->x, row, col, n, xs), hg__row(vector, 0, col, n, as));
	}
	return sum;
}

/* For rows of at most HG__WIDTH columns and heads. The limit on heads is checked as well because
 * any number of heads divides 0 columns. */
static void head_dot_short_row(const struct hg__head_dot_args *a, int64_t row, int64_t d)
{
	float xs[HG__WIDTH], as[HG__WIDTH], s[HG__WIDTH];
	const struct hg__mat *vector[] = {&a->a, &a->b};
	const float *x = hg__row(&a->x, row, 0, a->x.cols, xs);
	for (int64_t v = 0; v < vector_count(&a->s, a->heads); v++) {
		hg__dot_heads(a->heads, d, x, hg__row(vector[v], 0, 0, a->x.cols, as), s);
		hg__row_put(&a->s, row, v * a->heads, a->heads, s);
	}
}

static void head_dot_long_row(const struct hg__head_dot_args *a, int64_t row, int64_t d)
{
	const struct hg__mat *vector[] = {&a->a, &a->b};
	for (int64_t v = 0; v < vector_count(&a->s, a->heads); v++)
		for (int64_t k = 0; k < a->heads; k++)
			hg__set(&a->s, row, v * a->heads + k, head_dot_element(a, vector[v], row, k, d));
}

HG__NO_WORKSPACE(head_dot, head_dot_args)

hg_status HG__CPU(head_dot)(hg_context *ctx, const struct hg__head_dot_args *a)
{
	const int64_t rows = a->x.rows, d = a->heads ? a->x.cols / a->heads : 0,
	              count = vector_count(&a->s, a->heads);
	const int fits = a->a.cols == a->x.cols && (count == 1 || a->b.cols == a->x.cols) &&
	                 d * a->heads == a->x.cols;
	HG__TRY(HG__FIT(ctx, fits && a->s.rows == rows && a->s.cols == count * a->heads, "head_dot",
	                &a->x, &a->a, &a->b, &a->s));
#pragma omp parallel for num_threads(hg__team(ctx, count *rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		if (a->x.cols <= HG__WIDTH && a->heads <= HG__WIDTH)
			head_dot_short_row(a, r, d);
		else
			head_dot_long_row(a, r, d);
	return HG_OK;
}

/* out[c] = dS[row, v * heads + head of c] for columns c0 .. c0+n-1, where n <= HG__WIDTH. */
static void spread_ds(const struct hg__head_dot_back_args *a, int64_t v, int64_t row, int64_t d,
                      int64_t c0, int64_t n, float *out)
{
	float scratch[HG__WIDTH];
	const int64_t first = c0 / d, heads = (c0 + n - 1) / d - first + 1;
	const float *ds = hg__row(&a->ds, row, v * a->heads + first, heads, scratch);
	for (int64_t k = 0, c = 0; k < heads; k++)
		for (const int64_t end = hg__min((first + k + 1) * d - c0, n); c < end; c++)
			out[c] = ds[k];
}

/* One row of dX, which is added to what dX holds if a->add is set. */
static void head_dot_dx(const struct hg__head_dot_back_args *a, int64_t row, int64_t d)
{
	const struct hg__mat *vector[] = {&a->a, &a->b};
	for (int64_t c = 0; c < a->dx.cols; c += HG__WIDTH) {
		float values[HG__WIDTH], ds[HG__WIDTH], sum[HG__WIDTH] = {0};
		const int64_t n = hg__min(HG__WIDTH, a->dx.cols - c);
		if (a->add)
			memcpy(sum, hg__row(&a->dx, row, c, n, values), (size_t)n * sizeof *sum);
		for (int64_t v = 0; v < vector_count(&a->ds, a->heads); v++) {
			const float *by = hg__row(vector[v], 0, c, n, values);
			spread_ds(a, v, row, d, c, n, ds);
			for (int64_t i = 0; i < n; i++)
				sum[i] += ds[i] * by[i];
		}
		hg__row_put(&a->dx, row, c, n, sum);
	}
}

/* The sums of rows r0 .. r1-1 for dA (v = 0) or dB (v = 1). */
static void add_vector(const struct hg__head_dot_back_args *a, int64_t v, int64_t r0, int64_t r1,
                       int64_t c0, int64_t n, float *sum)
{
	const int64_t d = a->x.cols / a->heads;
	for (int64_t r = r0; r < r1; r++) {
		float scratch[HG__WIDTH], ds[HG__WIDTH];
		const float *x = hg__row(&a->x, r, c0, n, scratch);
		spread_ds(a, v, r, d, c0, n, ds);
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			sum[i] += ds[i] * x[i];
	}
}
static void head_dot_da(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n, float *sum,
                        float *unused)
{
	(void)unused;
	add_vector(env, 0, r0, r1, c0, n, sum);
}
static void head_dot_db(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n, float *sum,
                        float *unused)
{
	(void)unused;
	add_vector(env, 1, r0, r1, c0, n, sum);
}

size_t HG__CPU(head_dot_back_workspace)(const hg_context *ctx,
                                        const struct hg__head_dot_back_args *a)
{
	(void)ctx;
	return a->da.data || a->db.data ? hg__reduction_bytes(a->x.rows, a->x.cols) : 0;
}

hg_status HG__CPU(head_dot_back)(hg_context *ctx, const struct hg__head_dot_back_args *a)
{
	const int64_t rows = a->ds.rows, cols = a->dx.data ? a->dx.cols : a->x.cols,
	              d = a->heads ? cols / a->heads : 0;
	const int f32 =
	    (!a->da.data || a->da.dtype == HG_F32) && (!a->db.data || a->db.dtype == HG_F32);
	HG__TRY(HG__FIT(
	    ctx, f32 && a->ds.cols == vector_count(&a->ds, a->heads) * a->heads && d * a->heads == cols,
	    "head_dot_back", &a->x, &a->a, &a->b, &a->ds, &a->dx, &a->da, &a->db));
	if (a->da.data)
		HG__TRY(HG__CPU(columns)(ctx, rows, cols, head_dot_da, a, a->da.data, NULL));
	if (a->db.data)
		HG__TRY(HG__CPU(columns)(ctx, rows, cols, head_dot_db, a, a->db.data, NULL));
	if (!a->dx.data)
		return HG_OK;
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		head_dot_dx(a, r, d);
	return HG_OK;
}
