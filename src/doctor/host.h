#ifndef HG_DOCTOR_HOST_H
#define HG_DOCTOR_HOST_H

#include "core/buffer.h"
#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* Matrices of the device, read by the host. */

/* One element of a matrix of any type that lies in host memory. */
double hg__host_element(const struct hg__mat *mat, const void *data, int64_t row, int64_t col);
/* One element of a matrix on the device. */
HG_NODISCARD hg_status hg__fetch_element(hg_context *ctx, const struct hg__mat *mat, int64_t row,
                                         int64_t col, double *value);

/* Rows first .. first + count - 1, as they lie. mat: the same rows with `data` on the host. */
struct hg__fetched {
	struct hg__buffer buffer;
	struct hg__mat mat;
};
HG_NODISCARD hg_status hg__fetch_rows(hg_context *ctx, const struct hg__mat *mat, int64_t first,
                                      int64_t count, struct hg__fetched *fetched);
void hg__fetched_free(hg_context *ctx, struct hg__fetched *fetched);
static inline double hg__fetched_at(const struct hg__fetched *fetched, int64_t row, int64_t col)
{
	return hg__host_element(&fetched->mat, fetched->mat.data, row, col);
}

HG_EXTERN_C_END
#endif
