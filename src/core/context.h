/* The inside of a context, and the services that all other objects take from it: error messages,
 * log lines, device and host memory, and the shared workspace. */
#ifndef HG_CORE_CONTEXT_H
#define HG_CORE_CONTEXT_H

#include "core/backend.h"
#include "halfgraph/context.h"

HG_EXTERN_C_BEGIN

#define HG__MESSAGE 512

struct hg_context {
	const struct hg__backend *backend;
	hg_context *of; /* a branch (branch.h): the context that it branches off; NULL: none */
	void *state;    /* the backend's own */
	void *stream;   /* cudaStream_t; NULL on the CPU */
	int device_index;
	int threads;
	uint64_t seed;
	hg_log_fn log;
	void *log_user;
	hg_log_level log_level;
	uint64_t logged; /* bit k: hg__log_once has printed its line for key k */
	hg_allocator allocator;
	int separate_ops; /* 1: tapes do not fuse ops */
	long process;     /* the process that made the context (process.h) */
	/* Holds that keep the context open: the caller's own, and one of each tensor, graph, params and
	 * training run. */
	int64_t holds;
	size_t current_bytes, peak_bytes, memory_limit;
	void *workspace;
	size_t workspace_bytes;
	char device_name[96];
	char message[HG__MESSAGE];
};

/* Records the message of a failure and returns its status: `return hg__fail(ctx, HG_ERR_SHAPE,
 * "spmm: X has %lld rows, graph has %lld nodes", ...)`. With ctx NULL nothing is recorded. */
hg_status hg__fail(hg_context *ctx, hg_status status, const char *format, ...) HG_PRINTF(3, 4);
void hg__log(hg_context *ctx, hg_log_level level, const char *format, ...) HG_PRINTF(3, 4);
/* hg__log, but only once in each context for each key below 64. It is for decisions that every call
 * makes anew. */
enum { HG__LOG_DIRECTED, HG__LOG_FORKED, HG__LOG_TILES };
void hg__log_once(hg_context *ctx, unsigned key, hg_log_level level, const char *format, ...)
    HG_PRINTF(4, 5);

/* Objects that may outlive the caller's hold on the context keep it open with a hold of their own.
 * These are tensors, graphs and params, from which all other objects borrow, and training runs,
 * which own such objects and still need the context after freeing them. The context closes with the
 * last hold. */
void hg__context_hold(hg_context *ctx);
void hg__context_release(hg_context *ctx);

/* Parts of one allocation begin at multiples of this. CUDA aligns every allocation to it, so
 * 16-byte loads and the heuristics of libraries work for a part as they do for a whole
 * allocation. */
#define HG__ALIGN 256u
static inline size_t hg__aligned(size_t bytes)
{
	return (bytes + HG__ALIGN - 1) / HG__ALIGN * HG__ALIGN;
}

/* Device memory from the allocator hooks or the backend, counted. 0 bytes give NULL and HG_OK.
 * `what` names the memory in error texts. Freeing waits for the stream: cudaFree does so by itself,
 * and before a hook is called the context does. */
HG_NODISCARD hg_status hg__device_alloc(hg_context *ctx, size_t bytes, const char *what,
                                        void **memory);
void hg__device_free(hg_context *ctx, void *memory, size_t bytes);
/* Device bytes that can still be allocated: within the context's limit, and what the device reports
 * as free. With memory hooks only the limit counts, since the pool behind the hooks is unknown. */
HG_NODISCARD hg_status hg__device_room(hg_context *ctx, size_t *bytes);
/* Host memory from the allocator hooks, zeroed. */
HG_NODISCARD hg_status hg__host_alloc(hg_context *ctx, size_t count, size_t size, const char *what,
                                      void **memory);
void hg__host_free(hg_context *ctx, void *memory, size_t bytes);
/* Makes room for one more element of an array of `count`; an array that is full doubles. */
HG_NODISCARD hg_status hg__host_grow(hg_context *ctx, void **array, size_t size, int64_t count,
                                     int64_t *capacity, const char *what);

/* Host memory from the hooks, or, without hooks, aligned to a cache line. Only for the context
 * itself, which has no context to report an error to. */
void *hg__hooks_alloc(const hg_allocator *hooks, size_t bytes);
void hg__hooks_free(const hg_allocator *hooks, void *memory, size_t bytes);

/* Scratch device memory for one kernel call, valid until the next call of this function. It grows
 * and never shrinks. A tape reserves its largest need when it is compiled, and an optimiser when it
 * is created, so that a step allocates nothing.
 *
 * Growing waits for all queued work and then frees the old memory. That is safe for other tapes,
 * whose work is on the same stream, but not for captured work, which contains the old address: code
 * that launches captured work first checks hg__captured (capture.h). */
HG_NODISCARD hg_status hg__workspace(hg_context *ctx, size_t bytes, void **memory);

/* Returns from the calling function if the status is an error. */
#define HG__TRY(call)                         \
	do {                                      \
		const hg_status hg__status_ = (call); \
		if (hg__status_ < 0)                  \
			return hg__status_;               \
	} while (0)

HG_EXTERN_C_END
#endif
