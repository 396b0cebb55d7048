/* Interface of spmm_prepare.cu: what aggregation computes before it iterates over the edges. */
#ifndef HG_KERNELS_CUDA_SPMM_PREPARE_CUH
#define HG_KERNELS_CUDA_SPMM_PREPARE_CUH

#include "core/plan_tiles.h"
#include "kernels/kernels.h"

/* The workspace of an aggregation consists of
 *
 * - X with scaled rows,
 * - one weight for each edge in the order of the entries, where csr.edge gives another order,
 * - the staging rows,
 * - a flag, where there are tiles,
 * - and room for the head of each column, which only the CPU uses: so the memory of a tape does
 * not depend on the device.
 *
 * scaled and weight are the types of the first two, HG_DTYPE_COUNT for one that is not used. */
static inline size_t hg__spmm_weight_bytes(const struct hg__csr *csr, hg_dtype weight)
{
	const size_t element = weight == HG_F16 ? 2 : weight == HG_F32 ? 4 : 0;
	return csr->edge ? (static_cast<size_t>(csr->m) * element + 255) / 256 * 256 : 0;
}
/* Staging rows of parts, or those of tiles, which use the same memory. */
static inline size_t hg__spmm_staging_bytes(const struct hg__csr *csr, int64_t cols)
{
	const size_t parts = hg__aligned(hg__staging_bytes(csr, cols)),
	             tiles = csr->plan && csr->plan->tiles
	                         ? hg__tiles_staging(csr->plan->tiles->slots, cols)
	                         : 0;
	return hg__larger(parts, hg__aligned(tiles));
}
static inline size_t hg__spmm_bytes(const struct hg__csr *csr, int64_t cols, hg_dtype scaled,
                                    hg_dtype weight)
{
	const size_t flag = csr->plan && csr->plan->tiles ? HG__ALIGN : 0;
	return hg__scaled_bytes(csr, cols, scaled) + hg__spmm_weight_bytes(csr, weight) +
	       hg__spmm_staging_bytes(csr, cols) + flag +
	       static_cast<size_t>(cols + 16) * sizeof(int32_t);
}

/* Z[j, c] = narrow(s_j * X[j, c]), with x and z of one type. spoiled: NULL, or device memory that
 * is set to 1 if an element of Z is not finite. */
HG_NODISCARD hg_status hg__cuda_scale_rows(hg_context *ctx, const struct hg__mat *x, const float *s,
                                           const struct hg__mat *z, unsigned *spoiled);
/* Sets *spoiled to 1 if an element of X is not finite. x is f16, with rows in packs of 8. */
HG_NODISCARD hg_status hg__cuda_check_finite(hg_context *ctx, const struct hg__mat *x,
                                             unsigned *spoiled);
/* out[p] = w[edge p]. w is [m, 1] with ld 1, and out has its type. */
HG_NODISCARD hg_status hg__cuda_order_weights(hg_context *ctx, const struct hg__csr *csr,
                                              const struct hg__mat *w, void *out);

#endif
