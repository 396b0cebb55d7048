/* Interface of spmm_prepare.cu: what aggregation computes before it iterates over the edges. */
#ifndef HG_KERNELS_CUDA_SPMM_PREPARE_CUH
#define HG_KERNELS_CUDA_SPMM_PREPARE_CUH

#include "kernels/kernels.h"

/* Z[j, c] = narrow(s_j * X[j, c]), with x and z of one type. spoiled: NULL, or device memory that
 * is set to 1 if an element of Z is not finite. */
HG_NODISCARD hg_status hg__cuda_scale_rows(hg_context *ctx, const struct hg__mat *x, const float *s,
                                           const struct hg__mat *z, unsigned *spoiled);
/* Sets *spoiled to 1 if an element of X is not finite. x is f16, with rows in packs of 8. */
HG_NODISCARD hg_status hg__cuda_check_finite(hg_context *ctx, const struct hg__mat *x,
                                             unsigned *spoiled);
/* out[p] = w[edge p]. w is [m, 1] with ld 1, and out has its type. */
HG_NODISCARD hg_status hg__cuda_order_weights(hg_context *ctx, const struct hg__csr *csr,
                                              const struct hg__mat *w, void *out);

#endif
