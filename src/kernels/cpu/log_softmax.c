/* log_softmax along each row:
 *
 *     Y = X - max - log(sum exp(X - max))
 *     dX = dY - exp(Y) * sum over the row of dY */
#include "kernels/cpu/softmax.h"

static void log_softmax_row(const struct hg__log_softmax_args *a, int64_t row)
{
	const struct hg__softmax s = hg__softmax_row(&a->x, row);
	const float log_sum = logf(s.sum);
	for (int64_t c = 0; c < a->x.cols; c += HG__LANES)
		hg__lanes_put(&a->y, row, c, hg__lanes(&a->x, row, c, 0.0f) - s.max - log_sum);
}

HG__NO_WORKSPACE(log_softmax, log_softmax_args)

hg_status HG__CPU(log_softmax)(hg_context *ctx, const struct hg__log_softmax_args *a)
{
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->y), "log_softmax", &a->x, &a->y));
	const int64_t rows = a->x.rows;
#pragma omp parallel for num_threads(hg__team(ctx, 4 * rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		log_softmax_row(a, r);
	return HG_OK;
}

static void log_softmax_back_row(const struct hg__log_softmax_back_args *a, int64_t row)
{
	hg__v16 lanes = {0};
	for (int64_t c = 0; c < a->dy.cols; c += HG__LANES)
		lanes += hg__lanes(&a->dy, row, c, 0.0f);
	const float sum = hg__vsum(lanes);
	for (int64_t c = 0; c < a->y.cols; c += HG__LANES)
		hg__lanes_put(&a->dx, row, c,
		              hg__lanes(&a->dy, row, c, 0.0f) -
		                  hg__vexp(hg__lanes(&a->y, row, c, 0.0f)) * sum);
}

HG__NO_WORKSPACE(log_softmax_back, log_softmax_back_args)

hg_status HG__CPU(log_softmax_back)(hg_context *ctx, const struct hg__log_softmax_back_args *a)
{
	HG__TRY(HG__FIT(ctx, hg__same(&a->y, &a->dy) && hg__same(&a->y, &a->dx), "log_softmax_back",
	                &a->y, &a->dy, &a->dx));
	const int64_t rows = a->y.rows;
#pragma omp parallel for num_threads(hg__team(ctx, 4 * rows * a->y.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		log_softmax_back_row(a, r);
	return HG_OK;
}
