/* Values of edges from the rows of their two nodes (SDDMM: sampled dense-dense matrix
 * multiplication):
 *
 *     sddmm_dot   E[edge p, k] = scale * sum over c in head k of A[i, c] B[j, c]
 *                 (times r_i s_j if given)
 *     sddmm_add   E[edge p, k] = f(A[i, k] + B[j, k]), where f is the identity or leaky_relu
 *
 * Entry p is in row i and column j. Every edge has its own value, so the parts of a split row need
 * no staging. */
#include "kernels/cpu/items.h"

/* Copies row i of A to whole vectors, with zeros behind the last column. cols <= HG__WIDTH. */
static void load_row(const struct hg__mat *a, int64_t i, float *out)
{
	for (int64_t c = 0; c < a->cols; c += HG__LANES)
		hg__vstore(out + c, hg__lanes(a, i, c, 0.0f));
}

/* For heads of 8 columns: computes the 8 heads from column c on, where lane k is head k. Each of
 * the four vectors holds two heads. In three steps lanes that are 4, 2 and 1 apart are added, and
 * the first two steps also merge two vectors into one. Columns past the last are zeros. */
HG__INLINE hg__v16 dot_eights(const float *a, const struct hg__mat *b, int64_t j, int64_t c)
{
	const hg__i16 high4 = {0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, -1, -1, -1, -1},
	              high2 = {0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1};
	hg__v16 v[4] = {{0}}, w[2];
	for (int i = 0; i < 4 && c + i * HG__LANES < b->cols; i++)
		v[i] = hg__vload(a + c + i * HG__LANES) * hg__lanes(b, j, c + i * HG__LANES, 0.0f);
	for (int i = 0; i < 2; i++)
		w[i] = hg__vselect(high4, v[2 * i + 1], v[2 * i]) +
		       hg__vswap4(hg__vselect(high4, v[2 * i], v[2 * i + 1]));
	const hg__v16 x = hg__vselect(high2, w[1], w[0]) + hg__vswap2(hg__vselect(high2, w[0], w[1])),
	              y = x + hg__vswap1(x);
	return __builtin_shufflevector(y, y, 0, 8, 4, 12, 2, 10, 6, 14, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* The dot product of the head of d columns from column `first` on. Both operands are masked at the
 * end of the head, because zero times an infinity of the next head would be NaN. */
HG__INLINE float dot_columns(const float *a, const struct hg__mat *b, int64_t j, int64_t first,
                             int64_t d)
{
	const struct hg__mat head = {b->data, b->rows, first + d, b->ld, b->dtype};
	hg__v16 sum = {0};
	for (int64_t c = first; c < first + d; c += HG__LANES)
		sum += hg__vload_n(a + c, (int)hg__min(HG__LANES, first + d - c)) *
		       hg__lanes(&head, j, c, 0.0f);
	return hg__vsum(sum);
}

/* The factors of every value of edge (i, j), multiplied in this order. */
struct factors {
	float scale, r, s;
};

HG__INLINE struct factors factors_of(const struct hg__sddmm_dot_args *a, int64_t i, int64_t j)
{
	return (struct factors){a->scale, a->row_scale ? a->row_scale[i] : 1.0f,
	                        a->col_scale ? a->col_scale[j] : 1.0f};
}

/* Computes one edge. row: row i of A as load_row copied it, or NULL. */
HG__INLINE void dot_edge(const struct hg__sddmm_dot_args *a, int64_t i, int64_t p, int64_t d,
                         const float *row)
{
	const int64_t j = a->csr.col[p], edge = hg__edge_of(&a->csr, p);
	const struct factors f = factors_of(a, i, j);
	if (row && d == 8)
		for (int64_t k = 0; k < a->heads; k += 8) {
			const hg__v16 v = dot_eights(row, &a->b, j, 8 * k) * f.scale * f.r * f.s;
			const struct hg__mat e = {a->e.data, a->e.rows, hg__min(k + 8, a->heads), a->e.ld,
			                          a->e.dtype};
			hg__lanes_put(&e, edge, k, v);
		}
	else
		for (int64_t k = 0; k < a->heads; k++)
			hg__set(&a->e, edge, k,
			        (row ? dot_columns(row, &a->b, j, k * d, d)
			             : hg__dot_rows(&a->a, i, &a->b, j, k * d, d)) *
			            f.scale * f.r * f.s);
}

/* Computes all edges of one part. If row i of A is short it is copied only once. */
static void dot_part(const struct hg__sddmm_dot_args *a, const struct hg__part *part, int64_t d)
{
	float row[HG__WIDTH];
	const int is_short = a->a.cols <= HG__WIDTH;
	if (is_short)
		load_row(&a->a, part->row, row);
	for (int64_t p = part->begin; p < part->end; p++)
		dot_edge(a, part->row, p, d, is_short ? row : NULL);
}

HG__NO_WORKSPACE(sddmm_dot, sddmm_dot_args)

hg_status HG__CPU(sddmm_dot)(hg_context *ctx, const struct hg__sddmm_dot_args *a)
{
	const int64_t cols = a->a.cols, d = a->heads ? cols / a->heads : 0, items = hg__items(&a->csr);
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->a) && hg__is_state(&a->b) && hg__is_state(&a->e) &&
	                    a->b.cols == cols && d * a->heads == cols && a->e.cols == a->heads &&
	                    a->a.rows == a->csr.rows && a->b.rows == a->csr.cols,
	                "sddmm_dot", &a->a, &a->b, &a->e));
