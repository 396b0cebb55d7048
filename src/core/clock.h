/* A clock for durations. */
#ifndef HG_CORE_CLOCK_H
#define HG_CORE_CLOCK_H

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* Seconds of a monotonic clock. It cannot be set, so the difference between two readings is always
 * a duration. */
double hg__seconds(void);

HG_EXTERN_C_END
#endif
