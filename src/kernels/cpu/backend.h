#ifndef HG_KERNELS_CPU_BACKEND_H
#define HG_KERNELS_CPU_BACKEND_H

#include "core/context.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

/* One compiled copy of the CPU kernels. */
struct hg__cpu_isa {
	const char *name;
	int (*runs_here)(void);
	const struct hg__kernels *kernels;
};
/* Fastest first; the last one runs everywhere. */
const struct hg__cpu_isa *hg__cpu_isas(size_t *count);

/* The CPU backend with the fastest kernels that run on this machine. */
const struct hg__backend *hg__cpu_backend(void);

HG_EXTERN_C_END
#endif
