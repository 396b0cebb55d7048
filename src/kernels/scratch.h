/* Bytes of workspace that each kernel requests from hg__workspace. Ops reserve memory with the same
 * functions, so that a step allocates nothing. */
#ifndef HG_KERNELS_SCRATCH_H
#define HG_KERNELS_SCRATCH_H

#include "core/csr.h"
#include "core/mat.h"
#include "core/plan_tiles.h"

HG_EXTERN_C_BEGIN

/* spmm_max and its gradient, for outputs of `cols` columns: two f32 staging rows for each item. */
static inline size_t hg__staging_bytes(const struct hg__csr *csr, int64_t cols)
{
	return csr->plan && csr->plan->splits
	           ? (size_t)csr->plan->items * 2 * (size_t)hg__leading(cols) * sizeof(float)
	           : 0;
}

/* The workspace of spmm consists of
 *
 * - X with scaled rows,
 * - one weight for each edge in the order of the entries, where csr.edge gives another order,
 * - the staging rows,
 * - a flag, where there are tiles,
 * - the head of each column, in whole vectors.
 *
 * scaled and weight are the types of the first two, HG_DTYPE_COUNT for one that is not used. Scaled
 * rows are padded to a power of two, or to whole lines of 128 bytes, so that they cross as few
 * lines as possible. */
static inline int64_t hg__scaled_lead(int64_t cols, hg_dtype scaled)
{
	const int64_t lead = hg__leading(cols), line = scaled == HG_F16 ? 64 : 32;
	int64_t padded = 1;
	while (padded < lead && padded < line)
		padded *= 2;
	return lead <= line ? padded : (lead + line - 1) / line * line;
}
static inline size_t hg__spmm_scaled_bytes(const struct hg__csr *csr, int64_t cols, hg_dtype scaled)
{
	const size_t element = scaled == HG_F16 ? 2 : scaled == HG_F32 ? 4 : 0;
	return ((size_t)csr->cols * (size_t)hg__scaled_lead(cols, scaled) * element + 255) / 256 * 256;
}
static inline size_t hg__spmm_weight_bytes(const struct hg__csr *csr, hg_dtype weight)
{
	const size_t element = weight == HG_F16 ? 2 : weight == HG_F32 ? 4 : 0;
	return csr->edge ? ((size_t)csr->m * element + 255) / 256 * 256 : 0;
}
/* Staging rows of parts, or those of tiles, which use the same memory. */
static inline size_t hg__spmm_staging_bytes(const struct hg__csr *csr, int64_t cols)
{
	const size_t parts = hg__aligned(hg__staging_bytes(csr, cols)),
	             tiles = csr->plan && csr->plan->tiles
	                         ? hg__tiles_staging(csr->plan->tiles->slots, cols)
	                         : 0;
	return parts > tiles ? parts : hg__aligned(tiles);
}
static inline size_t hg__spmm_bytes(const struct hg__csr *csr, int64_t cols, hg_dtype scaled,
                                    hg_dtype weight)
{
	const size_t flag = csr->plan && csr->plan->tiles ? HG__ALIGN : 0;
	return hg__spmm_scaled_bytes(csr, cols, scaled) + hg__spmm_weight_bytes(csr, weight) +
	       hg__spmm_staging_bytes(csr, cols) + flag + (size_t)(cols + 16) * sizeof(int32_t);
}

/* edge_softmax and its gradient: a maximum and a sum for each head, with heads padded to whole
 * vectors. */
static inline size_t hg__softmax_bytes(const struct hg__csr *csr, int64_t heads)
{
	return hg__staging_bytes(csr, 2 * ((heads + 15) / 16 * 16));
}

/* Workspace of the kernels that sum over rows or over all elements (colsum, dot_all, head_dot_back,
 * the norms, the losses, readout) of a [rows, cols] matrix. Sums of columns: two f32 for each
 * column of each part of at least 32 rows, with at most 1024 parts of 256 columns, or 128 parts
 * where that is more. Totals: 32 bytes for each of 1024 blocks, or for each 256 rows. */
static inline size_t hg__reduction_bytes(int64_t rows, int64_t cols)
{
	const int64_t lead = hg__leading(cols), parts = rows / 32 + 1 < 1024 ? rows / 32 + 1 : 1024;
	const int64_t most = 128 * lead > 1024 * 256 ? 128 * lead : 1024 * 256;
	return (size_t)(parts * lead < most ? parts * lead : most) * 2 * sizeof(float) +
	       (size_t)(rows / 256 + 1024) * 32;
}

/* The blocking of gemm on the CPU. A block of C has at most TALL rows and WIDE columns and uses
 * DEEP of k at a time. Its panel of A has 256 kB and a strip of 64 columns of B 64 kB, so both stay
 * in a second-level cache of 512 kB. (A strip has STRIP columns where a BLAS multiplies, since the
 * BLAS blocks for caches itself.) Where k is long and C is small, as for gradients of weights, k is
 * split into runs of at least RUN, so that there are PIECES blocks to share among threads. Their
 * sums are added in order. */
#define HG__GEMM_TALL 256
#define HG__GEMM_WIDE 512
#define HG__GEMM_DEEP 256
#define HG__GEMM_STRIP 512
#define HG__GEMM_PIECES 16
#define HG__GEMM_RUN 512

/* Workspace of gemm for op(A) [m, k] and op(B) [k, n]: a panel, a strip and a block of C for each
 * thread (threads 0: a GPU, which needs none), and the partial sums of the runs. These are at most
 * 16 runs of 256 rows each, because a C with more rows is split into fewer runs. */
static inline size_t hg__gemm_bytes(int64_t m, int64_t n, int64_t k, int threads)
{
	const int64_t tall = m < HG__GEMM_TALL ? m : HG__GEMM_TALL,
	              wide = n < HG__GEMM_WIDE ? n : HG__GEMM_WIDE,
	              deep = k < HG__GEMM_DEEP ? k : HG__GEMM_DEEP;
	const int64_t strip = n < HG__GEMM_STRIP ? (n + 15) / 16 * 16 : HG__GEMM_STRIP;
	const int64_t scratch =
	    (tall + 15) / 16 * 16 * ((deep + 15) / 16 * 16) + deep * strip + tall * wide;
	const int64_t most = (int64_t)HG__GEMM_PIECES * HG__GEMM_TALL,
	              rows = k / HG__GEMM_RUN < HG__GEMM_PIECES ? k / HG__GEMM_RUN * m
	                                                        : HG__GEMM_PIECES * m;
	const int64_t partial = k < 2 * HG__GEMM_RUN ? 0 : (rows < most ? rows : most) * n;
	return threads ? (size_t)(threads * scratch + partial) * sizeof(float) : 0;
}

HG_EXTERN_C_END
#endif
