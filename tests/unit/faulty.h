#ifndef HG_TESTS_FAULTY_H
#define HG_TESTS_FAULTY_H

#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "harness.h"

/* An allocator that counts the pieces that are allocated, and fails when it is told to. */
struct faulty {
	hg_context *plain;      /* allocates the device memory; NULL: it is host memory */
	int64_t calls, fail_at; /* fail_at: number of the call that fails; < 0: none */
	size_t largest;         /* requests for more bytes fail; 0: there is no limit */
	int64_t out;            /* pieces that are not freed yet */
	size_t bytes;           /* their bytes; free gets the size of each */
	size_t last_freed;      /* bytes of the piece that was freed last */
};

static inline void *faulty_alloc(void *user, size_t bytes, int device)
{
	struct faulty *f = user;
	if (f->calls++ == f->fail_at || (f->largest && bytes > f->largest))
		return NULL;
	void *memory = device && f->plain ? f->plain->backend->alloc(f->plain, bytes)
	                                  : aligned_alloc(64, (bytes + 63) / 64 * 64);
	f->out += memory != NULL;
	f->bytes += bytes;
	if (memory && (!device || !f->plain || hg_context_device(f->plain) == HG_DEVICE_CPU))
		memset(memory, 0xA5, bytes); /* the library must not rely on zeros */
	return memory;
}

static inline void faulty_free(void *user, void *memory, size_t bytes, int device)
{
	struct faulty *f = user;
	if (device && f->plain)
		f->plain->backend->free(f->plain, memory);
	else
		free(memory);
	f->out--;
	f->bytes -= bytes;
	f->last_freed = bytes;
}

static inline hg_allocator faulty_hooks(struct faulty *f)
{
	const hg_allocator hooks = {faulty_alloc, faulty_free, f};
	return hooks;
}

/* A context of the test run's device. faulty_close frees it and checks that nothing is leaked. */
static inline hg_context *faulty_context(struct faulty *f)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	*f = (struct faulty){.plain = test_context(), .fail_at = -1};
	config.device = hg_context_device(f->plain);
	config.allocator = faulty_hooks(f);
	CHECK_OK(hg_context_create(&config, &ctx));
	return ctx;
}

/* A context of the CPU in which requests for more than `largest` bytes fail. */
static inline hg_context *faulty_cpu_context(struct faulty *f, size_t largest, int threads)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	*f = (struct faulty){.fail_at = -1, .largest = largest};
	config.device = HG_DEVICE_CPU;
	config.threads = threads;
	config.allocator = faulty_hooks(f);
	CHECK_OK(hg_context_create(&config, &ctx));
	return ctx;
}

static inline void faulty_close(struct faulty *f, hg_context *ctx)
{
	hg_context_free(ctx);
	CHECK_EQ_I(f->out, 0);
	CHECK_EQ_I(f->bytes, 0);
	hg_context_free(f->plain);
}

/* Runs `scene` with its k-th allocation failing, for every k, until it succeeds. Each failure must
 * be HG_ERR_NOMEM and leak nothing. Returns the number of allocations that could fail. */
typedef hg_status (*faulty_scene)(hg_context *ctx);
static inline int64_t faulty_sweep(faulty_scene scene)
{
	struct faulty f;
	hg_context *ctx = faulty_context(&f);
	void *kept;
	/* The workspace, and what the libraries of a GPU allocate in their first run, stay with the
	 * context. They are allocated before the counting starts. */
	CHECK_OK(hg__workspace(ctx, 1 << 20, &kept));
	CHECK_MSG(scene(ctx) == HG_OK, "%s", hg_context_error(ctx));
	const int64_t before = f.out;
	for (int64_t k = 0;; k++) {
		CHECK_MSG(k < 10000, "no end of allocations");
		f.calls = 0;
		f.fail_at = k;
		const hg_status status = scene(ctx);
		CHECK_MSG(f.out == before, "failing allocation %lld leaks %lld pieces (%s)", (long long)k,
		          (long long)(f.out - before), hg_status_name(status));
		if (f.calls <= k) {
			CHECK_STATUS(status, HG_OK);
			f.fail_at = -1;
			faulty_close(&f, ctx);
			return k;
		}
		CHECK_MSG(status == HG_ERR_NOMEM, "failing allocation %lld gave %s: %s", (long long)k,
		          hg_status_name(status), hg_context_error(ctx));
	}
}

#endif
