/* C = 2^shift op(A) op(B) + bias, computed in pieces of C, each by one thread. If the caller also
 * needs the column sums of B, the kernel colsum computes them.
 *
 * Each piece copies op(B), widened to f32, into strips of HG__STRIP columns that are padded with
 * zeros. A is used in place if it is f32, not transposed and not normalised, and otherwise copied
 * into a panel, widened and normalised. C is narrowed once. The division into pieces depends on the
 * shapes alone, and one thread computes a piece, so the bits are the same for any number of
 * threads.
 *
 * Statistics of C are those of the kernel batch_norm, once C is there: in pieces of C they would
 * depend on its number of rows, padding included.
 *
 * Where C has few pieces, k is divided too: `runs` partial sums, each over `run` values of k, are
 * stored in the workspace and then added in order. */
#include <limits.h>
#include <math.h>
#include <omp.h>

#include "kernels/cpu/normalise.h"
#include "kernels/cpu/tile_skip.h"

/* The blocking. A block of C has at most TALL rows and WIDE columns and uses DEEP of k at a time.
 * Its panel of A has 256 kB and a strip of 64 columns of B 64 kB, so both stay in a second-level
 * cache of 512 kB. Where k is long and C is small, as for gradients of weights, k is split into
 * runs of at least RUN, so that there are PIECES blocks to share among threads. Their sums are
 * added in order. */
#define TALL 256
#define WIDE 512
#define DEEP 256
#define PIECES 16
#define RUN 512

struct job {
	const struct hg__gemm_args *a;
	int64_t m, n, k;
	/* A piece of C has `tall` rows. Its thread computes `wide` columns at a time, from `deep`
	 * values of k at a time. */
	int64_t tall, wide, deep;
	/* There are `tiles` pieces along m and `runs` partial sums, each over `run` values of k. */
	int64_t run, tiles, runs;
	float *partial; /* [runs, m, n] where runs > 1 */
	float *scratch; /* [threads, scratch_size] */
	/* The elements of scratch that a thread needs: for the panel of A, for the strip of B, and for
	 * both and a piece of C behind them. */
	int64_t a_size, b_size, scratch_size;
};

static struct job job_of(const struct hg__gemm_args *a)
{
	return (struct job){.a = a,
	                    .m = a->trans_a ? a->a.cols : a->a.rows,
	                    .n = a->trans_b ? a->b.rows : a->b.cols,
	                    .k = a->trans_a ? a->a.rows : a->a.cols};
}

static struct hg__colsum_args sums_of(const struct hg__gemm_args *a)
{
	return (struct hg__colsum_args){.x = a->b, .y = a->sums};
}

/* Is A copied? */
static int has_panel(const struct hg__gemm_args *a)
{
	return a->trans_a || a->a.dtype == HG_F16 || a->normalise.mean;
}

/* Sets s to the mn rows and kn columns of op(A) from [m0, k] on: the address, and the distances
 * between rows and between values of k. */
static void pack_a(const struct job *job, int64_t m0, int64_t mn, int64_t k, int64_t kn,
                   float *panel, struct hg__strip *s)
{
	const struct hg__mat *a = &job->a->a;
	const struct hg__normalise *norm = &job->a->normalise;
	const int trans = job->a->trans_a;
	if (!has_panel(job->a)) {
		s->a = (const float *)hg__at(a, m0, k);
		s->row = a->ld;
		s->step = 1;
		return;
	}
	const int64_t rows = trans ? kn : mn, cols = trans ? mn : kn, pitch = hg__whole(cols);
	for (int64_t r = 0; r < rows; r++) {
		const int64_t row = trans ? k + r : m0 + r, col = trans ? m0 : k;
		float *to = panel + r * pitch;
		if (norm->mean) {
			hg__read_normalised(norm, a, row, col, cols, to);
			continue;
		}
		const float *from = hg__row(a, row, col, cols, to);
		if (from != to)
			memcpy(to, from, (size_t)cols * sizeof(float));
	}
	s->a = panel;
	s->row = trans ? 1 : pitch;
	s->step = trans ? pitch : 1;
}

