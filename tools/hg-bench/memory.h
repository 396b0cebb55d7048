#ifndef HG_BENCH_MEMORY_H
#define HG_BENCH_MEMORY_H

#include "bench.h"
#include "nn/train.h"

/* Where the device memory of a training run is, known as soon as the run is made: the plan that its
 * peak is held against. */
#define MEMORY_PARTS 9
struct memory_plan {
	const char *name[MEMORY_PARTS];
	size_t bytes[MEMORY_PARTS], total;
	int count;
};
struct memory_plan memory_plan_of(const struct bench *b, const struct hg_train *train,
                                  const hg_tensor *x, const hg_graph *x_sparse);
/* One line each, and the peak beside the sum. */
void memory_report(struct bench *b, const char *model, const struct memory_plan *plan, size_t peak);

#endif
