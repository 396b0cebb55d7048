/* How many threads a parallel region of the CPU backend uses. */
#ifndef HG_KERNELS_CPU_TEAM_H
#define HG_KERNELS_CPU_TEAM_H

#include "core/process.h"

/* The number of threads for a parallel region that touches `work` elements: either all or one.
 * Waking and joining a second thread costs 0.8 us (measured on 2 cores with libgomp). In this time
 * one core does some 8,000 element operations (10 in a nanosecond), and with four times as many the
 * second thread begins to pay off. The number is never between one and all, because libgomp ends
 * and starts threads whenever the size of the team changes. */
#define HG__SERIAL_WORK 32768
static inline int hg__team(hg_context *ctx, int64_t work)
{
	return work < HG__SERIAL_WORK ? 1 : hg__threads(ctx, ctx->threads);
}

#endif
