/* Tensors whose rows or whose memory are not those of hg_tensor_create: memory that another library
 * lent, and compact copies for another library. Kernels that walk over rows take both. */
#ifndef HG_CORE_LENT_H
#define HG_CORE_LENT_H

#include "core/mat.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* hg_tensor.owned of a tensor that is the first member of a struct hg__lent. */
enum { HG__LENT = 2 };

/* A tensor in another library's memory, which is told when it is free. One of the two is set. */
struct hg__lent {
	hg_tensor tensor;
	struct DLManagedTensorVersioned *lender;
	struct DLManagedTensor *legacy_lender;
};

/* tensor.c: a tensor of zeros on the device, owned by the caller, with this distance between its
 * rows. */
HG_NODISCARD hg_status hg__tensor_make(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols,
                                       int64_t ld, hg_tensor **tensor);
/* tensor.c: a tensor in the memory of `mat`, owned by the caller, who sets the lender. */
HG_NODISCARD hg_status hg__tensor_lent(hg_context *ctx, struct hg__mat mat, struct hg__lent **lent);
/* dlpack.c: copies the elements of a matrix into another of its shape and type, whose rows may have
 * another distance, and waits. */
HG_NODISCARD hg_status hg__copy_matrix(hg_context *ctx, const struct hg__mat *to,
                                       const struct hg__mat *from);

#endif
