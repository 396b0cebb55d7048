#ifndef HG_TESTS_STRICT_H
#define HG_TESTS_STRICT_H

#include "core/context.h"
#include "harness.h"
#include "kernels/kernels.h"

/* A device on which no kernel may use more workspace than its row declares. Before a kernel runs,
 * the context is told that its workspace has exactly this size, so a kernel that asks for more
 * makes it grow, which is found. */

/* There is one such device at a time: tests run one after the other. */
struct strict {
	struct hg__backend backend;
	struct hg__kernels kernels;
	const struct hg__backend *real;
	int64_t calls;
};
static struct strict strict;

static inline void strict_begin(hg_context *ctx, size_t says, size_t *whole)
{
	void *memory = NULL;
	CHECK_OK(hg__workspace(ctx, says, &memory));
	*whole = ctx->workspace_bytes;
	ctx->workspace_bytes = says;
	strict.calls++;
}

static inline void strict_end(hg_context *ctx, size_t says, size_t whole, const char *name)
{
	CHECK_MSG(ctx->workspace_bytes == says, "%s says that it takes %zu bytes, and took %zu", name,
	          says, ctx->workspace_bytes);
	ctx->workspace_bytes = whole;
}

#define HG_KERNEL(name, args_struct)                                                      \
	static hg_status strict_##name(hg_context *ctx, const struct hg__##args_struct *args) \
	{                                                                                     \
		const struct hg__##name##_kernel *row = &strict.real->kernels->name;              \
		const size_t says = row->workspace(ctx, args);                                    \
		size_t whole = 0;                                                                 \
		strict_begin(ctx, says, &whole);                                                  \
		const hg_status status = row->run(ctx, args);                                     \
		strict_end(ctx, says, whole, #name);                                              \
		return status;                                                                    \
	}
#include "kernels/kernels.def"
#undef HG_KERNEL

/* Makes the device of the context such a device. Its captured work is queued call by call. */
static inline void strict_make(hg_context *ctx)
{
	strict.real = ctx->backend;
	strict.backend = *ctx->backend;
	strict.kernels = *ctx->backend->kernels;
#define HG_KERNEL(name, args_struct) strict.kernels.name.run = strict_##name;
#include "kernels/kernels.def"
#undef HG_KERNEL
	strict.backend.kernels = &strict.kernels;
	strict.backend.capture_begin = NULL;
	ctx->backend = &strict.backend;
}

#endif
