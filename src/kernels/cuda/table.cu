/* The table of the CUDA kernels: run and workspace for each line of kernels.def. */

#include "kernels/cuda/launch.cuh"

const struct hg__kernels hg__kernels_cuda = {
#define HG_KERNEL(name, args) {hg__cuda_##name, hg__cuda_##name##_workspace},
#include "kernels/kernels.def"
#undef HG_KERNEL
};
