/* Tensors: creation, release, what they report of themselves, and transfer from and to the host. */
#include <string.h>

#include "core/buffer.h"
#include "core/convert.h"
#include "core/dlpack_abi.h"
#include "core/lent.h"
#include "core/process.h"

static hg_status check_extent(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols)
{
	if (!hg_dtype_get(dtype))
		return hg__fail(ctx, HG_ERR_DTYPE, "tensor: %d is not an hg_dtype", (int)dtype);
	if (rows < 0 || cols < 0)
		return hg__fail(ctx, HG_ERR_ARG, "tensor: shape [%lld, %lld] has a negative extent",
		                (long long)rows, (long long)cols);
	if (cols > INT64_MAX - 7 || (cols > 0 && rows > INT64_MAX / 8 / hg__leading(cols)))
		return hg__fail(ctx, HG_ERR_NOMEM,
		                "tensor: shape [%lld, %lld] is more than memory can hold", (long long)rows,
		                (long long)cols);
	return HG_OK;
}

hg_status hg__tensor_lent(hg_context *ctx, struct hg__mat mat, struct hg__lent **lent)
{
	struct hg__buffer self = {0};
	HG__TRY(hg__buffer_host(ctx, 1, sizeof(struct hg__lent), "tensor", &self));
	*lent = self.data;
	(*lent)->tensor = hg__tensor_view(ctx, mat);
	(*lent)->tensor.owned = HG__LENT;
	hg__context_hold(ctx);
	return HG_OK;
}

/* The memory of a CPU is host memory in any case; a GPU reads pinned memory alone. */
static int is_pinned(const hg_tensor *t)
{
	return t->on_host && t->ctx->backend->host_alloc;
}

/* Gives a tensor its memory, filled with zeros. */
static hg_status elements_make(hg_tensor *t)
{
	hg_context *ctx = t->ctx;
	if (!is_pinned(t)) {
		HG__TRY(hg__device_alloc(ctx, t->bytes, "tensor", &t->mat.data));
		return t->bytes ? ctx->backend->fill(ctx, t->mat.data, 0, t->bytes) : HG_OK;
	}
	HG__TRY(hg__same_process(ctx));
	t->mat.data = t->bytes ? ctx->backend->host_alloc(ctx, t->bytes) : NULL;
	if (t->mat.data)
		memset(t->mat.data, 0, t->bytes);
	return t->mat.data || !t->bytes ? HG_OK : HG_ERR_NOMEM;
}

static hg_status tensor_make(hg_context *ctx, const struct hg__mat *mat, int on_host,
                             hg_tensor **tensor)
{
	struct hg__buffer self = {0};
	HG__TRY(hg__buffer_host(ctx, 1, sizeof(hg_tensor), "tensor", &self));
	hg_tensor *t = self.data;
	*t = hg__tensor_view(ctx, *mat);
	t->owned = 1;
	t->on_host = on_host;
	hg__context_hold(ctx);
	hg_status status = elements_make(t);
	if (status == HG_ERR_NOMEM && is_pinned(t))
		status = hg__fail(
		    ctx, status, "tensor: no pinned host memory for %s [%lld, %lld], %zu bytes",
		    hg_dtype_name(mat->dtype), (long long)mat->rows, (long long)mat->cols, t->bytes);
	else if (status == HG_ERR_NOMEM)
		status = hg__fail(
		    ctx, status,
		    "tensor: no device memory for %s [%lld, %lld], %zu bytes (%zu held by this context)",
		    hg_dtype_name(mat->dtype), (long long)mat->rows, (long long)mat->cols, t->bytes,
		    ctx->current_bytes);
	if (status < 0)
		hg_tensor_free(t);
	else
		*tensor = t;
	return status;
}

hg_status hg__tensor_make(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols, int64_t ld,
                          hg_tensor **tensor)
{
	const struct hg__mat mat = {NULL, rows, cols, ld, dtype};
	return tensor_make(ctx, &mat, 0, tensor);
}

