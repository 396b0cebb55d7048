/* The gradients of a layer, dX = dY W^T, dW = X^T dY and db. Two products of gemm.c compute them,
 * unless a batch norm is on the way: one that X stands for, or one that dY comes through. Then all
 * are computed from one pass over the rows, so that neither what the norm makes of X nor its
 * gradient is stored.
 *
 * The rows are cut into runs, by their number alone, and a thread computes a run TILE rows at a
 * time: dY and X after their norms, then dX, then what the tile adds to dW, db and the gradients of
 * the norm. The sums of the runs are added in order, so they have the same bits for any number of
 * threads. */
#include <omp.h>

#include "kernels/cpu/normalise.h"
#include "kernels/cpu/tile.h"

/* With k = d = 64 the tile's rows of dY, X and dX take 48 kB, which a second-level cache holds. */
#define TILE 64
/* A run has at least so many rows, because its sums are as large as dW. There are at most so many
 * runs, which is enough for many cores; their sums take up to RUNS times the memory of dW. */
#define RUN 128
#define RUNS 64

struct linear {
	const struct hg__linear_back_args *a;
	int64_t n, k, d, pk, pd; /* pk, pd: k and d in whole vectors */
	int64_t run, runs;       /* rows of a run */
	float *w_t;              /* W transposed [d, pk] */
	float *partial;          /* [runs, sums_size]: dW [k, d], db [d], dgamma [k], dbeta [k] */
	float *scratch;          /* [threads, scratch_size]: dY [TILE, pd], X and dX [TILE, pk] */
	int64_t sums_size, scratch_size;
};

static int has_norm(const struct hg__linear_back_args *a)
{
	return a->normalise.mean || a->through.x.data;
}

static struct linear linear_of(const struct hg__linear_back_args *a)
{
	const int64_t n = a->x.rows, k = a->w.rows, d = a->w.cols, pk = hg__whole(k), pd = hg__whole(d),
	              least = hg__ceil_div(n, RUNS), run = least > RUN ? least : RUN;
	return (struct linear){.a = a,
	                       .n = n,
	                       .k = k,
	                       .d = d,
	                       .pk = pk,
	                       .pd = pd,
	                       .run = run,
	                       .runs = n > run ? hg__ceil_div(n, run) : 1,
	                       .sums_size = k * d + d + 2 * k,
	                       .scratch_size = TILE * (pd + 2 * pk)};
}

static size_t linear_bytes(const struct linear *l, int threads)
{
	return (size_t)(l->d * l->pk + l->runs * l->sums_size + threads * l->scratch_size) *
	       sizeof(float);
}

/* ---- without a norm ---- */

static struct hg__gemm_args of_input(const struct hg__linear_back_args *a)
{
	return (struct hg__gemm_args){.a = a->dy, .b = a->w, .c = a->dx, .trans_b = 1};
}

static struct hg__gemm_args of_weights(const struct hg__linear_back_args *a)
{
	return (struct hg__gemm_args){
	    .a = a->x, .b = a->dy, .c = a->dw, .sums = a->db, .trans_a = 1, .shift = a->shift};
}

static hg_status two_products(hg_context *ctx, const struct hg__linear_back_args *a)
{
	const struct hg__gemm_args input = of_input(a), weights = of_weights(a);
	const struct hg__colsum_args bias = {.x = a->dy, .y = a->db};
	if (a->dx.data)
		HG__TRY(HG__CPU(gemm)(ctx, &input));
	if (a->dw.data)
		return HG__CPU(gemm)(ctx, &weights);
	return a->db.data ? HG__CPU(colsum)(ctx, &bias) : HG_OK;
}

/* ---- with a norm ---- */

/* A row of dY, as it is or through the norm behind the layer, rounded to its type. */
static void put_dy(const struct linear *l, int64_t row, float *to)
{
	const struct hg__batch_norm_back_args *through = &l->a->through;
	const struct hg__mat *dy = &l->a->dy;
	for (int64_t col = 0; col < l->d; col += HG__WIDTH) {
		float xs[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, l->d - col);
		if (through->x.data && row >= hg__live_rows(through->live, dy)) {
			memset(to + col, 0, (size_t)n * sizeof *to);
			continue;
		}
		const float *from = hg__row(dy, row, col, n, to + col);
		if (!through->x.data) {
			if (from != to + col)
				memcpy(to + col, from, (size_t)n * sizeof *to);
			continue;
		}
		hg__normalise_back_row(through, col, n, hg__row(&through->x, row, col, n, xs), from,
		                       to + col);
		hg__round_as(dy->dtype, n, to + col);
	}
	memset(to + l->d, 0, (size_t)(l->pd - l->d) * sizeof *to);
}

