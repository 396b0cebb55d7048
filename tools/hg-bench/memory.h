#ifndef HG_BENCH_MEMORY_H
#define HG_BENCH_MEMORY_H

#include "bench.h"
#include "nn/train.h"

/* The device memory of a training run by purpose, known as soon as the run is created. The peak is
 * compared with this plan. */
#define MEMORY_PARTS 9
struct memory_plan {
	const char *name[MEMORY_PARTS];
	size_t bytes[MEMORY_PARTS], total;
	int count;
};
struct memory_plan memory_plan_of(const struct bench *b, const struct hg_train *train,
                                  const hg_tensor *x, const hg_graph *x_sparse);
/* Report one line per part, and the peak beside the sum. */
void memory_report(struct bench *b, const char *model, const struct memory_plan *plan, size_t peak);

#endif
