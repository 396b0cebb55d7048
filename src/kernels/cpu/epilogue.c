/* Bias, activation and dropout in one pass, and their gradient:
 *
 *     Y = dropout(f(X + b))
 *     dX = f'(X + b) dropout(dY),   db = sum of dX over the rows
 *
 * where X may be a mean over heads (head_mean.h).
 *
 * The matrix is processed in strips of at most HG__WIDTH columns. A strip stays in the first-level
 * cache from its load to its one store. */
#include "kernels/cpu/act_drop.h"
#include "kernels/cpu/columns.h"
#include "kernels/cpu/guard.h"
#include "kernels/cpu/head_mean.h"

/* Columns col .. col+n-1 of `rows` rows from `row` on, and their random words. The generator makes
 * the words of eight quads at a time, so if rows are short a strip has several of them: then no
 * words are thrown away. */
struct strip {
	int64_t row, rows, col, n;
	uint32_t *word; /* [rows][quads of the strip][4] */
};
#define WORDS (HG__WIDTH + 4 * HG__DRAW)

/* The number of rows of a strip: as many as have HG__WIDTH words together. */
static int64_t strip_rows(const struct hg__cpu_act_drop *act_drop)
{
	return act_drop->stream.quads < HG__WIDTH / 4 ? HG__WIDTH / 4 / act_drop->stream.quads : 1;
}

static void draw_strip(const struct hg__cpu_act_drop *act_drop, const struct strip *s)
{
	hg__draw(&act_drop->stream, s->row, s->col / 4, s->rows * hg__ceil_div(s->n, 4), s->word);
}

/* The random words of one row of the strip. */
static const uint32_t *words_of(const struct strip *s, int64_t row)
{
	return s->word + (row - s->row) * 4 * hg__ceil_div(s->n, 4);
}

/* ---- forward ---- */

static void forward_strip(const struct hg__cpu_act_drop *act_drop,
                          const struct hg__epilogue_args *a, const struct strip *s)
{
	float bs[HG__WIDTH], xs[HG__WIDTH], ys[HG__WIDTH];
	const float *b = a->b.data ? hg__row(&a->b, 0, s->col, s->n, bs) : NULL;
	const int64_t heads = hg__heads_of_mean(&a->x, &a->y);
	if (act_drop->drops)
		draw_strip(act_drop, s);
	for (int64_t row = s->row; row < s->row + s->rows; row++) {
		const float *x = xs;
		if (heads == 1)
			x = hg__row(&a->x, row, s->col, s->n, xs);
		else
			hg__head_mean_row(&a->x, row, heads, a->y.cols, s->col, s->n, xs);
		float *y = hg__row_begin(&a->y, row, s->col, ys);
#pragma omp simd
		for (int64_t c = 0; c < s->n; c++)
			y[c] = b ? x[c] + b[c] : x[c];
		hg__act_drop_value(act_drop, s->n, words_of(s, row), y);
		hg__guard_numbers(&a->overflow, s->n, y);
		hg__row_put(&a->y, row, s->col, s->n, y);
	}
}

HG__NO_WORKSPACE(epilogue, epilogue_args)

hg_status HG__CPU(epilogue)(hg_context *ctx, const struct hg__epilogue_args *a)
{
	const int fits = a->x.rows == a->y.rows && hg__heads_of_mean(&a->x, &a->y) &&
	                 hg__is_state(&a->x) && hg__is_state(&a->y) &&
	                 (!a->b.data || (hg__is_state(&a->b) && a->b.cols == a->y.cols));
	HG__TRY(hg__has_number(ctx, "epilogue", "activation", a->act_drop.act, 1 + HG__ACT_EPILOGUES));
	HG__TRY(HG__FIT(ctx, fits, "epilogue", &a->x, &a->b, &a->y));
	const int64_t rows = a->y.rows, cols = a->y.cols;
	if (cols == 0)
		return HG_OK;
	const struct hg__cpu_act_drop act_drop = hg__act_drop_of(&a->act_drop, cols);
	const int64_t block = strip_rows(&act_drop);
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t row = 0; row < rows; row += block)
		for (int64_t col = 0; col < cols; col += HG__WIDTH) {
			uint32_t word[WORDS];
			const struct strip s = {row, hg__min(block, rows - row), col,
			                        hg__min(HG__WIDTH, cols - col), word};
			forward_strip(&act_drop, a, &s);
		}
	return HG_OK;
}

/* ---- backward ---- */

struct back {
	const struct hg__epilogue_back_args *a;
	struct hg__cpu_act_drop act_drop;
	int64_t heads; /* of dX */
	/* The random words must be generated again. relu does not need them: y > 0 only where the
	 * element was kept. */
	int draws;
};

