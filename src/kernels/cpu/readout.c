/* Readout: the sum, the mean or the maximum of each column over the nodes of each graph of a batch,
 * and its gradient. The nodes of graph g are rows ptr[g] .. ptr[g+1]-1. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/rows.h"

/* The sum (or mean) of one graph's rows, in order, for columns c .. c+n-1. */
static void readout_total(const struct hg__readout_args *a, int64_t g, int64_t c, int64_t n)
{
	float sum[HG__WIDTH] = {0}, scratch[HG__WIDTH];
	const int64_t size = a->ptr[g + 1] - a->ptr[g];
	for (int64_t r = a->ptr[g]; r < a->ptr[g + 1]; r++) {
		const float *x = hg__row(&a->x, r, c, n, scratch);
		for (int64_t i = 0; i < n; i++)
			sum[i] += x[i];
	}
	if (a->reduce == HG_REDUCE_MEAN && size > 0)
		for (int64_t i = 0; i < n; i++)
			sum[i] /= (float)size;
	hg__row_put(&a->y, g, c, n, sum);
}

/* The maximum of each column and the first row that attains it. A NaN counts as the largest. A
 * graph without nodes gives 0 and -1. */
static void readout_max(const struct hg__readout_args *a, int64_t g, int64_t c, int64_t n)
{
	float best[HG__WIDTH] = {0}, scratch[HG__WIDTH];
	int32_t *arg = (int32_t *)a->arg.data + g * a->arg.ld + c;
	for (int64_t i = 0; i < n; i++)
		arg[i] = -1;
	for (int64_t r = a->ptr[g]; r < a->ptr[g + 1]; r++) {
		const float *x = hg__row(&a->x, r, c, n, scratch);
		const int32_t index = (int32_t)(r - a->ptr[g]);
		for (int64_t i = 0; i < n; i++) {
			const int wins = arg[i] < 0 || x[i] > best[i] || (x[i] != x[i] && best[i] == best[i]);
			best[i] = wins ? x[i] : best[i];
			arg[i] = wins ? index : arg[i];
		}
	}
	hg__row_put(&a->y, g, c, n, best);
}

typedef void (*readout_fn)(const struct hg__readout_args *a, int64_t g, int64_t c, int64_t n);
static const readout_fn readouts[] = {[HG_REDUCE_SUM] = readout_total,
                                      [HG_REDUCE_MEAN] = readout_total,
                                      [HG_REDUCE_MAX] = readout_max};

HG__NO_WORKSPACE(readout, readout_args)

hg_status HG__CPU(readout)(hg_context *ctx, const struct hg__readout_args *a)
{
	HG__TRY(hg__has_number(ctx, "readout", "reduction", (int)a->reduce, HG__READOUTS));
	HG__TRY(HG__FIT(ctx, hg__is_state(&a->x) && hg__is_state(&a->y) && a->x.cols == a->y.cols,
	                "readout", &a->x, &a->y));
	/* A piece has 64 columns, which are two (f16) or four (f32) whole cache lines of a row. Pieces
	 * of columns let threads share the work where there are few graphs. */
	const int64_t graphs = a->y.rows, cols = a->x.cols, width = 64,
	              chunks = hg__ceil_div(cols, width);
	const readout_fn f = readouts[a->reduce];
#pragma omp parallel for num_threads(hg__team(ctx, a->x.rows *cols)) schedule(static)
	for (int64_t i = 0; i < graphs * chunks; i++)
		f(a, i / chunks, i % chunks * width, hg__min(width, cols - i % chunks * width));
	return HG_OK;
}

/* One row of dX[i, c] = dY[g, c], or 0 if it belongs to no graph, divided by the graph's size for
 * the mean; for the maximum 0 except where arg[g, c] is the row. */
static void readout_back_row(const struct hg__readout_back_args *a, int64_t row)
{
	const int64_t g = a->id[row], cols = a->dx.cols;
	if (g < 0) {
		memset(hg__at(&a->dx, row, 0), 0, (size_t)cols * hg_dtype_size(a->dx.dtype));
		return;
	}
	const float size = a->reduce == HG_REDUCE_MEAN ? (float)(a->ptr[g + 1] - a->ptr[g]) : 1.0f;
	const int32_t index = (int32_t)(row - a->ptr[g]);
	for (int64_t c = 0; c < cols; c += HG__WIDTH) {
		float scratch[HG__WIDTH], dx[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, cols - c);
		const float *dy = hg__row(&a->dy, g, c, n, scratch);
		const int32_t *arg =
		    a->reduce == HG_REDUCE_MAX ? (const int32_t *)a->arg.data + g * a->arg.ld + c : NULL;
		for (int64_t i = 0; i < n; i++)
			dx[i] = arg ? (arg[i] == index ? dy[i] : 0.0f) : dy[i] / size;
		hg__row_put(&a->dx, row, c, n, dx);
	}
}

HG__NO_WORKSPACE(readout_back, readout_back_args)

hg_status HG__CPU(readout_back)(hg_context *ctx, const struct hg__readout_back_args *a)
{
	HG__TRY(hg__has_number(ctx, "readout_back", "reduction", (int)a->reduce, HG__READOUTS));
	HG__TRY(HG__FIT(ctx, hg__is_state(&a->dx) && hg__is_state(&a->dy) && a->dx.cols == a->dy.cols,
	                "readout_back", &a->dy, &a->dx));
	const int64_t rows = a->dx.rows;
#pragma omp parallel for num_threads(hg__team(ctx, rows * a->dx.cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		readout_back_row(a, r);
	return HG_OK;
}
