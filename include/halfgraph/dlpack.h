/** @file
 * Exchange of tensors with DLPack 1.x (https://dmlc.github.io/dlpack). Its structures are declared
 * by dlpack.h of the DLPack project and by every framework that uses it; this header needs pointers
 * to them only.
 *
 * Threads   One thread at a time per context; a deleter may be called from any thread. */
#ifndef HALFGRAPH_DLPACK_H
#define HALFGRAPH_DLPACK_H

#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** Lends a tensor to another library, without a copy.
 *
 * Owner     The tensor stays alive until its owner has freed it and the consumer's deleter was
 *           called. The deleter that comes last frees it, so no other call on the context may run
 *           at that time. A loan that outlives hg_context_free keeps the context open.
 * @param tensor  the tensor. A view of a tape's memory cannot be lent.
 * @param stream  the consumer's cudaStream_t: work queued so far becomes visible to it. NULL on a
 *                CPU.
 * @param out     receives the loan [rows, cols] with row stride ld; the consumer calls its deleter.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_STATE (a view of memory that a tape owns
 *         and reuses: copy it first); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_to_dlpack(hg_tensor *tensor, void *stream,
                                                  struct DLManagedTensorVersioned **out);

/** Copies a DLPack tensor into a new tensor and calls its deleter.
 *
 * Shapes    One dimension [n] becomes [n, 1]; two dimensions stay. Row-major; rows may be padded.
 * Dtypes    Float 16 and 32, int 32 and 64, uint 8, bool (as u8).
 * @param context  the context; the data is on its device.
 * @param in       the tensor. On an error it is not consumed, except that a version this library
 *                 cannot read has its deleter called, as DLPack asks.
 * @param stream   the producer's cudaStream_t, which is waited for; NULL on a CPU.
 * @param out      receives the tensor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, another device, or misaligned data); HG_ERR_DTYPE
 *         (an element type not above); HG_ERR_SHAPE (other dimensions or strides);
 *         HG_ERR_UNSUPPORTED (another major version); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_from_dlpack(hg_context *context,
                                                    struct DLManagedTensorVersioned *in,
                                                    void *stream, hg_tensor **out);

/** Copies a tensor of DLPack before version 1.0 into a new tensor and calls its deleter.
 *
 * Shapes    One dimension [n] becomes [n, 1]; two dimensions stay. Row-major; rows may be padded.
 * Dtypes    Float 16 and 32, int 32 and 64, uint 8, bool (as u8).
 * @param context  the context; the data is on its device.
 * @param in       the tensor, not consumed on an error.
 * @param stream   the producer's cudaStream_t, which is waited for; NULL on a CPU.
 * @param out      receives the tensor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, another device, or misaligned data); HG_ERR_DTYPE
 *         (an element type not above); HG_ERR_SHAPE (other dimensions or strides); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_from_dlpack_legacy(hg_context *context,
                                                           struct DLManagedTensor *in, void *stream,
                                                           hg_tensor **out);

HG_EXTERN_C_END
#endif
