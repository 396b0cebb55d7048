#ifndef HG_CORE_CAPTURE_H
#define HG_CORE_CAPTURE_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* Work that is queued again and again, caught once and launched as a whole (backend.h). All zero:
 * nothing is caught. */
struct hg__capture {
	void *work; /* the backend's; NULL: none */
	int64_t operations;
	const void *workspace; /* scratch memory that the work uses; when it grows it moves */
};

/* Queue everything that belongs to the work. */
typedef hg_status (*hg__queue_fn)(void *user);

/* Catch what `queue` queues; none of it has run when this returns. Call it once for real before:
 * kernels are loaded and algorithms chosen then. On failure nothing is caught, and the context says
 * why. */
HG_NODISCARD hg_status hg__capture(hg_context *ctx, hg__queue_fn queue, void *user,
                                   struct hg__capture *capture);
void hg__capture_drop(hg_context *ctx, struct hg__capture *capture);

/* Is there work that may be launched? */
static inline int hg__captured(const hg_context *ctx, const struct hg__capture *capture)
{
	return capture->work && capture->workspace == ctx->workspace;
}

HG_EXTERN_C_END
#endif
