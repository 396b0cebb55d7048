#ifndef HG_BENCH_GATHER_CUH
#define HG_BENCH_GATHER_CUH

#include "device.h"

/* gather.cu */
hg_status gather_measure(hg_context *ctx, const struct hg__csr *csr, struct hg__mat x, int repeat,
                         struct gather *result);

#endif
