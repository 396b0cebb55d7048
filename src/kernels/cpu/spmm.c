/* Aggregation (kernels.h):
 *
 *     Y[i, c] = alpha r_i sum over entries p of row i of f[p, head of c] X[j, c],   f = w s_j
 *     Y = dropout(f(that + beta Z + b)) if the call has an epilogue
 *
 * With scale_first, X is replaced by narrow(s_j X[j, c]) before the sum, and f = w.
 *
 * A row part is summed for up to 64 columns at a time in registers: four vectors, and four more for
 * the total where every batch is scaled separately. The factors of a batch are stored first (one
 * for each edge, or one for each edge and head), so that the inner loop has only loads, products
 * and sums. */
#include "kernels/cpu/guard.h"
#include "kernels/cpu/items.h"
#include "kernels/cpu/sum_epilogue.h"

#define VECTORS 4
#define COLUMNS HG__SUM_COLUMNS

enum source { X_F32, X_F16, X_ONE };
enum weights { W_ONE, W_EDGE, W_COLUMN };
enum mode { F32 = HG_ACC_F32, DISCRETIZED = HG_ACC_F16_DISCRETIZED, NAIVE = HG_ACC_F16_NAIVE };

struct job {
	const struct hg__spmm_args *a; /* with scale_first x is the scaled X and col_scale is NULL */
	int64_t pitch;                 /* bytes between rows of X */
	struct hg__mat x;              /* X before scale_first */
	const float *scale;            /* with scale_first the factors of its rows, otherwise NULL */
	float *stage;                  /* [2 * items, stage_ld] */
	int64_t stage_ld;
	int32_t *head; /* [cols + 16] the head of each column; NULL: there is one head */
	int64_t width; /* columns of a block: COLUMNS, or fewer so that they have at most 16 heads */
	enum weights weights;
	struct hg__cpu_sum_epilogue epilogue;
};

/* Columns first .. first+count-1 of one row part. factor = alpha r_i. A sum_fn stores the part's
 * sum in total [COLUMNS]. */
struct block {
	int64_t begin, end, first;
	int count;
	float factor;
};
typedef void (*sum_fn)(const struct job *job, const struct block *b, float *total);

/* ---- the factors of a batch of n edges from p on ---- */

static void round_halves(int64_t n, float *x)
{
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const int count = (int)hg__min(HG__LANES, n - i);
		float part[HG__LANES];
		hg__vstore(part, hg__vround_half(hg__vload_n(x + i, count)));
		memcpy(x + i, part, (size_t)count * sizeof(float));
	}
}

/* With one head: out[e] = w[edge of p + e, 0]. */
static void load_weights(const struct hg__spmm_args *a, int64_t p, int n, float *out)
{
	if (a->w.dtype == HG_F32) {
		for (int e = 0; e < n; e++)
			out[e] = ((const float *)a->w.data)[hg__edge_of(&a->csr, p + e) * a->w.ld];
		return;
	}
	hg_half w[HG_BATCH_EDGES];
	for (int e = 0; e < n; e++)
		w[e] = ((const hg_half *)a->w.data)[hg__edge_of(&a->csr, p + e) * a->w.ld];
	hg__widen(n, w, out);
}

/* With one head: out[e] = w s_j. */
static void edge_factors(const struct hg__spmm_args *a, int64_t p, int n, int halves, float *out)
{
	const int32_t *col = a->csr.col + p;
	if (a->w.data)
		load_weights(a, p, n, out);
	else
		for (int e = 0; e < n; e++)
			out[e] = 1.0f;
	if (halves)
		round_halves(n, out);
	if (!a->col_scale)
		return;
	float s[HG_BATCH_EDGES];
	for (int e = 0; e < n; e++)
		s[e] = a->col_scale[col[e]];
	if (halves)
		round_halves(n, s);
	for (int e = 0; e < n; e++)
		out[e] *= s[e];
	if (halves)
		round_halves(n, out);
}

/* With several heads, at most 16 of them in a block: out[e * 16 + h] = w[edge, head0 + h] s_j. */
static void head_factors(const struct job *job, const struct block *b, int64_t p, int n, int halves,
                         float *out)
{
	const struct hg__spmm_args *a = job->a;
	const int32_t head0 = job->head[b->first];
	const int heads = job->head[b->first + b->count - 1] - head0 + 1;
	for (int e = 0; e < n; e++) {
		const void *w = hg__at(&a->w, hg__edge_of(&a->csr, p + e), head0);
		const hg__v16 s = hg__vset(a->col_scale ? a->col_scale[a->csr.col[p + e]] : 1.0f);
		const hg__v16 v = a->w.dtype == HG_F16 ? hg__vload_half_n((const hg_half *)w, heads)
		                                       : hg__vload_n((const float *)w, heads);
		hg__vstore(out + e * HG__LANES,
		           halves ? hg__vround_half(hg__vround_half(v) * hg__vround_half(s)) : v * s);
	}
}

