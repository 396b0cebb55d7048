/* Cross-entropy loss with softmax, a mean over the `count` rows that count:
 *
 *     loss[i] = -log softmax(X)[i, label i] = log(sum exp(X - max)) - (X[i, label i] - max)
 *     dX[i, c] = (softmax(X)[i, c] - [c == label i]) * dloss / count
 *
 * With weights w of classes or label smoothing e (kernels.h), l[c] = log(sum) - (X[i, c] - max):
 *
 *     loss[i] = (1 - e) w[label] l[label] + e / cols * sum of w l,   count = sum of w[label]
 *     dX[i, c] = ((1 - e) w[label] (p[c] - [c == label]) + e / cols * (p[c] sum of w - w[c]))
 *                * dloss / count,   p = softmax(X)[i] */
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/totals.h"

/* Adds the loss of one row to the totals. */
static void xent_row_loss(const void *env, int64_t row, struct hg__totals *totals)
{
	const struct hg__softmax_xent_args *a = env;
	if (!hg__counts(&a->label, &a->mask, row))
		return;
	const struct hg__softmax s = hg__softmax_row(&a->x, row);
	const int64_t label = ((const int32_t *)a->label.data)[row];
	/* A label past the last class has probability 0, so its loss is infinite. */
	const float at_label = label < a->x.cols ? hg__get(&a->x, row, label) : -INFINITY;
	totals->sum += (double)(logf(s.sum) - (at_label - s.max));
	totals->count++;
}

/* ---- with weights of the classes or label smoothing ---- */

/* The weight of a class; of a label past the last class, whose loss is infinite, 1. */
static float weight_of(const struct hg__mat *weight, int64_t c, int64_t cols)
{
	return weight->data && c < cols ? ((const float *)weight->data)[c] : 1.0f;
}

static void weighted_row_loss(const void *env, int64_t row, struct hg__totals *totals)
{
	const struct hg__softmax_xent_args *a = env;
	if (!hg__counts(&a->label, &a->mask, row))
		return;
	const struct hg__softmax s = hg__softmax_row(&a->x, row);
	const int64_t label = ((const int32_t *)a->label.data)[row];
	const float log_sum = logf(s.sum), share = a->smoothing / (float)a->x.cols,
	            at_label = label < a->x.cols ? hg__get(&a->x, row, label) : -INFINITY,
	            keep = (1.0f - a->smoothing) * weight_of(&a->weight, label, a->x.cols);
	double smooth = 0.0;
	for (int64_t c = 0; share > 0.0f && c < a->x.cols; c++)
		smooth += (double)(weight_of(&a->weight, c, a->x.cols) *
		                   (log_sum - (hg__get(&a->x, row, c) - s.max)));
	totals->sum += (double)(keep * (log_sum - (at_label - s.max))) + (double)share * smooth;
	totals->count++;
}

static void add_row_weight(const void *env, int64_t row, struct hg__totals *totals)
{
	const struct hg__softmax_xent_args *a = env;
	const int64_t label = ((const int32_t *)a->label.data)[row];
	if (hg__counts(&a->label, &a->mask, row))
		totals->sum += (double)weight_of(&a->weight, label, a->x.cols);
}

static int is_weighted(const struct hg__mat *weight, float smoothing)
{
	return weight->data || smoothing > 0.0f;
}

static hg_status weighted_loss(hg_context *ctx, const struct hg__softmax_xent_args *a)
{
	const int64_t rows = hg__live_rows(a->live, &a->x);
	struct hg__totals t, weights;
	HG__TRY(HG__CPU(totals)(ctx, rows, 8 * rows * a->x.cols, weighted_row_loss, a, &t));
	HG__TRY(HG__CPU(totals)(ctx, rows, rows, add_row_weight, a, &weights));
	*(float *)a->loss.data = weights.sum > 0.0 ? (float)(t.sum / weights.sum) : 0.0f;
	*(float *)a->count.data = (float)weights.sum;
	return HG_OK;
}

