/* Opens a context on a backend. This file is above core because core does not know the backends. */
#include <stdarg.h>
#include <string.h>

#include "core/process.h"
#include "core/text.h"
#include "core/versioned.h"
#include "kernels/backends.h"

/* The message of a context that could not be created, since it can hold no message itself.
 * Thread-local. The library's only other hidden state is that of core/process.c, which is
 * thread-local, too. */
static _Thread_local char create_message[HG__MESSAGE];

static hg_status fail_create(hg_status status, const char *format, ...) HG_PRINTF(2, 3);
static hg_status fail_create(hg_status status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	hg__vprint_line(create_message, sizeof create_message, format, args);
	va_end(args);
	return status;
}

static hg_status check_config(const hg_context_config *c)
{
	if ((unsigned)c->device > HG_DEVICE_CUDA)
		return fail_create(HG_ERR_ARG, "context: device is %d, expected an hg_device, 0 to %d",
		                   (int)c->device, (int)HG_DEVICE_CUDA);
	if (c->device_index < 0)
		return fail_create(HG_ERR_ARG, "context: device_index is %d, expected at least 0",
		                   c->device_index);
	if (c->threads < 0 || c->threads > HG_THREADS_MAX)
		return fail_create(HG_ERR_ARG,
		                   "context: threads is %d, expected 0 (as many as OpenMP gives) to %d",
		                   c->threads, HG_THREADS_MAX);
	if ((unsigned)c->log_level > HG_LOG_DEBUG)
		return fail_create(HG_ERR_ARG,
		                   "context: log_level is %d, expected an hg_log_level, 0 to %d",
		                   (int)c->log_level, (int)HG_LOG_DEBUG);
	if (!c->allocator.alloc != !c->allocator.free)
		return fail_create(
		    HG_ERR_ARG, "context: allocator has %s without %s, expected both or neither",
		    c->allocator.alloc ? "alloc" : "free", c->allocator.alloc ? "free" : "alloc");
	return HG_OK;
}

static void init_context(hg_context *ctx, const hg_context_config *config,
                         const struct hg__backend *backend)
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

/* With AUTO, if a device responds but cannot be opened, the CPU is used and a warning is logged. An
 * invalid argument remains an error. */
static hg_status open_context(hg_context *ctx, const hg_context_config *config,
                              const struct hg__backend *backend)
{
	init_context(ctx, config, backend);
	const hg_status status = backend->open(ctx, config);
	if (status >= 0 || status == HG_ERR_ARG || config->device != HG_DEVICE_AUTO || config->stream ||
	    backend->kind == HG_DEVICE_CPU)
		return status;
	hg__log(ctx, HG_LOG_WARN, "%s; the context is on the CPU", ctx->message);
	backend = hg__backend_find(HG_DEVICE_CPU);
	init_context(ctx, config, backend);
	return backend->open(ctx, config);
}

hg_status hg_context_create(const hg_context_config *config, hg_context **context)
{
	hg_context_config c = HG_CONTEXT_CONFIG_INIT;
	create_message[0] = 0;
	if (!context)
		return fail_create(HG_ERR_ARG, "context: the pointer for the result is NULL");
	*context = NULL;
	if (config && !hg__struct_read(&c, sizeof c, config))
		return fail_create(HG_ERR_ARG,
		                   "context: config->size is not set (start from HG_CONTEXT_CONFIG_INIT), "
		                   "or a field unknown to this version is used");
	HG__TRY(check_config(&c));
	const struct hg__backend *backend = hg__backend_find(c.device);
	if (!backend)
		return fail_create(HG_ERR_UNSUPPORTED,
		                   c.device == HG_DEVICE_CUDA
		                       ? "context: no CUDA backend in this build, or no CUDA device answers"
		                       : "context: no such backend in this build");
	hg_context *ctx = hg__hooks_alloc(&c.allocator, sizeof *ctx);
	if (!ctx)
		return fail_create(HG_ERR_NOMEM, "context: no host memory for %zu bytes", sizeof *ctx);
	const hg_status status = open_context(ctx, &c, backend);
	if (status < 0) {
		(void)fail_create(status, "%s", ctx->message[0] ? ctx->message : hg_status_text(status));
		hg__hooks_free(&c.allocator, ctx, sizeof *ctx);
		return status;
	}
	hg__log(ctx, HG_LOG_INFO, "context: %s", ctx->device_name);
	*context = ctx;
	return HG_OK;
}

const char *hg_context_error(const hg_context *ctx)
{
	return ctx ? ctx->message : create_message;
}