/* ---- the sum ---- */

HG__INLINE hg__v16 load_x(enum source source, const char *row, int v, int last, int tail)
{
	if (source == X_ONE)
		return hg__vset(1.0f);
	if (source == X_F16)
		return v < last ? hg__vload_half((const hg_half *)row + v * HG__LANES)
		                : hg__vload_half_n((const hg_half *)row + v * HG__LANES, tail);
	return v < last ? hg__vload((const float *)row + v * HG__LANES)
	                : hg__vload_n((const float *)row + v * HG__LANES, tail);
}

HG__INLINE hg__v16 round_if_f16(enum mode mode, hg__v16 v)
{
	return mode == F32 ? v : hg__vround_half(v);
}

/* acc += f * x over a batch, in CSR order, with one rounding in f32 and two in f16. nv, source,
 * weights and mode are constants at every call, so that the compiler removes the branches. */
HG__INLINE void add_batch(int nv, enum source source, enum weights weights, enum mode mode,
                          const char *x, int64_t pitch, const int32_t *col, int n, int tail,
                          const float *f, const hg__i16 *head, hg__v16 *acc)
{
	for (int e = 0; e < n; e++) {
		const char *row = source == X_ONE ? NULL : x + (int64_t)col[e] * pitch;
		for (int v = 0; v < nv; v++) {
			const hg__v16 term = load_x(source, row, v, nv - 1, tail);
			if (weights == W_ONE) {
				acc[v] = round_if_f16(mode, acc[v] + term);
				continue;
			}
			const hg__v16 factor =
			    weights == W_EDGE ? hg__vset(f[e]) : hg__vspread(f + e * HG__LANES, head[v]);
			acc[v] = mode == F32 ? hg__vfma(factor, term, acc[v])
			                     : hg__vround_half(acc[v] + hg__vround_half(factor * term));
		}
	}
}

HG__INLINE void sum_vectors(int nv, enum source source, enum weights weights, enum mode mode,
                            const struct job *job, const struct block *b, float *out)
{
	const struct hg__spmm_args *a = job->a;
	const char *x =
	    source == X_ONE ? NULL : (const char *)a->x.data + b->first * (source == X_F16 ? 2 : 4);
	const int tail = b->count - (nv - 1) * HG__LANES;
	const hg__v16 factor = round_if_f16(mode, hg__vset(b->factor));
	hg__v16 total[VECTORS] = {{0}};
	hg__i16 head[VECTORS] = {{0}}; /* the head of each column, counted from the block's first */
	for (int v = 0; v < nv && weights == W_COLUMN; v++)
		head[v] = *(const hg__i16_unaligned *)(job->head + b->first + v * HG__LANES) -
		          job->head[b->first];
	for (int64_t p = b->begin, next; p < b->end; p = next) {
		next = hg__min(b->end, (p / HG_BATCH_EDGES + 1) * HG_BATCH_EDGES);
		const int n = (int)(next - p);
		float f[weights == W_COLUMN ? HG_BATCH_EDGES * HG__LANES : HG_BATCH_EDGES];
		hg__v16 acc[VECTORS] = {{0}};
		if (weights == W_EDGE)
			edge_factors(a, p, n, mode != F32, f);
		if (weights == W_COLUMN)
			head_factors(job, b, p, n, mode != F32, f);
		add_batch(nv, source, weights, mode, x, job->pitch, a->csr.col + p, n, tail, f, head,
		          mode == DISCRETIZED ? acc : total);
		for (int v = 0; v < nv && mode == DISCRETIZED; v++)
			total[v] = hg__vround_half(total[v] + hg__vround_half(acc[v] * factor));
	}
	for (int v = 0; v < nv; v++)
		hg__vstore(out + v * HG__LANES, total[v]);
}

HG__INLINE void sum_block(enum source source, enum weights weights, enum mode mode,
                          const struct job *job, const struct block *b, float *out)
{
	const int nv = (b->count + HG__LANES - 1) / HG__LANES;
	if (nv == 4)
		sum_vectors(4, source, weights, mode, job, b, out);
	else if (nv == 3)
		sum_vectors(3, source, weights, mode, job, b, out);
	else if (nv == 2)
		sum_vectors(2, source, weights, mode, job, b, out);
	else
		sum_vectors(1, source, weights, mode, job, b, out);
}

/* A function for each kind of weights, because several passes of gcc take time that grows with the
 * square of a function's size. */
