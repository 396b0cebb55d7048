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
	int64_t l2_bytes; /* second-level cache */
	bool owns_stream;
	bool overlaps;     /* a kernel may begin while the one before it ends (launch.cuh) */
	bool clusters;     /* blocks may reach each other (cluster.cuh) */
	cudaEvent_t event; /* orders this stream and a foreign one */
	cublasLtHandle_t lt;
	/* LT_WORKSPACE_BYTES of device memory, from the first product on: one a stream, so that calls
	 * never share it */
	void *lt_workspace;
	struct hg__gemm_plans *plans; /* gemm.cu: descriptors and algorithms by problem */
	/* COUNTERS of device memory, all 0 between kernels (totals.cuh) */
	unsigned *counters;
};

/* As many as a kernel may need; columns.cuh needs most. 1 kB. */
constexpr int64_t COUNTERS = 256;

/* The default preference of cuBLASLt is no workspace at all, which excludes split-K for the
 * products with k = millions of rows; 32 MiB is what its documentation recommends for Hopper. */
constexpr size_t LT_WORKSPACE_BYTES = size_t(32) << 20;

/* Release what gemm.cu keeps in the state. */
void hg__gemm_plans_free(hg_context *ctx, struct hg__gemm_plans *plans);

/* coo.cu: the graph-building functions of the backend (core/backend.h). */
HG_NODISCARD hg_status hg__cuda_csr_from_coo(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
                                             const int32_t *dst, const int32_t *src,
                                             int64_t *rowptr, int32_t *col, int64_t *order);
HG_NODISCARD hg_status hg__cuda_csr_transpose(hg_context *ctx, const struct hg__csr *csr,
                                              int64_t *rowptr, int32_t *col, uint32_t *edge);
HG_NODISCARD hg_status hg__cuda_column_ptr(hg_context *ctx, const struct hg__csr *csr,
                                           int64_t *ptr);
HG_NODISCARD hg_status hg__cuda_gather_f32(hg_context *ctx, int64_t m, const float *in,
                                           const int64_t *index, float *out);
/* facts.cu */
HG_NODISCARD hg_status hg__cuda_survey(hg_context *ctx, const struct hg__csr *csr,
                                       const float *weight, hg_graph_facts *facts, int *pattern);
/* plan_tiles.cu */
HG_NODISCARD hg_status hg__cuda_tiles_count(hg_context *ctx, const struct hg__csr *csr,
                                            const int64_t *host_rowptr, int32_t *listed);
HG_NODISCARD hg_status hg__cuda_tiles_fill(hg_context *ctx, const struct hg__csr *csr,
                                           const int64_t *host_rowptr, const int32_t *first,
                                           int32_t *id, uint32_t *mask);

#endif
