/* Interface of spmm_tiles.cu: aggregation with unit weights by tensor cores. */
#ifndef HG_KERNELS_CUDA_SPMM_TILES_CUH
#define HG_KERNELS_CUDA_SPMM_TILES_CUH

#include "kernels/spmm_variants.h"

/* Whether tiles are the best choice for a call that does not ask for a variant. */
bool hg__cuda_spmm_tiles_pay(hg_context *ctx, const struct hg__spmm_args *a);

/* Computes a call that the variant supports. x: a->x, with its rows scaled where the call has
 * a->col_scale. If *spoiled is not 0 when the kernels run, they do nothing. staging:
 * hg__tiles_staging bytes. */
HG_NODISCARD hg_status hg__cuda_spmm_tiles(hg_context *ctx, const struct hg__spmm_args *a,
                                           const struct hg__mat *x, const unsigned *spoiled,
                                           float *staging);

#endif
