/* Host and device memory of a context. Device memory is counted and limited, and a failed
 * allocation leaves a message that says how much was asked for. */
#include <stdlib.h>
#include <string.h>

#include "core/process.h"

/* Cache lines, and vector registers of 512 bits, are 64 bytes. */
#define HOST_ALIGNMENT 64

/* Linux grants more memory than there is, and later kills the process that writes to it. Before an
 * allocation of this size or more, the backend is therefore asked how much memory is free. The
 * query is cheap beside writing that much: 16 MiB of new pages take 9 ms, and reading /proc/meminfo
 * 17 us (one core of a Xeon). */
#define CHECKED_BYTES ((size_t)16 << 20)

static int memory_is_free(hg_context *ctx, size_t bytes)
{
	size_t total = 0, available = 0;
	if (bytes < CHECKED_BYTES || ctx->backend->kind != HG_DEVICE_CPU)
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
	if (ctx->allocator.alloc || memory_is_free(ctx, count * size))
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

hg_status hg__host_grow(hg_context *ctx, void **array, size_t size, int64_t count,
                        int64_t *capacity, const char *what)
{
	if (count < *capacity)
		return HG_OK;
	const int64_t wanted = *capacity ? 2 * *capacity : 32;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, (size_t)wanted, size, what, &memory));
	if (count)
		memcpy(memory, *array, (size_t)count * size);
	hg__host_free(ctx, *array, (size_t)*capacity * size);
	*array = memory;
	*capacity = wanted;
	return HG_OK;
}

/* The context that counts the memory of this one. */
static hg_context *counter_of(hg_context *ctx)
{
	return ctx->of ? ctx->of : ctx;
}

/* Bytes that the memory limit still allows. */
static size_t limit_room(const hg_context *ctx)
{
	return !ctx->memory_limit                       ? SIZE_MAX
	       : ctx->memory_limit > ctx->current_bytes ? ctx->memory_limit - ctx->current_bytes
	                                                : 0;
}

hg_status hg__device_room(hg_context *ctx, size_t *bytes)
{
	size_t total = 0, available = SIZE_MAX;
	const size_t room = limit_room(counter_of(ctx));
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
	hg_context *counter = counter_of(ctx);
	const size_t room = limit_room(counter);
	if (bytes > room)
		return hg__fail(ctx, HG_ERR_NOMEM,
		                "%s: no device memory for %zu bytes (%zu held by this context, whose "
		                "memory_limit is %zu)",
		                what, bytes, counter->current_bytes, ctx->memory_limit);
	if (hooks->alloc)
		*memory = hooks->alloc(hooks->user, bytes, 1);
	else if (memory_is_free(ctx, bytes))
		*memory = ctx->backend->alloc(ctx, bytes);
	if (!*memory && ctx->backend->kind != HG_DEVICE_CPU)
		HG__TRY(hg__same_process(ctx));
	if (!*memory)
		return hg__fail(ctx, HG_ERR_NOMEM,
		                "%s: no device memory for %zu bytes (%zu held by this context)", what,
		                bytes, counter->current_bytes);
	counter->current_bytes += bytes;
	if (counter->current_bytes > counter->peak_bytes)
		counter->peak_bytes = counter->current_bytes;
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
			hg__log(ctx, HG_LOG_ERROR, "%s: while memory was freed", ctx->message);
		ctx->allocator.free(ctx->allocator.user, memory, bytes, 1);
	}
	counter_of(ctx)->current_bytes -= bytes;
}

/* Queued kernels may still use the old memory, so it is freed only after they have run. It is freed
 * before the new memory is allocated, so the peak is the larger of the two and not their sum. */
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
