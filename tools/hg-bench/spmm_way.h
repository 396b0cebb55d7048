#ifndef HG_BENCH_SPMM_WAY_H
#define HG_BENCH_SPMM_WAY_H

#include "bench.h"
#include "kernels/spmm_variants.h"

/* One aggregation by a variant of the kernel, past the op: what the op would hand over, and the
 * groups or tiles that some variants want, made beforehand. */
struct spmm_way {
	hg_context *ctx;
	struct hg__spmm_args args;
	struct hg__plan *groups;
	struct hg__tiles *tiles;
	struct hg__plan plan; /* the graph's, with them */
};
/* Y = r A s X, w the weights of edges as an operand, or absent. *why: the reason where this variant
 * cannot, else NULL. */
hg_status spmm_way_open(struct bench *b, enum hg__spmm_variant variant, hg_norm norm,
                        struct hg__mat x, struct hg__mat w, struct hg__mat y, struct spmm_way *way,
                        const char **why);
hg_status spmm_way_run(void *way);
void spmm_way_close(struct spmm_way *way);

#endif
