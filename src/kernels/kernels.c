/* The kernels by name, for tests and tools that run each of them. */
#include "kernels/kernels.h"

static const struct hg__kernel_entry entries[] = {
#define HG_KERNEL(name, args) {#name, offsetof(struct hg__kernels, name)},
#include "kernels/kernels.def"
#undef HG_KERNEL
};

const struct hg__kernel_entry *hg__kernel_list(size_t *count)
{
	*count = sizeof(entries) / sizeof(entries[0]);
	return entries;
}