size_t HG__CPU(softmax_xent_workspace)(const hg_context *ctx, const struct hg__softmax_xent_args *a)
{
	(void)ctx;
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

hg_status HG__CPU(softmax_xent)(hg_context *ctx, const struct hg__softmax_xent_args *a)
{
	HG__TRY(hg__has_type(ctx, "softmax_xent", "labels", a->label.dtype, HG_I32));
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->x) && a->label.dtype == HG_I32 && a->label.rows == a->x.rows,
	                "softmax_xent", &a->x));
	if (a->weight.data)
		HG__TRY(hg__has_type(ctx, "softmax_xent", "weights", a->weight.dtype, HG_F32));
	if (is_weighted(&a->weight, a->smoothing))
		return weighted_loss(ctx, a);
	const int64_t rows = hg__live_rows(a->live, &a->x);
	struct hg__totals t;
	HG__TRY(HG__CPU(totals)(ctx, rows, 4 * rows * a->x.cols, xent_row_loss, a, &t));
	*(float *)a->loss.data = t.count ? (float)(t.sum / (double)t.count) : 0.0f;
	*(float *)a->count.data = (float)t.count;
	return HG_OK;
}

static int counts_back(const struct hg__softmax_xent_back_args *a, int64_t row)
{
	return row < hg__live_rows(a->live, &a->x) && hg__counts(&a->label, &a->mask, row);
}

/* One row of dX. */
static void xent_row_grad(const struct hg__softmax_xent_back_args *a, int64_t row, float factor)
{
	const hg__i16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	const hg__v16 one = hg__vset(1.0f), zero = {0};
	const int counts = counts_back(a, row);
	const int32_t label = ((const int32_t *)a->label.data)[row];
	const struct hg__softmax s =
	    counts ? hg__softmax_row(&a->x, row) : (struct hg__softmax){0.0f, 1.0f};
	for (int64_t c = 0; c < a->x.cols; c += HG__LANES) {
		hg__v16 g = zero;
		if (counts) {
			const hg__v16 p = hg__vexp(hg__lanes(&a->x, row, c, 0.0f) - s.max) / s.sum;
			g = (p - hg__vselect(lane == label - (int32_t)c, one, zero)) * factor;
		}
		hg__lanes_put(&a->dx, row, c, g);
	}
}

/* One row of dX with weights, whose sum is `total`. */
static void weighted_row_grad(const struct hg__softmax_xent_back_args *a, int64_t row, float factor,
                              float total)
{
	const int counts = counts_back(a, row);
	const int64_t label = ((const int32_t *)a->label.data)[row];
	const struct hg__softmax s =
	    counts ? hg__softmax_row(&a->x, row) : (struct hg__softmax){0.0f, 1.0f};
	const float share = a->smoothing / (float)a->x.cols,
	            keep =
	                counts ? (1.0f - a->smoothing) * weight_of(&a->weight, label, a->x.cols) : 0.0f,
	            slope = keep + share * total;
	for (int64_t c = 0; c < a->x.cols; c += HG__WIDTH) {
		float xs[HG__WIDTH], dx[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->x.cols - c);
		const float *x = hg__row(&a->x, row, c, n, xs);
		for (int64_t i = 0; i < n; i++) {
			const float p = hg__exp(x[i] - s.max) / s.sum, hot = c + i == label ? keep : 0.0f;
			dx[i] = counts ? (slope * p - hot - share * weight_of(&a->weight, c + i, a->x.cols)) *
			                     factor
			               : 0.0f;
		}
		hg__row_put(&a->dx, row, c, n, dx);
	}
}

static hg_status weighted_grad(hg_context *ctx, const struct hg__softmax_xent_back_args *a,
                               float factor)
{
	const int64_t rows = a->x.rows;
	double total = 0.0;
	for (int64_t c = 0; c < a->x.cols; c++)
		total += (double)weight_of(&a->weight, c, a->x.cols);
#pragma omp parallel for num_threads(hg__team(ctx, 8 * rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		weighted_row_grad(a, r, factor, (float)total);
	return HG_OK;
}

HG__NO_WORKSPACE(softmax_xent_back, softmax_xent_back_args)

hg_status HG__CPU(softmax_xent_back)(hg_context *ctx, const struct hg__softmax_xent_back_args *a)
{
	HG__TRY(hg__has_type(ctx, "softmax_xent_back", "labels", a->label.dtype, HG_I32));
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->dx) && a->label.dtype == HG_I32, "softmax_xent_back",
	                &a->x, &a->dx));
	if (a->weight.data)
		HG__TRY(hg__has_type(ctx, "softmax_xent_back", "weights", a->weight.dtype, HG_F32));
	const int64_t rows = a->x.rows;
	const float count = *(const float *)a->count.data,
	            factor = count > 0.0f ? *(const float *)a->dloss.data / count : 0.0f;
	if (is_weighted(&a->weight, a->smoothing))
		return weighted_grad(ctx, a, factor);
#pragma omp parallel for num_threads(hg__team(ctx, 4 * rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		xent_row_grad(a, r, factor);
	return HG_OK;
}
