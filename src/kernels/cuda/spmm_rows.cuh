/* Interface of spmm_rows.cu: aggregation on a graph so small that its time is the latency of one
 * row's dependent loads, and on larger graphs of short rows. */
#ifndef HG_KERNELS_CUDA_SPMM_ROWS_CUH
#define HG_KERNELS_CUDA_SPMM_ROWS_CUH

#include "kernels/kernels.h"

/* Whether the kernel can compute this call and is meant for its size. Its sums equal those of
 * spmm.cu bit by bit. */
bool hg__cuda_spmm_rows_takes(const struct hg__spmm_args *a);
HG_NODISCARD hg_status hg__cuda_spmm_rows(hg_context *ctx, const struct hg__spmm_args *a);

#endif
