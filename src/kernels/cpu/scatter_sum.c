/* Sums over a list of edges in any order, and dot products on its edges (kernels.h):
 *
 *     scatter_sum   Y[i, c] = alpha r_i sum over edges e = (i, j) of w[e, head of c] s_j X[j, c]
 *                   Y = dropout(f(that + beta Z + b)) if the call has an epilogue
 *     scatter_dot   E[e, k] = scale r_i s_j sum over c in head k of A[i, c] B[j, c]
 *
 * Each thread owns a share of the rows, reads the whole list, and adds up the edges of its rows, so
 * that no two threads write to one sum. Reading a destination costs much less than adding a row. */
#include "kernels/cpu/guard.h"
#include "kernels/cpu/sum_epilogue.h"
#include "precision/integer_sum.h"

/* Terms from here on are no integers. */
#define LEAST_ODD 0x1p62

struct job {
	const struct hg__scatter_sum_args *a;
	struct hg__scatter_memory at;
	uint64_t *sum;   /* [rows, at.lead]; unsigned, because sums may wrap around */
	uint32_t *odd;   /* [rows, at.words] */
	double up, down; /* 2^s and 2^-s */
	struct hg__cpu_sum_epilogue epilogue;
};

/* ---- terms ---- */

static void mark_odd(const struct job *job, int64_t i, int64_t first, int64_t n, double factor,
                     const float *x)
{
	for (int64_t k = 0; k < n; k++) {
		const double term = factor * (double)x[k];
		const uint32_t bits = isnan(term) ? 3 : term >= LEAST_ODD ? 1 : term <= -LEAST_ODD ? 2 : 0;
		job->odd[i * job->at.words + (first + k) / 16] |= bits << 2 * ((first + k) % 16);
	}
}

/* Adds rint(factor x) to columns first .. first + n - 1 of row i; n <= HG__WIDTH. */
HG__INLINE void add_terms(const struct job *job, int64_t i, int64_t first, int64_t n, double factor,
                          const float *x)
{
	uint64_t *sum = job->sum + i * job->at.lead + first;
	double term[HG__WIDTH];
	int odd = 0;
#pragma omp simd reduction(| : odd)
	for (int64_t c = 0; c < n; c++) {
		term[c] = rint(factor * (double)x[c]);
		odd |= !(fabs(term[c]) < LEAST_ODD);
	}
	if (odd) {
		mark_odd(job, i, first, n, factor, x);
		for (int64_t c = 0; c < n; c++)
			term[c] = fabs(term[c]) < LEAST_ODD ? term[c] : 0.0;
	}
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		sum[c] += (uint64_t)(int64_t)term[c];
}

static void add_edge(const struct job *job, int64_t e, int64_t i, int64_t j)
{
	const struct hg__scatter_sum_args *a = job->a;
	const int64_t heads = a->w.data ? a->heads : 1, d = a->x.cols / heads;
	const float s = a->col_scale ? a->col_scale[j] : 1.0f;
	for (int64_t k = 0; k < heads; k++) {
		const float f = a->w.data ? hg__get(&a->w, e, k) * s : s;
		for (int64_t c = 0; c < d; c += HG__WIDTH) {
			float scratch[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, d - c), first = k * d + c;
			add_terms(job, i, first, n, (double)f * job->up, hg__row(&a->x, j, first, n, scratch));
		}
	}
}

/* ---- rows ---- */

static void load_sums(const struct job *job, int64_t i, int64_t first, int n, float *y)
{
	static const float odd_sum[4] = {0.0f, INFINITY, -INFINITY, NAN};
	const uint64_t *sum = job->sum + i * job->at.lead + first;
	const uint32_t *odd = job->odd + i * job->at.words;
	for (int c = 0; c < n; c++)
		y[c] = (float)((double)(int64_t)sum[c] * job->down);
	for (int64_t c = first; c < first + n; c++) {
		const uint32_t bits = odd[c / 16] >> 2 * (c % 16) & 3;
		if (bits)
			y[c - first] = odd_sum[bits];
	}
}

static void store_row(const struct job *job, int64_t i)
{
	const struct hg__scatter_sum_args *a = job->a;
	const float factor = a->row_scale ? a->alpha * a->row_scale[i] : a->alpha;
	for (int64_t first = 0; first < a->y.cols; first += HG__SUM_COLUMNS) {
		const int n = (int)hg__min(HG__SUM_COLUMNS, a->y.cols - first);
		float y[HG__SUM_COLUMNS];
		load_sums(job, i, first, n, y);
		for (int c = 0; c < n; c++)
			y[c] *= factor;
		hg__sum_epilogue_apply(&job->epilogue, i, first, n, y);
		hg__guard_numbers(&a->overflow, n, y);
		hg__row_put(&a->y, i, first, n, y);
	}
}

