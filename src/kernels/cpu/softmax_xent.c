/* Cross-entropy loss with softmax, a mean over the `count` rows that count:
 *
 *     loss[i] = -log softmax(X)[i, label i] = log(sum exp(X - max)) - (X[i, label i] - max)
 *     dX[i, c] = (softmax(X)[i, c] - [c == label i]) * dloss / count */
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
	struct hg__totals t;
	HG__TRY(HG__CPU(totals)(ctx, a->x.rows, 4 * a->x.rows * a->x.cols, xent_row_loss, a, &t));
	*(float *)a->loss.data = t.count ? (float)(t.sum / (double)t.count) : 0.0f;
	*(float *)a->count.data = (float)t.count;
	return HG_OK;
}

/* One row of dX. */
static void xent_row_grad(const struct hg__softmax_xent_back_args *a, int64_t row, float factor)
{
	const hg__i16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	const hg__v16 one = hg__vset(1.0f), zero = {0};
	const int counts = hg__counts(&a->label, &a->mask, row);
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

HG__NO_WORKSPACE(softmax_xent_back, softmax_xent_back_args)

hg_status HG__CPU(softmax_xent_back)(hg_context *ctx, const struct hg__softmax_xent_back_args *a)
{
	HG__TRY(hg__has_type(ctx, "softmax_xent_back", "labels", a->label.dtype, HG_I32));
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->dx) && a->label.dtype == HG_I32, "softmax_xent_back",
	                &a->x, &a->dx));
	const int64_t rows = a->x.rows;
	const float count = *(const float *)a->count.data,
	            factor = count > 0.0f ? *(const float *)a->dloss.data / count : 0.0f;
#pragma omp parallel for num_threads(hg__team(ctx, 4 * rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		xent_row_grad(a, r, factor);
	return HG_OK;
}
