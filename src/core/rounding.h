#ifndef HG_CORE_ROUNDING_H
#define HG_CORE_ROUNDING_H

#include <fenv.h>

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* Floating-point arithmetic has a mode, and each thread has its own: where numbers are rounded to
 * (fesetround), whether those near 0 are flushed to it, whether what is invalid ends the program. A
 * thread gets the mode of the one that makes it. So a program that changes the mode changes it for
 * its own thread, and not for OpenMP's: what one thread computes would have other bits than what
 * the other one does, and results would depend on their number.
 *
 * What a CPU computes is therefore computed in the mode in which programs begin, to nearest,
 * whatever the caller's, which has it back afterwards. On x86-64 all of it is looked at, elsewhere
 * where numbers are rounded to. */
struct hg__rounding {
	fenv_t callers;
	int differs;
};
void hg__rounding_begin(struct hg__rounding *rounding);
void hg__rounding_end(const struct hg__rounding *rounding);

/* The same for good, for `threads` threads of the calling thread's team, but the calling one:
 * whoever made them may have been in another mode. */
void hg__rounding_team(int threads);

HG_EXTERN_C_END
#endif
