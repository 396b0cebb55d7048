/* Element-wise functions of one or two matrices, in parallel. */
#ifndef HG_KERNELS_CPU_MAP_H
#define HG_KERNELS_CPU_MAP_H

#include "kernels/cpu/rows.h"

/* Computes y[i] = f(x[i], z[i]) for n elements. z is NULL for a function of one operand. y may be x
 * or z. env is passed on from `map`. */
typedef void (*hg__map_fn)(const void *env, int64_t n, const float *x, const float *z, float *y);

/* Y = f(X, Z), element by element, for the kernel of this name. X, Z and Y have the same shape, and
 * Z may be absent (data NULL). keeps_zero: f(0, 0) = 0, so the padding of rows may be processed
 * like elements and stays 0. */
HG_NODISCARD hg_status HG__CPU(map)(hg_context *ctx, const char *kernel, hg__map_fn f,
                                    const void *env, int keeps_zero, struct hg__mat x,
                                    struct hg__mat z, struct hg__mat y);

#endif
