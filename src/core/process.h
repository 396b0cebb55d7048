/* Behaviour after a fork. The child process has one thread, the one that called fork, and a copy of
 * all memory. Tensors, graphs and tapes on a CPU therefore still work, but two things do not:
 *
 * OpenMP's threads do not exist in the child. libgomp keeps a pool of threads for each thread that
 * has begun a parallel region. The child inherits that pool and would wait for ever for the
 * parent's threads. A team of one thread needs no pool, so the child computes in one thread, which
 * gives every result the same bits. A thread that the child itself creates has no pool yet and may
 * use as many threads as it likes.
 *
 * A GPU does not work: every CUDA call fails in the child of a process that has used CUDA. */
#ifndef HG_CORE_PROCESS_H
#define HG_CORE_PROCESS_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* Number of threads for a parallel region of the calling thread: `requested`, or 1 where the
 * thread's pool belongs to another process. ctx gets one warning; it may be NULL. */
int hg__threads(hg_context *ctx, int requested);

/* HG_ERR_STATE, with a message, if another process made the context. For devices that do not
 * survive a fork. */
HG_NODISCARD hg_status hg__same_process(hg_context *ctx);

/* The id of this process. */
long hg__process(void);

HG_EXTERN_C_END
#endif
