#include <string.h>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/team.h"

/* Building graphs: COO to CSR and transposition, both as counting sorts. Compiled once: the loops
 * wait for memory, not for arithmetic. */

/* Counting sort keeps the count of key k at start[k + 1]; after the sums start[k] is where k
 * begins. */
static void count(int64_t keys, int64_t m, const int32_t *key, int64_t *start)
{
	memset(start, 0, ((size_t)keys + 1) * sizeof(*start));
	for (int64_t e = 0; e < m; e++)
		start[key[e] + 1]++;
	for (int64_t k = 0; k < keys; k++)
		start[k + 1] += start[k];
}

/* After every entry was placed at start[key]++, start[k] is where k + 1 begins: move back by
 * one. */
static void rewind_starts(int64_t keys, int64_t *start)
{
	memmove(start + 1, start, (size_t)keys * sizeof(*start));
	start[0] = 0;
}

/* What a sort goes through: starts of the sources, and what it holds of each edge. */
struct sorting {
	int64_t cols, m;
	const int32_t *dst, *src;
	int64_t *start; /* [cols + 1] */
};

/* Which edge is which matters: the places by source, then stably by destination. by_src [m]. */
static void sort_places(const struct sorting *s, int64_t *by_src, int64_t *rowptr, int32_t *col,
                        int64_t *order)
{
	for (int64_t e = 0; e < s->m; e++)
		by_src[s->start[s->src[e]]++] = e;
	for (int64_t i = 0; i < s->m; i++) {
		const int64_t e = by_src[i], place = rowptr[s->dst[e]]++;
		col[place] = s->src[e];
		order[place] = e;
	}
}

/* It does not: the transpose, which is the destinations by source, and its columns in ascending
 * order dealt to the rows. by_src [m]. */
static void sort_ids(const struct sorting *s, int32_t *by_src, int64_t *rowptr, int32_t *col)
{
	for (int64_t e = 0; e < s->m; e++)
		by_src[s->start[s->src[e]]++] = s->dst[e];
	int64_t i = 0;
	for (int64_t j = 0; j < s->cols; j++)
		for (; i < s->start[j]; i++) /* start[j] is the end of j by now */
			col[rowptr[by_src[i]]++] = (int32_t)j;
}

/* O(m + rows + cols). Beside the result: 4 bytes an edge, or 8 with order. */
hg_status hg__cpu_csr_from_coo(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
                               const int32_t *dst, const int32_t *src, int64_t *rowptr,
                               int32_t *col, int64_t *order)
{
	const size_t size = order ? sizeof(int64_t) : sizeof(int32_t), starts = (size_t)cols + 1;
	void *by_src = NULL, *start = NULL;
	hg_status status =
	    m ? hg__host_alloc(ctx, (size_t)m, size, "the sort of the edges", &by_src) : HG_OK;
	if (status == HG_OK)
		status = hg__host_alloc(ctx, starts, sizeof(int64_t), "the counts of a sort", &start);
	if (status == HG_OK) {
		const struct sorting s = {cols, m, dst, src, start};
		count(cols, m, src, start);
		count(rows, m, dst, rowptr);
		if (order)
			sort_places(&s, by_src, rowptr, col, order);
		else
			sort_ids(&s, by_src, rowptr, col);
		rewind_starts(rows, rowptr);
	}
	hg__host_free(ctx, start, starts * sizeof(int64_t));
	hg__host_free(ctx, by_src, (size_t)m * size);
	return status;
}

hg_status hg__cpu_column_ptr(hg_context *ctx, const struct hg__csr *csr, int64_t *ptr)
{
	(void)ctx;
	count(csr->cols, csr->m, csr->col, ptr);
	return HG_OK;
}

/* Entries in CSR order, counted by column: rows ascend in each column by themselves. */
hg_status hg__cpu_csr_transpose(hg_context *ctx, const struct hg__csr *csr, int64_t *rowptr,
                                int32_t *col, uint32_t *edge)
{
	(void)ctx;
	count(csr->cols, csr->m, csr->col, rowptr);
	for (int64_t r = 0; r < csr->rows; r++)
		for (int64_t p = csr->rowptr[r]; p < csr->rowptr[r + 1]; p++) {
			const int64_t place = rowptr[csr->col[p]]++;
			col[place] = (int32_t)r;
			if (edge)
				edge[place] = (uint32_t)p;
		}
	rewind_starts(csr->cols, rowptr);
	return HG_OK;
}

hg_status hg__cpu_gather_f32(hg_context *ctx, int64_t m, const float *in, const int64_t *index,
                             float *out)
{
#pragma omp parallel for num_threads(hg__team(ctx, m)) schedule(static)
	for (int64_t e = 0; e < m; e++)
		out[e] = in[index[e]];
	return HG_OK;
}
