/* A raw view of a matrix, which kernels take, and the tensor that holds one. */
#ifndef HG_CORE_MAT_H
#define HG_CORE_MAT_H

#include "halfgraph/tensor.h"

HG_EXTERN_C_BEGIN

/* A raw view of a row-major matrix. data NULL: the matrix is absent. */
struct hg__mat {
	void *data;
	int64_t rows, cols, ld; /* ld in elements, see hg__leading */
	hg_dtype dtype;
};

/* Elements between the beginnings of two rows: cols for 1, 2 and 4, else cols rounded up to a
 * multiple of 8, so that rows of halves begin at multiples of 16 bytes. */
static inline int64_t hg__leading(int64_t cols)
{
	return cols == 1 || cols == 2 || cols == 4 ? cols : (cols + 7) / 8 * 8;
}

#ifndef __cplusplus /* kernels use only matrices, and C++ has no _Atomic */
struct hg_tensor {
	hg_context *ctx;
	struct hg__mat mat;
	size_t bytes;
	int owned;        /* 0: a view of memory that a tape owns */
	int on_host;      /* 1: in host memory, where the host may read it in place */
	_Atomic int refs; /* the owner and DLPack consumers, which may release it on any thread */
};

/* A tensor, by value, that borrows the memory of `mat`. */
static inline struct hg_tensor hg__tensor_view(hg_context *ctx, struct hg__mat mat)
{
	const struct hg_tensor view = {ctx, mat, (size_t)(mat.rows * mat.ld) * hg_dtype_size(mat.dtype),
	                               0,   0,   1};
	return view;
}
#endif

HG_EXTERN_C_END
#endif