/* Copies kn rows and nn <= HG__STRIP columns of op(B) from [k, n0] on into strip [kn, pitch]. */
static void pack_b(const struct job *job, int64_t k, int64_t kn, int64_t n0, int64_t nn,
                   int64_t pitch, float *strip)
{
	const struct hg__mat *b = &job->a->b;
	for (int64_t r = 0; r < kn; r++)
		memset(strip + r * pitch + nn, 0, (size_t)(pitch - nn) * sizeof(float));
	for (int64_t r = 0; r < kn && !job->a->trans_b; r++)
		memmove(strip + r * pitch, hg__row(b, k + r, n0, nn, strip + r * pitch),
		        (size_t)nn * sizeof(float));
	for (int64_t c = 0; c < nn && job->a->trans_b; c++) {
		float scratch[DEEP];
		const float *column = hg__row(b, n0 + c, k, kn, scratch);
		for (int64_t r = 0; r < kn; r++)
			strip[r * pitch + c] = column[r];
	}
}

/* The mn rows and kn columns of op(A) from [m0, k] on, in place. */
static struct hg__lines lines_of(const struct job *job, int64_t m0, int64_t mn, int64_t k,
                                 int64_t kn)
{
	const struct hg__mat *a = &job->a->a;
	const int trans = job->a->trans_a;
	return (struct hg__lines){.data = trans ? hg__at(a, k, m0) : hg__at(a, m0, k),
	                          .count = trans ? kn : mn,
	                          .length = trans ? mn : kn,
	                          .pitch = a->ld,
	                          .halves = a->dtype == HG_F16,
	                          .by_column = trans};
}

/* out [mn, nn] = op(A)[m0.., k0..k1] op(B)[k0..k1, n0..] */
static void multiply_block(const struct job *job, int64_t m0, int64_t mn, int64_t n0, int64_t nn,
                           int64_t k0, int64_t k1, float *scratch, float *out, int64_t ld)
{
	float *strip = scratch + job->a_size;
	for (int64_t r = 0; r < mn && k0 == k1; r++)
		memset(out + r * ld, 0, (size_t)nn * sizeof(float));
	for (int64_t k = k0; k < k1; k += job->deep) {
		const int64_t kn = hg__min(job->deep, k1 - k);
		const struct hg__lines lines = lines_of(job, m0, mn, k, kn);
		const int sparse = !job->a->normalise.mean && hg__lines_are_sparse(&lines);
		struct hg__strip s = {.b = strip, .rows = mn, .depth = kn, .ldc = ld, .add = k > k0};
		for (int64_t c = 0; c < nn; c += HG__STRIP) {
			s.cols = (int)hg__min(HG__STRIP, nn - c);
			s.pitch = hg__whole(s.cols);
			s.c = out + c;
			pack_b(job, k, kn, n0 + c, s.cols, s.pitch, strip);
			if (sparse && hg__strip_skip(&lines, &s))
				continue;
			if (!s.a)
				pack_a(job, m0, mn, k, kn, scratch, &s);
			hg__strip_run(&s);
		}
	}
}

/* C[row, col..] = narrow(2^shift sum + bias), where C may be f32, which is not narrowed. */
static void store_c_row(const struct hg__gemm_args *a, int64_t row, int64_t col, int64_t n,
                        float *sum)
{
	for (int64_t c = 0; c < n; c += HG__WIDTH) {
		float scratch[HG__WIDTH];
		const int64_t count = hg__min(HG__WIDTH, n - c);
		if (a->shift) {
			const float factor = ldexpf(1.0f, a->shift);
#pragma omp simd
			for (int64_t i = 0; i < count; i++)
				sum[c + i] *= factor;
		}
		if (a->bias.data) {
			const float *bias = hg__row(&a->bias, 0, col + c, count, scratch);
#pragma omp simd
			for (int64_t i = 0; i < count; i++)
				sum[c + i] += bias[i];
		}
		hg__row_put(&a->c, row, col + c, count, sum + c);
	}
}

