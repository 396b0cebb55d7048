/* The interface that core calls on a device. There are two implementations: kernels/cpu/backend.c
 * and kernels/cuda/backend.cu. Core includes this header alone, so includes still point from right
 * to left (see CONTRIBUTING.md) while these calls go from left to right. */
#ifndef HG_CORE_BACKEND_H
#define HG_CORE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/context.h"
#include "halfgraph/graph.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

struct hg__assemble;
struct hg__csr;
struct hg__kernels;
struct hg__refill;

/* The functions of a device. Each reports failures through hg__fail on the context. Copies from and
 * to the host have finished when they return; everything else is queued on the context's stream. */
struct hg__backend {
	hg_device kind;
	const char *name;
	/* 1: its kernels read the parts of a plan by length (csr.h) */
	int wants_parts;
	/* 1: its kernels use dense counts of batches of small graphs (plan_dense.h) */
	int wants_dense;
	/* How many weight matrices of this width (hg__small_width) a call of small_layers and
	 * small_layers_back can have on this device for bins of so many rows (hg__bins_rows), at most
	 * HG__SMALL_MATRICES (kernels/small_layers.h); 0: the width is not supported. NULL:
	 * HG__SMALL_MATRICES of any width. */
	int (*small_matrices_most)(const hg_context *ctx, int width, int bin_rows);
	/* On a batch of fewer rows, a few layers in large bins (bins.h) take longer than op by op. */
	int64_t large_bins_rows;
	/* For a layer C = A B, A [rows, k] of this type and B with n columns: can its products take
	 * batch norms on the way (kernels/batch_norm.h)? Then gemm can normalise A as it reads it and
	 * compute the statistics of C, and linear_back can normalise, too, and take a gradient through
	 * a norm behind the layer. NULL: never. */
	int (*takes_norms)(const hg_context *ctx, hg_dtype type, int64_t rows, int64_t k, int64_t n);
	/* Sets ctx->state, ctx->stream and ctx->device_name. */
	hg_status (*open)(hg_context *ctx, const hg_context_config *config);
	void (*close)(hg_context *ctx);
	/* Sets state and stream of a branch (branch.h), a copy of its context without them; close
	 * serves it, too, also after a failure. NULL: a branch needs neither. */
	hg_status (*branch)(hg_context *of, hg_context *branch);
	void *(*alloc)(hg_context *ctx, size_t bytes); /* NULL: no memory; sets no error text */
	void (*free)(hg_context *ctx, void *memory);
	hg_status (*copy_in)(hg_context *ctx, void *device, const void *host, size_t bytes);
	/* Pinned host memory, NULL if there is none, and a copy from it that is only queued: it stays
	 * as it is until the copy has run. From other memory such a copy is correct, too. All three are
	 * NULL on a device that has no use for them. */
	void *(*host_alloc)(hg_context *ctx, size_t bytes);
	void (*host_free)(hg_context *ctx, void *memory);
	hg_status (*copy_in_async)(hg_context *ctx, void *device, const void *host, size_t bytes);
	hg_status (*copy_out)(hg_context *ctx, void *host, const void *device, size_t bytes);
	hg_status (*copy)(hg_context *ctx, void *to, const void *from, size_t bytes);
	hg_status (*fill)(hg_context *ctx, void *memory, int byte, size_t bytes);
	hg_status (*synchronize)(hg_context *ctx);
	/* Order this context's stream against a foreign stream (DLPack): publish makes the foreign
	 * stream wait for the work queued here, await makes this stream wait for the foreign one. */
	hg_status (*stream_publish)(hg_context *ctx, void *foreign_stream);
	hg_status (*stream_await)(hg_context *ctx, void *foreign_stream);
	hg_status (*memory)(hg_context *ctx, size_t *total, size_t *available);
	/* Device memory that libraries will allocate in the first run and have not allocated yet. NULL:
	 * none. */
	size_t (*library_bytes)(const hg_context *ctx);

