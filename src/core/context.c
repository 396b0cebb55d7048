#include "core/context.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/process.h"
#include "core/versioned.h"

/* One of two pieces of hidden state, both of the thread (the other: process.c): a context that could not be made has
 * nowhere else to keep its sentence. */
static _Thread_local char create_message[HG__MESSAGE];

/* Cache lines, and vector registers of 512 bits, are 64 bytes. */
#define HOST_ALIGNMENT 64

hg_status hg__fail(hg_context *ctx, hg_status status, const char *format, ...)
{
	if (!ctx)
		return status;
	char text[HG__MESSAGE]; /* an argument may be the old message */
	va_list args;
	va_start(args, format);
	hg__vprint(text, sizeof text, format, args);
	va_end(args);
	memcpy(ctx->message, text, sizeof text);
	hg__log(ctx, HG_LOG_DEBUG, "%s: %s", hg_status_name(status), text);
	return status;
}

static int is_heard(const hg_context *ctx, hg_log_level level)
{
	return ctx && ctx->log && level <= ctx->log_level;
}

static void say(hg_context *ctx, hg_log_level level, const char *format, va_list args) HG_PRINTF(3, 0);
static void say(hg_context *ctx, hg_log_level level, const char *format, va_list args)
{
	char text[2 * HG__MESSAGE];
	hg__vprint(text, sizeof text, format, args);
	ctx->log(ctx->log_user, level, text);
}

void hg__log(hg_context *ctx, hg_log_level level, const char *format, ...)
{
	if (!is_heard(ctx, level))
		return;
	va_list args;
	va_start(args, format);
	say(ctx, level, format, args);
	va_end(args);
}

void hg__log_once(hg_context *ctx, unsigned key, hg_log_level level, const char *format, ...)
{
	const uint64_t bit = (uint64_t)1 << key;
	if (!is_heard(ctx, level) || (ctx->logged & bit))
		return;
	ctx->logged |= bit;
	va_list args;
	va_start(args, format);
	say(ctx, level, format, args);
	va_end(args);
}

static hg_status create_fail(hg_status status, const char *format, ...) HG_PRINTF(2, 3);
static hg_status create_fail(hg_status status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	hg__vprint(create_message, sizeof create_message, format, args);
	va_end(args);
	return status;
}

/* Linux hands out more memory than there is, and ends the program that writes to it. So a large piece is asked for first, one that takes much longer to write than
 * the system takes to say what is free: 16 MiB are new pages for 9 ms, and /proc/meminfo is read in 17 us (a core of a Xeon). */
#define LARGE ((size_t)16 << 20)

static int is_there(hg_context *ctx, size_t bytes)
{
	size_t total = 0, available = 0;
	if (bytes < LARGE || ctx->backend->kind != HG_DEVICE_CPU)
		return 1;
	return ctx->backend->memory(ctx, &total, &available) < 0 || bytes <= available;
}

