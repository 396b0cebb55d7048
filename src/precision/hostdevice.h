#ifndef HG_PRECISION_HOSTDEVICE_H
#define HG_PRECISION_HOSTDEVICE_H

/* Small pure functions that run on the host and, unchanged, in a kernel: one text for both. */
#ifdef __CUDACC__
#define HG_HD __host__ __device__
#else
#define HG_HD
#endif

#endif