/* Computes piece (tile, run), a block of rows of C over one run of k, in blocks of columns. */
static void compute_piece(const struct job *job, int64_t tile, int64_t run, float *scratch)
{
	const struct hg__gemm_args *a = job->a;
	const int64_t m0 = tile * job->tall, mn = hg__min(job->tall, job->m - m0), k0 = run * job->run,
	              k1 = hg__min(k0 + job->run, job->k);
	for (int64_t n0 = 0; n0 < job->n; n0 += job->wide) {
		const int64_t nn = hg__min(job->wide, job->n - n0);
		if (job->runs > 1) {
			multiply_block(job, m0, mn, n0, nn, k0, k1, scratch,
			               job->partial + (run * job->m + m0) * job->n + n0, job->n);
			continue;
		}
		const int direct = a->c.dtype == HG_F32;
		float *out = direct ? (float *)hg__at(&a->c, m0, n0) : scratch + job->a_size + job->b_size;
		const int64_t ld = direct ? a->c.ld : nn;
		multiply_block(job, m0, mn, n0, nn, k0, k1, scratch, out, ld);
		for (int64_t r = 0; r < mn && (!direct || a->bias.data || a->shift); r++)
			store_c_row(a, m0 + r, n0, nn, out + r * ld);
	}
}

/* Adds the partial sums of a row of C over the runs of k, in order. */
static void add_runs(const struct job *job, int64_t row)
{
	float *sum = job->partial + row * job->n;
	for (int64_t r = 1; r < job->runs; r++) {
		const float *part = sum + r * job->m * job->n;
#pragma omp simd
		for (int64_t c = 0; c < job->n; c++)
			sum[c] += part[c];
	}
	store_c_row(job->a, row, 0, job->n, sum);
}

/* Divides the work into tiles and runs. */
static void divide_work(struct job *job)
{
	/* An even number of tiles gives two cores equal work. */
	job->tiles = 2 * hg__ceil_div(job->m, 2 * TALL);
	job->tall = hg__ceil_div(job->m, job->tiles);
	job->tiles = hg__ceil_div(job->m, job->tall);
	job->wide = hg__min(job->n, WIDE);
	const int64_t wanted = job->tiles < PIECES ? PIECES / job->tiles : 1, possible = job->k / RUN;
	job->runs = possible < 1 ? 1 : hg__min(wanted, possible);
	job->run = hg__ceil_div(job->k, job->runs);
	job->deep = hg__min(DEEP, job->run);
}

/* The workspace for op(A) [m, k] and op(B) [k, n]: a panel, a strip and a block of C for each
 * thread, and the partial sums of the runs. These are at most PIECES runs of TALL rows each,
 * because a C with more rows is split into fewer runs. */
static size_t product_bytes(int64_t m, int64_t n, int64_t k, int threads)
{
	const int64_t tall = hg__min(m, TALL), wide = hg__min(n, WIDE), deep = hg__min(k, DEEP),
	              strip = hg__min(hg__whole(n), HG__STRIP_MOST);
	const int64_t scratch = hg__whole(tall) * hg__whole(deep) + deep * strip + tall * wide;
	const int64_t rows = hg__min(hg__min(k / RUN, PIECES) * m, PIECES * TALL),
	              partial = k < 2 * RUN ? 0 : rows * n;
	return (size_t)(threads * scratch + partial) * sizeof(float);
}

/* C = A B also asks for what its gradients will, dA = dC B^T and dB = A^T dC, so that a tape needs
 * the same workspace whichever of them it runs. */
size_t HG__CPU(gemm_workspace)(const hg_context *ctx, const struct hg__gemm_args *a)
{
	const struct job job = job_of(a);
	const struct hg__colsum_args sums = sums_of(a);
	const int threads = ctx->threads, has_gradients = !a->trans_a && !a->trans_b;
	size_t most = product_bytes(job.m, job.n, job.k, threads);
	if (has_gradients)
		most = hg__larger(most, hg__larger(product_bytes(job.m, job.k, job.n, threads),
		                                   product_bytes(job.k, job.n, job.m, threads)));
	if (a->statistics.x.data)
		most = hg__larger(most, HG__CPU(batch_norm_workspace)(ctx, &a->statistics));
	return hg__larger(most, a->sums.data ? HG__CPU(colsum_workspace)(ctx, &sums) : 0);
}