static hg_status create(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols, int on_host,
                        hg_tensor **tensor)
{
	if (tensor)
		*tensor = NULL;
	if (!ctx || !tensor)
		return hg__fail(ctx, HG_ERR_ARG, "tensor: the pointer for the result is NULL");
	HG__TRY(check_extent(ctx, dtype, rows, cols));
	const struct hg__mat mat = {NULL, rows, cols, hg__leading(cols), dtype};
	return tensor_make(ctx, &mat, on_host, tensor);
}

hg_status hg_tensor_create(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols,
                           hg_tensor **tensor)
{
	return create(ctx, dtype, rows, cols, 0, tensor);
}

hg_status hg_tensor_create_on_host(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols,
                                   hg_tensor **tensor)
{
	return create(ctx, dtype, rows, cols, 1, tensor);
}

/* Gives memory back to the library that lent it, which may use it again at once: queued work that
 * reads it has run before. */
static void give_back(struct hg__lent *lent)
{
	hg_context *ctx = lent->tensor.ctx;
	if (ctx->backend->synchronize(ctx) < 0)
		hg__log(ctx, HG_LOG_ERROR, "%s: while a borrowed tensor was given back", ctx->message);
	if (lent->lender && lent->lender->deleter)
		lent->lender->deleter(lent->lender);
	if (lent->legacy_lender && lent->legacy_lender->deleter)
		lent->legacy_lender->deleter(lent->legacy_lender);
	hg__host_free(ctx, lent, sizeof *lent);
}

static void elements_free(hg_tensor *t)
{
	if (!is_pinned(t))
		hg__device_free(t->ctx, t->mat.data, t->bytes);
	else if (t->mat.data)
		t->ctx->backend->host_free(t->ctx, t->mat.data);
}

void hg_tensor_free(hg_tensor *tensor)
{
	if (!tensor || !tensor->owned || --tensor->refs > 0)
		return;
	hg_context *ctx = tensor->ctx;
	if (tensor->owned == HG__LENT) {
		give_back((struct hg__lent *)tensor);
	} else {
		elements_free(tensor);
		hg__host_free(ctx, tensor, sizeof *tensor);
	}
	hg__context_release(ctx);
}

hg_context *hg_tensor_context(const hg_tensor *tensor)
{
	return tensor ? tensor->ctx : NULL;
}

hg_dtype hg_tensor_dtype(const hg_tensor *tensor)
{
	return tensor ? tensor->mat.dtype : HG_DTYPE_COUNT;
}

int64_t hg_tensor_rows(const hg_tensor *tensor)
{
	return tensor ? tensor->mat.rows : 0;
}

int64_t hg_tensor_cols(const hg_tensor *tensor)
{
	return tensor ? tensor->mat.cols : 0;
}

int64_t hg_tensor_ld(const hg_tensor *tensor)
{
	return tensor ? tensor->mat.ld : 0;
}

void *hg_tensor_data(const hg_tensor *tensor)
{
	return tensor ? tensor->mat.data : NULL;
}

size_t hg_tensor_bytes(const hg_tensor *tensor)
{
	return tensor ? tensor->bytes : 0;
}

static hg_status check_host(const hg_tensor *t, const void *host, hg_dtype dtype, const char *verb)
{
	if (!t)
		return HG_ERR_ARG;
	if (!host && t->mat.rows && t->mat.cols)
		return hg__fail(t->ctx, HG_ERR_ARG, "%s: the host array is NULL", verb);
	if (!hg__convertible(t->mat.dtype, dtype))
		return hg__fail(t->ctx, HG_ERR_DTYPE, "%s: tensor is %s, host array is %s", verb,
		                hg_dtype_name(t->mat.dtype), hg_dtype_name(dtype));
	return HG_OK;
}

static int64_t staging_rows(const struct hg__mat *m)
{
	const int64_t fit = HG__STAGING_BYTES / (m->ld * (int64_t)hg_dtype_size(m->dtype));
	return fit < 1 ? 1 : fit < m->rows ? fit : m->rows;
}

/* A transfer between the padded device matrix and the compact host array. A chunk is rows first ..
 * first + count - 1. */
