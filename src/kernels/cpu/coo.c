#include <string.h>

#include "kernels/cpu/backend.h"

/* Building graphs: COO to CSR and transposition, both as counting sorts. Compiled once: the loops wait for memory, not for arithmetic. */

/* Counting sort keeps the count of key k at start[k + 1]; after the sums start[k] is where k begins. */
static void sum_counts(int64_t keys, int64_t *start)
{
	for (int64_t k = 0; k < keys; k++)
		start[k + 1] += start[k];
}

/* After every entry was placed at start[key]++, start[k] is where k + 1 begins: move back by one. */
static void rewind_starts(int64_t keys, int64_t *start)
{
	memmove(start + 1, start, (size_t)keys * sizeof(*start));
	start[0] = 0;
}

/* by_src [m] = places of the input, src ascending, stably. */
static hg_status sort_by_source(hg_context *ctx, int64_t cols, int64_t m, const int32_t *src, int64_t *by_src)
{
	void *memory;
	HG__TRY(hg__host_alloc(ctx, (size_t)cols + 1, sizeof(int64_t), "the counts of a sort", &memory));
	int64_t *start = memory;
	for (int64_t e = 0; e < m; e++)
		start[src[e] + 1]++;
	sum_counts(cols, start);
	for (int64_t e = 0; e < m; e++)
		by_src[start[src[e]]++] = e;
	hg__host_free(ctx, memory, ((size_t)cols + 1) * sizeof(int64_t));
	return HG_OK;
}

/* By src, then stably by dst: O(m + rows + cols). */
hg_status hg__cpu_csr_from_coo(hg_context *ctx, int64_t rows, int64_t cols, int64_t m, const int32_t *dst, const int32_t *src, int64_t *rowptr, int32_t *col,
                               int64_t *order)
{
	memset(rowptr, 0, ((size_t)rows + 1) * sizeof(*rowptr));
	if (m == 0)
		return HG_OK;
	void *memory;
	HG__TRY(hg__host_alloc(ctx, (size_t)m, sizeof(int64_t), "the sort of the edges", &memory));
	int64_t *by_src = memory;
	const hg_status status = sort_by_source(ctx, cols, m, src, by_src);
	if (status == HG_OK) {
		for (int64_t e = 0; e < m; e++)
			rowptr[dst[e] + 1]++;
		sum_counts(rows, rowptr);
		for (int64_t i = 0; i < m; i++) {
			const int64_t e = by_src[i], place = rowptr[dst[e]]++;
			col[place] = src[e];
			order[place] = e;
		}
		rewind_starts(rows, rowptr);
	}
	hg__host_free(ctx, memory, (size_t)m * sizeof(int64_t));
	return status;
}

/* Entries in CSR order, counted by column: rows ascend in each column by themselves. */
hg_status hg__cpu_csr_transpose(hg_context *ctx, const struct hg__csr *csr, int64_t *rowptr, int32_t *col, int64_t *edge)
{
	(void)ctx;
	memset(rowptr, 0, ((size_t)csr->cols + 1) * sizeof(*rowptr));
	for (int64_t p = 0; p < csr->m; p++)
		rowptr[csr->col[p] + 1]++;
	sum_counts(csr->cols, rowptr);
	for (int64_t r = 0; r < csr->rows; r++)
		for (int64_t p = csr->rowptr[r]; p < csr->rowptr[r + 1]; p++) {
			const int64_t place = rowptr[csr->col[p]]++;
			col[place] = (int32_t)r;
			edge[place] = p;
		}
	rewind_starts(csr->cols, rowptr);
	return HG_OK;
}

/* From as many elements on as the kernels (hg__team, rows.h) a second thread pays. */
hg_status hg__cpu_gather_f32(hg_context *ctx, int64_t m, const float *in, const int64_t *index, float *out)
{
#pragma omp parallel for num_threads(m < 32768 ? 1 : ctx->threads) schedule(static)
	for (int64_t e = 0; e < m; e++)
		out[e] = in[index[e]];
	return HG_OK;
}
