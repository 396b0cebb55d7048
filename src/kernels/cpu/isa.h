#ifndef HG_KERNELS_CPU_ISA_H
#define HG_KERNELS_CPU_ISA_H

#include "kernels/kernels.h"

/* Every file of this folder but backend.c and coo.c is compiled once per instruction set, with
 * HG_ISA naming the copy. HG__CPU(spmm) is hg__cpu_avx512_spmm in one of them: external names of
 * this folder are always written so. */
#define HG__CPU_JOIN(isa, name) hg__cpu_##isa##_##name
#define HG__CPU_EXPAND(isa, name) HG__CPU_JOIN(isa, name)
#define HG__CPU(name) HG__CPU_EXPAND(HG_ISA, name)

#define HG_KERNEL(name, args) \
	HG_NODISCARD hg_status HG__CPU(name)(hg_context * ctx, const struct hg__##args *a);
#include "kernels/kernels.def"
#undef HG_KERNEL
extern const struct hg__kernels HG__CPU(table);

#define HG__INLINE static inline __attribute__((always_inline))

#endif
