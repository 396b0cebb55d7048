#ifndef HG_KERNELS_CUDA_SPMM_PREPARE_CUH
#define HG_KERNELS_CUDA_SPMM_PREPARE_CUH

#include "kernels/kernels.h"

/* What spmm does before it walks the edges. */

/* Z[j, c] = narrow(s_j * X[j, c]); x, z of one type. spoiled: device memory that is set to 1 if an
 * element of Z is not finite; or NULL. */
HG_NODISCARD hg_status hg__cuda_scale_rows(hg_context *ctx, const struct hg__mat *x, const float *s,
                                           const struct hg__mat *z, unsigned *spoiled);
/* *spoiled = 1 if an element of X is not finite; x f16, wide. */
HG_NODISCARD hg_status hg__cuda_look_for_spoiled(hg_context *ctx, const struct hg__mat *x,
                                                 unsigned *spoiled);
/* out[p] = w[edge p]; w [m, 1] with ld 1, out of its type. */
HG_NODISCARD hg_status hg__cuda_lay_out(hg_context *ctx, const struct hg__csr *csr,
                                        const struct hg__mat *w, void *out);

#endif
