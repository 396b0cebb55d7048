#ifndef HG_BENCH_SPMM_ARGS_H
#define HG_BENCH_SPMM_ARGS_H

#include "bench.h"
#include "kernels/kernels.h"

/* The arguments of the aggregation kernel that the op would pass for Y = r A s X. w holds edge
 * weights as an operand, or has no data: the graph's own weights. */
hg_status spmm_args_of(struct bench *b, hg_accumulate accumulate, hg_norm norm, struct hg__mat x,
                       struct hg__mat w, struct hg__mat y, struct hg__spmm_args *args);

#endif
