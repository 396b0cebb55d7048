/* Values of edges from one of their nodes:
 *
 *     Z[edge p, c] = alpha s_k X[k, c],    k = row of entry p, or its column if by_col
 *
 * and 0 where arg, if present, names another entry of the row. Every edge has its own value, so the
 * parts of a split row need no staging. */
#include "kernels/cpu/items.h"

/* Where arg[c] is not the entry's index in its row, x[c] becomes 0. */
HG__INLINE void keep_own(int64_t n, const int32_t *arg, int32_t index, const float *x, float *out)
{
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		out[c] = arg[c] == index ? x[c] : 0.0f;
}

/* out[c] = alpha s_k X[k, first + c]. */
HG__INLINE void load_node(const struct hg__gather_args *a, int64_t k, int64_t first, int64_t n,
                          float *out)
{
	float scratch[HG__WIDTH];
	const float factor = a->scale ? a->alpha * a->scale[k] : a->alpha,
	            *x = hg__row(&a->x, k, first, n, scratch);
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		out[c] = factor * x[c];
}

static void gather_part(const struct hg__gather_args *a, const struct hg__part *part, int64_t first,
                        int64_t n)
{
	float x[HG__WIDTH], kept[HG__WIDTH];
	const int64_t begin = a->csr.rowptr[part->row];
	const int32_t *arg =
	    a->arg.data ? (const int32_t *)a->arg.data + part->row * a->arg.ld + first : NULL;
	if (!a->by_col)
		load_node(a, part->row, first, n, x);
	for (int64_t p = part->begin; p < part->end; p++) {
		if (a->by_col)
			load_node(a, a->csr.col[p], first, n, x);
		if (arg)
			keep_own(n, arg, (int32_t)(p - begin), x, kept);
		hg__row_put(&a->z, hg__edge_of(&a->csr, p), first, n, arg ? kept : x);
	}
}

HG__NO_WORKSPACE(gather, gather_args)

hg_status HG__CPU(gather)(hg_context *ctx, const struct hg__gather_args *a)
{
	const int64_t items = hg__items(&a->csr), cols = a->z.cols;
	if (a->arg.data)
		HG__TRY(hg__has_type(ctx, "gather", "places", a->arg.dtype, HG_I32));
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->x) && hg__is_state(&a->z) && a->x.cols == cols &&
	                    a->z.rows == a->csr.m && !(a->arg.data && a->by_col) &&
	                    a->x.rows == (a->by_col ? a->csr.cols : a->csr.rows),
	                "gather", &a->x, &a->z));
#pragma omp parallel for num_threads(hg__team(ctx, a->csr.m *cols)) schedule(dynamic, 4)
	for (int64_t k = 0; k < items; k++) {
		struct hg__item it = hg__item_begin(&a->csr, k);
		struct hg__part part;
		while (hg__part_next(&a->csr, &it, &part))
			for (int64_t first = 0; first < cols; first += HG__WIDTH)
				gather_part(a, &part, first, hg__min(HG__WIDTH, cols - first));
	}
	return HG_OK;
}
