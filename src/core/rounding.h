/* Computation on a CPU in the default floating-point mode, whatever the mode of the calling
 * program. */
#ifndef HG_CORE_ROUNDING_H
#define HG_CORE_ROUNDING_H

#include <fenv.h>

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* Each thread has a floating-point mode: the rounding direction (fesetround), whether numbers near
 * 0 are flushed to zero, and whether invalid operations trap. A new thread inherits the mode of its
 * creator. A program that changes the mode therefore changes it for its own thread but not for
 * existing OpenMP threads; threads would compute different bits, and results would depend on their
 * number.
 *
 * So the CPU backend computes in the mode in which programs start, rounding to nearest, and
 * restores the caller's mode afterwards. On x86-64 the whole mode is checked, elsewhere the
 * rounding direction. */
struct hg__rounding {
	fenv_t callers;
	int differs;
};
void hg__rounding_begin(struct hg__rounding *rounding);
void hg__rounding_end(const struct hg__rounding *rounding);

/* Sets the default mode permanently in the first `threads` threads of the calling thread's team,
 * without the calling thread itself: their creator may have had another mode. */
void hg__rounding_team(int threads);

HG_EXTERN_C_END
#endif
