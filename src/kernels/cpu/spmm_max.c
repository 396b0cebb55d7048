/* Aggregation with the maximum, and its gradient:
 *
 *     Y[i, c] = max over the entries of row i of X[col, c]
 *     arg[i, c] = the index in the row of the first entry that attains it
 *     dX[j, c] = sum of dY[i, c] over entries (j, i) of the transpose with
 *                arg[i, c] == edge - rowptr[i]
 *
 * A NaN counts as the largest. A part of a split row stages only its arg, and the value is read
 * again from X. */
#include "kernels/cpu/items.h"

struct winners {
	float best[HG__WIDTH];
	int32_t arg[HG__WIDTH]; /* -1: none yet */
};

HG__INLINE void update_winners(struct winners *w, int64_t n, const float *x, int32_t index)
{
#pragma omp simd
	for (int64_t c = 0; c < n; c++) {
		const int wins =
		    (w->arg[c] < 0) | (x[c] > w->best[c]) | ((x[c] != x[c]) & (w->best[c] == w->best[c]));
		w->best[c] = wins ? x[c] : w->best[c];
		w->arg[c] = wins ? index : w->arg[c];
	}
}

static void clear_winners(struct winners *w, int64_t n)
{
	for (int64_t c = 0; c < n; c++) {
		w->best[c] = 0.0f;
		w->arg[c] = -1;
	}
}

static void store_winners(const struct hg__spmm_max_args *a, int64_t row, int64_t first, int64_t n,
                          const struct winners *w)
{
	hg__row_put(&a->y, row, first, n, w->best);
	memcpy((int32_t *)a->arg.data + row * a->arg.ld + first, w->arg, (size_t)n * sizeof(int32_t));
}

static void max_item(const struct hg__spmm_max_args *a, int32_t *stage, int64_t stage_ld, int64_t k)
{
	const int64_t cols = a->y.cols;
	struct hg__item it = hg__item_begin(&a->csr, k);
	struct hg__part part;
	while (hg__part_next(&a->csr, &it, &part))
		for (int64_t first = 0; first < cols; first += HG__WIDTH) {
			struct winners w;
			float scratch[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, cols - first), row_begin = a->csr.rowptr[part.row];
			clear_winners(&w, n);
			for (int64_t p = part.begin; p < part.end; p++)
				update_winners(&w, n, hg__row(&a->x, a->csr.col[p], first, n, scratch),
				               (int32_t)(p - row_begin));
			if (part.slot < 0)
				store_winners(a, part.row, first, n, &w);
			else
				memcpy(stage + part.slot * stage_ld + first, w.arg, (size_t)n * sizeof(int32_t));
		}
}

/* Combines the winners of the parts of split row s, in order. */
static void max_split_row(const struct hg__spmm_max_args *a, const int32_t *stage, int64_t stage_ld,
                          int64_t s)
{
	const struct hg__plan *plan = a->csr.plan;
	const int64_t row = plan->split_row[s], row_begin = a->csr.rowptr[row], cols = a->y.cols;
	for (int64_t first = 0; first < cols; first += HG__WIDTH) {
		struct winners w;
		const int64_t n = hg__min(HG__WIDTH, cols - first);
		clear_winners(&w, n);
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
		store_winners(a, row, first, n, &w);
	}
}

size_t HG__CPU(spmm_max_workspace)(const hg_context *ctx, const struct hg__spmm_max_args *a)
{
	(void)ctx;
	return hg__staging_bytes(&a->csr, a->y.cols);
}

hg_status HG__CPU(spmm_max)(hg_context *ctx, const struct hg__spmm_max_args *a)
{
	HG__TRY(hg__has_type(ctx, "spmm_max", "places", a->arg.dtype, HG_I32));
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->x) && hg__is_state(&a->y) && a->arg.dtype == HG_I32 &&
	                    a->x.cols == a->y.cols && a->y.rows == a->csr.rows,
	                "spmm_max", &a->x, &a->y));
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
			max_item(a, memory, stage_ld, k);
#pragma omp for schedule(static)
		for (int64_t s = 0; s < splits; s++)
			max_split_row(a, memory, stage_ld, s);
	}
	return HG_OK;
}

/* ---- gradient ---- */

/* Adds the entries of one part of a row of the transpose to sum [n]. */
static void gather_gradient(const struct hg__spmm_max_back_args *a, const struct hg__part *part,
                            int64_t first, int64_t n, float *sum)
{
	float scratch[HG__WIDTH];
	for (int64_t p = part->begin; p < part->end; p++) {
		const int64_t i = a->csr_t.col[p];
		const int32_t index = (int32_t)(hg__edge_of(&a->csr_t, p) - a->csr.rowptr[i]);
		const int32_t *arg = (const int32_t *)a->arg.data + i * a->arg.ld + first;
		const float *dy = hg__row(&a->dy, i, first, n, scratch);
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			sum[c] += arg[c] == index ? dy[c] : 0.0f;
	}
}

static void gradient_item(const struct hg__spmm_max_back_args *a, float *stage, int64_t stage_ld,
                          int64_t k)
{
	const int64_t cols = a->dx.cols;
	struct hg__item it = hg__item_begin(&a->csr_t, k);
	struct hg__part part;
	while (hg__part_next(&a->csr_t, &it, &part))
		for (int64_t first = 0; first < cols; first += HG__WIDTH) {
			float sum[HG__WIDTH] = {0};
			const int64_t n = hg__min(HG__WIDTH, cols - first);
			gather_gradient(a, &part, first, n, sum);
			if (part.slot < 0)
				hg__row_put(&a->dx, part.row, first, n, sum);
			else
				memcpy(stage + part.slot * stage_ld + first, sum, (size_t)n * sizeof(float));
		}
}

static void gradient_split_row(const struct hg__spmm_max_back_args *a, const float *stage,
                               int64_t stage_ld, int64_t s)
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

size_t HG__CPU(spmm_max_back_workspace)(const hg_context *ctx,
                                        const struct hg__spmm_max_back_args *a)
{
	(void)ctx;
	return hg__staging_bytes(&a->csr_t, a->dx.cols);
}

hg_status HG__CPU(spmm_max_back)(hg_context *ctx, const struct hg__spmm_max_back_args *a)
{
	HG__TRY(hg__has_type(ctx, "spmm_max_back", "places", a->arg.dtype, HG_I32));
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->dx) && hg__is_state(&a->dy) && a->arg.dtype == HG_I32 &&
	                    a->dx.rows == a->csr_t.rows,
	                "spmm_max_back", &a->dy, &a->dx));
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
			gradient_item(a, memory, stage_ld, k);
#pragma omp for schedule(static)
		for (int64_t s = 0; s < splits; s++)
			gradient_split_row(a, memory, stage_ld, s);
	}
	return HG_OK;
}
