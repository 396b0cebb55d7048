/* Interface of gemm_norm.cu and linear_norm.cu: the products of a layer, forward and backward, with
 * batch norms before and behind it. */
#ifndef HG_KERNELS_CUDA_GEMM_NORM_CUH
#define HG_KERNELS_CUDA_GEMM_NORM_CUH

#include "kernels/kernels.h"

/* The backend's takes_norms (core/backend.h). */
int hg__cuda_takes_norms(const hg_context *ctx, hg_dtype type, int64_t rows, int64_t k, int64_t n);

/* A product whose A is normalised, or of whose C statistics are wanted, or both. A must not be
 * transposed. */
HG_NODISCARD hg_status hg__cuda_gemm_norm(hg_context *ctx, const struct hg__gemm_args *a);
/* Its workspace if C has d columns and statistics are wanted. */
size_t hg__cuda_gemm_norm_bytes(int64_t d);

/* linear_back in one pass over the rows. */
HG_NODISCARD hg_status hg__cuda_linear_norm(hg_context *ctx, const struct hg__linear_back_args *a);
/* The most blocks of that pass, two on each of 132 multiprocessors, and the memory of what they
 * store, for 64 columns on either side: dW [64, 64], and db, dgamma and dbeta [64]. The number of
 * blocks is the same on all devices, because the bits of the sums depend on it. */
constexpr int64_t LINEAR_PARTS = 264;
constexpr size_t LINEAR_SCRATCH_BYTES =
    static_cast<size_t>(LINEAR_PARTS) * (64 * 64 + 3 * 64) * sizeof(float);

/* gemm.cu: LT_WORKSPACE_BYTES of device memory, for use until the next call of a product. */
HG_NODISCARD hg_status hg__cuda_gemm_scratch(hg_context *ctx, void **scratch);

#endif