/* g = f'(X + b) dropout(g) for one row, where g is dY at first. y is scratch memory for n
 * elements. */
static void gradient(const struct back *b, const struct strip *s, int64_t row, float *y, float *g)
{
	const struct hg__cpu_act_drop *act_drop = &b->act_drop;
	if (b->draws)
		hg__act_drop_drop(act_drop, s->n, words_of(s, row), g);
	else if (act_drop->drops)
#pragma omp simd
		for (int64_t c = 0; c < s->n; c++)
			g[c] /= act_drop->keep;
	if (!act_drop->act)
		return;
	const float *at = hg__row(&b->a->y, row, s->col, s->n, y);
	if (b->draws) {
#pragma omp simd
		for (int64_t c = 0; c < s->n; c++)
			y[c] = at[c] * act_drop->keep;
		at = y;
	}
	act_drop->act->backward(&act_drop->e.act_p, s->n, at, g, g);
}

static void backward_strip(const struct back *b, const struct strip *s, float *sum)
{
	float ys[HG__WIDTH], gs[HG__WIDTH], dys[HG__WIDTH];
	if (b->draws)
		draw_strip(&b->act_drop, s);
	for (int64_t row = s->row; row < s->row + s->rows; row++) {
		const float *dy = hg__row(&b->a->dy, row, s->col, s->n, dys);
		memcpy(gs, dy, (size_t)s->n * sizeof(float));
		gradient(b, s, row, ys, gs);
		if (sum)
#pragma omp simd
			for (int64_t c = 0; c < s->n; c++)
				sum[c] += gs[c];
		if (b->a->dx.data && b->heads == 1)
			hg__row_put(&b->a->dx, row, s->col, s->n, gs);
		else if (b->a->dx.data)
			hg__head_mean_row_back(&b->a->dx, row, b->heads, b->a->dy.cols, s->col, s->n, gs);
	}
}

/* Computes rows r0 .. r1-1 of the columns c0 .. c0+n-1, and adds them to sum [n]. sum is NULL if db
 * is not needed. */
static void backward_rows(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n,
                          float *sum, float *unused)
{
	const struct back *b = env;
	const int64_t block = strip_rows(&b->act_drop);
	(void)unused;
	for (int64_t row = r0; row < r1; row += block) {
		uint32_t word[WORDS];
		const struct strip s = {row, hg__min(block, r1 - row), c0, n, word};
		backward_strip(b, &s, sum);
	}
}

size_t HG__CPU(epilogue_back_workspace)(const hg_context *ctx,
                                        const struct hg__epilogue_back_args *a)
{
	(void)ctx;
	return a->db.data ? hg__reduction_bytes(a->dy.rows, a->dy.cols) : 0;
}

hg_status HG__CPU(epilogue_back)(hg_context *ctx, const struct hg__epilogue_back_args *a)
{
	const int fits =
	    (!a->y.data || hg__same(&a->y, &a->dy)) &&
	    (!a->dx.data || (a->dx.rows == a->dy.rows && hg__heads_of_mean(&a->dx, &a->dy) &&
	                     hg__is_state(&a->dx) && hg__is_state(&a->dy))) &&
	    (!a->db.data || (a->db.dtype == HG_F32 && a->db.cols == a->dy.cols));
	HG__TRY(
	    hg__has_number(ctx, "epilogue_back", "activation", a->act_drop.act, 1 + HG__ACT_EPILOGUES));
	HG__TRY(HG__FIT(ctx, fits, "epilogue_back", &a->y, &a->dy, &a->dx, &a->db));
	/* A thread takes 64 rows at a time, so that a call costs little compared with its elements. */
	const int64_t rows = a->dy.rows, cols = a->dy.cols, block = 64;
	const struct hg__cpu_act_drop act_drop = hg__act_drop_of(&a->act_drop, cols > 0 ? cols : 1);
	const struct back b = {.a = a,
	                       .act_drop = act_drop,
	                       .heads = hg__heads_of_mean(&a->dx, &a->dy),
	                       .draws = act_drop.drops && a->act_drop.act != 1 + HG__ACT_relu};
	if (a->db.data)
		return HG__CPU(columns)(ctx, rows, cols, backward_rows, &b, a->db.data, NULL);
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t row = 0; row < rows; row += block)
		for (int64_t col = 0; col < cols; col += HG__WIDTH)
			backward_rows(&b, row, hg__min(row + block, rows), col, hg__min(HG__WIDTH, cols - col),
			              NULL, NULL);
	return HG_OK;
}
