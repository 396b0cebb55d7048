/* The monotonic clock of POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "core/clock.h"

#include <time.h>

double hg__seconds(void)
{
	struct timespec t = {0, 0};
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