struct transfer {
	hg_context *ctx;
	const struct hg__mat *mat;
	hg_dtype dtype; /* of the host array */
	char *staging;
};

static hg_status chunk_in(const struct transfer *t, const char *host, int64_t first, int64_t count)
{
	const struct hg__mat *m = t->mat;
	const int64_t row = m->ld * (int64_t)hg_dtype_size(m->dtype),
	              host_row = m->cols * (int64_t)hg_dtype_size(t->dtype);
	for (int64_t r = 0; r < count; r++)
		hg__convert(m->dtype, t->staging + r * row, t->dtype, host + (first + r) * host_row,
		            m->cols);
	return t->ctx->backend->copy_in(t->ctx, (char *)m->data + first * row, t->staging,
	                                (size_t)(count * row));
}

static hg_status chunk_out(const struct transfer *t, char *host, int64_t first, int64_t count)
{
	const struct hg__mat *m = t->mat;
	const int64_t row = m->ld * (int64_t)hg_dtype_size(m->dtype),
	              host_row = m->cols * (int64_t)hg_dtype_size(t->dtype);
	HG__TRY(t->ctx->backend->copy_out(t->ctx, t->staging, (const char *)m->data + first * row,
	                                  (size_t)(count * row)));
	for (int64_t r = 0; r < count; r++)
		hg__convert(t->dtype, host + (first + r) * host_row, m->dtype, t->staging + r * row,
		            m->cols);
	return HG_OK;
}

static int same_layout(const struct hg__mat *m, hg_dtype host_dtype)
{
	return m->ld == m->cols && m->dtype == host_dtype;
}

hg_status hg_tensor_upload(hg_tensor *tensor, const void *host, hg_dtype dtype)
{
	HG__TRY(check_host(tensor, host, dtype, "upload"));
	hg_context *ctx = tensor->ctx;
	const struct hg__mat *m = &tensor->mat;
	if (!tensor->bytes)
		return HG_OK;
	const int64_t bad = hg__convert_overflow(m->dtype, dtype, host, m->rows * m->cols);
	if (bad >= 0)
		return hg__fail(
		    ctx, HG_ERR_RANGE,
		    "upload: the value %.9g at row %lld, column %lld does not fit f16 (largest 65504)",
		    (double)((const float *)host)[bad], (long long)(bad / m->cols),
		    (long long)(bad % m->cols));
	if (same_layout(m, dtype))
		return ctx->backend->copy_in(ctx, m->data, host, tensor->bytes);
	const int64_t step = staging_rows(m);
	struct hg__buffer staging = {0};
	HG__TRY(
	    hg__buffer_host(ctx, step * m->ld, hg_dtype_size(m->dtype), "upload: staging", &staging));
	const struct transfer t = {ctx, m, dtype, staging.data};
	hg_status status = HG_OK;
	for (int64_t r = 0; r < m->rows && status == HG_OK; r += step)
		status = chunk_in(&t, host, r, m->rows - r < step ? m->rows - r : step);
	hg__buffer_free(ctx, &staging);
	return status;
}

hg_status hg_tensor_download(const hg_tensor *tensor, void *host, hg_dtype dtype)
{
	HG__TRY(check_host(tensor, host, dtype, "download"));
	hg_context *ctx = tensor->ctx;
	const struct hg__mat *m = &tensor->mat;
	if (!tensor->bytes)
		return HG_OK;
	if (same_layout(m, dtype))
		return ctx->backend->copy_out(ctx, host, m->data, tensor->bytes);
	const int64_t step = staging_rows(m);
	struct hg__buffer staging = {0};
	HG__TRY(
	    hg__buffer_host(ctx, step * m->ld, hg_dtype_size(m->dtype), "download: staging", &staging));
	const struct transfer t = {ctx, m, dtype, staging.data};
	hg_status status = HG_OK;
	for (int64_t r = 0; r < m->rows && status == HG_OK; r += step)
		status = chunk_out(&t, host, r, m->rows - r < step ? m->rows - r : step);
	hg__buffer_free(ctx, &staging);
	return status;
}
