#ifndef HG_CORE_MAT_H
#define HG_CORE_MAT_H

#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/* A raw view of a row-major matrix: what kernels see of a tensor. data NULL: absent. */
struct hg__mat {
	void *data;
	int64_t rows, cols, ld; /* ld in elements, see hg__leading */
	hg_dtype dtype;
};

/* Distance of two rows: cols for 1, 2, 4, else rounded up to 8 elements. */
static inline int64_t hg__leading(int64_t cols)
{
	return cols == 1 || cols == 2 || cols == 4 ? cols : (cols + 7) / 8 * 8;
}

#ifndef __cplusplus /* kernels see matrices only, and C++ has no _Atomic */
struct hg_tensor {
	hg_context *ctx;
	struct hg__mat mat;
	size_t bytes;
	int owned;        /* 0: a view of somebody else's memory (tape values) */
	_Atomic int refs; /* owner and DLPack consumers, who may let go on any thread */
};

/* A tensor that borrows `mat`'s memory, in place. */
static inline struct hg_tensor hg__tensor_view(hg_context *ctx, struct hg__mat mat)
{
	const struct hg_tensor view = {ctx, mat, (size_t)(mat.rows * mat.ld) * hg_dtype_size(mat.dtype),
	                               0, 1};
	return view;
}
#endif

HG_EXTERN_C_END
#endif
