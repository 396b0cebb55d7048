#ifndef HALFGRAPH_TENSOR_H
#define HALFGRAPH_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/context.h"
#include "halfgraph/dtype.h"
#include "halfgraph/export.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/* A matrix [rows, cols] on the context's device, row-major. Rows start `ld` elements apart:
 *
 *     ld = cols for cols in {1, 2, 4},  else cols rounded up to a multiple of 8
 *
 * so that every row of halves is 16-byte aligned and odd widths are legal everywhere. Elements past
 * the last column are scratch: any kernel may overwrite them, none lets them reach a result. */
typedef struct hg_tensor hg_tensor;

/* Contents are zero. rows, cols >= 0. Errors: HG_ERR_ARG, HG_ERR_DTYPE, HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_tensor_create(hg_context *context, hg_dtype dtype, int64_t rows,
                                               int64_t cols, hg_tensor **tensor);
HG_API void hg_tensor_free(hg_tensor *tensor);

HG_API hg_context *hg_tensor_context(const hg_tensor *tensor);
HG_API hg_dtype hg_tensor_dtype(const hg_tensor *tensor);
HG_API int64_t hg_tensor_rows(const hg_tensor *tensor);
HG_API int64_t hg_tensor_cols(const hg_tensor *tensor);
HG_API int64_t hg_tensor_ld(const hg_tensor *tensor);
HG_API void *hg_tensor_data(const hg_tensor *tensor); /* device memory */
HG_API size_t hg_tensor_bytes(const hg_tensor *tensor);

/* Copy all elements from / to a compact row-major host array of `dtype`. Between f16 and f32 the
 * values are converted, rounded to nearest. Both finish before they return. Upload to f16 refuses
 * (HG_ERR_RANGE, naming row and column) a finite value that would become infinite. */
HG_API HG_NODISCARD hg_status hg_tensor_upload(hg_tensor *tensor, const void *host, hg_dtype dtype);
HG_API HG_NODISCARD hg_status hg_tensor_download(const hg_tensor *tensor, void *host,
                                                 hg_dtype dtype);

HG_EXTERN_C_END
#endif
