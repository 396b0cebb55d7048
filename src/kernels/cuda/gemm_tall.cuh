#ifndef HG_KERNELS_CUDA_GEMM_TALL_CUH
#define HG_KERNELS_CUDA_GEMM_TALL_CUH

#include "kernels/kernels.h"

/* Products of halves with one long side, on tensor cores: what a layer multiplies on millions of
 * nodes. */

/* Rows from which a product is tall: 256 steps of 16 rows are two for each multiprocessor of an
 * H200; below, cuBLASLt splits a product further. Derived, not measured. */
constexpr int64_t TALL_ROWS = 4096;
/* The short sides, at most. */
constexpr int64_t TALL_SIDE = 128;

/* [n, k] [k, d] or [n, k] [d, k]^T, and [n, k]^T [n, d] with its column sums: can the kernels take
 * it? */
bool hg__cuda_gemm_is_tall(const struct hg__gemm_args *a);
/* scratch: TALL_SCRATCH_BYTES of device memory. */
HG_NODISCARD hg_status hg__cuda_gemm_tall(hg_context *ctx, const struct hg__gemm_args *a,
                                          void *scratch);

/* Blocks of the second kind, of 4 warps; each leaves its part of up to 4 tiles of [64, 64] and
 * their 64 column sums. Two for each of 132 multiprocessors; the same number everywhere, because
 * the sums depend on it. */
constexpr int64_t TALL_PARTS = 264;
constexpr int64_t TALL_TILE = 64 * 64 + 64;
constexpr size_t TALL_SCRATCH_BYTES =
    static_cast<size_t>(TALL_PARTS * 4 * TALL_TILE) * sizeof(float);

#endif
