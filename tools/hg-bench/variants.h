#ifndef HG_BENCH_VARIANTS_H
#define HG_BENCH_VARIANTS_H

#include "bench.h"

/* The variants that --variant chooses from: the op as training runs it, in its precisions, and the
 * variants of its kernel (variants/). */
struct variant {
	const char *name, *help;
	int state;      /* the hg_dtype that it is for; -1: any */
	int accumulate; /* hg_accumulate; -1: the policy's */
	int kernel;     /* its number in the kernel's own table; -1: the op runs as in training */
};
struct variant_list {
	const char *command;
	const struct variant *variant; /* the first is what training uses */
	int count;
};
/* NULL: the command has no variants. */
const struct variant_list *variants_of(const char *command);
/* Is this variant selected by name or by "all", and does it fit the current policy? A variant of
 * the kernel also selects the first one, for comparison. */
int variant_wanted(const struct bench *b, const struct variant_list *list,
                   const struct variant *variant);
/* Does the name select a variant of the kernel? */
int variant_of_kernel(const struct variant_list *list, const char *name);
/* Returns 0, or 2 after a sentence: the command has no variant of that name. */
int variant_check(const struct variant_list *list, const char *name);
void variant_print(const struct variant_list *list);

/* The remark on a variant of a kernel: its time beside that of training, `automatic` ms. flags: see
 * spmm_variants.h. `note` must live as long as the result. */
void variant_note(double automatic, unsigned flags, char *note, size_t size, struct result *r);

#endif
