/* The life of a context after kernels/open.c has opened it: its holds, closing, and what it reports
 * about itself. */
#include "core/context.h"

#include "core/versioned.h"

static void context_close(hg_context *ctx)
{
	if (ctx->workspace && ctx->backend->synchronize(ctx) < 0)
		hg__log(ctx, HG_LOG_ERROR, "context: %s while closing", ctx->message);
	hg__device_free(ctx, ctx->workspace, ctx->workspace_bytes);
	ctx->backend->close(ctx);
	const hg_allocator hooks = ctx->allocator;
	hg__hooks_free(&hooks, ctx, sizeof *ctx);
}

void hg__context_hold(hg_context *ctx)
{
	ctx->holds++;
}

void hg__context_release(hg_context *ctx)
{
	if (--ctx->holds == 0)
		context_close(ctx);
}

void hg_context_free(hg_context *ctx)
{
	if (!ctx)
		return;
	if (ctx->holds > 1) {
		hg__log(ctx, HG_LOG_WARN,
		        "context: freed before its objects, which hold %zu bytes; it closes with the last "
		        "of them",
		        ctx->current_bytes);
		ctx->log = NULL; /* what the log writes to may not outlive the caller's hold */
	}
	hg__context_release(ctx);
}

hg_device hg_context_device(const hg_context *ctx)
{
	return ctx ? ctx->backend->kind : HG_DEVICE_AUTO;
}

const char *hg_context_device_name(const hg_context *ctx)
{
	return ctx ? ctx->device_name : "";
}

uint64_t hg_context_seed(const hg_context *ctx)
{
	return ctx ? ctx->seed : 0;
}

hg_status hg_context_synchronize(hg_context *ctx)
{
	return ctx ? ctx->backend->synchronize(ctx) : HG_ERR_ARG;
}

hg_status hg_context_memory(hg_context *ctx, hg_memory_info *info)
{
	hg_memory_info found = HG_MEMORY_INFO_INIT;
	if (!ctx)
		return HG_ERR_ARG;
	if (!info)
		return hg__fail(ctx, HG_ERR_ARG, "memory: info is NULL");
	found.current_bytes = ctx->current_bytes;
	found.peak_bytes = ctx->peak_bytes;
	HG__TRY(ctx->backend->memory(ctx, &found.device_total_bytes, &found.device_free_bytes));
	if (!hg__struct_write(info, &found, sizeof found))
		return hg__fail(ctx, HG_ERR_ARG,
		                "memory: info->size is not set: start from HG_MEMORY_INFO_INIT");
	return HG_OK;
}
