#include "kernels/cpu/draw.h"

struct plan {
	const struct hg__dropout_args *a;
	struct hg__stream stream;
	uint32_t threshold;
	float keep; /* 1 - p */
};

/* n elements from (row, col): Y = X / (1 - p) where the word reaches the threshold, else 0 */
static void drop(const struct plan *plan, int64_t row, int64_t col, int64_t n, const uint32_t *word)
{
	const struct hg__dropout_args *a = plan->a;
	const uint32_t threshold = plan->threshold;
	const float keep = plan->keep;
	float xs[HG__WIDTH], ys[HG__WIDTH];
	const float *x = hg__row(&a->x, row, col, n, xs);
	float *y = hg__row_begin(&a->y, row, col, ys);
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		y[c] = word[c] >= threshold ? x[c] / keep : 0.0f;
	hg__row_put(&a->y, row, col, n, y);
}

/* Rows row .. row+rows-1 and the columns col .. of at most HG__WIDTH words in all. Where quads fill
 * the storage rows, the rows are one. */
static void drop_block(const struct plan *plan, int64_t row, int64_t rows, int64_t col)
{
	const struct hg__dropout_args *a = plan->a;
	uint32_t word[HG__WIDTH + 4 * HG__DRAW];
	const int64_t quads = hg__min(plan->stream.quads - col / 4, HG__WIDTH / 4),
	              n = hg__min(4 * quads, a->x.cols - col);
	hg__draw(&plan->stream, row, col / 4, rows * quads, word);
	if (4 * plan->stream.quads == a->x.ld && a->x.ld == a->y.ld)
		drop(plan, row, col, rows * 4 * quads, word);
	else
		for (int64_t r = 0; r < rows; r++)
			drop(plan, row + r, col, n, word + 4 * r * quads);
}

hg_status HG__CPU(dropout)(hg_context *ctx, const struct hg__dropout_args *a)
{
	HG__TRY(hg__need(ctx, hg__same(&a->x, &a->y),
	                 "dropout: X and Y differ in shape or are not floats"));
	if (a->x.cols == 0)
		return HG_OK;
	const struct plan plan = {
	    a, {a->key, *a->step, hg__ceil_div(a->x.cols, 4)}, hg__rng_threshold(a->p), 1.0f - a->p};
	const int64_t rows = a->x.rows,
	              block = plan.stream.quads < HG__WIDTH / 4 ? HG__WIDTH / 4 / plan.stream.quads : 1;
#pragma omp parallel for num_threads(hg__team(ctx, 2 * rows * a->x.cols)) schedule(static)
	for (int64_t row = 0; row < rows; row += block)
		for (int64_t col = 0; col < a->x.cols; col += HG__WIDTH)
			drop_block(&plan, row, hg__min(block, rows - row), col);
	return HG_OK;
}
