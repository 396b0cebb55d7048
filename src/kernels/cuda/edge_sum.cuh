/* Interface of edge_sum.cu: aggregation without X. */
#ifndef HG_KERNELS_CUDA_EDGE_SUM_CUH
#define HG_KERNELS_CUDA_EDGE_SUM_CUH

#include "kernels/kernels.h"

/* Y[i, k] = alpha * r_i * sum over entries p of row i of w[edge p, k], where k is a head. Sums are
 * f32; it needs the same workspace as spmm. */
HG_NODISCARD hg_status hg__cuda_edge_sum(hg_context *ctx, const struct hg__spmm_args *a);

#endif
