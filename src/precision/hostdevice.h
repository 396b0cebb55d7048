/* HG_HD marks small pure functions that are compiled unchanged for the host and for CUDA kernels,
 * so that both sides share one definition. */
#ifndef HG_PRECISION_HOSTDEVICE_H
#define HG_PRECISION_HOSTDEVICE_H

#ifdef __CUDACC__
#define HG_HD __host__ __device__
#else
#define HG_HD
#endif

#endif
