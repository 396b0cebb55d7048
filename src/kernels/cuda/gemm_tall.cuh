/* Interface of gemm_tall.cu: products of halves with one long side, on tensor cores. These are the
 * products of a layer with millions of nodes. */
#ifndef HG_KERNELS_CUDA_GEMM_TALL_CUH
#define HG_KERNELS_CUDA_GEMM_TALL_CUH

#include "kernels/kernels.h"

/* The number of rows from which a product is tall: 256 steps of 16 rows are two for each
 * multiprocessor of an H200. Below that cuBLASLt splits a product further. Derived, not measured.
 */
constexpr int64_t TALL_ROWS = 4096;
/* The largest short side. */
constexpr int64_t TALL_SIDE = 128;

/* Whether the kernels can compute the call and gain from it: [n, k] [k, d], [n, k] [d, k]^T, or [n,
 * k]^T [n, d] with its column sums. */
bool hg__cuda_gemm_is_tall(const struct hg__gemm_args *a);
/* scratch: TALL_SCRATCH_BYTES of device memory. */
HG_NODISCARD hg_status hg__cuda_gemm_tall(hg_context *ctx, const struct hg__gemm_args *a,
                                          void *scratch);

/* Blocks of the product of columns, with 4 warps each. Each block stores one part: up to 4 tiles of
 * [64, 64] and their 64 column sums. 264 is two blocks for each of 132 multiprocessors. The number
 * is the same on all devices, because the bits of the sums depend on it. */
constexpr int64_t TALL_PARTS = 264;
constexpr int64_t TALL_TILE = 64 * 64 + 64;
constexpr size_t TALL_SCRATCH_BYTES =
    static_cast<size_t>(TALL_PARTS * 4 * TALL_TILE) * sizeof(float);

#endif
