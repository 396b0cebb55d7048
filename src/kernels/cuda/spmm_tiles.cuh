#ifndef HG_KERNELS_CUDA_SPMM_TILES_CUH
#define HG_KERNELS_CUDA_SPMM_TILES_CUH

#include "kernels/spmm_variants.h"

/* Are tiles what a call that asks for nothing in particular should be done with? */
bool hg__cuda_spmm_tiles_pay(hg_context *ctx, const struct hg__spmm_args *a);

/* spmm by tiles, of a call that the variant takes. x: a->x, its rows scaled where a->col_scale asks
 * for it. Nothing is done if *spoiled is not 0 when it runs. staging: hg__tiles_staging bytes. */
HG_NODISCARD hg_status hg__cuda_spmm_tiles(hg_context *ctx, const struct hg__spmm_args *a,
                                           const struct hg__mat *x, const unsigned *spoiled,
                                           float *staging);

#endif
