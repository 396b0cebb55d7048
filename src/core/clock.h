/* A clock for durations. */
#ifndef HG_CORE_CLOCK_H
#define HG_CORE_CLOCK_H

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* Seconds of a monotonic clock: nobody can set it, so differences between two readings are
 * durations. */
double hg__seconds(void);

HG_EXTERN_C_END
#endif
