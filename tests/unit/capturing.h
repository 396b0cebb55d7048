#ifndef HG_TESTS_CAPTURING_H
#define HG_TESTS_CAPTURING_H

#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/refill.h"
#include "harness.h"
#include "kernels/kernels.h"

/* A CPU that captures, as a GPU does: while it captures, a call of a kernel, a copy or a fill is
 * recorded with its arguments instead of run, and a launch runs the recorded calls. So a captured
 * step that depends on anything but addresses, constants and device memory gives other bits here
 * than call by call, as on a GPU. What a GPU forbids in a capture (to allocate, to free, to wait,
 * to copy from or to the host) is an error here too. */

enum { CAPTURED_BYTES = 1024, CAPTURED_CALLS = 16384 };

struct captured_call {
	hg_status (*run)(hg_context *ctx, const void *args);
	_Alignas(16) unsigned char args[CAPTURED_BYTES];
};

struct captured_list {
	int64_t calls;
	struct captured_call *call;
};

/* There is one such device at a time: tests run one after the other. */
struct capturing {
	struct hg__backend backend;
	struct hg__kernels kernels;
	const struct hg__backend *real;
	struct captured_list *list; /* of the capture in progress; NULL: calls run at once */
	int broken;
	int64_t captures, launches, kept; /* kept: captured lists that are not freed yet */
};
static struct capturing capturing;

static hg_status captured_push(hg_status (*run)(hg_context *, const void *), const void *args,
                               size_t bytes)
{
	struct captured_list *list = capturing.list;
	CHECK(bytes <= CAPTURED_BYTES && list->calls < CAPTURED_CALLS);
	list->call[list->calls].run = run;
	memcpy(list->call[list->calls++].args, args, bytes);
	return HG_OK;
}

/* ---- kernels: for each a function that records or runs a call, and one that runs a recorded one
 * ---- */

