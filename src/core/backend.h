#ifndef HG_CORE_BACKEND_H
#define HG_CORE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/context.h"
#include "halfgraph/graph.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

struct hg__csr;
struct hg__kernels;

/* What core asks of a device. Two implementations: kernels/cpu/backend.c and
 * kernels/cuda/backend.cu. Core sees this interface alone, so the include arrow keeps pointing left
 * while the calls go right. Every function reports through hg__fail on the context. Copies to and
 * from the host finish before they return; everything else is queued on the context's stream. */
struct hg__backend {
	hg_device kind;
	const char *name;
	/* its kernels take the parts of a plan by length (csr.h) */
	int wants_parts;
	/* sets ctx->state, stream, device_name */
	hg_status (*open)(hg_context *ctx, const hg_context_config *config);
	void (*close)(hg_context *ctx);
	void *(*alloc)(hg_context *ctx, size_t bytes); /* NULL when there is no memory; no error text */
	void (*free)(hg_context *ctx, void *memory);
	hg_status (*copy_in)(hg_context *ctx, void *device, const void *host, size_t bytes);
	hg_status (*copy_out)(hg_context *ctx, void *host, const void *device, size_t bytes);
	hg_status (*copy)(hg_context *ctx, void *to, const void *from, size_t bytes);
	hg_status (*fill)(hg_context *ctx, void *memory, int byte, size_t bytes);
	hg_status (*synchronize)(hg_context *ctx);
	/* Make what this context has queued visible to a foreign stream (DLPack), and the other way
	 * round. */
	hg_status (*stream_publish)(hg_context *ctx, void *foreign_stream);
	hg_status (*stream_await)(hg_context *ctx, void *foreign_stream);
	hg_status (*memory)(hg_context *ctx, size_t *total, size_t *available);
	/* what libraries will allocate with the first run and have not yet; NULL: nothing */
	size_t (*library_bytes)(const hg_context *ctx);

	/* Queued work caught once and launched as a whole, as often as one likes; all four NULL on a
	 * device that has no such thing. Between begin and end, what this thread queues on the
	 * context's stream does not run, it is caught, with the addresses and numbers that it was
	 * queued with; nothing in between may allocate, free or wait. end brings the stream back to
	 * normal whatever went wrong; work NULL: drop what was caught. operations: the kernels, copies
	 * and fills in it. */
	hg_status (*capture_begin)(hg_context *ctx);
	hg_status (*capture_end)(hg_context *ctx, void **work, int64_t *operations);
	hg_status (*work_launch)(hg_context *ctx, void *work);
	void (*work_free)(hg_context *ctx, void *work);

	/* Graph building. Edge lists and `in` may lie in host memory; all else is device memory. The
	 * scratch beside the results is small where nothing asks for places: a GPU streams the edges in
	 * chunks.
	 *
	 * Sort m edges by (dst, src), stably: rowptr [rows+1], col [m], order [m] = place of each CSR
	 * entry in the input, or NULL: equal edges are the same then. */
	hg_status (*csr_from_coo)(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
	                          const int32_t *dst, const int32_t *src, int64_t *rowptr, int32_t *col,
	                          int64_t *order);
	/* CSR of the transpose, columns ascending in each row; edge [m] = CSR position in `csr` of each
	 * entry of the transpose, or NULL. */
	hg_status (*csr_transpose)(hg_context *ctx, const struct hg__csr *csr, int64_t *rowptr,
	                           int32_t *col, uint32_t *edge);
	/* ptr [cols+1] <- the row pointers of the transpose alone. */
	hg_status (*column_ptr)(hg_context *ctx, const struct hg__csr *csr, int64_t *ptr);
	/* out[e] = in[index[e]] for f32: how weights follow their edges. */
	hg_status (*gather_f32)(hg_context *ctx, int64_t m, const float *in, const int64_t *index,
	                        float *out);
	/* The facts of graph.h, weight [m] or NULL: bitwise the same from run to run. *pattern: is the
	 * pattern symmetric, whatever the weights? Duplicates are compared in their order. */
	hg_status (*survey)(hg_context *ctx, const struct hg__csr *csr, const float *weight,
	                    hg_graph_facts *facts, int *pattern);

	/* Tiles (core/plan_tiles.h); NULL where a device has no use for them. listed [windows] (host)
	 * <- columns of each window. first [windows + 1] (device): where the groups of each begin; id,
	 * mask are written. */
	hg_status (*tiles_count)(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
	                         int32_t *listed);
	hg_status (*tiles_fill)(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
	                        const int32_t *first, int32_t *id, uint32_t *mask);

	const struct hg__kernels *kernels;
};

HG_EXTERN_C_END
#endif
