/* Weighted sums of rows of a matrix X over the edges of a row part, with a weight for each edge and
 * head:
 *
 *     ONE     A[c] += sum over e of a[e, k] X[col e, c],   k the head of column c
 *     TWO     the same, and B[c] += sum over e of b[e, k] X[col e, c]
 *     SLOPES  A[c] += sum over e of a[e, k] f'(R[c] + X[col e, c])
 *     BOTH    the same, and B[c] += sum over e of a[e, k] f(R[c] + X[col e, c])
 *
 * with f(x) = x > 0 ? x : slope x and R a row of its own. The sums of up to 64 columns are in
 * registers at a time, as in spmm.c, and edges are added in the order of their entries. */
#ifndef HG_KERNELS_CPU_ATTENTION_GATHER_H
#define HG_KERNELS_CPU_ATTENTION_GATHER_H

#include "kernels/cpu/rows.h"

enum hg__terms { HG__TERMS_ONE, HG__TERMS_TWO, HG__TERMS_SLOPES, HG__TERMS_BOTH };

/* Vectors of columns that are summed together. With BOTH each takes four registers, for A, B, R and
 * the heads: four vectors take 16 of the 32 of AVX-512, and the others hold weights and rows. */
#define HG__GATHER_VECTORS 4
#define HG__GATHER_COLUMNS (HG__GATHER_VECTORS * HG__LANES)

/* head: the head of each column, [whole vectors of columns]; NULL: there is one head. */
struct hg__gather {
	struct hg__mat x;
	const int32_t *head;
	int pitch; /* of the weights */
	float slope;
};

/* n edges, their weights, R, and the rows A and B, in whole vectors. begins: A and B begin as 0. */
struct hg__gathered {
	const int32_t *col;
	int64_t n;
	const float *a, *b, *own;
	int begins;
	float *to_a, *to_b;
};

/* Fills the table `head` for `cols` columns of `heads` heads. */
static inline void hg__gather_heads(int64_t cols, int heads, int32_t *head)
{
	for (int64_t c = 0; c < hg__whole(cols); c++)
		head[c] = (int32_t)(hg__min(c, cols - 1) / (cols / heads));
}

/* nv, halves, spread and terms are constants at every call. tail: columns of the last vector. */
HG__INLINE void hg__gather_vectors(int nv, int halves, int spread, enum hg__terms terms,
                                   const struct hg__gather *g, const struct hg__gathered *e,
                                   int64_t first, int tail)
{
	const int two = terms == HG__TERMS_TWO || terms == HG__TERMS_BOTH,
	          slopes = terms == HG__TERMS_SLOPES || terms == HG__TERMS_BOTH;
	const char *x = (const char *)g->x.data + first * (halves ? 2 : 4);
	const int64_t bytes = g->x.ld * (halves ? 2 : 4);
	const hg__v16 slope = hg__vset(g->slope), zero = {0};
	hg__v16 a[HG__GATHER_VECTORS], b[HG__GATHER_VECTORS], own[HG__GATHER_VECTORS];
	hg__i16 head[HG__GATHER_VECTORS];
	for (int v = 0; v < nv; v++) {
		const int64_t c = first + v * HG__LANES;
		a[v] = e->begins ? zero : hg__vload(e->to_a + c);
		if (two)
			b[v] = e->begins ? zero : hg__vload(e->to_b + c);
		if (slopes)
			own[v] = hg__vload(e->own + c);
		if (spread)
			head[v] = *(const hg__i16_unaligned *)(g->head + c);
	}
	for (int64_t i = 0; i < e->n; i++) {
		const char *row = x + (int64_t)e->col[i] * bytes;
		const float *weight_a = e->a + i * g->pitch, *weight_b = two ? e->b + i * g->pitch : NULL;
		for (int v = 0; v < nv; v++) {
			const int count = v < nv - 1 ? HG__LANES : tail;
			const hg__v16 t = halves ? hg__vload_half_n((const hg_half *)row + v * HG__LANES, count)
			                         : hg__vload_n((const float *)row + v * HG__LANES, count);
			const hg__v16 f = spread ? hg__vspread(weight_a, head[v]) : hg__vset(*weight_a);
			if (slopes) {
				const hg__v16 z = own[v] + t;
				a[v] += hg__vselect(z > zero, f, slope * f);
				if (two)
					b[v] = hg__vfma(f, hg__vselect(z > zero, z, slope * z), b[v]);
				continue;
			}
			a[v] = hg__vfma(f, t, a[v]);
			if (two)
				b[v] = hg__vfma(spread ? hg__vspread(weight_b, head[v]) : hg__vset(*weight_b), t,
				                b[v]);
		}
	}
	for (int v = 0; v < nv; v++) {
		hg__vstore(e->to_a + first + v * HG__LANES, a[v]);
		if (two)
			hg__vstore(e->to_b + first + v * HG__LANES, b[v]);
	}
}

HG__INLINE void hg__gather_block(int halves, int spread, enum hg__terms terms,
                                 const struct hg__gather *g, const struct hg__gathered *e,
                                 int64_t first, int64_t count)
{
	const int nv = (int)hg__ceil_div(count, HG__LANES),
	          tail = (int)(count - (int64_t)(nv - 1) * HG__LANES);
	if (nv == 4 && tail == HG__LANES)
		hg__gather_vectors(4, halves, spread, terms, g, e, first, HG__LANES);
	else if (nv == 4)
		hg__gather_vectors(4, halves, spread, terms, g, e, first, tail);
	else if (nv == 3)
		hg__gather_vectors(3, halves, spread, terms, g, e, first, tail);
	else if (nv == 2)
		hg__gather_vectors(2, halves, spread, terms, g, e, first, tail);
	else
		hg__gather_vectors(1, halves, spread, terms, g, e, first, tail);
}

HG__INLINE void hg__gather_rows(enum hg__terms terms, const struct hg__gather *g,
                                const struct hg__gathered *e)
{
	const int64_t cols = g->x.cols;
	for (int64_t first = 0; first < cols; first += HG__GATHER_COLUMNS) {
		const int64_t count = hg__min(HG__GATHER_COLUMNS, cols - first);
		if (g->x.dtype == HG_F16 && g->head)
			hg__gather_block(1, 1, terms, g, e, first, count);
		else if (g->x.dtype == HG_F16)
			hg__gather_block(1, 0, terms, g, e, first, count);
		else if (g->head)
			hg__gather_block(0, 1, terms, g, e, first, count);
		else
			hg__gather_block(0, 0, terms, g, e, first, count);
	}
}

#endif
