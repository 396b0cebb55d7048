#include "variants.h"

#include <stdio.h>
#include <string.h>

#include "variants/sddmm_variants.h"
#include "variants/spmm_variants.h"

#define SOURCE(source) " (" source ")"

static const struct variant spmm_list[] = {
    {"auto", "what training uses: the precision's accumulation, the kernel that dispatch chooses",
     -1, -1, -1},
    {"acc-f32", "f16 rows, f32 sums, scaled when a row is complete", HG_F16, HG_ACC_F32, -1},
    {"acc-f16-discretized", "f16 arithmetic, scaled batch by batch", HG_F16, HG_ACC_F16_DISCRETIZED,
     -1},
    {"acc-f16-naive", "f16 arithmetic, one sum a row, scaled after it", HG_F16, HG_ACC_F16_NAIVE,
     -1},
#define SPMM_VARIANT(id, name, share, columns, write, scale, accumulate, bound, group, flags, \
                     source, what)                                                            \
	{name, what SOURCE(source), HG_F16, HG_ACC_##accumulate, SPMM_##id},
#include "variants/spmm_variants.def"
#undef SPMM_VARIANT
};

static const struct variant sddmm_list[] = {
    {"auto", "what training uses: the kernel that dispatch chooses", -1, -1, -1},
#define SDDMM_VARIANT(id, name, multiply, columns, accumulate, source, what) \
	{name, what SOURCE(source), HG_F16, HG_ACC_##accumulate, SDDMM_##id},
#include "variants/sddmm_variants.def"
#undef SDDMM_VARIANT
};

#define COUNT(list) (int)(sizeof(list) / sizeof(list)[0])
static const struct variant_list lists[] = {
    {"spmm", spmm_list, COUNT(spmm_list)},
    {"sddmm", sddmm_list, COUNT(sddmm_list)},
};

const struct variant_list *variants_of(const char *command)
{
	for (int i = 0; i < COUNT(lists); i++)
		if (strcmp(lists[i].command, command) == 0)
			return &lists[i];
	return NULL;
}

static const struct variant *named(const struct variant_list *list, const char *name)
{
	for (int i = 0; i < list->count; i++)
		if (strcmp(name, list->variant[i].name) == 0)
			return &list->variant[i];
	return NULL;
}

int variant_of_kernel(const struct variant_list *list, const char *name)
{
	const struct variant *variant = named(list, name);
	return variant && variant->kernel >= 0;
}

int variant_wanted(const struct bench *b, const struct variant_list *list,
                   const struct variant *variant)
{
	const char *name = b->options.variant;
	const int selected = strcmp(name, "all") == 0 || strcmp(name, variant->name) == 0 ||
	                     (variant == list->variant && variant_of_kernel(list, name));
	return selected && (variant->state < 0 || variant->state == (int)b->policy->state);
}

static void print_list(const struct variant_list *list, const char *indent, FILE *to)
{
	for (int i = 0; i < list->count; i++)
		fprintf(to, "%s%-22s %s\n", indent, list->variant[i].name, list->variant[i].help);
}

int variant_check(const struct variant_list *list, const char *name)
{
	if (strcmp(name, "all") == 0 || named(list, name))
		return 0;
	fprintf(stderr, "hg-bench: --variant is \"%s\", expected for %s all, or one of:\n", name,
	        list->command);
	print_list(list, "  ", stderr);
	return 2;
}

void variant_print(const struct variant_list *list)
{
	print_list(list, "", stdout);
}

void variant_note(double automatic, unsigned flags, char *note, size_t size, struct result *r)
{
	const double over = r->ms.median / automatic;
	snprintf(note, size, "%.2fx auto%s%s", over, flags & VARIANT_UNSAFE ? ", unsafe" : "",
	         flags & VARIANT_UNORDERED ? ", unordered" : "");
	r->note = note;
	r->more[0] = over;
	r->more_name[0] = "over_auto";
}
