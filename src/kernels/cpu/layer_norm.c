/* Layer normalisation. Means are along the row:
 *
 *     Y = gamma xhat + beta,   xhat = (X - mean) rstd,   rstd = 1 / sqrt(var + eps)
 *     dX = rstd (g - mean(g) - xhat mean(g xhat)),   g = gamma dY
 *
 * Rows may be longer than the scratch memory, so every pass goes over pieces of HG__WIDTH
 * columns. */
#include <math.h>

#include "kernels/cpu/columns.h"

static void row_statistics(const struct hg__layer_norm_args *a, int64_t row, float *mean,
                           float *rstd)
{
	const int64_t cols = a->x.cols;
	float scratch[HG__WIDTH], part[HG__WIDTH], sum = 0.0f, square = 0.0f;
	for (int64_t c = 0; c < cols; c += HG__WIDTH) {
		const int64_t n = hg__min(HG__WIDTH, cols - c);
		sum += hg__sum(n, hg__row(&a->x, row, c, n, scratch));
	}
	*mean = sum / (float)cols;
	for (int64_t c = 0; c < cols; c += HG__WIDTH) {
		const int64_t n = hg__min(HG__WIDTH, cols - c);
		const float *x = hg__row(&a->x, row, c, n, scratch);
		for (int64_t i = 0; i < n; i++)
			part[i] = x[i] - *mean;
		square += hg__dot(n, part, part);
	}
	*rstd = 1.0f / sqrtf(square / (float)cols + a->eps);
}

/* One row of Y, mean and rstd. */
static void layer_norm_row(const struct hg__layer_norm_args *a, int64_t row)
{
	float mean, rstd;
	row_statistics(a, row, &mean, &rstd);
	((float *)a->mean.data)[row] = mean;
	((float *)a->rstd.data)[row] = rstd;
	for (int64_t c = 0; c < a->x.cols; c += HG__WIDTH) {
		float xs[HG__WIDTH], ys[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - c);
		const float *x = hg__row(&a->x, row, c, n, xs), *gamma = (const float *)a->gamma.data + c,
		            *beta = (const float *)a->beta.data + c;
		float *y = hg__row_begin(&a->y, row, c, ys);
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			y[i] = gamma[i] * ((x[i] - mean) * rstd) + beta[i];
		hg__row_put(&a->y, row, c, n, y);
	}
}

HG__NO_WORKSPACE(layer_norm, layer_norm_args)

hg_status HG__CPU(layer_norm)(hg_context *ctx, const struct hg__layer_norm_args *a)
{
	const int64_t rows = a->x.rows;
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->y), "layer_norm", &a->x, &a->gamma, &a->beta, &a->y,
	                &a->mean, &a->rstd));
	if (a->x.cols == 0)
		return HG_OK;
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		layer_norm_row(a, r);
	return HG_OK;
}

/* dgamma = sum of dY xhat over the rows, dbeta = sum of dY */
static void layer_norm_sum_grad(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n,
                                float *dgamma, float *dbeta)
{
	const struct hg__layer_norm_back_args *a = env;
	for (int64_t r = r0; r < r1; r++) {
		float xs[HG__WIDTH], ds[HG__WIDTH];
		const float *x = hg__row(&a->x, r, c0, n, xs), *dy = hg__row(&a->dy, r, c0, n, ds);
		const float mean = ((const float *)a->mean.data)[r],
		            rstd = ((const float *)a->rstd.data)[r];
#pragma omp simd
		for (int64_t c = 0; c < n; c++) {
			dgamma[c] += dy[c] * ((x[c] - mean) * rstd);
			dbeta[c] += dy[c];
		}
	}
}

/* g = gamma dY and xhat = (X - mean) rstd for n columns of a row from c on. */
static void load_grad_piece(const struct hg__layer_norm_back_args *a, int64_t row, int64_t c,
                            int64_t n, float *g, float *xhat)
{
	float xs[HG__WIDTH], ds[HG__WIDTH];
	const float *x = hg__row(&a->x, row, c, n, xs), *dy = hg__row(&a->dy, row, c, n, ds),
	            *gamma = (const float *)a->gamma.data + c;
	const float mean = ((const float *)a->mean.data)[row],
	            rstd = ((const float *)a->rstd.data)[row];
	for (int64_t i = 0; i < n; i++) {
		g[i] = gamma[i] * dy[i];
		xhat[i] = (x[i] - mean) * rstd;
	}
}

/* One row of dX. */
static void layer_norm_back_row(const struct hg__layer_norm_back_args *a, int64_t row)
{
	const int64_t cols = a->x.cols;
	const float rstd = ((const float *)a->rstd.data)[row];
	float g[HG__WIDTH], xhat[HG__WIDTH], sum = 0.0f, dot = 0.0f;
	for (int64_t c = 0; c < cols; c += HG__WIDTH) {
		const int64_t n = hg__min(HG__WIDTH, cols - c);
		load_grad_piece(a, row, c, n, g, xhat);
		sum += hg__sum(n, g);
		dot += hg__dot(n, g, xhat);
	}
	sum /= (float)cols;
	dot /= (float)cols;
	for (int64_t c = 0; c < cols; c += HG__WIDTH) {
		const int64_t n = hg__min(HG__WIDTH, cols - c);
		load_grad_piece(a, row, c, n, g, xhat);
		for (int64_t i = 0; i < n; i++)
			g[i] = rstd * (g[i] - sum - xhat[i] * dot);
		hg__row_put(&a->dx, row, c, n, g);
	}
}

size_t HG__CPU(layer_norm_back_workspace)(const hg_context *ctx,
                                          const struct hg__layer_norm_back_args *a)
{
	(void)ctx;
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

hg_status HG__CPU(layer_norm_back)(hg_context *ctx, const struct hg__layer_norm_back_args *a)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	if (cols == 0)
		return HG_OK;
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->dy) && a->dgamma.data && a->dbeta.data,
	                "layer_norm_back", &a->x, &a->gamma, &a->mean, &a->rstd, &a->dy, &a->dx,
	                &a->dgamma, &a->dbeta));
	HG__TRY(
	    HG__CPU(columns)(ctx, rows, cols, layer_norm_sum_grad, a, a->dgamma.data, a->dbeta.data));
	if (!a->dx.data)
		return HG_OK;
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		layer_norm_back_row(a, r);
	return HG_OK;
}