static void *host_memory(const hg_allocator *hooks, size_t bytes)
{
	if (hooks->alloc)
		return hooks->alloc(hooks->user, bytes, 0);
	return bytes > SIZE_MAX - HOST_ALIGNMENT ? NULL : aligned_alloc(HOST_ALIGNMENT, (bytes + HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT);
}

static void host_release(const hg_allocator *hooks, void *memory, size_t bytes)
{
	if (hooks->alloc)
		hooks->free(hooks->user, memory, bytes, 0);
	else
		free(memory);
}

hg_status hg__host_alloc(hg_context *ctx, size_t count, size_t size, const char *what, void **memory)
{
	*memory = NULL;
	if (!count || !size)
		return HG_OK;
	if (count > SIZE_MAX / size)
		return hg__fail(ctx, HG_ERR_NOMEM, "%s: %zu elements of %zu bytes are more than memory can hold", what, count, size);
	if (ctx->allocator.alloc || is_there(ctx, count * size))
		*memory = host_memory(&ctx->allocator, count * size);
	if (!*memory)
		return hg__fail(ctx, HG_ERR_NOMEM, "%s: no host memory for %zu bytes", what, count * size);
	memset(*memory, 0, count * size);
	return HG_OK;
}

void hg__host_free(hg_context *ctx, void *memory, size_t bytes)
{
	if (memory)
		host_release(&ctx->allocator, memory, bytes);
}

/* What the limit leaves. */
static size_t limit_room(const hg_context *ctx)
{
	return !ctx->memory_limit ? SIZE_MAX : ctx->memory_limit > ctx->current_bytes ? ctx->memory_limit - ctx->current_bytes : 0;
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
		return hg__fail(ctx, HG_ERR_NOMEM, "%s: no device memory for %zu bytes (%zu held by this context, whose memory_limit is %zu)", what, bytes,
		                ctx->current_bytes, ctx->memory_limit);
	if (hooks->alloc)
		*memory = hooks->alloc(hooks->user, bytes, 1);
	else if (is_there(ctx, bytes))
		*memory = ctx->backend->alloc(ctx, bytes);
	if (!*memory && ctx->backend->kind != HG_DEVICE_CPU)
		HG__TRY(hg__same_process(ctx));
	if (!*memory)
		return hg__fail(ctx, HG_ERR_NOMEM, "%s: no device memory for %zu bytes (%zu held by this context)", what, bytes, ctx->current_bytes);
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

/* Kernels that are queued may still use the old piece, so it goes only after they have run. It goes before the new one comes: the peak is the larger one. */
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

static hg_status config_check(const hg_context_config *c)
{
	if ((unsigned)c->device > HG_DEVICE_CUDA)
		return create_fail(HG_ERR_ARG, "context: device is %d, expected an hg_device, 0 to %d", (int)c->device, (int)HG_DEVICE_CUDA);
	if (c->device_index < 0)
		return create_fail(HG_ERR_ARG, "context: device_index is %d, expected at least 0", c->device_index);
	if (c->threads < 0 || c->threads > HG_THREADS_MAX)
		return create_fail(HG_ERR_ARG, "context: threads is %d, expected 0 (as many as OpenMP gives) to %d", c->threads, HG_THREADS_MAX);
	if ((unsigned)c->log_level > HG_LOG_DEBUG)
		return create_fail(HG_ERR_ARG, "context: log_level is %d, expected an hg_log_level, 0 to %d", (int)c->log_level, (int)HG_LOG_DEBUG);
	if (!c->allocator.alloc != !c->allocator.free)
		return create_fail(HG_ERR_ARG, "context: allocator has %s without %s, expected both or neither", c->allocator.alloc ? "alloc" : "free",
		                   c->allocator.alloc ? "free" : "alloc");
	return HG_OK;
}

static void context_set(hg_context *ctx, const hg_context_config *config, const struct hg__backend *backend)
{
	memset(ctx, 0, sizeof *ctx);
	ctx->backend = backend;
	ctx->holds = 1;
	ctx->process = hg__process();
	ctx->device_index = config->device_index;
	ctx->threads = config->threads;
	ctx->seed = config->seed;
	ctx->log = config->log;
	ctx->log_user = config->log_user;
	ctx->log_level = config->log_level;
	ctx->allocator = config->allocator;
	ctx->separate_ops = config->separate_ops;
	ctx->memory_limit = config->memory_limit;
}

/* AUTO goes on to the CPU when a device that answers does not open, and says so; a wrong argument stays one. */
static hg_status context_open(hg_context *ctx, const hg_context_config *config, const struct hg__backend *backend)
{
	context_set(ctx, config, backend);
	const hg_status status = backend->open(ctx, config);
	if (status >= 0 || status == HG_ERR_ARG || config->device != HG_DEVICE_AUTO || config->stream || backend->kind == HG_DEVICE_CPU)
		return status;
	hg__log(ctx, HG_LOG_WARN, "%s; the context is on the CPU", ctx->message);
	backend = hg__backend_find(HG_DEVICE_CPU);
	context_set(ctx, config, backend);
	return backend->open(ctx, config);
}

hg_status hg_context_create(const hg_context_config *config, hg_context **context)
{
	hg_context_config c = HG_CONTEXT_CONFIG_INIT;
	create_message[0] = 0;
	if (!context)
		return create_fail(HG_ERR_ARG, "context: the pointer for the result is NULL");
	*context = NULL;
	if (config && !hg__struct_read(&c, sizeof c, config))
		return create_fail(HG_ERR_ARG, "context: config->size is not set (start from HG_CONTEXT_CONFIG_INIT), or a field unknown to this version is used");
	HG__TRY(config_check(&c));
	const struct hg__backend *backend = hg__backend_find(c.device);
	if (!backend)
		return create_fail(HG_ERR_UNSUPPORTED, c.device == HG_DEVICE_CUDA ? "context: no CUDA backend in this build, or no CUDA device answers"
		                                                                  : "context: no such backend in this build");
	hg_context *ctx = host_memory(&c.allocator, sizeof *ctx);
	if (!ctx)
		return create_fail(HG_ERR_NOMEM, "context: no host memory for %zu bytes", sizeof *ctx);
	const hg_status status = context_open(ctx, &c, backend);
	if (status < 0) {
		(void)create_fail(status, "%s", ctx->message[0] ? ctx->message : hg_status_text(status));
		host_release(&c.allocator, ctx, sizeof *ctx);
		return status;
	}
	hg__log(ctx, HG_LOG_INFO, "context: %s", ctx->device_name);
	*context = ctx;
	return HG_OK;
}

static void context_close(hg_context *ctx)
{
	if (ctx->workspace && ctx->backend->synchronize(ctx) < 0)
		hg__log(ctx, HG_LOG_ERROR, "context: %s while closing", ctx->message);
	hg__device_free(ctx, ctx->workspace, ctx->workspace_bytes);
	ctx->backend->close(ctx);
	const hg_allocator hooks = ctx->allocator;
	host_release(&hooks, ctx, sizeof *ctx);
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
		hg__log(ctx, HG_LOG_WARN, "context: freed before its objects, which hold %zu bytes; it closes with the last of them", ctx->current_bytes);
		ctx->log = NULL; /* what it writes to may end with the caller's hold */
	}
	hg__context_release(ctx);
}

const char *hg_context_error(const hg_context *ctx)
{
	return ctx ? ctx->message : create_message;
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
	hg_memory_info ours = HG_MEMORY_INFO_INIT;
	if (!ctx)
		return HG_ERR_ARG;
	if (!info)
		return hg__fail(ctx, HG_ERR_ARG, "memory: info is NULL");
	ours.current_bytes = ctx->current_bytes;
	ours.peak_bytes = ctx->peak_bytes;
	HG__TRY(ctx->backend->memory(ctx, &ours.device_total_bytes, &ours.device_free_bytes));
	if (!hg__struct_write(info, &ours, sizeof ours))
		return hg__fail(ctx, HG_ERR_ARG, "memory: info->size is not set: start from HG_MEMORY_INFO_INIT");
	return HG_OK;
}
