#ifndef HG_BENCH_VARIANTS_H
#define HG_BENCH_VARIANTS_H

#include "bench.h"
#include "kernels/spmm_variants.h"

/* The variants that --variant chooses from: the precisions of the kernel that training uses, and
 * the kernel's own variants. */
struct variant {
	const char *name, *help;
	int state;      /* the hg_dtype that it is for; -1: any */
	int accumulate; /* hg_accumulate; -1: the policy's */
	enum hg__spmm_variant kernel;
};
const struct variant *variant_list(int *count);
/* Is this variant selected by name or by "all", and does it fit the current policy? A variant of
 * the kernel also selects "auto", for comparison. */
int variant_wanted(const struct bench *b, const struct variant *variant);
/* Returns 0, or 2 after a sentence: there is no variant of that name. */
int variant_check(const char *name);
void variant_print(void);

#endif
