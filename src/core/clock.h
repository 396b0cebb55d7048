#ifndef HG_CORE_CLOCK_H
#define HG_CORE_CLOCK_H

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* Seconds of a clock that no one sets: for differences. */
double hg__seconds(void);

HG_EXTERN_C_END
#endif