static hg_status reserve_scratch(hg_context *ctx, struct job *job, int threads)
{
	const struct hg__gemm_args *a = job->a;
	job->a_size = !has_panel(a) ? 0
	              : a->trans_a  ? job->deep * hg__whole(job->tall)
	                            : job->tall * hg__whole(job->deep);
	job->b_size = job->deep * hg__min(HG__STRIP, hg__whole(job->n));
	job->scratch_size = job->a_size + job->b_size +
	                    (a->c.dtype == HG_F16 && job->runs == 1 ? job->tall * job->wide : 0);
	const int64_t partial = job->runs > 1 ? job->runs * job->m * job->n : 0;
	const size_t reserved = product_bytes(job->m, job->n, job->k, threads);
	void *memory;
	HG__TRY(hg__need(ctx,
	                 (size_t)(partial + threads * job->scratch_size) * sizeof(float) <= reserved,
	                 "gemm: more scratch than was reserved"));
	HG__TRY(hg__workspace(ctx, reserved, &memory));
	job->partial = memory;
	job->scratch = (float *)memory + partial;
	return HG_OK;
}

static hg_status check_operands(hg_context *ctx, const struct hg__gemm_args *a,
                                const struct job *job)
{
	const int64_t k = a->trans_b ? a->b.cols : a->b.rows;
	HG__TRY(HG__FIT(ctx,
	                job->k == k && a->c.rows == job->m && a->c.cols == job->n &&
	                    hg__is_state(&a->a) && hg__is_state(&a->b) && hg__is_state(&a->c),
	                "gemm", &a->a, &a->b, &a->c, &a->bias, &a->sums));
	HG__TRY(hg__need(ctx, !a->statistics.x.data || (!a->trans_a && !a->trans_b),
	                 "gemm: statistics of a transposed product"));
	HG__TRY(hg__need(ctx, !a->sums.data || (!a->trans_b && !a->bias.data),
	                 "gemm: column sums of a transposed B, or beside a bias"));
	if (a->pick > 1)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "gemm: algorithm %d was asked for, there is one",
		                a->pick);
	if (job->n > INT_MAX || a->a.ld > INT_MAX || a->b.ld > INT_MAX || a->c.ld > INT_MAX)
		return hg__fail(
		    ctx, HG_ERR_UNSUPPORTED,
		    "gemm: a row has more than %d elements, which is more than a BLAS can address",
		    INT_MAX);
	return HG_OK;
}

hg_status HG__CPU(gemm)(hg_context *ctx, const struct hg__gemm_args *a)
{
	const struct hg__colsum_args sums = sums_of(a);
	struct job job = job_of(a);
	HG__TRY(check_operands(ctx, a, &job));
	if (a->sums.data)
		HG__TRY(HG__CPU(colsum)(ctx, &sums));
	if (job.m == 0 || job.n == 0)
		return HG_OK;
	divide_work(&job);
	const int team = hg__team(ctx, job.m * job.n * (job.k + 8) / 8), saved = omp_get_max_threads();
	HG__TRY(reserve_scratch(ctx, &job, team));
#pragma omp parallel num_threads(team)
	{
		float *scratch = job.scratch + omp_get_thread_num() * job.scratch_size;
		/* Where OpenBLAS computes the strips it uses this thread only, even if the team has one
		 * thread. */
		omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
		for (int64_t i = 0; i < job.tiles * job.runs; i++)
			compute_piece(&job, i % job.tiles, i / job.tiles, scratch);
		if (job.runs > 1) {
#pragma omp for schedule(static)
			for (int64_t r = 0; r < job.m; r++)
				add_runs(&job, r);
		}
	}
	omp_set_num_threads(saved);
	return a->statistics.x.data ? HG__CPU(batch_norm)(ctx, &a->statistics) : HG_OK;
}