static void sum_rows(const struct job *job, int64_t begin, int64_t end)
{
	const struct hg__scatter_sum_args *a = job->a;
	const int64_t lead = job->at.lead, words = job->at.words;
	memset(job->sum + begin * lead, 0, (size_t)((end - begin) * lead) * sizeof *job->sum);
	memset(job->odd + begin * words, 0, (size_t)((end - begin) * words) * sizeof *job->odd);
	for (int64_t e = 0; e < a->coo.m; e++) {
		const int64_t i = a->coo.dst[e];
		if (i >= begin && i < end)
			add_edge(job, e, i, a->coo.src[e]);
	}
	for (int64_t i = begin; i < end; i++)
		store_row(job, i);
}

/* ---- the scale ---- */

/* The largest |element| that is finite. */
static float largest(hg_context *ctx, const struct hg__mat *m)
{
	float most = 0.0f;
#pragma omp parallel for num_threads(hg__team(ctx, m->rows * m->cols)) reduction(max : most)
	for (int64_t i = 0; i < m->rows; i++)
		for (int64_t c = 0; c < m->cols; c++) {
			const float x = fabsf(hg__get(m, i, c));
			most = x > most && x < INFINITY ? x : most;
		}
	return most;
}

size_t HG__CPU(scatter_sum_workspace)(const hg_context *ctx, const struct hg__scatter_sum_args *a)
{
	(void)ctx;
	return hg__scatter_memory(a->y.rows, a->y.cols).bytes;
}

hg_status HG__CPU(scatter_sum)(hg_context *ctx, const struct hg__scatter_sum_args *a)
{
	struct job job = {.a = a, .at = hg__scatter_memory(a->y.rows, a->y.cols)};
	void *memory;
	HG__TRY(hg__scatter_sum_supported(ctx, a));
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	HG__TRY(hg__workspace(ctx, job.at.bytes, &memory));
	const double x = (double)(a->x_most > 0.0f ? a->x_most : largest(ctx, &a->x)),
	             w = (double)(a->w_most > 0.0f ? a->w_most : largest(ctx, &a->w));
	const int scale = hg__integer_scale(a->degree * x * w);
	const int team = hg__team(ctx, (a->coo.m + a->y.rows) * a->y.cols);
	job.sum = memory;
	job.odd = (uint32_t *)(void *)((char *)memory + job.at.odd);
	job.up = ldexp(1.0, scale);
	job.down = ldexp(1.0, -scale);
	job.epilogue = hg__sum_epilogue_of(&a->epilogue, a->y.cols);
#pragma omp parallel for num_threads(team) schedule(static)
	for (int t = 0; t < team; t++)
		sum_rows(&job, a->y.rows * t / team, a->y.rows * (t + 1) / team);
	return HG_OK;
}

/* ---- dot products ---- */

HG__NO_WORKSPACE(scatter_dot, scatter_dot_args)

hg_status HG__CPU(scatter_dot)(hg_context *ctx, const struct hg__scatter_dot_args *a)
{
	const int64_t cols = a->a.cols, d = a->heads ? cols / a->heads : 0;
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->a) && hg__is_state(&a->b) && hg__is_state(&a->e) &&
	                    a->b.cols == cols && d * a->heads == cols && a->e.cols == a->heads &&
	                    a->e.rows == a->coo.m && a->a.rows == a->coo.rows &&
	                    a->b.rows == a->coo.cols,
	                "scatter_dot", &a->a, &a->b, &a->e));
#pragma omp parallel for num_threads(hg__team(ctx, a->coo.m *cols)) schedule(static)
	for (int64_t e = 0; e < a->coo.m; e++) {
		const int64_t i = a->coo.dst[e], j = a->coo.src[e];
		const float r = a->row_scale ? a->row_scale[i] : 1.0f,
		            s = a->col_scale ? a->col_scale[j] : 1.0f;
		for (int64_t k = 0; k < a->heads; k++)
			hg__set(&a->e, e, k, hg__dot_rows(&a->a, i, &a->b, j, k * d, d) * a->scale * r * s);
	}
	return HG_OK;
}
