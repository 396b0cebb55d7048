#include "kernels/cpu/act_drop.h"
#include "kernels/cpu/columns.h"

/* Y = dropout(f(X + b)) and its gradient, in strips of a row that stay in the first-level cache
 * from the load to the one store. */

/* Words for a strip: whole rows where they are short, so that the generator's eight quads are all
 * used. */
struct strip {
	int64_t row, rows, col, n;
	uint32_t *word; /* [rows][quads of the strip][4] */
};
#define WORDS (HG__WIDTH + 4 * HG__DRAW)

/* Rows of a strip: as many as have HG__WIDTH words together. */
static int64_t strip_rows(const struct hg__cpu_act_drop *act_drop)
{
	return act_drop->stream.quads < HG__WIDTH / 4 ? HG__WIDTH / 4 / act_drop->stream.quads : 1;
}

static void draw_strip(const struct hg__cpu_act_drop *act_drop, const struct strip *s)
{
	hg__draw(&act_drop->stream, s->row, s->col / 4, s->rows * hg__ceil_div(s->n, 4), s->word);
}

/* The words of one of its rows. */
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
	if (act_drop->drops)
		draw_strip(act_drop, s);
	for (int64_t row = s->row; row < s->row + s->rows; row++) {
		const float *x = hg__row(&a->x, row, s->col, s->n, xs);
		float *y = hg__row_begin(&a->y, row, s->col, ys);
#pragma omp simd
		for (int64_t c = 0; c < s->n; c++)
			y[c] = b ? x[c] + b[c] : x[c];
		hg__act_drop_value(act_drop, s->n, words_of(s, row), y);
		hg__row_put(&a->y, row, s->col, s->n, y);
	}
}

hg_status HG__CPU(epilogue)(hg_context *ctx, const struct hg__epilogue_args *a)
{
	const int fits =
	    hg__same(&a->x, &a->y) && (!a->b.data || (hg__is_state(&a->b) && a->b.cols == a->x.cols));
	HG__TRY(hg__need(ctx, fits, "epilogue: operands do not fit"));
	const int64_t rows = a->x.rows, cols = a->x.cols;
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
	int draws; /* the words are needed again */
};

/* g = f'(X + b) dropout(dY) of one row; y: scratch of the strip */
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
		if (b->a->dx.data)
			hg__row_put(&b->a->dx, row, s->col, s->n, gs);
	}
}

/* Rows r0 .. r1-1 of a chunk of columns; sum NULL: nobody wants db. */
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

hg_status HG__CPU(epilogue_back)(hg_context *ctx, const struct hg__epilogue_back_args *a)
{
	const int fits = (!a->y.data || hg__same(&a->y, &a->dy)) &&
	                 (!a->dx.data || hg__same(&a->dx, &a->dy)) &&
	                 (!a->db.data || (a->db.dtype == HG_F32 && a->db.cols == a->dy.cols));
	HG__TRY(hg__need(ctx, fits, "epilogue_back: operands do not fit"));
	/* rows that a thread takes at a time: 64 calls are nothing beside their elements */
	const int64_t rows = a->dy.rows, cols = a->dy.cols, block = 64;
	const struct hg__cpu_act_drop act_drop = hg__act_drop_of(&a->act_drop, cols > 0 ? cols : 1);
	const struct back b = {a, act_drop, act_drop.drops && a->act_drop.act != 1 + HG__ACT_relu};
	if (a->db.data)
		return HG__CPU(columns)(ctx, rows, cols, backward_rows, &b, a->db.data, NULL);
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t row = 0; row < rows; row += block)
		for (int64_t col = 0; col < cols; col += HG__WIDTH)
			backward_rows(&b, row, hg__min(row + block, rows), col, hg__min(HG__WIDTH, cols - col),
			              NULL, NULL);
	return HG_OK;
}
