/* Losses that are a mean over the elements of the rows that count: binary cross-entropy with
 * logits, and the squared error. */
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/totals.h"

/* Binary cross-entropy of a logit: max(x, 0) - x t + log(1 + exp(-|x|)). x - x is 0, except that it
 * keeps a NaN. */
static float bce(float x, float t)
{
	return (x > 0.0f ? x : x - x) - x * t + log1pf(hg__exp(-fabsf(x)));
}

/* 1 / (1 + exp(-x)) - t. The exponent is never positive, so the exponential cannot overflow. */
static float bce_grad(float x, float t)
{
	const float e = hg__exp(-fabsf(x));
	return (x >= 0.0f ? 1.0f : e) / (1.0f + e) - t;
}

static float mse(float x, float t)
{
	return (x - t) * (x - t);
}

static float mse_grad(float x, float t)
{
	return 2.0f * (x - t);
}

static const struct pointwise {
	float (*loss)(float x, float t);
	float (*grad)(float x, float t);
} pointwise_losses[HG__POINTWISE_COUNT] = {
    [HG__BCE_LOGITS] = {bce, bce_grad},
    [HG__MSE] = {mse, mse_grad},
};

static void pointwise_row_loss(const void *env, int64_t row, struct hg__totals *totals)
{
	const struct hg__pointwise_loss_args *a = env;
	if (!hg__counts(NULL, &a->mask, row))
		return;
	for (int64_t c = 0; c < a->x.cols; c += HG__WIDTH) {
		float xs[HG__WIDTH], ts[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - c);
		const float *x = hg__row(&a->x, row, c, n, xs), *t = hg__row(&a->target, row, c, n, ts);
		for (int64_t i = 0; i < n; i++)
			totals->sum += (double)pointwise_losses[a->kind].loss(x[i], t[i]);
	}
	totals->count += a->x.cols;
}

size_t HG__CPU(pointwise_loss_workspace)(const hg_context *ctx,
                                         const struct hg__pointwise_loss_args *a)
{
	(void)ctx;
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

hg_status HG__CPU(pointwise_loss)(hg_context *ctx, const struct hg__pointwise_loss_args *a)
{
	HG__TRY(hg__has_number(ctx, "pointwise_loss", "loss", (int)a->kind, HG__POINTWISE_COUNT));
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->target), "pointwise_loss", &a->x, &a->target));
	struct hg__totals t;
	HG__TRY(HG__CPU(totals)(ctx, a->x.rows, 8 * a->x.rows * a->x.cols, pointwise_row_loss, a, &t));
	*(float *)a->loss.data = t.count ? (float)(t.sum / (double)t.count) : 0.0f;
	*(float *)a->count.data = (float)t.count;
	return HG_OK;
}

static void pointwise_row_grad(const struct hg__pointwise_loss_back_args *a, int64_t row,
                               float factor)
{
	const int counts = hg__counts(NULL, &a->mask, row);
	for (int64_t c = 0; c < a->x.cols; c += HG__WIDTH) {
		float xs[HG__WIDTH], ts[HG__WIDTH], dx[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - c);
		const float *x = hg__row(&a->x, row, c, n, xs), *t = hg__row(&a->target, row, c, n, ts);
		for (int64_t i = 0; i < n; i++)
			dx[i] = counts ? pointwise_losses[a->kind].grad(x[i], t[i]) * factor : 0.0f;
		hg__row_put(&a->dx, row, c, n, dx);
	}
}

HG__NO_WORKSPACE(pointwise_loss_back, pointwise_loss_back_args)

hg_status HG__CPU(pointwise_loss_back)(hg_context *ctx,
                                       const struct hg__pointwise_loss_back_args *a)
{
	HG__TRY(hg__has_number(ctx, "pointwise_loss_back", "loss", (int)a->kind, HG__POINTWISE_COUNT));
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->target) && hg__same(&a->x, &a->dx),
	                "pointwise_loss_back", &a->x, &a->target, &a->dx));
	const int64_t rows = a->x.rows;
	const float count = *(const float *)a->count.data,
	            factor = count > 0.0f ? *(const float *)a->dloss.data / count : 0.0f;
#pragma omp parallel for num_threads(hg__team(ctx, 8 * rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		pointwise_row_grad(a, r, factor);
	return HG_OK;
}
