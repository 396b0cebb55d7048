#ifndef HG_CORE_PROCESS_H
#define HG_CORE_PROCESS_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* What a fork leaves behind. The child has one thread, the one that called fork, and memory as it
 * was: tensors, graphs
 * and tapes of a CPU are all there, but
 *
 *     OpenMP's threads are not. libgomp keeps a pool for each thread that has begun a parallel
 *     region, finds it in the
 *     child, and waits there for ever for threads of the parent. A team of one needs no pool, so
 *     that is what the child
 *     gets, and every result has the same bits with it. A thread that the child makes has no pool
 *     yet: it may have as
 *     many threads as it likes.
 *
 *     A GPU is not. No call of CUDA works in the child of a process that has used it. */

/* How many threads a parallel region that the calling thread begins may have: `wanted`, or 1 where
 * its pool belongs to
 * another process. ctx, which is warned once, may be NULL. */
int hg__threads(hg_context *ctx, int wanted);

/* HG_ERR_STATE with a sentence where another process has made the context: for devices that do not
 * survive a fork. */
HG_NODISCARD hg_status hg__same_process(hg_context *ctx);

/* The number of this process. */
long hg__process(void);

HG_EXTERN_C_END
#endif
