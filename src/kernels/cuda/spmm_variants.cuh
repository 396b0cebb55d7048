#ifndef HG_KERNELS_CUDA_SPMM_VARIANTS_CUH
#define HG_KERNELS_CUDA_SPMM_VARIANTS_CUH

#include "kernels/spmm_variants.h"

/* spmm by a variant that takes the call (hg__spmm_refuses says NULL); not AUTO. */
HG_NODISCARD hg_status hg__cuda_spmm_variant(hg_context *ctx, const struct hg__spmm_args *a,
                                             enum hg__spmm_variant variant);

#endif
