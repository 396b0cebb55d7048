#ifndef HG_KERNELS_CUDA_STATE_CUH
#define HG_KERNELS_CUDA_STATE_CUH

#include <cstddef>
#include <cublasLt.h>
#include <cuda_runtime.h>

#include "core/context.h"

struct hg__gemm_plans;

/* What the CUDA backend keeps for a context (ctx->state). */
struct hg__cuda_state {
	int device;
	bool owns_stream;
	cudaEvent_t event; /* orders this stream and a foreign one */
	cublasLtHandle_t lt;
	void *lt_workspace;           /* LT_WORKSPACE_BYTES of device memory: one a stream, so that calls never share it */
	struct hg__gemm_plans *plans; /* gemm.cu: descriptors and algorithms by problem */
};

/* The default preference of cuBLASLt is no workspace at all, which excludes split-K for the products with k = millions of rows; 32 MiB is what its
 * documentation recommends for Hopper. */
constexpr size_t LT_WORKSPACE_BYTES = size_t(32) << 20;

/* Release what gemm.cu keeps in the state. */
void hg__gemm_plans_free(hg_context *ctx, struct hg__gemm_plans *plans);

#endif
