/* Captures queued work and releases it. The backend does the capturing. */
#include "core/capture.h"

hg_status hg__capture(hg_context *ctx, hg__queue_fn queue, void *user, struct hg__capture *capture)
{
	hg__capture_drop(ctx, capture);
	HG__TRY(ctx->backend->capture_begin(ctx));
	const hg_status queued = queue(user);
	const hg_status ended =
	    ctx->backend->capture_end(ctx, queued < 0 ? NULL : &capture->work, &capture->operations);
	capture->workspace = ctx->workspace;
	return queued < 0 ? queued : ended;
}

void hg__capture_drop(hg_context *ctx, struct hg__capture *capture)
{
	if (capture->work)
		ctx->backend->work_free(ctx, capture->work);
	*capture = (struct hg__capture){0};
}
