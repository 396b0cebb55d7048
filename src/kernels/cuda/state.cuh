/* The state that the CUDA backend keeps for each context (ctx->state), and its functions that are
 * defined in other files. */
#ifndef HG_KERNELS_CUDA_STATE_CUH
#define HG_KERNELS_CUDA_STATE_CUH

#include <cstddef>
#include <cublasLt.h>
#include <cuda_runtime.h>

#include "core/context.h"

struct hg__gemm_plans;

struct hg__cuda_state {
	int device;
	int64_t l2_bytes; /* second-level cache */
	bool owns_stream;
	bool overlaps;     /* a kernel may begin before the previous one ends (launch.cuh) */
	bool clusters;     /* blocks may access each other's shared memory (cluster.cuh) */
	cudaEvent_t event; /* orders this stream and a foreign one */
	cublasLtHandle_t lt;
	/* LT_WORKSPACE_BYTES of device memory, allocated at the first product. There is one per stream,
	 * so calls never use it at the same time. */
	void *lt_workspace;
	struct hg__gemm_plans *plans; /* gemm.cu: descriptors and algorithm of each problem */
	/* COUNTERS counters in device memory, all 0 between kernels (totals.cuh) */
	unsigned *counters;
};

/* As many as a kernel can need, which is what columns.cuh needs. 1 kB. */
constexpr int64_t COUNTERS = 256;

/* By default cuBLASLt gets no workspace, which excludes split-K for products with k = millions of
 * rows. 32 MiB is the size that its documentation recommends for Hopper. */
constexpr size_t LT_WORKSPACE_BYTES = size_t(32) << 20;

/* Frees what gemm.cu keeps in the state. */
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
/* small_layers_back.cu */
int hg__cuda_small_matrices_most(const hg_context *ctx, int width, int bin_rows);
/* refill.cu */
HG_NODISCARD hg_status hg__cuda_refill_scratch(hg_context *ctx, const struct hg__refill *refill,
                                               size_t *bytes);
HG_NODISCARD hg_status hg__cuda_refill(hg_context *ctx, const struct hg__refill *refill);
HG_NODISCARD hg_status hg__cuda_raise(hg_context *ctx, const uint64_t *broken, int32_t node,
                                      uint64_t *word);
/* assemble.cu */
HG_NODISCARD hg_status hg__cuda_assemble(hg_context *ctx, const struct hg__assemble *batch);
/* plan_tiles.cu */
HG_NODISCARD hg_status hg__cuda_tiles_count(hg_context *ctx, const struct hg__csr *csr,
                                            const int64_t *host_rowptr, int32_t *listed);
HG_NODISCARD hg_status hg__cuda_tiles_fill(hg_context *ctx, const struct hg__csr *csr,
                                           const int64_t *host_rowptr, const int32_t *first,
                                           int32_t *id, uint32_t *mask);

#endif
