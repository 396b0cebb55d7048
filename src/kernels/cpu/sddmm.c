#include "kernels/cpu/items.h"

/* E[edge p, k] = scale * sum over c in head k of A[i, c] B[j, c], times r_i s_j where asked for.
 *
 * The output has a value for each edge, so parts of rows need no staging. */

/* Component sums of head k over columns of any width. */
static float dot_head(const struct hg__sddmm_dot_args *a, int64_t i, int64_t j, int64_t col, int64_t d)
{
	float sum = 0.0f;
	for (int64_t c = 0; c < d; c += HG__WIDTH) {
		float as[HG__WIDTH], bs[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, d - c);
		sum += hg__dot(n, hg__row(&a->a, i, col + c, n, as), hg__row(&a->b, j, col + c, n, bs));
	}
	return sum;
}

/* E of n edge values from head k on: scaled and stored. */
static void put_edge(const struct hg__sddmm_dot_args *a, int64_t i, int64_t j, int64_t edge, int64_t k, int64_t n, float *value)
{
	for (int64_t h = 0; h < n; h++) {
		value[h] *= a->scale;
		if (a->row_scale)
			value[h] *= a->row_scale[i];
		if (a->col_scale)
			value[h] *= a->col_scale[j];
	}
	hg__row_put(&a->e, edge, k, n, value);
}

/* All edges of one part; row i of A is widened once where it is short. */
static void dot_part(const struct hg__sddmm_dot_args *a, const struct hg__part *part, int64_t d)
{
	const int64_t cols = a->a.cols;
	const int fits = cols <= HG__WIDTH;
	float as[HG__WIDTH], bs[HG__WIDTH], value[HG__WIDTH];
	const float *ai = fits ? hg__row(&a->a, part->row, 0, cols, as) : NULL;
	for (int64_t p = part->begin; p < part->end; p++) {
		const int64_t j = a->csr.col[p], edge = a->csr.edge ? a->csr.edge[p] : p;
		if (fits) {
			hg__dot_heads(a->heads, d, ai, hg__row(&a->b, j, 0, cols, bs), value);
			put_edge(a, part->row, j, edge, 0, a->heads, value);
			continue;
		}
		for (int64_t k = 0; k < a->heads; k++) {
			value[0] = dot_head(a, part->row, j, k * d, d);
			put_edge(a, part->row, j, edge, k, 1, value);
		}
	}
}

hg_status HG__CPU(sddmm_dot)(hg_context *ctx, const struct hg__sddmm_dot_args *a)
{
	const int64_t cols = a->a.cols, d = a->heads ? cols / a->heads : 0, items = hg__items(&a->csr);
	HG__TRY(hg__need(ctx,
	                 hg__is_state(&a->a) && hg__is_state(&a->b) && hg__is_state(&a->e) && a->b.cols == cols && d * a->heads == cols && a->e.cols == a->heads &&
	                     a->a.rows == a->csr.rows && a->b.rows == a->csr.cols,
	                 "sddmm_dot: operands do not fit the graph"));
#pragma omp parallel for num_threads(hg__team(ctx, a->csr.m *cols)) schedule(dynamic, 4)
	for (int64_t k = 0; k < items; k++) {
		struct hg__item it = hg__item_begin(&a->csr, k);
		struct hg__part part;
		while (hg__part_next(&a->csr, &it, &part))
			dot_part(a, &part, d);
	}
	return HG_OK;
}

/* E[edge p, k] = A[i, k] + B[j, k] */
static void add_part(const struct hg__sddmm_add_args *a, const struct hg__part *part)
{
	for (int64_t k = 0; k < a->e.cols; k += HG__WIDTH) {
		float as[HG__WIDTH], bs[HG__WIDTH], es[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, a->e.cols - k);
		const float *ai = hg__row(&a->a, part->row, k, n, as);
		for (int64_t p = part->begin; p < part->end; p++) {
			const float *bj = hg__row(&a->b, a->csr.col[p], k, n, bs);
			for (int64_t c = 0; c < n; c++)
				es[c] = ai[c] + bj[c];
			hg__row_put(&a->e, a->csr.edge ? a->csr.edge[p] : p, k, n, es);
		}
	}
}

hg_status HG__CPU(sddmm_add)(hg_context *ctx, const struct hg__sddmm_add_args *a)
{
	const int64_t items = hg__items(&a->csr);
	HG__TRY(hg__need(ctx,
	                 hg__is_state(&a->a) && hg__is_state(&a->b) && hg__is_state(&a->e) && a->a.cols == a->e.cols && a->b.cols == a->e.cols &&
	                     a->a.rows == a->csr.rows && a->b.rows == a->csr.cols,
	                 "sddmm_add: operands do not fit the graph"));
#pragma omp parallel for num_threads(hg__team(ctx, 4 * a->csr.m * a->e.cols)) schedule(dynamic, 4)
	for (int64_t k = 0; k < items; k++) {
		struct hg__item it = hg__item_begin(&a->csr, k);
		struct hg__part part;
		while (hg__part_next(&a->csr, &it, &part))
			add_part(a, &part);
	}
	return HG_OK;
}
