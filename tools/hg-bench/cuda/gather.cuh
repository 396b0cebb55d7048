#ifndef HG_BENCH_GATHER_CUH
#define HG_BENCH_GATHER_CUH

#include "device.h"

/* Implemented in gather.cu; device.h documents it. */
hg_status gather_measure(hg_context *ctx, const struct hg__csr *csr, struct hg__mat x, int repeat,
                         struct gather *result);

#endif
