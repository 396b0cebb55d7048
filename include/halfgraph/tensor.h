/** @file
 * A tensor is a matrix [rows, cols] on the context's device, row-major. Rows start `ld` elements
 * apart:
 *
 *     ld = cols for cols in {1, 2, 4},  else cols rounded up to a multiple of 8
 *
 * so that every row of halves is aligned to 16 bytes and odd widths are legal everywhere. Elements
 * after the last column are scratch: any kernel may overwrite them, and none lets them reach a
 * result.
 *
 * Owner     A tensor keeps its context open until it is freed; tapes that read it are freed first.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_TENSOR_H
#define HALFGRAPH_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/context.h"
#include "halfgraph/dtype.h"
#include "halfgraph/export.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/** A matrix on a device. */
typedef struct hg_tensor hg_tensor;

/** Creates a tensor of zeros.
 *
 * Cost      rows * ld elements of device memory.
 * @param context  the context.
 * @param dtype    any type.
 * @param rows     at least 0.
 * @param cols     at least 0.
 * @param tensor   receives the tensor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or an extent is negative); HG_ERR_DTYPE (not a
 *         type); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_create(hg_context *context, hg_dtype dtype, int64_t rows,
                                               int64_t cols, hg_tensor **tensor);

/** Creates a tensor of zeros in host memory, which a GPU reads over the bus. It is meant for the
 * features of a dataset that is larger than device memory: hg_batches and hg_train copy from it
 * what a batch needs. It is valid wherever a tensor is, but every read of it is slower than one of
 * device memory. On a CPU it is as any other; with a GPU it counts neither for memory_limit nor in
 * hg_context_memory, and does not come from an hg_allocator.
 *
 * Cost      rows * ld elements of host memory, which stays in place (it cannot be swapped out).
 * @param context  the context.
 * @param dtype    any type.
 * @param rows     at least 0.
 * @param cols     at least 0.
 * @param tensor   receives the tensor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or an extent is negative); HG_ERR_DTYPE (not a
 *         type); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_create_on_host(hg_context *context, hg_dtype dtype,
                                                       int64_t rows, int64_t cols,
                                                       hg_tensor **tensor);

/** Frees a tensor.
 * @param tensor  a tensor or NULL. Not a view from hg_tape_value and its like. */
HG_API void hg_tensor_free(hg_tensor *tensor);

/** The context of a tensor.
 * @param tensor  a tensor or NULL.
 * @return the context, borrowed; NULL for NULL. */
HG_API hg_context *hg_tensor_context(const hg_tensor *tensor);

/** The element type of a tensor.
 * @param tensor  a tensor or NULL.
 * @return the type; HG_DTYPE_COUNT for NULL. */
HG_API hg_dtype hg_tensor_dtype(const hg_tensor *tensor);

/** Rows of a tensor.
 * @param tensor  a tensor or NULL.
 * @return the number; 0 for NULL. */
HG_API int64_t hg_tensor_rows(const hg_tensor *tensor);

/** Columns of a tensor.
 * @param tensor  a tensor or NULL.
 * @return the number; 0 for NULL. */
HG_API int64_t hg_tensor_cols(const hg_tensor *tensor);

/** Elements between the starts of two rows.
 * @param tensor  a tensor or NULL.
 * @return ld as defined above; 0 for NULL. */
HG_API int64_t hg_tensor_ld(const hg_tensor *tensor);

/** The elements of a tensor.
 * @param tensor  a tensor or NULL.
 * @return memory that the device reads, borrowed; NULL for NULL and where there are no elements. */
HG_API void *hg_tensor_data(const hg_tensor *tensor);

/** The memory of a tensor.
 * @param tensor  a tensor or NULL.
 * @return bytes, padding included; 0 for NULL. */
HG_API size_t hg_tensor_bytes(const hg_tensor *tensor);

/** Copies a host array into a tensor. Between f16 and f32 values are converted and rounded to
 * nearest. The copy has finished when this returns.
 * @param tensor  the tensor.
 * @param host    compact row-major array [rows, cols] of dtype.
 * @param dtype   the tensor's type, or the other of f16 and f32.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_DTYPE (no conversion between these types);
 *         HG_ERR_RANGE (a finite value would become infinite: the message names row and column;
 *         nothing is changed); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_upload(hg_tensor *tensor, const void *host, hg_dtype dtype);

/** Copies a tensor into a host array. Between f16 and f32 values are converted and rounded to
 * nearest. Waits for queued work; the copy has finished when this returns.
 * @param tensor  the tensor.
 * @param host    receives a compact row-major array [rows, cols] of dtype.
 * @param dtype   the tensor's type, or the other of f16 and f32.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_DTYPE (no conversion between these types);
 *         HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_download(const hg_tensor *tensor, void *host,
                                                 hg_dtype dtype);

HG_EXTERN_C_END
#endif
