#ifndef HG_BENCH_PASSES_H
#define HG_BENCH_PASSES_H

#include "bench.h"
#include "nn/train.h"

/* Report forward pass, backward pass and optimiser of a step apart, one line each. step: the
 * time of the whole step. per_launch: the steps of a launch where they are captured, else 0. */
hg_status passes_report(struct bench *b, const char *model, hg_train *train,
                        const struct timing *step, int per_launch);

#endif
