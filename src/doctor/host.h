#ifndef HG_DOCTOR_HOST_H
#define HG_DOCTOR_HOST_H

#include "core/buffer.h"
#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* Device matrices, read by the host. */

/* One element of a matrix of any type; `data` is its memory on the host. */
double hg__host_element(const struct hg__mat *mat, const void *data, int64_t row, int64_t col);
/* One element of a matrix on the device. */
HG_NODISCARD hg_status hg__fetch_element(hg_context *ctx, const struct hg__mat *mat, int64_t row,
                                         int64_t col, double *value);

/* A copy of `count` rows from row `first` on, with the same distance between rows. In `mat`, `data`
 * is on the host and row 0 is row `first` of the matrix. */
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

/* How many rows to fetch from row `first` on: as many f32 rows as fit into a staging buffer, so
 * that a large tensor is read some megabytes at a time. */
static inline int64_t hg__rows_to_fetch(const struct hg__mat *mat, int64_t first)
{
	const int64_t left = mat->rows - first,
	              fit = HG__STAGING_BYTES / ((mat->ld + 1) * (int64_t)sizeof(float)),
	              rows = fit > 1 ? fit : 1;
	return left < rows ? left : rows;
}

HG_EXTERN_C_END
#endif