static void put_x(const struct linear *l, int64_t row, float *to)
{
	if (l->a->normalise.mean) {
		hg__read_normalised(&l->a->normalise, &l->a->x, row, 0, l->k, to);
		return;
	}
	const float *from = hg__row(&l->a->x, row, 0, l->k, to);
	if (from != to)
		memcpy(to, from, (size_t)l->k * sizeof *to);
}

/* Adds the gradients of the norm in front of the layer, from a row of dX as it is stored. */
static void add_norm(const struct linear *l, int64_t row, float *dgamma, float *dbeta)
{
	const struct hg__normalise *norm = &l->a->normalise;
	if (!l->a->dgamma.data || row >= hg__live_rows(norm->live, &l->a->x))
		return;
	for (int64_t col = 0; col < l->k; col += HG__WIDTH) {
		float xs[HG__WIDTH], ds[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, l->k - col);
		const float *x = hg__row(&l->a->x, row, col, n, xs),
		            *dx = hg__row(&l->a->dx, row, col, n, ds);
		hg__normalise_add(norm, col, n, x, hg__normalise_passed(norm, col, n, x, dx, ds),
		                  dgamma + col, dbeta + col);
	}
}

/* C [rows, cols] (+)= A B, where row i and value p of k are A[i * row + p * step]. */
static void multiply(const float *a, int64_t row, int64_t step, int64_t rows, int64_t depth,
                     const float *b, int64_t pitch, int64_t cols, float *c, int64_t ldc, int add)
{
	for (int64_t col = 0; col < cols; col += HG__STRIP) {
		const struct hg__strip s = {.a = a,
		                            .b = b + col,
		                            .c = c + col,
		                            .rows = rows,
		                            .depth = depth,
		                            .row = row,
		                            .step = step,
		                            .pitch = pitch,
		                            .ldc = ldc,
		                            .cols = (int)hg__min(HG__STRIP, cols - col),
		                            .add = add};
		hg__strip_run(&s);
	}
}

/* Rows r0 .. r0 + rows - 1, rows <= TILE. */
static void add_tile(const struct linear *l, int64_t r0, int64_t rows, float *scratch, float *sums)
{
	const struct hg__linear_back_args *a = l->a;
	float *dy = scratch, *x = dy + TILE * l->pd, *dx = x + TILE * l->pk, *db = sums + l->k * l->d,
	      *dgamma = db + l->d, *dbeta = dgamma + l->k;
	for (int64_t r = 0; r < rows; r++)
		put_dy(l, r0 + r, dy + r * l->pd);
	if (a->dx.data)
		multiply(dy, l->pd, 1, rows, l->d, l->w_t, l->pk, l->k, dx, l->pk, 0);
	for (int64_t r = 0; r < rows && a->dx.data; r++) {
		hg__row_put(&a->dx, r0 + r, 0, l->k, dx + r * l->pk);
		add_norm(l, r0 + r, dgamma, dbeta);
	}
	for (int64_t r = 0; r < rows && a->db.data; r++)
#pragma omp simd
		for (int64_t c = 0; c < l->d; c++)
			db[c] += dy[r * l->pd + c];
	for (int64_t r = 0; r < rows && a->dw.data; r++)
		put_x(l, r0 + r, x + r * l->pk);
	if (a->dw.data)
		multiply(x, 1, l->pk, l->k, rows, dy, l->pd, l->d, sums, l->d, 1);
}

static void add_run(const struct linear *l, int64_t run, float *scratch)
{
	const int64_t end = hg__min((run + 1) * l->run, l->n);
	float *sums = l->partial + run * l->sums_size;
	memset(sums, 0, (size_t)l->sums_size * sizeof *sums);
	for (int64_t r = run * l->run; r < end; r += TILE)
		add_tile(l, r, hg__min(TILE, end - r), scratch, sums);
}

