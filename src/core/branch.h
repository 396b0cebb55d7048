/* Branches of a context: what is queued on one may run beside what is queued on the others. */
#ifndef HG_CORE_BRANCH_H
#define HG_CORE_BRANCH_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* A branch is a context that shares device, libraries and memory limit with the context that it
 * branches off, and has a stream and scratch memory of its own. Its error messages are its own, and
 * it logs nothing, since the caller's log function expects one thread at a time; so on a CPU a
 * thread may use it while others use other branches.
 *
 * Work that was queued on the context itself once may be queued on a branch without an allocation.
 * threads: of a CPU. The context stays open until the branch is closed. */
HG_NODISCARD hg_status hg__branch_open(hg_context *of, int threads, hg_context **branch);
void hg__branch_close(hg_context *branch);
/* Gives the branch as much scratch memory as its context has by now; waits if that has grown. */
HG_NODISCARD hg_status hg__branch_grow(hg_context *branch);
/* What is queued on the branch from now on runs after all that is queued on its context now. */
HG_NODISCARD hg_status hg__branch_fork(hg_context *branch);
/* What is queued on the context from now on runs after all that is queued on the branch now. */
HG_NODISCARD hg_status hg__branch_join(hg_context *branch);

HG_EXTERN_C_END
#endif
