/* The table of the kernels of one copy. Each row sets the rounding mode around its kernel. */
#include "core/rounding.h"
#include "kernels/cpu/isa.h"

/* Every kernel rounds to nearest, whatever rounding mode the caller has set. */
#define HG_KERNEL(name, args)                                                    \
	static hg_status rounded_##name(hg_context *ctx, const struct hg__##args *a) \
	{                                                                            \
		struct hg__rounding rounding;                                            \
		hg__rounding_begin(&rounding);                                           \
		const hg_status status = HG__CPU(name)(ctx, a);                          \
		hg__rounding_end(&rounding);                                             \
		return status;                                                           \
	}
#include "kernels/kernels.def"
#undef HG_KERNEL

const struct hg__kernels HG__CPU(table) = {
#define HG_KERNEL(name, args) \
	.name = {.run = rounded_##name, .workspace = HG__CPU(name##_workspace)},
#include "kernels/kernels.def"
#undef HG_KERNEL
};