/* Adds `count` sums of all runs in order, into those of the first. */
static float *add_sums(const struct linear *l, int64_t first, int64_t count)
{
	float *sum = l->partial + first;
	for (int64_t run = 1; run < l->runs; run++) {
		const float *part = sum + run * l->sums_size;
#pragma omp simd
		for (int64_t i = 0; i < count; i++)
			sum[i] += part[i];
	}
	return sum;
}

static void put_weights(const struct linear *l)
{
	const float factor = ldexpf(1.0f, l->a->shift);
	for (int64_t row = 0; row < l->k && l->a->dw.data; row++) {
		float *sum = add_sums(l, row * l->d, l->d);
		for (int64_t c = 0; c < l->d && l->a->shift; c++)
			sum[c] *= factor;
		hg__row_put(&l->a->dw, row, 0, l->d, sum);
	}
}

static void put_sums(const struct linear *l)
{
	const struct hg__mat *const to[] = {&l->a->db, &l->a->dgamma, &l->a->dbeta};
	int64_t first = l->k * l->d;
	for (int i = 0; i < 3; i++) {
		const int64_t count = i ? l->k : l->d;
		if (to[i]->data)
			memcpy(to[i]->data, add_sums(l, first, count), (size_t)count * sizeof(float));
		first += count;
	}
	put_weights(l);
}

static void transpose_weights(const struct linear *l)
{
	for (int64_t row = 0; row < l->k; row++)
		for (int64_t c = 0; c < l->d; c++)
			l->w_t[c * l->pk + row] = hg__get(&l->a->w, row, c);
	for (int64_t c = 0; c < l->d; c++)
		memset(l->w_t + c * l->pk + l->k, 0, (size_t)(l->pk - l->k) * sizeof(float));
}

static hg_status one_pass(hg_context *ctx, struct linear *l)
{
	const int team = hg__team(ctx, l->n * l->k * (l->d + 8) / 8), saved = omp_get_max_threads();
	void *memory;
	HG__TRY(hg__workspace(ctx, linear_bytes(l, ctx->threads), &memory));
	l->w_t = memory;
	l->partial = l->w_t + l->d * l->pk;
	l->scratch = l->partial + l->runs * l->sums_size;
	transpose_weights(l);
#pragma omp parallel num_threads(team)
	{
		/* where OpenBLAS computes the strips it uses this thread only */
		omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
		for (int64_t run = 0; run < l->runs; run++)
			add_run(l, run, l->scratch + omp_get_thread_num() * l->scratch_size);
	}
	omp_set_num_threads(saved);
	put_sums(l);
	return HG_OK;
}

size_t HG__CPU(linear_back_workspace)(const hg_context *ctx, const struct hg__linear_back_args *a)
{
	const struct linear l = linear_of(a);
	const struct hg__gemm_args input = of_input(a), weights = of_weights(a);
	const struct hg__colsum_args bias = {.x = a->dy, .y = a->db};
	if (has_norm(a))
		return linear_bytes(&l, ctx->threads);
	return hg__larger(hg__larger(a->dx.data ? HG__CPU(gemm_workspace)(ctx, &input) : 0,
	                             a->dw.data ? HG__CPU(gemm_workspace)(ctx, &weights) : 0),
	                  a->db.data ? HG__CPU(colsum_workspace)(ctx, &bias) : 0);
}

hg_status HG__CPU(linear_back)(hg_context *ctx, const struct hg__linear_back_args *a)
{
	struct linear l = linear_of(a);
	if (!has_norm(a))
		return two_products(ctx, a);
	HG__TRY(HG__FIT(ctx,
	                a->x.cols == l.k && a->dy.rows == l.n && a->dy.cols == l.d &&
	                    (!a->dx.data || hg__same(&a->dx, &a->x)) &&
	                    (!a->dw.data || hg__same(&a->dw, &a->w)) &&
	                    (!a->through.x.data || hg__same(&a->through.x, &a->dy)) &&
	                    (!a->dgamma.data || (a->dbeta.data && a->dx.data && a->normalise.mean)),
	                "linear_back", &a->x, &a->w, &a->dy, &a->dx, &a->dw, &a->db, &a->dgamma,
	                &a->dbeta, &a->through.x));
	return one_pass(ctx, &l);
}
