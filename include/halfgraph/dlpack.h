#ifndef HALFGRAPH_DLPACK_H
#define HALFGRAPH_DLPACK_H

#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/* Exchange with DLPack 1.x (https://dmlc.github.io/dlpack). The structures are declared by dlpack.h
 * of the DLPack project and by every framework that uses it; only pointers to them are needed
 * here. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Lend a tensor out without a copy: the tensor stays alive until both its owner and the consumer's
 * deleter have let go. The deleter may be called from any thread; when it is the last to let go it
 * frees, which like every call on the context wants no other call on it at the same time. A loan
 * that outlives hg_context_free keeps the context open. `stream` is the consumer's cudaStream_t
 * (NULL on the CPU): work queued so far is made visible to it. */
HG_API HG_NODISCARD hg_status hg_tensor_to_dlpack(hg_tensor *tensor, void *stream,
                                                  struct DLManagedTensorVersioned **out);
/* Take a one- or two-dimensional, row-major, compact or row-padded tensor. Same device: the data is
 * copied into a tensor of its own and the deleter is called. On error nothing is consumed, except
 * that a version this library cannot read has its deleter called, as DLPack asks. */
HG_API HG_NODISCARD hg_status hg_tensor_from_dlpack(hg_context *context,
                                                    struct DLManagedTensorVersioned *in,
                                                    void *stream, hg_tensor **out);
HG_API HG_NODISCARD hg_status hg_tensor_from_dlpack_legacy(hg_context *context,
                                                           struct DLManagedTensor *in, void *stream,
                                                           hg_tensor **out);

HG_EXTERN_C_END
#endif
