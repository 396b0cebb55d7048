/* Captured work: the work of a step is queued once, captured, and then launched as a whole for
 * every step after (a CUDA graph; see backend.h). */
#ifndef HG_CORE_CAPTURE_H
#define HG_CORE_CAPTURE_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* One captured piece of work. All zero: nothing is captured. */
struct hg__capture {
	void *work; /* the backend's handle; NULL: none */
	int64_t operations;
	/* Scratch memory that the work uses. If it has grown since, the work is invalid. */
	const void *workspace;
};

/* Queues everything that belongs to the work. */
typedef hg_status (*hg__queue_fn)(void *user);

/* Captures what `queue` queues; none of it has run when this function returns. The caller must have
 * executed the same work once before, because that loads kernels and chooses algorithms, which a
 * capture cannot do. After a failure nothing is captured, and the context has the error. */
HG_NODISCARD hg_status hg__capture(hg_context *ctx, hg__queue_fn queue, void *user,
                                   struct hg__capture *capture);
void hg__capture_drop(hg_context *ctx, struct hg__capture *capture);

/* Whether there is captured work that may still be launched. */
static inline int hg__captured(const hg_context *ctx, const struct hg__capture *capture)
{
	return capture->work && capture->workspace == ctx->workspace;
}

HG_EXTERN_C_END
#endif
