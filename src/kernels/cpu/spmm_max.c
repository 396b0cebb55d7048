#include "kernels/cpu/items.h"

/* Y[i, c] = max over entries of row i of X[col, c], arg = the first place in the row that attains
 * it; a NaN wins.
 *
 * A part of a split row stages its arg alone: the value is found again through it. */

struct winners {
	float best[HG__WIDTH];
	int32_t arg[HG__WIDTH]; /* -1: none yet */
};

HG__INLINE void challenge(struct winners *w, int64_t n, const float *x, int32_t place)
{
#pragma omp simd
	for (int64_t c = 0; c < n; c++) {
		const int wins =
		    (w->arg[c] < 0) | (x[c] > w->best[c]) | ((x[c] != x[c]) & (w->best[c] == w->best[c]));
		w->best[c] = wins ? x[c] : w->best[c];
		w->arg[c] = wins ? place : w->arg[c];
	}
}

static void start(struct winners *w, int64_t n)
{
	for (int64_t c = 0; c < n; c++) {
		w->best[c] = 0.0f;
		w->arg[c] = -1;
	}
}

static void finish(const struct hg__spmm_max_args *a, int64_t row, int64_t first, int64_t n,
                   const struct winners *w)
{
	hg__row_put(&a->y, row, first, n, w->best);
	memcpy((int32_t *)a->arg.data + row * a->arg.ld + first, w->arg, (size_t)n * sizeof(int32_t));
}

static void item(const struct hg__spmm_max_args *a, int32_t *stage, int64_t stage_ld, int64_t k)
{
	const int64_t cols = a->y.cols;
	struct hg__item it = hg__item_begin(&a->csr, k);
	struct hg__part part;
	while (hg__part_next(&a->csr, &it, &part))
		for (int64_t first = 0; first < cols; first += HG__WIDTH) {
			struct winners w;
			float scratch[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, cols - first), row_begin = a->csr.rowptr[part.row];
			start(&w, n);
			for (int64_t p = part.begin; p < part.end; p++)
				challenge(&w, n, hg__row(&a->x, a->csr.col[p], first, n, scratch),
				          (int32_t)(p - row_begin));
			if (part.slot < 0)
				finish(a, part.row, first, n, &w);
			else
				memcpy(stage + part.slot * stage_ld + first, w.arg, (size_t)n * sizeof(int32_t));
		}
}

/* The parts' winners of split row s meet in order. */
static void fold(const struct hg__spmm_max_args *a, const int32_t *stage, int64_t stage_ld,
                 int64_t s)
{
	const struct hg__plan *plan = a->csr.plan;
	const int64_t row = plan->split_row[s], row_begin = a->csr.rowptr[row], cols = a->y.cols;
	for (int64_t first = 0; first < cols; first += HG__WIDTH) {
		struct winners w;
		const int64_t n = hg__min(HG__WIDTH, cols - first);
		start(&w, n);
		for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++) {
			const int32_t *arg = stage + hg__split_slot(plan, s, k) * stage_ld + first;
			for (int64_t c = 0; c < n; c++) {
				if (arg[c] < 0)
					continue;
				const float x = hg__get(&a->x, a->csr.col[row_begin + arg[c]], first + c);
				if (w.arg[c] < 0 || x > w.best[c] || (x != x && w.best[c] == w.best[c])) {
					w.best[c] = x;
					w.arg[c] = arg[c];
				}
			}
		}
		finish(a, row, first, n, &w);
	}
}

hg_status HG__CPU(spmm_max)(hg_context *ctx, const struct hg__spmm_max_args *a)
{
	HG__TRY(hg__need(ctx,
	                 hg__is_state(&a->x) && hg__is_state(&a->y) && a->arg.dtype == HG_I32 &&
	                     a->x.cols == a->y.cols && a->y.rows == a->csr.rows,
	                 "spmm_max: operands do not fit the graph"));
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	void *memory;
	HG__TRY(hg__workspace(ctx, hg__staging_bytes(&a->csr, a->y.cols), &memory));
	const int64_t items = hg__items(&a->csr), splits = hg__splits(&a->csr),
	              stage_ld = hg__leading(a->y.cols);
#pragma omp parallel num_threads(hg__team(ctx, (a->csr.m + a->y.rows) * a->y.cols))
	{
#pragma omp for schedule(dynamic, 4)
		for (int64_t k = 0; k < items; k++)
			item(a, memory, stage_ld, k);
#pragma omp for schedule(static)
		for (int64_t s = 0; s < splits; s++)
			fold(a, memory, stage_ld, s);
	}
	return HG_OK;
}

