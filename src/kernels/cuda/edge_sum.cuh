#ifndef HG_KERNELS_CUDA_EDGE_SUM_CUH
#define HG_KERNELS_CUDA_EDGE_SUM_CUH

#include "kernels/kernels.h"

/* spmm without X: Y[i, k] = alpha * r_i * sum over entries p of row i of w[edge p, k], k a head.
 * f32 sums; workspace as for spmm. */
HG_NODISCARD hg_status hg__cuda_edge_sum(hg_context *ctx, const struct hg__spmm_args *a);

#endif
