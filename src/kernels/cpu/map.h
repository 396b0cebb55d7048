#ifndef HG_KERNELS_CPU_MAP_H
#define HG_KERNELS_CPU_MAP_H

#include "kernels/cpu/rows.h"

/* y[i] = f(x[i], z[i]) for n elements; z is NULL where absent. y may be x or z. */
typedef void (*hg__map_fn)(const void *env, int64_t n, const float *x, const float *z, float *y);

/* Y = f(X, Z) elementwise. z.data NULL: absent. X, Z, Y have one shape. keeps_zero: f(0, 0) = 0, so
 * that padding may take part and stays what it is. */
HG_NODISCARD hg_status HG__CPU(map)(hg_context *ctx, hg__map_fn f, const void *env, int keeps_zero,
                                    struct hg__mat x, struct hg__mat z, struct hg__mat y);

#endif
