#ifndef HG_BENCH_REPEAT_H
#define HG_BENCH_REPEAT_H

#include "bench.h"

/* Something that is done again and again, as the steps of a training run. */
typedef hg_status (*repeat_fn)(void *what, int64_t count);

/* The time of doing it once. A sample is as many times as take about 20 ms, in one call, so that
 * steps of a small graph are launched together. It is timed by the host's clock from an idle device
 * to an idle device, so that everything counts. */
hg_status repeat_measure(struct bench *b, repeat_fn run, void *what, struct timing *timing);
/* A repeat_fn: the steps of an hg_step. */
hg_status repeat_steps(void *step, int64_t count);

#endif
