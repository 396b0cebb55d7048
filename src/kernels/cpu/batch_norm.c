/* Batch normalisation, with relu if a->relu is set:
 *
 *     Y = gamma xhat + beta,   xhat = (X - mean) rstd,   rstd = 1 / sqrt(var + eps)
 *     dX = gamma rstd (dY - dbeta / n - xhat dgamma / n)
 *
 * With a shift, X is 2^shift = `unit` times what is stored. mean and rstd are then those of the
 * stored numbers (with eps / unit^2), and the running statistics are those of X. */
#include <math.h>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/normalise.h"

struct batch_norm_sums {
	const struct hg__mat *x;
	const float *mean;
};
struct batch_norm_gradients {
	const struct hg__batch_norm_back_args *of;
	struct hg__normalise norm;
};

static void sum_x(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n, float *sum,
                  float *unused)
{
	const struct batch_norm_sums *s = env;
	(void)unused;
	for (int64_t r = r0; r < r1; r++) {
		float scratch[HG__WIDTH];
		const float *x = hg__row(s->x, r, c0, n, scratch);
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			sum[c] += x[c];
	}
}

/* The sum of (x - mean)^2, in a second pass over X: it has no cancellation, unlike the mean of
 * squares. */
static void sum_squares(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n, float *sum,
                        float *unused)
{
	const struct batch_norm_sums *s = env;
	const float *mean = s->mean + c0;
	(void)unused;
	for (int64_t r = r0; r < r1; r++) {
		float scratch[HG__WIDTH];
		const float *x = hg__row(s->x, r, c0, n, scratch);
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			sum[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
	}
}

/* Computes mean and rstd of each column of the batch, and updates the running statistics:
 *
 *     running <- (1 - momentum) running + momentum (mean, var n / (n - 1))
 *
 * A column whose mean or variance is not finite does not change its running statistics. */
static hg_status batch_statistics(hg_context *ctx, const struct hg__batch_norm_args *a)
{
	const int64_t cols = a->x.cols, rows = hg__live_rows(a->live, &a->x);
	const float n = (float)rows, unbiased = n > 1.0f ? n / (n - 1.0f) : 1.0f,
	            unit = ldexpf(1.0f, a->shift), eps = a->eps / (unit * unit);
	float *mean = a->mean.data, *rstd = a->rstd.data, *running_mean = a->running_mean.data,
	      *running_var = a->running_var.data;
	const struct batch_norm_sums s = {&a->x, mean};
	const int stopped = a->stop && *a->stop;
	HG__TRY(HG__CPU(columns)(ctx, rows, cols, sum_x, &s, mean, NULL));
	for (int64_t c = 0; c < cols; c++)
		mean[c] /= n;
	HG__TRY(HG__CPU(columns)(ctx, rows, cols, sum_squares, &s, rstd, NULL));
	for (int64_t c = 0; c < cols; c++) {
		const float var = rstd[c] / n;
		rstd[c] = 1.0f / sqrtf(var + eps);
		if (stopped || !isfinite(mean[c]) || !isfinite(var * unbiased))
			continue;
		if (running_mean)
			running_mean[c] =
			    (1.0f - a->momentum) * running_mean[c] + a->momentum * (unit * mean[c]);
		if (running_var)
			running_var[c] = (1.0f - a->momentum) * running_var[c] +
			                 a->momentum * (unit * unit * (var * unbiased));
	}
	return HG_OK;
}

/* In evaluation the running statistics are used as mean and rstd. */
static void running_statistics(const struct hg__batch_norm_args *a)
{
	const float *running_mean = a->running_mean.data, *running_var = a->running_var.data;
	const float unit = ldexpf(1.0f, a->shift);
	float *mean = a->mean.data, *rstd = a->rstd.data;
	for (int64_t c = 0; c < a->x.cols; c++) {
		mean[c] = running_mean[c] / unit;
		rstd[c] = unit / sqrtf(running_var[c] + a->eps);
	}
}

/* One row of Y. */
static void batch_norm_row(const struct hg__batch_norm_args *a, const struct hg__normalise *norm,
                           int64_t row)
{
	for (int64_t col = 0; col < a->x.cols; col += HG__WIDTH) {
		float xs[HG__WIDTH], ys[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - col);
		float *y = hg__row_begin(&a->y, row, col, ys);
		hg__normalise_row(norm, col, n, hg__row(&a->x, row, col, n, xs), y);
		hg__row_put(&a->y, row, col, n, y);
	}
}

/* A row that does not count. */
static void zero_row(const struct hg__mat *y, int64_t row)
{
	for (int64_t col = 0; col < y->cols; col += HG__WIDTH) {
		const float zeros[HG__WIDTH] = {0.0f};
		hg__row_put(y, row, col, hg__min(HG__WIDTH, y->cols - col), zeros);
	}
}

size_t HG__CPU(batch_norm_workspace)(const hg_context *ctx, const struct hg__batch_norm_args *a)
{
	(void)ctx;
	return a->train ? hg__reduction_bytes(a->x.rows, a->x.cols) : 0;
}

hg_status HG__CPU(batch_norm)(hg_context *ctx, const struct hg__batch_norm_args *a)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	HG__TRY(HG__FIT(ctx, (!a->y.data || hg__same(&a->x, &a->y)) && a->mean.data && a->rstd.data,
	                "batch_norm", &a->x, &a->gamma, &a->beta, &a->y, &a->mean, &a->rstd,
	                &a->running_mean, &a->running_var));
	if (rows == 0)
		return HG_OK;
	if (a->train && !a->has_statistics)
		HG__TRY(batch_statistics(ctx, a));
	if (!a->train)
		running_statistics(a);
	if (!a->y.data)
		return HG_OK;
	const int64_t live = hg__live_rows(a->live, &a->x);
	const struct hg__normalise norm = {.mean = a->mean.data,
	                                   .rstd = a->rstd.data,
	                                   .gamma = a->gamma.data,
	                                   .beta = a->beta.data,
	                                   .relu = a->relu};
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		if (r < live)
			batch_norm_row(a, &norm, r);
		else
			zero_row(&a->y, r);
	return HG_OK;
}

