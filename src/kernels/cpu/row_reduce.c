/* The sum, the mean or the Euclidean norm of each row, and its gradient:
 *
 *     dX = g,   dX = g / cols,   dX = g x / |x|  (0 where |x| = 0) */
#include <math.h>

#include "kernels/cpu/rows.h"

/* The reductions of one row. */

static float row_sum(const struct hg__mat *x, int64_t row)
{
	hg__v16 lanes = {0};
	for (int64_t c = 0; c < x->cols; c += HG__LANES)
		lanes += hg__lanes(x, row, c, 0.0f);
	return hg__vsum(lanes);
}

static float row_mean(const struct hg__mat *x, int64_t row)
{
	return x->cols > 0 ? row_sum(x, row) / (float)x->cols : 0.0f;
}

static float row_norm(const struct hg__mat *x, int64_t row)
{
	hg__v16 lanes = {0};
	for (int64_t c = 0; c < x->cols; c += HG__LANES) {
		const hg__v16 v = hg__lanes(x, row, c, 0.0f);
		lanes += v * v;
	}
	return sqrtf(hg__vsum(lanes));
}

/* The gradients for one row, where g = dY[row]. */

static void fill_row(const struct hg__mat *dx, int64_t row, float g)
{
	for (int64_t c = 0; c < dx->cols; c += HG__LANES)
		hg__lanes_put(dx, row, c, hg__vset(g));
}

static void row_sum_back(const struct hg__row_reduce_back_args *a, int64_t row, float g)
{
	fill_row(&a->dx, row, g);
}

static void row_mean_back(const struct hg__row_reduce_back_args *a, int64_t row, float g)
{
	fill_row(&a->dx, row, g / (float)a->dx.cols);
}

static void row_norm_back(const struct hg__row_reduce_back_args *a, int64_t row, float g)
{
	const float length = row_norm(&a->x, row);
	if (length == 0.0f) {
		fill_row(&a->dx, row, 0.0f);
		return;
	}
	for (int64_t c = 0; c < a->dx.cols; c += HG__LANES)
		hg__lanes_put(&a->dx, row, c, hg__lanes(&a->x, row, c, 0.0f) / length * g);
}

static const struct {
	float (*forward)(const struct hg__mat *x, int64_t row);
	void (*backward)(const struct hg__row_reduce_back_args *a, int64_t row, float g);
} reductions[HG__ROW_COUNT] = {[HG__ROW_SUM] = {row_sum, row_sum_back},
                               [HG__ROW_MEAN] = {row_mean, row_mean_back},
                               [HG__ROW_NORM] = {row_norm, row_norm_back}};

HG__NO_WORKSPACE(row_reduce, row_reduce_args)

hg_status HG__CPU(row_reduce)(hg_context *ctx, const struct hg__row_reduce_args *a)
{
	const int64_t rows = a->x.rows;
	HG__TRY(hg__has_number(ctx, "row_reduce", "reduction", (int)a->reduce, HG__ROW_COUNT));
	HG__TRY(HG__FIT(
	    ctx, a->y.rows == rows && a->y.cols == 1 && hg__is_state(&a->x) && hg__is_state(&a->y),
	    "row_reduce", &a->x, &a->y));
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->x.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		hg__set(&a->y, r, 0, reductions[a->reduce].forward(&a->x, r));
	return HG_OK;
}

HG__NO_WORKSPACE(row_reduce_back, row_reduce_back_args)

hg_status HG__CPU(row_reduce_back)(hg_context *ctx, const struct hg__row_reduce_back_args *a)
{
	const int64_t rows = a->dx.rows;
	const int reads = a->reduce == HG__ROW_NORM, fits = a->dy.rows == rows && a->dy.cols == 1 &&
	                                                    hg__is_state(&a->dy) &&
	                                                    hg__is_state(&a->dx);
	HG__TRY(hg__has_number(ctx, "row_reduce_back", "reduction", (int)a->reduce, HG__ROW_COUNT));
	HG__TRY(HG__FIT(ctx, fits && (!reads || hg__same(&a->x, &a->dx)), "row_reduce_back", &a->x,
	                &a->dy, &a->dx));
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->dx.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		reductions[a->reduce].backward(a, r, hg__get(&a->dy, r, 0));
	return HG_OK;
}
