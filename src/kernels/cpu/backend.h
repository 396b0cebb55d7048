/* The CPU backend: its copies of the kernels, and the functions that are compiled only once. */
#ifndef HG_KERNELS_CPU_BACKEND_H
#define HG_KERNELS_CPU_BACKEND_H

#include "core/context.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

/* One copy of the CPU kernels, compiled for one instruction set. */
struct hg__cpu_isa {
	const char *name;
	int (*runs_here)(void);
	const struct hg__kernels *kernels;
};
/* All copies, the fastest first. The last one runs on every machine. */
const struct hg__cpu_isa *hg__cpu_isas(size_t *count);

/* The CPU backend with the fastest copy that runs on this machine. */
const struct hg__backend *hg__cpu_backend(void);

/* coo.c: the functions of the backend that build graphs (core/backend.h). */
HG_NODISCARD hg_status hg__cpu_csr_from_coo(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
                                            const int32_t *dst, const int32_t *src, int64_t *rowptr,
                                            int32_t *col, int64_t *order);
HG_NODISCARD hg_status hg__cpu_csr_transpose(hg_context *ctx, const struct hg__csr *csr,
                                             int64_t *rowptr, int32_t *col, uint32_t *edge);
HG_NODISCARD hg_status hg__cpu_column_ptr(hg_context *ctx, const struct hg__csr *csr, int64_t *ptr);
HG_NODISCARD hg_status hg__cpu_gather_f32(hg_context *ctx, int64_t m, const float *in,
                                          const int64_t *index, float *out);
/* facts.c: the survey of a graph (core/backend.h). */
HG_NODISCARD hg_status hg__cpu_survey(hg_context *ctx, const struct hg__csr *csr,
                                      const float *weight, hg_graph_facts *facts, int *pattern);
/* refill.c: the arrays of a graph that is refilled (core/backend.h). */
HG_NODISCARD hg_status hg__cpu_refill_scratch(hg_context *ctx, const struct hg__refill *refill,
                                              size_t *bytes);
HG_NODISCARD hg_status hg__cpu_refill(hg_context *ctx, const struct hg__refill *refill);
HG_NODISCARD hg_status hg__cpu_raise(hg_context *ctx, const uint64_t *broken, int32_t node,
                                     uint64_t *word);
/* assemble.c: a batch of whole graphs (core/backend.h). */
HG_NODISCARD hg_status hg__cpu_assemble(hg_context *ctx, const struct hg__assemble *batch);

HG_EXTERN_C_END
#endif
