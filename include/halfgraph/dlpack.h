/** @file
 * Exchange of tensors with DLPack 1.x (https://dmlc.github.io/dlpack). Its structures are declared
 * by dlpack.h of the DLPack project and by every framework that uses it; this header needs pointers
 * to them only.
 *
 * Threads   One thread at a time per context; a deleter may be called from any thread. */
#ifndef HALFGRAPH_DLPACK_H
#define HALFGRAPH_DLPACK_H

#include "halfgraph/graph.h"
#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** Lends a tensor to another library, without a copy.
 *
 * Owner     The tensor stays alive until its owner has freed it and the consumer's deleter was
 *           called. The deleter that comes last frees it, so no other call on the context may run
 *           at that time. A loan that outlives hg_context_free keeps the context open.
 * @param tensor  the tensor. A view of a tape's memory cannot be lent. That of a GPU's context in
 *                host memory is lent as kDLCUDAHost, after queued work has run.
 * @param stream  the consumer's cudaStream_t: work queued so far becomes visible to it. NULL on a
 *                CPU.
 * @param out     receives the loan [rows, cols] with row stride ld; the consumer calls its deleter.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_STATE (a view of memory that a tape owns
 *         and reuses: hg_tensor_export_copy copies it); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_to_dlpack(hg_tensor *tensor, void *stream,
                                                  struct DLManagedTensorVersioned **out);

/** Gives a copy of a tensor to another library: compact, row-major, on the same device. For what
 * cannot be lent as it is: a view of a tape's memory (hg_tape_value, hg_tape_grad), rows with
 * padding where the other library takes none, or another type.
 *
 * Owner     The copy is the consumer's alone; it keeps the context open until its deleter is
 *           called, and no other call on the context may run at that time.
 * Cost      One kernel, which reads and writes every element; integers in padded rows go through
 *           the host.
 * @param tensor  the tensor, also a view.
 * @param dtype   the type of the copy: the tensor's own, or the other of f16 and f32. Values are
 *                rounded to nearest; one that does not fit f16 becomes infinite.
 * @param stream  the consumer's cudaStream_t: the copy becomes visible to it. NULL on a CPU.
 * @param out     receives the copy [rows, cols] with row stride cols; the consumer calls its
 *                deleter. NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_DTYPE (no conversion between these types);
 *         HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_export_copy(const hg_tensor *tensor, hg_dtype dtype,
                                                    void *stream,
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

/** Makes a tensor of another library's memory, without a copy, where its layout is that of a tensor
 * here: rows without a gap, of 1, 2, 4 or a multiple of 8 columns, at an address that is a multiple
 * of 16, and not read-only. Elsewhere hg_tensor_from_dlpack copies.
 *
 * Shapes    As for hg_tensor_from_dlpack.
 * Dtypes    As for hg_tensor_from_dlpack.
 * Owner     The memory stays the producer's. Its deleter is called when the tensor is freed and
 *           every loan of it is over. It is not counted in hg_memory_info. Whoever writes to it
 *           while work of the context is queued must order the two.
 * @param context  the context; the data is on its device.
 * @param in       the tensor. On an error it is not consumed.
 * @param stream   the producer's cudaStream_t, which is waited for once; NULL on a CPU.
 * @param out      receives the tensor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_UNSUPPORTED (the layout is another: the message says which);
 *         HG_ERR_ARG (a pointer is NULL, another device or major version, or misaligned data);
 *         HG_ERR_DTYPE; HG_ERR_SHAPE (as for hg_tensor_from_dlpack); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_share_dlpack(hg_context *context,
                                                     struct DLManagedTensorVersioned *in,
                                                     void *stream, hg_tensor **out);

/** Makes a tensor of the memory of a DLPack tensor before version 1.0, which cannot say that it is
 * read-only.
 *
 * Shapes    As for hg_tensor_from_dlpack.
 * Dtypes    As for hg_tensor_from_dlpack.
 * Owner     As for hg_tensor_share_dlpack.
 * @param context  the context; the data is on its device.
 * @param in       the tensor. On an error it is not consumed.
 * @param stream   the producer's cudaStream_t, which is waited for once; NULL on a CPU.
 * @param out      receives the tensor, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_UNSUPPORTED (the layout is another: the message says which);
 *         HG_ERR_ARG (a pointer is NULL, another device, or misaligned data); HG_ERR_DTYPE;
 *         HG_ERR_SHAPE (as for hg_tensor_from_dlpack); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_tensor_share_dlpack_legacy(hg_context *context,
                                                            struct DLManagedTensor *in,
                                                            void *stream, hg_tensor **out);

/** Creates a graph from a tensor of edges, as PyTorch Geometric has them in edge_index: row 0 holds
 * the sources, row 1 the destinations.
 *
 * Cost      As for hg_graph_from_coo, and 24 m bytes of host memory until it returns. On a GPU the
 *           edges are copied to the host, which checks every id, and back.
 * @param context     the context.
 * @param rows        number of destinations, 0 to 2^31 - 1.
 * @param cols        number of sources, 0 to 2^31 - 1.
 * @param edge_index  i64 or i32 [2, m], of the context; not kept.
 * @param weight      f16 or f32 [m, 1] of finite numbers, of the context; or NULL: all 1. Not kept.
 * @param order       host array [m] or NULL, as for hg_graph_from_coo.
 * @param graph       receives the graph, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, another context, an extent is negative or too
 *         large, an id is out of range or a weight is not finite: the message names it);
 *         HG_ERR_DTYPE (other types); HG_ERR_SHAPE (not [2, m], or not m weights); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_graph_from_edge_index(hg_context *context, int64_t rows,
                                                       int64_t cols, const hg_tensor *edge_index,
                                                       const hg_tensor *weight, int64_t *order,
                                                       hg_graph **graph);

HG_EXTERN_C_END
#endif
