/* The CUDA column of the kernel table: hg__cuda_NAME for each line of kernels.def. */

#include "kernels/cuda/launch.cuh"

const struct hg__kernels hg__kernels_cuda = {
#define HG_KERNEL(name, args) hg__cuda_##name,
#include "kernels/kernels.def"
#undef HG_KERNEL
};
