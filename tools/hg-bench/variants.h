#ifndef HG_BENCH_VARIANTS_H
#define HG_BENCH_VARIANTS_H

#include "bench.h"
#include "kernels/spmm_variants.h"

/* The ways to aggregate that --variant chooses from: the precisions of the kernel that training
 * uses, and the kernel's variants. */
struct variant {
	const char *name, *help;
	int state;      /* hg_dtype it is for; -1: any */
	int accumulate; /* hg_accumulate; -1: the policy's */
	enum hg__spmm_variant way;
};
const struct variant *variant_list(int *count);
/* Is this one asked for by name or "all", and fit for the policy at hand? With a variant of the
 * kernel comes "auto", to compare. */
int variant_wanted(const struct bench *b, const struct variant *variant);
/* 0, or 2 after a sentence: there is no variant of that name. */
int variant_check(const char *name);
void variant_print(void);

#endif
