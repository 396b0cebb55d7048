/* Names for the copies of the CPU kernels, one copy for each instruction set. */
#ifndef HG_KERNELS_CPU_ISA_H
#define HG_KERNELS_CPU_ISA_H

#include "kernels/kernels.h"

/* Every file of this folder except backend.c, coo.c and facts.c is compiled once for each
 * instruction set, and HG_ISA names the copy. In the AVX-512 copy, for example, HG__CPU(spmm)
 * expands to hg__cpu_avx512_spmm. External names of those files are always written with HG__CPU, so
 * that the copies do not collide. */
#define HG__CPU_JOIN(isa, name) hg__cpu_##isa##_##name
#define HG__CPU_EXPAND(isa, name) HG__CPU_JOIN(isa, name)
#define HG__CPU(name) HG__CPU_EXPAND(HG_ISA, name)

/* The two functions of a kernel's row: NAME and NAME_workspace. */
#define HG_KERNEL(name, args)                                                           \
	HG_NODISCARD hg_status HG__CPU(name)(hg_context * ctx, const struct hg__##args *a); \
	size_t HG__CPU(name##_workspace)(const hg_context *ctx, const struct hg__##args *a);
#include "kernels/kernels.def"
#undef HG_KERNEL
extern const struct hg__kernels HG__CPU(table);

/* The workspace of a kernel that takes none: HG__NO_WORKSPACE(act, act_args). */
#define HG__NO_WORKSPACE(name, args)                                                    \
	size_t HG__CPU(name##_workspace)(const hg_context *ctx, const struct hg__##args *a) \
	{                                                                                   \
		(void)ctx, (void)a;                                                             \
		return 0;                                                                       \
	}

#define HG__INLINE static inline __attribute__((always_inline))

#endif
