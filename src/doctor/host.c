#include "doctor/host.h"

#include "precision/half.h"

double hg__host_element(const struct hg__mat *mat, const void *data, int64_t row, int64_t col)
{
	const int64_t at = row * mat->ld + col;
	if (mat->dtype == HG_F16)
		return (double)hg__half_to_float(((const hg_half *)data)[at]);
	if (mat->dtype == HG_F32)
		return (double)((const float *)data)[at];
	if (mat->dtype == HG_I32)
		return (double)((const int32_t *)data)[at];
	return mat->dtype == HG_I64 ? (double)((const int64_t *)data)[at]
	                            : (double)((const uint8_t *)data)[at];
}

hg_status hg__fetch_element(hg_context *ctx, const struct hg__mat *mat, int64_t row, int64_t col,
                            double *value)
{
	_Alignas(8) unsigned char bytes[8] = {0};
	const struct hg__mat one = {bytes, 1, 1, 1, mat->dtype};
	const size_t size = hg_dtype_size(mat->dtype);
	HG__TRY(ctx->backend->copy_out(
	    ctx, bytes, (const char *)mat->data + (size_t)(row * mat->ld + col) * size, size));
	*value = hg__host_element(&one, bytes, 0, 0);
	return HG_OK;
}

hg_status hg__fetch_rows(hg_context *ctx, const struct hg__mat *mat, int64_t first, int64_t count,
                         struct hg__fetched *fetched)
{
	const size_t size = hg_dtype_size(mat->dtype), row = (size_t)mat->ld * size;
	*fetched = (struct hg__fetched){.mat = *mat};
	HG__TRY(hg__buffer_host(ctx, count * mat->ld, size, "doctor: an operand", &fetched->buffer));
	fetched->mat.data = fetched->buffer.data;
	fetched->mat.rows = count;
	const hg_status status =
	    fetched->buffer.bytes
	        ? ctx->backend->copy_out(ctx, fetched->buffer.data,
	                                 (const char *)mat->data + (size_t)first * row,
	                                 fetched->buffer.bytes)
	        : HG_OK;
	if (status < 0)
		hg__fetched_free(ctx, fetched);
	return status;
}

void hg__fetched_free(hg_context *ctx, struct hg__fetched *fetched)
{
	hg__buffer_free(ctx, &fetched->buffer);
	*fetched = (struct hg__fetched){0};
}
