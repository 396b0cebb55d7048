#include "variants.h"

#include <stdio.h>
#include <string.h>

static const struct variant variants[] = {
    {"auto", "what training uses: the precision's accumulation, the kernel that dispatch chooses",
     -1, -1, HG__SPMM_AUTO},
    {"acc-f32", "f16 rows, f32 sums, scaled when a row is complete", HG_F16, HG_ACC_F32,
     HG__SPMM_AUTO},
    {"acc-f16-discretized", "f16 arithmetic, scaled batch by batch", HG_F16, HG_ACC_F16_DISCRETIZED,
     HG__SPMM_AUTO},
    {"acc-f16-naive", "f16 arithmetic, one sum a row, scaled after it", HG_F16, HG_ACC_F16_NAIVE,
     HG__SPMM_AUTO},
#define HG_SPMM_VARIANT(id, name, share, columns, write, scale, accumulate, bound, group, flags, \
                        next, what)                                                              \
	{name, what, HG_F16, HG_ACC_##accumulate, HG__SPMM_##id},
#include "kernels/spmm_variants.def"
#undef HG_SPMM_VARIANT
};

const struct variant *variant_list(int *count)
{
	*count = (int)(sizeof variants / sizeof variants[0]);
	return variants;
}

static int is_kernel_variant(const char *name)
{
	for (int v = 1; v < HG__SPMM_VARIANTS; v++)
		if (strcmp(name, hg__spmm_specs[v].name) == 0)
			return 1;
	return 0;
}

int variant_wanted(const struct bench *b, const struct variant *variant)
{
	const char *name = b->options.variant;
	const int named = strcmp(name, "all") == 0 || strcmp(name, variant->name) == 0 ||
	                  (variant == variants && is_kernel_variant(name));
	return named && (variant->state < 0 || variant->state == (int)b->policy->state);
}

int variant_check(const char *name)
{
	if (strcmp(name, "all") == 0)
		return 0;
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
		if (strcmp(name, variants[i].name) == 0)
			return 0;
	fprintf(stderr, "hg-bench: --variant is \"%s\", expected all, or one of:\n", name);
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
		fprintf(stderr, "  %-22s %s\n", variants[i].name, variants[i].help);
	return 2;
}

void variant_print(void)
{
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
		printf("%-22s %s\n", variants[i].name, variants[i].help);
}