	/* Capturing queued work, to launch it as a whole any number of times (a CUDA graph). All four
	 * are NULL on a device without such a feature. Between begin and end, what this thread queues
	 * on the context's stream is recorded with its addresses and numbers and does not run. Nothing
	 * in between may allocate, free or wait. capture_end restores the stream even after a failure;
	 * with work NULL it drops what was captured. operations: the number of kernels, copies and
	 * fills. */
	hg_status (*capture_begin)(hg_context *ctx);
	hg_status (*capture_end)(hg_context *ctx, void **work, int64_t *operations);
	hg_status (*work_launch)(hg_context *ctx, void *work);
	void (*work_free)(hg_context *ctx, void *work);

	/* Times of queued work: mark k is passed when everything that was queued before it has run.
	 * marks_read waits for the device and gives the seconds from mark 0 to each mark; all of them
	 * have been queued by then. */
	hg_status (*marks_make)(hg_context *ctx, int64_t count, void **marks);
	void (*marks_free)(hg_context *ctx, void *marks, int64_t count);
	hg_status (*mark)(hg_context *ctx, void *marks, int64_t k);
	hg_status (*marks_read)(hg_context *ctx, void *marks, int64_t count, double *seconds);
	/* The name, in the device's own profiler, of what is queued until the matching end; ranges
	 * nest. Both are NULL where there is no such profiler. */
	void (*range_begin)(const char *name);
	void (*range_end)(void);

	/* Graph building. Edge lists and `in` may lie in host memory; everything else is device memory.
	 * A GPU streams the edges in chunks, so the scratch besides the results is small unless the
	 * caller asks for `order`.
	 *
	 * csr_from_coo sorts m edges by (dst, src), stably, into rowptr [rows+1] and col [m]. order [m]
	 * receives the input index of each CSR entry; it may be NULL, since equal edges are then
	 * interchangeable. */
	hg_status (*csr_from_coo)(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
	                          const int32_t *dst, const int32_t *src, int64_t *rowptr, int32_t *col,
	                          int64_t *order);
	/* CSR of the transpose, columns ascending in each row. edge [m], or NULL, receives the CSR
	 * position in `csr` of each entry of the transpose. */
	hg_status (*csr_transpose)(hg_context *ctx, const struct hg__csr *csr, int64_t *rowptr,
	                           int32_t *col, uint32_t *edge);
	/* Computes only the row pointers of the transpose, into ptr [cols+1]. */
	hg_status (*column_ptr)(hg_context *ctx, const struct hg__csr *csr, int64_t *ptr);
	/* out[e] = in[index[e]] for f32: it moves weights to the sorted positions of their edges. */
	hg_status (*gather_f32)(hg_context *ctx, int64_t m, const float *in, const int64_t *index,
	                        float *out);
	/* Computes the facts of graph.h, bitwise the same in every run; weight [m] or NULL. *pattern
	 * receives whether the pattern is symmetric, whatever the weights. Duplicate edges are compared
	 * in their order. */
	hg_status (*survey)(hg_context *ctx, const struct hg__csr *csr, const float *weight,
	                    hg_graph_facts *facts, int *pattern);

	/* Makes the arrays of a graph that is refilled (core/refill.h), and the bytes of device memory
	 * that this needs as scratch. It neither allocates nor waits on a device that captures. raise
	 * records x = INFINITY for `node` in an overflow flag (kernels/overflow.h) if *broken says that
	 * a promise was not kept. */
	hg_status (*refill_scratch)(hg_context *ctx, const struct hg__refill *refill, size_t *bytes);
	hg_status (*refill)(hg_context *ctx, const struct hg__refill *refill);
	hg_status (*raise)(hg_context *ctx, const uint64_t *broken, int32_t node, uint64_t *word);

	/* Queues the assembly of a batch (core/assemble.h). */
	hg_status (*assemble)(hg_context *ctx, const struct hg__assemble *batch);

	/* Tiles (core/plan_tiles.h); both are NULL where a device has no use for them. tiles_count
	 * writes listed [windows] (host): the listed columns of each window. tiles_fill writes id and
	 * mask; first [windows + 1] (device) holds where the groups of each window begin. */
	hg_status (*tiles_count)(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
	                         int32_t *listed);
	hg_status (*tiles_fill)(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
	                        const int32_t *first, int32_t *id, uint32_t *mask);

	const struct hg__kernels *kernels;
};

HG_EXTERN_C_END
#endif
