/* Interface of linear_narrow.cu: the gradients of a layer with one to four outputs, as the head of
 * a model of graphs has. */
#ifndef HG_KERNELS_CUDA_LINEAR_NARROW_CUH
#define HG_KERNELS_CUDA_LINEAR_NARROW_CUH

#include "kernels/kernels.h"

/* Whether the kernel can compute this call. It takes no norms. */
bool hg__cuda_linear_narrow_takes(const struct hg__linear_back_args *a);
HG_NODISCARD hg_status hg__cuda_linear_narrow(hg_context *ctx,
                                              const struct hg__linear_back_args *a);

#endif