#define HG_KERNEL(name, args_struct)                                                        \
	static hg_status captured_run_##name(hg_context *ctx, const void *args)                 \
	{                                                                                       \
		return capturing.real->kernels->name.run(ctx, args);                                \
	}                                                                                       \
	static hg_status captured_##name(hg_context *ctx, const struct hg__##args_struct *args) \
	{                                                                                       \
		return capturing.list ? captured_push(captured_run_##name, args, sizeof *args)      \
		                      : capturing.real->kernels->name.run(ctx, args);               \
	}
#include "kernels/kernels.def"
#undef HG_KERNEL

/* ---- graphs that are refilled ---- */

static hg_status captured_run_refill(hg_context *ctx, const void *args)
{
	return capturing.real->refill(ctx, args);
}

static hg_status captured_refill(hg_context *ctx, const struct hg__refill *refill)
{
	return capturing.list ? captured_push(captured_run_refill, refill, sizeof *refill)
	                      : capturing.real->refill(ctx, refill);
}

/* ---- copies and fills ---- */

struct captured_move {
	void *to;
	const void *from;
	int byte;
	size_t bytes;
};

static hg_status captured_run_copy(hg_context *ctx, const void *args)
{
	const struct captured_move *m = args;
	return capturing.real->copy(ctx, m->to, m->from, m->bytes);
}

static hg_status captured_copy(hg_context *ctx, void *to, const void *from, size_t bytes)
{
	const struct captured_move m = {to, from, 0, bytes};
	return capturing.list ? captured_push(captured_run_copy, &m, sizeof m)
	                      : captured_run_copy(ctx, &m);
}

static hg_status captured_run_fill(hg_context *ctx, const void *args)
{
	const struct captured_move *m = args;
	return capturing.real->fill(ctx, m->to, m->byte, m->bytes);
}

static hg_status captured_fill(hg_context *ctx, void *memory, int byte, size_t bytes)
{
	const struct captured_move m = {memory, NULL, byte, bytes};
	return capturing.list ? captured_push(captured_run_fill, &m, sizeof m)
	                      : captured_run_fill(ctx, &m);
}

/* ---- what a capture forbids ---- */

static hg_status captured_forbid(hg_context *ctx, const char *what)
{
	if (!capturing.list)
		return HG_OK;
	capturing.broken = 1;
	return hg__fail(ctx, HG_ERR_DEVICE, "%s: not permitted while the stream is captured", what);
}

static void *captured_alloc(hg_context *ctx, size_t bytes)
{
	return captured_forbid(ctx, "allocation") < 0 ? NULL : capturing.real->alloc(ctx, bytes);
}

static void captured_free(hg_context *ctx, void *memory)
{
	(void)captured_forbid(ctx, "free");
	capturing.real->free(ctx, memory);
}

static hg_status captured_copy_in(hg_context *ctx, void *device, const void *host, size_t bytes)
{
	HG__TRY(captured_forbid(ctx, "copy to the device"));
	return capturing.real->copy_in(ctx, device, host, bytes);
}

static hg_status captured_copy_out(hg_context *ctx, void *host, const void *device, size_t bytes)
{
	HG__TRY(captured_forbid(ctx, "copy from the device"));
	return capturing.real->copy_out(ctx, host, device, bytes);
}

static hg_status captured_synchronize(hg_context *ctx)
{
	return captured_forbid(ctx, "synchronize");
}

/* ---- the interface ---- */

static void captured_list_free(struct captured_list *list)
{
	free(list->call);
	free(list);
}

static hg_status captured_begin(hg_context *ctx)
{
	(void)ctx;
	CHECK(!capturing.list);
	capturing.list = calloc(1, sizeof *capturing.list);
	CHECK(capturing.list);
	capturing.list->call = malloc(CAPTURED_CALLS * sizeof *capturing.list->call);
	CHECK(capturing.list->call);
	capturing.broken = 0;
	capturing.captures++;
	return HG_OK;
}

static hg_status captured_end(hg_context *ctx, void **work, int64_t *operations)
{
	struct captured_list *list = capturing.list;
	CHECK(list);
	capturing.list = NULL;
	if (!work || capturing.broken) {
		captured_list_free(list);
		if (work)
			*work = NULL;
		return work ? hg__fail(ctx, HG_ERR_DEVICE, "capture: it was broken") : HG_OK;
	}
	*work = list;
	*operations = list->calls;
	capturing.kept++;
	return HG_OK;
}

static hg_status captured_launch(hg_context *ctx, void *work)
{
	const struct captured_list *list = work;
	CHECK(!capturing.list);
	capturing.launches++;
	for (int64_t i = 0; i < list->calls; i++)
		HG__TRY(list->call[i].run(ctx, list->call[i].args));
	return HG_OK;
}

static void captured_work_free(hg_context *ctx, void *work)
{
	(void)ctx;
	captured_list_free(work);
	capturing.kept--;
}

/* A context on this device. */
static inline hg_context *capturing_context(void)
{
	hg_context *ctx = test_cpu_context(0);
	memset(&capturing, 0, sizeof capturing);
	capturing.real = ctx->backend;
	capturing.kernels = *ctx->backend->kernels;
#define HG_KERNEL(name, args_struct) capturing.kernels.name.run = captured_##name;
#include "kernels/kernels.def"
#undef HG_KERNEL
	capturing.backend = *ctx->backend;
	capturing.backend.kernels = &capturing.kernels;
	capturing.backend.copy = captured_copy;
	capturing.backend.fill = captured_fill;
	capturing.backend.refill = captured_refill;
	capturing.backend.alloc = captured_alloc;
	capturing.backend.free = captured_free;
	capturing.backend.copy_in = captured_copy_in;
	capturing.backend.copy_out = captured_copy_out;
	capturing.backend.synchronize = captured_synchronize;
	capturing.backend.capture_begin = captured_begin;
	capturing.backend.capture_end = captured_end;
	capturing.backend.work_launch = captured_launch;
	capturing.backend.work_free = captured_work_free;
	ctx->backend = &capturing.backend;
	return ctx;
}

/* ---- cases that run on both devices: that of the test run, and the CPU that captures ---- */

typedef hg_context *(*open_fn)(void);
static const open_fn devices[] = {test_context, capturing_context};

/* Two entries of a table of cases. The function casts its item to const open_fn *. */
#define ON_BOTH(function)                                \
	{#function, 0, function, &devices[0]},               \
	{                                                    \
#function ".capturing", 0, function, &devices[1] \
	}

#endif
