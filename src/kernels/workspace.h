/* Parts of workspaces that have the same size on both backends. What one kernel takes in all is
 * said beside it, as `workspace` of its row. */
#ifndef HG_KERNELS_WORKSPACE_H
#define HG_KERNELS_WORKSPACE_H

#include "core/csr.h"
#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* Sums over the edges of a row, for results of `cols` columns: two f32 staging rows for each item
 * of the plan, where it splits rows. */
static inline size_t hg__staging_bytes(const struct hg__csr *csr, int64_t cols)
{
	return csr->plan && csr->plan->splits
	           ? (size_t)csr->plan->items * 2 * (size_t)hg__leading(cols) * sizeof(float)
	           : 0;
}

/* Sums that scatter (kernels.h, scatter_sum): 64-bit integers; then two bits an element, which say
 * whether a term was +-infinity, and both for NaN, 16 elements a word; then two f32, the largest
 * |X| and |w|. Rows are padded as those of the result. */
struct hg__scatter_memory {
	int64_t lead, words;     /* of a row of the sums, and of their bits */
	size_t odd, most, bytes; /* where the bits and the two numbers begin, and the end */
};
static inline struct hg__scatter_memory hg__scatter_memory(int64_t rows, int64_t cols)
{
	struct hg__scatter_memory m;
	m.lead = hg__leading(cols);
	m.words = (m.lead + 15) / 16;
	m.odd = (size_t)(rows * m.lead) * sizeof(int64_t);
	m.most = m.odd + (size_t)(rows * m.words) * sizeof(uint32_t);
	m.bytes = m.most + 2 * sizeof(float);
	return m;
}

/* Softmax over the edges of a row: a maximum and a sum for each head, with heads padded to whole
 * vectors. */
static inline size_t hg__softmax_bytes(const struct hg__csr *csr, int64_t heads)
{
	return hg__staging_bytes(csr, 2 * ((heads + 15) / 16 * 16));
}

/* X with scaled rows, which an aggregation sums after scaling it (scale_first). Its rows are padded
 * to a power of two, or to whole lines of 128 bytes, so that they cross as few lines as
 * possible. */
static inline int64_t hg__scaled_lead(int64_t cols, hg_dtype scaled)
{
	const int64_t lead = hg__leading(cols), line = scaled == HG_F16 ? 64 : 32;
	int64_t padded = 1;
	while (padded < lead && padded < line)
		padded *= 2;
	return lead <= line ? padded : (lead + line - 1) / line * line;
}
/* scaled: the type of X; HG_DTYPE_COUNT if it is not scaled first. */
static inline size_t hg__scaled_bytes(const struct hg__csr *csr, int64_t cols, hg_dtype scaled)
{
	const size_t element = scaled == HG_F16 ? 2 : scaled == HG_F32 ? 4 : 0;
	return ((size_t)csr->cols * (size_t)hg__scaled_lead(cols, scaled) * element + 255) / 256 * 256;
}

/* Sums over the rows, or over all elements, of a [rows, cols] matrix. Sums of columns: two f32 for
 * each column of each part of at least 32 rows, with at most 1024 parts of 256 columns, or 128
 * parts where that is more. Totals: 32 bytes for each of 1024 blocks, or for each 256 rows. */
static inline size_t hg__reduction_bytes(int64_t rows, int64_t cols)
{
	const int64_t lead = hg__leading(cols), parts = rows / 32 + 1 < 1024 ? rows / 32 + 1 : 1024;
	const int64_t most = 128 * lead > 1024 * 256 ? 128 * lead : 1024 * 256;
	return (size_t)(parts * lead < most ? parts * lead : most) * 2 * sizeof(float) +
	       (size_t)(rows / 256 + 1024) * 32;
}

/* The larger of two workspaces: of kernels that run one after the other. */
static inline size_t hg__larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

HG_EXTERN_C_END
#endif