/* ---- gradient ---- */

/* dX[j, c] = sum over entries (j, i) of the transpose with arg[i, c] == edge - rowptr[i] of
 * dY[i, c]: one part, added to sum [n] */
static void gather(const struct hg__spmm_max_back_args *a, const struct hg__part *part,
                   int64_t first, int64_t n, float *sum)
{
	float scratch[HG__WIDTH];
	for (int64_t p = part->begin; p < part->end; p++) {
		const int64_t i = a->csr_t.col[p];
		const int32_t place = (int32_t)(hg__edge_of(&a->csr_t, p) - a->csr.rowptr[i]);
		const int32_t *arg = (const int32_t *)a->arg.data + i * a->arg.ld + first;
		const float *dy = hg__row(&a->dy, i, first, n, scratch);
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			sum[c] += arg[c] == place ? dy[c] : 0.0f;
	}
}

static void item_back(const struct hg__spmm_max_back_args *a, float *stage, int64_t stage_ld,
                      int64_t k)
{
	const int64_t cols = a->dx.cols;
	struct hg__item it = hg__item_begin(&a->csr_t, k);
	struct hg__part part;
	while (hg__part_next(&a->csr_t, &it, &part))
		for (int64_t first = 0; first < cols; first += HG__WIDTH) {
			float sum[HG__WIDTH] = {0};
			const int64_t n = hg__min(HG__WIDTH, cols - first);
			gather(a, &part, first, n, sum);
			if (part.slot < 0)
				hg__row_put(&a->dx, part.row, first, n, sum);
			else
				memcpy(stage + part.slot * stage_ld + first, sum, (size_t)n * sizeof(float));
		}
}

static void fold_back(const struct hg__spmm_max_back_args *a, const float *stage, int64_t stage_ld,
                      int64_t s)
{
	const struct hg__plan *plan = a->csr_t.plan;
	for (int64_t first = 0; first < a->dx.cols; first += HG__WIDTH) {
		float sum[HG__WIDTH] = {0};
		const int64_t n = hg__min(HG__WIDTH, a->dx.cols - first);
		for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++) {
			const float *part = stage + hg__split_slot(plan, s, k) * stage_ld + first;
			for (int64_t c = 0; c < n; c++)
				sum[c] += part[c];
		}
		hg__row_put(&a->dx, plan->split_row[s], first, n, sum);
	}
}

hg_status HG__CPU(spmm_max_back)(hg_context *ctx, const struct hg__spmm_max_back_args *a)
{
	HG__TRY(hg__need(ctx,
	                 hg__is_state(&a->dx) && hg__is_state(&a->dy) && a->arg.dtype == HG_I32 &&
	                     a->dx.rows == a->csr_t.rows,
	                 "spmm_max_back: operands do not fit the graph"));
	if (a->dx.rows == 0 || a->dx.cols == 0)
		return HG_OK;
	void *memory;
	HG__TRY(hg__workspace(ctx, hg__staging_bytes(&a->csr_t, a->dx.cols), &memory));
	const int64_t items = hg__items(&a->csr_t), splits = hg__splits(&a->csr_t),
	              stage_ld = hg__leading(a->dx.cols);
#pragma omp parallel num_threads(hg__team(ctx, (a->csr_t.m + a->dx.rows) * a->dx.cols))
	{
#pragma omp for schedule(dynamic, 4)
		for (int64_t k = 0; k < items; k++)
			item_back(a, memory, stage_ld, k);
#pragma omp for schedule(static)
		for (int64_t s = 0; s < splits; s++)
			fold_back(a, memory, stage_ld, s);
	}
	return HG_OK;
}