/* dgamma = sum of dY xhat over the rows, dbeta = sum of dY */
static void batch_norm_sum_grad(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n,
                                float *dgamma, float *dbeta)
{
	const struct batch_norm_gradients *g = env;
	for (int64_t r = r0; r < r1; r++) {
		float xs[HG__WIDTH], ds[HG__WIDTH];
		const float *x = hg__row(&g->of->x, r, c0, n, xs), *dy = hg__row(&g->of->dy, r, c0, n, ds);
		hg__normalise_add(&g->norm, c0, n, x, hg__normalise_passed(&g->norm, c0, n, x, dy, ds),
		                  dgamma, dbeta);
	}
}

/* One row of dX. */
static void batch_norm_back_row(const struct batch_norm_gradients *g, int64_t row)
{
	for (int64_t col = 0; col < g->of->x.cols; col += HG__WIDTH) {
		float xs[HG__WIDTH], ds[HG__WIDTH], gs[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, g->of->x.cols - col);
		float *dx = hg__row_begin(&g->of->dx, row, col, gs);
		hg__normalise_back_row(g->of, col, n, hg__row(&g->of->x, row, col, n, xs),
		                       hg__row(&g->of->dy, row, col, n, ds), dx);
		hg__row_put(&g->of->dx, row, col, n, dx);
	}
}

size_t HG__CPU(batch_norm_back_workspace)(const hg_context *ctx,
                                          const struct hg__batch_norm_back_args *a)
{
	(void)ctx;
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

hg_status HG__CPU(batch_norm_back)(hg_context *ctx, const struct hg__batch_norm_back_args *a)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	HG__TRY(HG__FIT(ctx,
	                hg__same(&a->x, &a->dy) && a->dgamma.data && a->dbeta.data &&
	                    (a->beta.data || !a->relu || cols == 0),
	                "batch_norm_back", &a->x, &a->gamma, &a->mean, &a->rstd, &a->dy, &a->dx,
	                &a->dgamma, &a->dbeta, &a->beta));
	const int64_t live = hg__live_rows(a->live, &a->x);
	const struct batch_norm_gradients g = {a, hg__norm_of(a)};
	if (!a->has_sums)
		HG__TRY(HG__CPU(columns)(ctx, live, cols, batch_norm_sum_grad, &g, a->dgamma.data,
		                         a->dbeta.data));
	if (!a->dx.data)
		return HG_OK;
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		if (r < live)
			batch_norm_back_row(&g, r);
		else
			zero_row(&a->dx, r);
	return HG_OK;
}
