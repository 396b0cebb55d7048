/* Interface of spmm.cu: aggregation over the parts of a plan by length. */
#ifndef HG_KERNELS_CUDA_SPMM_CUH
#define HG_KERNELS_CUDA_SPMM_CUH

#include "kernels/kernels.h"

/* Computes a call with an X. tiled: tiles compute it (they fit, spmm_tiles.cuh), and the parts only
 * where X is not finite. */
HG_NODISCARD hg_status hg__cuda_spmm_parts(hg_context *ctx, const struct hg__spmm_args *a,
                                           bool tiled);

#endif
