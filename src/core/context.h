#ifndef HG_CORE_CONTEXT_H
#define HG_CORE_CONTEXT_H

#include "core/backend.h"
#include "halfgraph/context.h"

HG_EXTERN_C_BEGIN

#define HG__MESSAGE 512

struct hg_context {
	const struct hg__backend *backend;
	void *state;  /* the backend's own */
	void *stream; /* cudaStream_t; NULL on the CPU */
	int device_index;
	int threads;
	uint64_t seed;
	hg_log_fn log;
	void *log_user;
	hg_log_level log_level;
	uint64_t logged; /* keys of hg__log_once that have had their line */
	hg_allocator allocator;
	int separate_ops; /* tapes fuse nothing */
	long process;     /* that made it (process.h) */
	int64_t holds;    /* the caller's own, and one of each tensor, graph, params and training run */
	size_t current_bytes, peak_bytes, memory_limit;
	void *workspace;
	size_t workspace_bytes;
	char device_name[96];
	char message[HG__MESSAGE];
};

/* Record the sentence of a failure and return its status: `return hg__fail(ctx, HG_ERR_SHAPE,
 * "spmm: X has %lld rows, graph has %lld nodes", ...)`. ctx may be NULL (nothing is recorded). */
hg_status hg__fail(hg_context *ctx, hg_status status, const char *format, ...) HG_PRINTF(3, 4);
void hg__log(hg_context *ctx, hg_log_level level, const char *format, ...) HG_PRINTF(3, 4);
/* The same, once a context for each key below 64, for what is decided again with every call. Keys:
 * kernels/spmm_variants.h has all but those named here. */
enum { HG__LOG_DIRECTED = 62, HG__LOG_FORKED = 63 };
void hg__log_once(hg_context *ctx, unsigned key, hg_log_level level, const char *format, ...)
    HG_PRINTF(4, 5);

/* What may outlive the caller's hold keeps the context open with one of its own: tensors, graphs
 * and params, of which all other objects borrow, and training runs, which own theirs and outlive
 * them while they are freed. The last one to let go closes it. */
void hg__context_hold(hg_context *ctx);
void hg__context_release(hg_context *ctx);

/* Parts of one allocation begin at multiples of this, which is what every allocation of a GPU is
 * aligned to: 16-byte loads and library heuristics then hold for each part as for a whole
 * allocation. */
#define HG__ALIGN 256u
static inline size_t hg__aligned(size_t bytes)
{
	return (bytes + HG__ALIGN - 1) / HG__ALIGN * HG__ALIGN;
}

/* Device memory through the allocator hooks, counted. bytes 0 gives NULL and HG_OK. `what` names it
 * in the error text. Freeing waits for the stream: cudaFree does by itself, and before a hook is
 * called the context does. */
HG_NODISCARD hg_status hg__device_alloc(hg_context *ctx, size_t bytes, const char *what,
                                        void **memory);
void hg__device_free(hg_context *ctx, void *memory, size_t bytes);
/* Device bytes that may still be had: within the context's limit, and what the device says is free.
 * With memory hooks the limit alone counts: what they hold back nobody knows. */
HG_NODISCARD hg_status hg__device_room(hg_context *ctx, size_t *bytes);
/* Host memory through the allocator hooks. Zeroed. */
HG_NODISCARD hg_status hg__host_alloc(hg_context *ctx, size_t count, size_t size, const char *what,
                                      void **memory);
void hg__host_free(hg_context *ctx, void *memory, size_t bytes);

/* Host memory as the hooks give it, or aligned to a cache line; for the context itself. */
void *hg__hooks_alloc(const hg_allocator *hooks, size_t bytes);
void hg__hooks_free(const hg_allocator *hooks, void *memory, size_t bytes);

/* Scratch device memory for the kernel that asks, valid until the next kernel asks. Grows, never
 * shrinks; the tape reserves the largest need when it compiles and the optimiser its own when it is
 * made, so that a run allocates nothing. Growing frees the old piece after the work queued so far:
 * that is safe for the queued work of other tapes, which all goes to this one stream, but not for
 * captured work, which remembers the address: who launches such work asks hg__captured (capture.h)
 * first. */
HG_NODISCARD hg_status hg__workspace(hg_context *ctx, size_t bytes, void **memory);

/* Return early with a failing status. */
#define HG__TRY(call)                         \
	do {                                      \
		const hg_status hg__status_ = (call); \
		if (hg__status_ < 0)                  \
			return hg__status_;               \
	} while (0)

HG_EXTERN_C_END
#endif
