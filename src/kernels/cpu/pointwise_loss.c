/* Losses that are a mean over the elements that count: binary cross-entropy with logits, the
 * squared error, the absolute error and the product. */
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/totals.h"

/* Binary cross-entropy of a logit: max(x, 0) - x t + log(1 + exp(-|x|)). x - x is 0, except that it
 * keeps a NaN. */
static float bce(float x, float t, float w)
{
	(void)w;
	return (x > 0.0f ? x : x - x) - x * t + log1pf(hg__exp(-fabsf(x)));
}

/* 1 / (1 + exp(-x)) - t. The exponent is never positive, so the exponential cannot overflow. */
static float bce_grad(float x, float t, float w)
{
	(void)w;
	const float e = hg__exp(-fabsf(x));
	return (x >= 0.0f ? 1.0f : e) / (1.0f + e) - t;
}

/* (1 - t) x + (1 + (w - 1) t) (max(-x, 0) + log(1 + exp(-|x|))), w the weight of ones. */
static float bce_weighted(float x, float t, float w)
{
	const float soft = (x < 0.0f ? -x : x - x) + log1pf(hg__exp(-fabsf(x)));
	return (1.0f - t) * x + (1.0f + (w - 1.0f) * t) * soft;
}

/* (1 - t) - (1 + (w - 1) t) / (1 + exp(x)) */
static float bce_weighted_grad(float x, float t, float w)
{
	const float e = hg__exp(-fabsf(x));
	return (1.0f - t) - (1.0f + (w - 1.0f) * t) * ((x >= 0.0f ? e : 1.0f) / (1.0f + e));
}

static float mse(float x, float t, float w)
{
	(void)w;
	return (x - t) * (x - t);
}

static float mse_grad(float x, float t, float w)
{
	(void)w;
	return 2.0f * (x - t);
}

static float mae(float x, float t, float w)
{
	(void)w;
	return fabsf(x - t);
}

/* The sign of x - t. A difference of 0 or NaN is returned as it is. */
static float mae_grad(float x, float t, float w)
{
	(void)w;
	const float d = x - t;
	return d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d;
}

static float product(float x, float t, float w)
{
	(void)w;
	return x * t;
}

static float product_grad(float x, float t, float w)
{
	(void)x;
	(void)w;
	return t;
}

static const struct pointwise {
	float (*loss)(float x, float t, float w);
	float (*grad)(float x, float t, float w);
} pointwise_losses[HG__POINTWISE_COUNT] = {
    [HG__BCE_LOGITS] = {bce, bce_grad},
    [HG__MSE] = {mse, mse_grad},
    [HG__MAE] = {mae, mae_grad},
    [HG__PRODUCT] = {product, product_grad},
    [HG__BCE_WEIGHTED] = {bce_weighted, bce_weighted_grad},
};

/* The masks of the elements of a row; NULL if they have none of their own. */
static const uint8_t *masks_of(const struct hg__mat *mask, int64_t row)
{
	return mask->data && mask->cols > 1 ? (const uint8_t *)mask->data + row * mask->ld : NULL;
}

/* Does no element of a row count, because the row has a mask of 0? */
static int is_left_out(const struct hg__mat *mask, int64_t row)
{
	return mask->cols == 1 && !hg__counts(NULL, mask, row);
}

/* The weight of column c; 1 without weights. */
static float weight_at(const struct hg__mat *weight, int64_t c)
{
	return weight->data ? ((const float *)weight->data)[c] : 1.0f;
}

static hg_status weight_check(hg_context *ctx, const char *kernel, hg__pointwise kind,
                              const struct hg__mat *weight)
{
	return kind == HG__BCE_WEIGHTED ? hg__has_type(ctx, kernel, "weights", weight->dtype, HG_F32)
	                                : HG_OK;
}

static void pointwise_row_loss(const void *env, int64_t row, struct hg__totals *totals)
{
	const struct hg__pointwise_loss_args *a = env;
	const uint8_t *mask = masks_of(&a->mask, row);
	int64_t masked = 0;
	if (is_left_out(&a->mask, row))
		return;
	for (int64_t c = 0; c < a->x.cols; c += HG__WIDTH) {
		float xs[HG__WIDTH], ts[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - c);
		const float *x = hg__row(&a->x, row, c, n, xs), *t = hg__row(&a->target, row, c, n, ts);
		for (int64_t i = 0; i < n; i++) {
			const int counts = !mask || mask[c + i];
			masked += !counts;
			totals->sum += counts ? (double)pointwise_losses[a->kind].loss(
			                            x[i], t[i], weight_at(&a->weight, c + i))
			                      : 0.0;
		}
	}
	totals->count += a->x.cols - masked;
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
	HG__TRY(weight_check(ctx, "pointwise_loss", a->kind, &a->weight));
	const int64_t rows = hg__live_rows(a->live, &a->x);
	struct hg__totals t;
	HG__TRY(HG__CPU(totals)(ctx, rows, 8 * rows * a->x.cols, pointwise_row_loss, a, &t));
	*(float *)a->loss.data = t.count ? (float)(t.sum / (double)t.count) : 0.0f;
	*(float *)a->count.data = (float)t.count;
	return HG_OK;
}

static void pointwise_row_grad(const struct hg__pointwise_loss_back_args *a, int64_t row,
                               float factor)
{
	const int none = row >= hg__live_rows(a->live, &a->x) || is_left_out(&a->mask, row);
	const uint8_t *mask = masks_of(&a->mask, row);
	for (int64_t c = 0; c < a->x.cols; c += HG__WIDTH) {
		float xs[HG__WIDTH], ts[HG__WIDTH], dx[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - c);
		const float *x = hg__row(&a->x, row, c, n, xs), *t = hg__row(&a->target, row, c, n, ts);
		for (int64_t i = 0; i < n; i++)
			dx[i] = none || (mask && !mask[c + i])
			            ? 0.0f
			            : pointwise_losses[a->kind].grad(x[i], t[i], weight_at(&a->weight, c + i)) *
			                  factor;
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
	HG__TRY(weight_check(ctx, "pointwise_loss_back", a->kind, &a->weight));
	const int64_t rows = a->x.rows;
	const float count = a->count.data ? *(const float *)a->count.data : 1.0f,
	            factor = count > 0.0f ? *(const float *)a->dloss.data / count : 0.0f;
#pragma omp parallel for num_threads(hg__team(ctx, 8 * rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		pointwise_row_grad(a, r, factor);
	return HG_OK;
}