#define SUM(name, source, weights, mode)                                         \
	static void name(const struct job *job, const struct block *b, float *total) \
	{                                                                            \
		sum_block(source, weights, mode, job, b, total);                         \
	}
#define SUMS(name, source, mode)           \
	SUM(name##_one, source, W_ONE, mode)   \
	SUM(name##_edge, source, W_EDGE, mode) \
	SUM(name##_column, source, W_COLUMN, mode)
SUMS(sum_f32, X_F32, F32)
SUMS(sum_f16, X_F16, F32)
SUMS(sum_ones, X_ONE, F32)
SUMS(discretized_f16, X_F16, DISCRETIZED)
SUMS(discretized_ones, X_ONE, DISCRETIZED)
SUMS(naive_f16, X_F16, NAIVE)
SUMS(naive_ones, X_ONE, NAIVE)

/* Features in f32 are never summed in f16. */
#define ROW(name)                                                                \
	{                                                                            \
		[W_ONE] = name##_one, [W_EDGE] = name##_edge, [W_COLUMN] = name##_column \
	}
static const sum_fn sums[HG_ACC_COUNT][3][3] = {
    [F32] = {[X_F32] = ROW(sum_f32), [X_F16] = ROW(sum_f16), [X_ONE] = ROW(sum_ones)},
    [DISCRETIZED] = {[X_F16] = ROW(discretized_f16), [X_ONE] = ROW(discretized_ones)},
    [NAIVE] = {[X_F16] = ROW(naive_f16), [X_ONE] = ROW(naive_ones)},
};

/* ---- rows ---- */

HG__INLINE float factor_of(const struct hg__spmm_args *a, int64_t row)
{
	return a->row_scale ? a->alpha * a->row_scale[row] : a->alpha;
}

/* Stores a total in Y. Sums of the modes F32 and NAIVE are scaled now; those of DISCRETIZED have
 * been scaled batch by batch. n <= COLUMNS, and total is padded to whole vectors. */
static void store_row(const struct job *job, int64_t row, int64_t first, int n, float *total)
{
	const struct hg__spmm_args *a = job->a;
	const hg__v16 factor = round_if_f16((enum mode)a->accumulate, hg__vset(factor_of(a, row)));
	for (int c = 0; c < n && a->accumulate != HG_ACC_F16_DISCRETIZED; c += HG__LANES)
		hg__vstore(total + c, factor * hg__vload(total + c));
	hg__sum_epilogue_apply(&job->epilogue, row, first, n, total);
	hg__guard_numbers(&a->overflow, n, total);
	hg__row_put(&a->y, row, first, n, total);
}

static void sum_item(const struct job *job, sum_fn sum, int64_t k)
{
	const struct hg__spmm_args *a = job->a;
	const int64_t cols = a->y.cols;
	struct hg__item it = hg__item_begin(&a->csr, k);
	struct hg__part part;
	while (hg__part_next(&a->csr, &it, &part))
		for (int64_t first = 0; first < cols; first += job->width) {
			const struct block b = {part.begin, part.end, first,
			                        (int)hg__min(job->width, cols - first), factor_of(a, part.row)};
			float total[COLUMNS];
			sum(job, &b, total);
			if (part.slot < 0)
				store_row(job, part.row, first, b.count, total);
			else
				memcpy(job->stage + part.slot * job->stage_ld + first, total,
				       (size_t)b.count * sizeof(float));
		}
}

/* Adds the parts of split row s in the order of their slots, and then stores the row. */
static void sum_split_row(const struct job *job, int64_t s)
{
	const struct hg__spmm_args *a = job->a;
	const struct hg__plan *plan = a->csr.plan;
	const int halves = a->accumulate != HG_ACC_F32;
	for (int64_t first = 0; first < a->y.cols; first += COLUMNS) {
		const int n = (int)hg__min(COLUMNS, a->y.cols - first);
		float total[COLUMNS] = {0};
		for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++) {
			const float *part = job->stage + hg__split_slot(plan, s, k) * job->stage_ld + first;
			for (int c = 0; c < n; c++)
				total[c] += part[c];
			if (halves)
				round_halves(n, total);
		}
		store_row(job, plan->split_row[s], first, n, total);
	}
}

/* The parts of the workspace in bytes: the scaled X, the staging rows, and the head of each column,
 * in whole vectors. */
struct parts {
	size_t scaled, staging, heads;
};
static struct parts parts_of(const struct hg__csr *csr, int64_t cols, hg_dtype scaled)
{
	return (struct parts){.scaled = hg__scaled_bytes(csr, cols, scaled),
	                      .staging = hg__aligned(hg__staging_bytes(csr, cols)),
	                      .heads = (size_t)(cols + HG__LANES) * sizeof(int32_t)};
}

size_t HG__CPU(spmm_workspace)(const hg_context *ctx, const struct hg__spmm_args *a)
{
	const int scales = a->scale_first && a->col_scale;
	const struct parts parts = parts_of(&a->csr, a->y.cols, scales ? a->x.dtype : HG_DTYPE_COUNT);
	(void)ctx;
	return parts.scaled + parts.staging + parts.heads;
}

static hg_status prepare_spmm(hg_context *ctx, struct hg__spmm_args *a, struct job *job)
{
	const int64_t cols = a->y.cols, heads = a->heads > 1 ? a->heads : 1;
	const hg_dtype scaled = job->scale ? a->x.dtype : HG_DTYPE_COUNT;
	const struct parts parts = parts_of(&a->csr, cols, scaled);
	void *memory;
	HG__TRY(hg__workspace(ctx, parts.scaled + parts.staging + parts.heads, &memory));
	job->stage = (float *)((char *)memory + parts.scaled);
	job->stage_ld = hg__leading(cols);
	job->weights = a->w.data && heads > 1 ? W_COLUMN : a->w.data || a->col_scale ? W_EDGE : W_ONE;
	job->width = COLUMNS;
	if (job->weights == W_COLUMN) {
		job->head = (int32_t *)((char *)memory + parts.scaled + parts.staging);
		job->width = hg__min(COLUMNS, HG__LANES * (cols / heads));
		for (int64_t c = 0; c < cols + HG__LANES; c++)
			job->head[c] = (int32_t)(hg__min(c, cols - 1) / (cols / heads));
	}
	job->epilogue = hg__sum_epilogue_of(&a->epilogue, cols);
	job->a = a;
	job->x = a->x;
	if (job->scale)
		a->x = (struct hg__mat){memory, a->x.rows, cols, hg__scaled_lead(cols, scaled), scaled};
	job->pitch = a->x.data ? a->x.ld * (int64_t)hg__element(&a->x) : 0;
	return HG_OK;
}

/* Row j of narrow(s_j X). */
static void scale_row(const struct job *job, int64_t j)
{
	const hg__v16 s = hg__vset(job->scale[j]);
	for (int64_t first = 0; first < job->x.cols; first += COLUMNS) {
		const int n = (int)hg__min(COLUMNS, job->x.cols - first);
		float x[COLUMNS];
		const float *from = hg__row(&job->x, j, first, n, x);
		for (int c = 0; c < n; c += HG__LANES)
			hg__vstore(x + c, s * hg__vload_n(from + c, (int)hg__min(HG__LANES, n - c)));
		hg__row_put(&job->a->x, j, first, n, x);
	}
}

hg_status HG__CPU(spmm)(hg_context *ctx, const struct hg__spmm_args *a)
{
	const enum source source = !a->x.data ? X_ONE : a->x.dtype == HG_F16 ? X_F16 : X_F32;
	struct hg__spmm_args args = *a;
	const struct hg__plan by_row = hg__plan_by_row(&a->csr);
	if (a->accumulate == HG_ACC_F16_NAIVE)
		args.csr.plan = &by_row;
	struct job job = {.scale = a->scale_first ? a->col_scale : NULL};
	if (job.scale)
		args.col_scale = NULL;
	HG__TRY(HG__FIT(ctx,
	                a->y.rows == a->csr.rows &&
	                    (!a->x.data || (a->x.rows == a->csr.cols && a->x.cols == a->y.cols)),
	                "spmm", &a->x, &a->y));
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	HG__TRY(hg__spmm_supported(ctx, a));
	HG__TRY(HG__FIT(ctx, hg__sum_epilogue_fits(&a->epilogue, &a->y), "spmm", &a->y, &a->epilogue.z,
	                &a->epilogue.b));
	HG__TRY(hg__need(ctx, a->x.data || !job.scale, "spmm: no X to scale first"));
	HG__TRY(prepare_spmm(ctx, &args, &job));
	const sum_fn sum = sums[a->accumulate][source][job.weights];
	const int64_t items = hg__items(&args.csr), splits = hg__splits(&args.csr),
	              scaled = job.scale ? a->x.rows : 0;
#pragma omp parallel num_threads(hg__team(ctx, (a->csr.m + a->y.rows) * a->y.cols))
	{
#pragma omp for schedule(static)
		for (int64_t j = 0; j < scaled; j++)
			scale_row(&job, j);
#pragma omp for schedule(dynamic, 4)
		for (int64_t k = 0; k < items; k++)
			sum_item(&job, sum, k);
#pragma omp for schedule(static)
		for (int64_t s = 0; s < splits; s++)
			sum_split_row(&job, s);
	}
	return HG_OK;
}
