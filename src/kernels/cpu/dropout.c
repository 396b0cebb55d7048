/* Dropout:
 *
 *     Y = X / (1 - p) where the random word of the element reaches the threshold, otherwise 0
 *
 * The words follow from the tape node's key, the step and the position alone (core/rng.h), so the
 * backward pass recomputes them: it calls this kernel with dY. */
#include "kernels/cpu/draw.h"

struct dropout_job {
	const struct hg__dropout_args *a;
	struct hg__stream stream;
	uint32_t threshold;
	float keep; /* 1 - p */
};

/* n elements from (row, col) on: Y = X / (1 - p) where the random word reaches the threshold,
 * otherwise 0. */
static void dropout_elements(const struct dropout_job *job, int64_t row, int64_t col, int64_t n,
                             const uint32_t *word)
{
	const struct hg__dropout_args *a = job->a;
	const uint32_t threshold = job->threshold;
	const float keep = job->keep;
	float xs[HG__WIDTH], ys[HG__WIDTH];
	const float *x = hg__row(&a->x, row, col, n, xs);
	float *y = hg__row_begin(&a->y, row, col, ys);
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		y[c] = word[c] >= threshold ? x[c] / keep : 0.0f;
	hg__row_put(&a->y, row, col, n, y);
}

/* Rows row .. row+rows-1 and the columns from col on, with at most HG__WIDTH random words
 * altogether. If quads fill the rows of storage exactly, or if rows are shorter than a quad and
 * without gaps, the rows are treated as one long row. */
static void dropout_block(const struct dropout_job *job, int64_t row, int64_t rows, int64_t col)
{
	const struct hg__dropout_args *a = job->a;
	uint32_t word[HG__WIDTH + 4 * HG__DRAW];
	const int64_t quads = hg__min(job->stream.quads - col / 4, HG__WIDTH / 4),
	              n = hg__min(4 * quads, a->x.cols - col);
	const int same = a->x.ld == a->y.ld;
	hg__draw(&job->stream, row, col / 4, rows * quads, word);
	if (4 * job->stream.quads == a->x.ld && same) {
		dropout_elements(job, row, col, rows * 4 * quads, word);
	} else if (a->x.ld < 4 && a->x.ld == a->x.cols && same) {
		for (int64_t r = 0; r < rows; r++)
			for (int64_t c = 0; c < n; c++)
				word[r * n + c] = word[4 * r + c];
		dropout_elements(job, row, col, rows * n, word);
	} else {
		for (int64_t r = 0; r < rows; r++)
			dropout_elements(job, row + r, col, n, word + 4 * r * quads);
	}
}

HG__NO_WORKSPACE(dropout, dropout_args)

hg_status HG__CPU(dropout)(hg_context *ctx, const struct hg__dropout_args *a)
{
	HG__TRY(HG__FIT(ctx, hg__same(&a->x, &a->y), "dropout", &a->x, &a->y));
	if (a->x.cols == 0)
		return HG_OK;
	const struct dropout_job job = {
	    a, {a->key, *a->step, hg__ceil_div(a->x.cols, 4)}, hg__rng_threshold(a->p), 1.0f - a->p};
	const int64_t rows = a->x.rows,
	              block = job.stream.quads < HG__WIDTH / 4 ? HG__WIDTH / 4 / job.stream.quads : 1;
#pragma omp parallel for num_threads(hg__team(ctx, 2 * rows * a->x.cols)) schedule(static)
	for (int64_t row = 0; row < rows; row += block)
		for (int64_t col = 0; col < a->x.cols; col += HG__WIDTH)
			dropout_block(&job, row, hg__min(block, rows - row), col);
	return HG_OK;
}
