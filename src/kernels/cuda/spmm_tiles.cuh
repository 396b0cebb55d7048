/* Interface of spmm_tiles.cu: aggregation with unit weights by tensor cores. */
#ifndef HG_KERNELS_CUDA_SPMM_TILES_CUH
#define HG_KERNELS_CUDA_SPMM_TILES_CUH

#include "kernels/kernels.h"

/* Whether tiles can compute this call. */
bool hg__cuda_spmm_tiles_fit(const struct hg__spmm_args *a);
/* Whether they can, and are the fastest way. */
bool hg__cuda_spmm_tiles_pay(hg_context *ctx, const struct hg__spmm_args *a);

/* Computes a call that tiles can compute. x: a->x, with its rows scaled where the call has
 * a->col_scale. If *spoiled is not 0 when the kernels run, they do nothing. staging:
 * hg__tiles_staging bytes. */
HG_NODISCARD hg_status hg__cuda_spmm_tiles(hg_context *ctx, const struct hg__spmm_args *a,
                                           const struct hg__mat *x, const unsigned *spoiled,
                                           float *staging);

#endif
