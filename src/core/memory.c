/* Host and device memory of a context: counted, limited, and with a sentence where there is
 * none. */
#include <stdlib.h>
#include <string.h>

#include "core/process.h"

/* Cache lines, and vector registers of 512 bits, are 64 bytes. */
#define HOST_ALIGNMENT 64

/* Linux hands out more memory than there is, and ends the program that writes to it. So a large
 * piece is asked for first, one that takes much longer to write than the system takes to say what
 * is free: 16 MiB are new pages for 9 ms, and /proc/meminfo is read in 17 us (a core of a Xeon). */
#define LARGE ((size_t)16 << 20)

static int is_there(hg_context *ctx, size_t bytes)
{
	size_t total = 0, available = 0;
	if (bytes < LARGE || ctx->backend->kind != HG_DEVICE_CPU)
		return 1;
	return ctx->backend->memory(ctx, &total, &available) < 0 || bytes <= available;
}

void *hg__hooks_alloc(const hg_allocator *hooks, size_t bytes)
{
	if (hooks->alloc)
		return hooks->alloc(hooks->user, bytes, 0);
	return bytes > SIZE_MAX - HOST_ALIGNMENT
	           ? NULL
	           : aligned_alloc(HOST_ALIGNMENT,
	                           (bytes + HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT);
}

void hg__hooks_free(const hg_allocator *hooks, void *memory, size_t bytes)
{
	if (hooks->alloc)
		hooks->free(hooks->user, memory, bytes, 0);
	else
		free(memory);
}

hg_status hg__host_alloc(hg_context *ctx, size_t count, size_t size, const char *what,
                         void **memory)
{
	*memory = NULL;
	if (!count || !size)
		return HG_OK;
	if (count > SIZE_MAX / size)
		return hg__fail(ctx, HG_ERR_NOMEM,
		                "%s: %zu elements of %zu bytes are more than memory can hold", what, count,
		                size);
	if (ctx->allocator.alloc || is_there(ctx, count * size))
		*memory = hg__hooks_alloc(&ctx->allocator, count * size);
	if (!*memory)
		return hg__fail(ctx, HG_ERR_NOMEM, "%s: no host memory for %zu bytes", what, count * size);
	memset(*memory, 0, count * size);
	return HG_OK;
}

void hg__host_free(hg_context *ctx, void *memory, size_t bytes)
{
	if (memory)
		hg__hooks_free(&ctx->allocator, memory, bytes);
}

/* What the limit leaves. */
static size_t limit_room(const hg_context *ctx)
{
	return !ctx->memory_limit                       ? SIZE_MAX
	       : ctx->memory_limit > ctx->current_bytes ? ctx->memory_limit - ctx->current_bytes
	                                                : 0;
}

hg_status hg__device_room(hg_context *ctx, size_t *bytes)
{
	size_t total = 0, available = SIZE_MAX;
	const size_t room = limit_room(ctx);
	if (!ctx->allocator.alloc)
		HG__TRY(ctx->backend->memory(ctx, &total, &available));
	*bytes = room < available ? room : available;
	return HG_OK;
}

hg_status hg__device_alloc(hg_context *ctx, size_t bytes, const char *what, void **memory)
{
	*memory = NULL;
	if (!bytes)
		return HG_OK;
	const hg_allocator *hooks = &ctx->allocator;
	const size_t room = limit_room(ctx);
	if (bytes > room)
		return hg__fail(ctx, HG_ERR_NOMEM,
		                "%s: no device memory for %zu bytes (%zu held by this context, whose "
		                "memory_limit is %zu)",
		                what, bytes, ctx->current_bytes, ctx->memory_limit);
	if (hooks->alloc)
		*memory = hooks->alloc(hooks->user, bytes, 1);
	else if (is_there(ctx, bytes))
		*memory = ctx->backend->alloc(ctx, bytes);
	if (!*memory && ctx->backend->kind != HG_DEVICE_CPU)
		HG__TRY(hg__same_process(ctx));
	if (!*memory)
		return hg__fail(ctx, HG_ERR_NOMEM,
		                "%s: no device memory for %zu bytes (%zu held by this context)", what,
		                bytes, ctx->current_bytes);
	ctx->current_bytes += bytes;
	if (ctx->current_bytes > ctx->peak_bytes)
		ctx->peak_bytes = ctx->current_bytes;
	return HG_OK;
}

void hg__device_free(hg_context *ctx, void *memory, size_t bytes)
{
	if (!memory)
		return;
	if (!ctx->allocator.alloc)
		ctx->backend->free(ctx, memory);
	else {
		if (ctx->backend->synchronize(ctx) < 0)
			hg__log(ctx, HG_LOG_ERROR, "%s: while memory was given back", ctx->message);
		ctx->allocator.free(ctx->allocator.user, memory, bytes, 1);
	}
	ctx->current_bytes -= bytes;
}

/* Kernels that are queued may still use the old piece, so it goes only after they have run. It goes
 * before the new one comes: the peak is the larger one. */
hg_status hg__workspace(hg_context *ctx, size_t bytes, void **memory)
{
	if (bytes > ctx->workspace_bytes) {
		HG__TRY(ctx->backend->synchronize(ctx));
		hg__device_free(ctx, ctx->workspace, ctx->workspace_bytes);
		ctx->workspace_bytes = 0;
		HG__TRY(hg__device_alloc(ctx, bytes, "workspace", &ctx->workspace));
		ctx->workspace_bytes = bytes;
	}
	*memory = ctx->workspace;
	return HG_OK;
}
