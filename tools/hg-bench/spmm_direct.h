#ifndef HG_BENCH_SPMM_DIRECT_H
#define HG_BENCH_SPMM_DIRECT_H

#include "bench.h"
#include "kernels/spmm_variants.h"

/* One aggregation that calls a variant of the kernel directly, without the op: the arguments that
 * the op would pass, and the groups or tiles that some variants need, which are made beforehand. */
struct spmm_direct {
	hg_context *ctx;
	struct hg__spmm_args args;
	struct hg__plan *groups;
	struct hg__tiles *tiles;
	struct hg__plan plan; /* the graph's plan, with these tiles */
};
/* Prepare Y = r A s X; w holds edge weights as an operand, or has no data. *why is the reason why
 * this variant cannot run here, else NULL. */
hg_status spmm_direct_open(struct bench *b, enum hg__spmm_variant variant, hg_norm norm,
                           struct hg__mat x, struct hg__mat w, struct hg__mat y,
                           struct spmm_direct *direct, const char **why);
hg_status spmm_direct_run(void *direct);
void spmm_direct_close(struct spmm_direct *direct);

#endif
