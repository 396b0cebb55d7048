#ifndef HG_KERNELS_CPU_TEAM_H
#define HG_KERNELS_CPU_TEAM_H

#include "core/process.h"

/* Threads for a parallel region that touches `work` elements: all or one. Waking and joining a
 * second thread costs
 * 0.8 us (measured, 2 cores, libgomp), in which one core does some 8,000 element operations
 * (10 a ns); at four times
 * that it begins to pay. Never a number between: libgomp ends and starts threads when the team
 * changes its size. */
#define HG__SERIAL_WORK 32768
static inline int hg__team(hg_context *ctx, int64_t work)
{
	return work < HG__SERIAL_WORK ? 1 : hg__threads(ctx, ctx->threads);
}

#endif
