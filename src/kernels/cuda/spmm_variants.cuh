/* Interface of spmm_variants.cu: aggregation by a requested variant. */
#ifndef HG_KERNELS_CUDA_SPMM_VARIANTS_CUH
#define HG_KERNELS_CUDA_SPMM_VARIANTS_CUH

#include "kernels/spmm_variants.h"

/* Computes a call by a variant other than AUTO that supports it (hg__spmm_refuses returns NULL). */
HG_NODISCARD hg_status hg__cuda_spmm_variant(hg_context *ctx, const struct hg__spmm_args *a,
                                             enum hg__spmm_variant variant);

#endif
