/* Functions that build graphs: COO to CSR and transposition, both as counting sorts. They are
 * compiled only once, because the loops wait for memory and not for arithmetic. */
#include <string.h>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/team.h"

/* The counting sort counts the entries with key k in start[k + 1]. After the prefix sums start[k]
 * is the first index of key k. */
static void count_starts(int64_t keys, int64_t m, const int32_t *key, int64_t *start)
{
	memset(start, 0, ((size_t)keys + 1) * sizeof(*start));
	for (int64_t e = 0; e < m; e++)
		start[key[e] + 1]++;
	for (int64_t k = 0; k < keys; k++)
		start[k + 1] += start[k];
}

/* After every entry was stored at start[key]++, start[k] is the first index of k + 1. This moves
 * the starts back by one. */
static void rewind_starts(int64_t keys, int64_t *start)
{
	memmove(start + 1, start, (size_t)keys * sizeof(*start));
	start[0] = 0;
}

/* The input of a sort, and the index at which the next edge of each source is stored. */
struct sorting {
	int64_t cols, m;
	const int32_t *dst, *src;
	int64_t *start; /* [cols + 1] */
};

/* Sorts if the caller needs the order, which says for each CSR entry which input edge it is. The
 * edges are sorted by source and then stably by destination. by_src [m] */
static void sort_with_order(const struct sorting *s, int64_t *by_src, int64_t *rowptr, int32_t *col,
                            int64_t *order)
{
	for (int64_t e = 0; e < s->m; e++)
		by_src[s->start[s->src[e]]++] = e;
	for (int64_t i = 0; i < s->m; i++) {
		const int64_t e = by_src[i], index = rowptr[s->dst[e]]++;
		col[index] = s->src[e];
		order[index] = e;
	}
}

/* Sorts without the order. by_src [m] becomes the transpose: the destinations sorted by source. Its
 * columns are then stored in ascending order at the next index of their rows. */
static void sort_without_order(const struct sorting *s, int32_t *by_src, int64_t *rowptr,
                               int32_t *col)
{
	for (int64_t e = 0; e < s->m; e++)
		by_src[s->start[s->src[e]]++] = s->dst[e];
	int64_t i = 0;
	for (int64_t j = 0; j < s->cols; j++)
		for (; i < s->start[j]; i++) /* start[j] is now the end of column j */
			col[rowptr[by_src[i]]++] = (int32_t)j;
}

/* Takes O(m + rows + cols) time. Besides the result it needs 4 bytes for each edge, or 8 with
 * order. */
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
		count_starts(cols, m, src, start);
		count_starts(rows, m, dst, rowptr);
		if (order)
			sort_with_order(&s, by_src, rowptr, col, order);
		else
			sort_without_order(&s, by_src, rowptr, col);
		rewind_starts(rows, rowptr);
	}
	hg__host_free(ctx, start, starts * sizeof(int64_t));
	hg__host_free(ctx, by_src, (size_t)m * size);
	return status;
}

hg_status hg__cpu_column_ptr(hg_context *ctx, const struct hg__csr *csr, int64_t *ptr)
{
	(void)ctx;
	count_starts(csr->cols, csr->m, csr->col, ptr);
	return HG_OK;
}

/* A counting sort of the entries by column. They are visited in CSR order, so the row numbers of
 * every column are in ascending order. */
hg_status hg__cpu_csr_transpose(hg_context *ctx, const struct hg__csr *csr, int64_t *rowptr,
                                int32_t *col, uint32_t *edge)
{
	(void)ctx;
	count_starts(csr->cols, csr->m, csr->col, rowptr);
	for (int64_t r = 0; r < csr->rows; r++)
		for (int64_t p = csr->rowptr[r]; p < csr->rowptr[r + 1]; p++) {
			const int64_t index = rowptr[csr->col[p]]++;
			col[index] = (int32_t)r;
			if (edge)
				edge[index] = (uint32_t)p;
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