#pragma omp parallel for num_threads(hg__team(ctx, a->csr.m *cols)) schedule(dynamic, 4)
	for (int64_t k = 0; k < items; k++) {
		struct hg__item it = hg__item_begin(&a->csr, k);
		struct hg__part part;
		while (hg__part_next(&a->csr, &it, &part))
			dot_part(a, &part, d);
	}
	return HG_OK;
}

/* E[edge p, k] = f(A[i, k] + B[j, k]) for the edges of one part. */
static void add_part(const struct hg__sddmm_add_args *a, const struct hg__part *part)
{
	for (int64_t k = 0; k < a->e.cols; k += HG__LANES) {
		const hg__v16 ai = hg__lanes(&a->a, part->row, k, 0.0f),
		              slope = hg__vset(a->leaky ? a->slope : 1.0f);
		for (int64_t p = part->begin; p < part->end; p++) {
			const hg__v16 x = ai + hg__lanes(&a->b, a->csr.col[p], k, 0.0f);
			hg__lanes_put(&a->e, hg__edge_of(&a->csr, p), k, hg__vselect(x > 0.0f, x, slope * x));
		}
	}
}

HG__NO_WORKSPACE(sddmm_add, sddmm_add_args)

hg_status HG__CPU(sddmm_add)(hg_context *ctx, const struct hg__sddmm_add_args *a)
{
	const int64_t items = hg__items(&a->csr);
	HG__TRY(HG__FIT(ctx,
	                hg__is_state(&a->a) && hg__is_state(&a->b) && hg__is_state(&a->e) &&
	                    a->a.cols == a->e.cols && a->b.cols == a->e.cols &&
	                    a->a.rows == a->csr.rows && a->b.rows == a->csr.cols,
	                "sddmm_add", &a->a, &a->b, &a->e));
#pragma omp parallel for num_threads(hg__team(ctx, 4 * a->csr.m * a->e.cols)) schedule(dynamic, 4)
	for (int64_t k = 0; k < items; k++) {
		struct hg__item it = hg__item_begin(&a->csr, k);
		struct hg__part part;
		while (hg__part_next(&a->csr, &it, &part))
			add_part(a, &part);
	}
	return HG_OK;
}

/* The gradient of one operand of sddmm_add for one row: the sum of f'(own + other) dE over the
 * row's entries. */
static void sum_side(const struct hg__sddmm_add_back_args *a, const struct hg__csr *csr,
                     const struct hg__mat *own, const struct hg__mat *other,
                     const struct hg__mat *out, int64_t row)
{
	const hg__v16 slope = hg__vset(a->leaky ? a->slope : 1.0f);
	for (int64_t k = 0; k < a->de.cols; k += HG__LANES) {
		const hg__v16 x = hg__lanes(own, row, k, 0.0f);
		hg__v16 sum = hg__vset(0.0f);
		for (int64_t p = csr->rowptr[row]; p < csr->rowptr[row + 1]; p++) {
			const hg__v16 de = hg__lanes(&a->de, hg__edge_of(csr, p), k, 0.0f);
			sum += hg__vselect(x + hg__lanes(other, csr->col[p], k, 0.0f) > 0.0f, de, slope * de);
		}
		hg__lanes_put(out, row, k, sum);
	}
}

static int side_fits(const struct hg__mat *de, const struct hg__mat *own, const struct hg__mat *out,
                     int64_t rows)
{
	return !out->data || (hg__is_state(out) && hg__is_state(own) && out->rows == rows &&
	                      own->rows == rows && out->cols == de->cols && own->cols == de->cols);
}

HG__NO_WORKSPACE(sddmm_add_back, sddmm_add_back_args)

hg_status HG__CPU(sddmm_add_back)(hg_context *ctx, const struct hg__sddmm_add_back_args *a)
{
	HG__TRY(HG__FIT(ctx,
	                side_fits(&a->de, &a->a, &a->da, a->csr.rows) &&
	                    side_fits(&a->de, &a->b, &a->db, a->csr_t.rows),
	                "sddmm_add_back", &a->a, &a->b, &a->de, &a->da, &a->db));
	const int team = hg__team(ctx, 4 * a->de.rows * a->de.cols);
	if (a->da.data) {
#pragma omp parallel for num_threads(team) schedule(dynamic, 64)
		for (int64_t row = 0; row < a->csr.rows; row++)
			sum_side(a, &a->csr, &a->a, &a->b, &a->da, row);
	}
	if (a->db.data) {
#pragma omp parallel for num_threads(team) schedule(dynamic, 64)
		for (int64_t row = 0; row < a->csr_t.rows; row++)
			sum_side(a, &a->csr_t, &a->b, &a->a, &a->db, row);
	}
	return HG_OK;
}
