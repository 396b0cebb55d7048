#ifndef HG_KERNELS_CUDA_SPMM_ROWS_CUH
#define HG_KERNELS_CUDA_SPMM_ROWS_CUH

#include "kernels/kernels.h"

/* spmm_rows.cu: aggregation on a graph so small that a row's chain of loads is all that it takes
 * time for. Does it take this call? The sums are those of spmm.cu, bit by bit. */
bool hg__cuda_spmm_rows_takes(const struct hg__spmm_args *a);
HG_NODISCARD hg_status hg__cuda_spmm_rows(hg_context *ctx, const struct hg__spmm_args *a);

#endif
