/* Tensors to and from DLPack. Export shares the memory of a tensor. Import copies into a new
 * tensor, in which rows may have another distance, or shares memory that has our layout. */
#include <string.h>

#include "core/buffer.h"
#include "core/dlpack_abi.h"
#include "core/lent.h"

/* The element types that both sides have. A DLPack bool is a byte of 0 or 1. */
static const struct {
	struct hg__dl_dtype dl;
	hg_dtype dtype;
} types[] = {
    {{HG__DL_FLOAT, 16, 1}, HG_F16}, {{HG__DL_FLOAT, 32, 1}, HG_F32}, {{HG__DL_INT, 32, 1}, HG_I32},
    {{HG__DL_INT, 64, 1}, HG_I64},   {{HG__DL_UINT, 8, 1}, HG_U8},    {{HG__DL_BOOL, 8, 1}, HG_U8},
};
#define TYPES (sizeof types / sizeof types[0])

static int32_t dl_device(hg_device device)
{
	return device == HG_DEVICE_CUDA ? HG__DL_CUDA : HG__DL_CPU;
}

/* An exported tensor: the managed tensor with its shape, and one reference to our tensor. */
struct dlpack_export {
	struct DLManagedTensorVersioned managed;
	int64_t shape[2], strides[2];
	hg_tensor *tensor;
};

static void dlpack_release(struct DLManagedTensorVersioned *self)
{
	struct dlpack_export *dlpack_export = self->manager;
	hg_tensor *tensor = dlpack_export->tensor;
	hg__host_free(tensor->ctx, dlpack_export, sizeof *dlpack_export);
	hg_tensor_free(tensor);
}

static void fill_export(struct dlpack_export *dlpack_export, hg_tensor *tensor)
{
	const struct hg__mat *m = &tensor->mat;
	struct DLManagedTensorVersioned *managed = &dlpack_export->managed;
	dlpack_export->tensor = tensor;
	dlpack_export->shape[0] = m->rows;
	dlpack_export->shape[1] = m->cols;
	dlpack_export->strides[0] = m->ld;
	dlpack_export->strides[1] = 1;
	managed->version.major = HG__DL_MAJOR;
	managed->version.minor = HG__DL_MINOR;
	managed->manager = dlpack_export;
	managed->deleter = dlpack_release;
	managed->tensor.data = m->data;
	managed->tensor.device.type = dl_device(tensor->ctx->backend->kind);
	if (tensor->on_host && managed->tensor.device.type == HG__DL_CUDA)
		managed->tensor.device.type = HG__DL_CUDA_HOST;
	managed->tensor.device.id =
	    managed->tensor.device.type == HG__DL_CPU ? 0 : tensor->ctx->device_index;
	managed->tensor.ndim = 2;
	managed->tensor.shape = dlpack_export->shape;
	managed->tensor.strides = dlpack_export->strides;
	for (size_t i = TYPES; i-- > 0;)
		if (types[i].dtype == m->dtype)
			managed->tensor.dtype = types[i].dl;
}

hg_status hg_tensor_to_dlpack(hg_tensor *tensor, void *stream,
                              struct DLManagedTensorVersioned **out)
{
	if (out)
		*out = NULL;
	if (!tensor || !out)
		return hg__fail(tensor ? tensor->ctx : NULL, HG_ERR_ARG,
		                "to_dlpack: the pointer for the result is NULL");
	hg_context *ctx = tensor->ctx;
	if (!tensor->owned)
		return hg__fail(ctx, HG_ERR_STATE,
		                "to_dlpack: the tensor is a view of memory that a tape owns and reuses; "
		                "hg_tensor_export_copy copies it");
	struct hg__buffer memory;
	HG__TRY(hg__buffer_host(ctx, 1, sizeof(struct dlpack_export), "to_dlpack", &memory));
	/* a consumer of host memory has no stream that could wait */
	const hg_status status = tensor->on_host ? ctx->backend->synchronize(ctx)
	                                         : ctx->backend->stream_publish(ctx, stream);
	if (status < 0) {
		hg__buffer_free(ctx, &memory);
		return status;
	}
	struct dlpack_export *dlpack_export = memory.data;
	fill_export(dlpack_export, tensor);
	tensor->refs++;
	*out = &dlpack_export->managed;
	return HG_OK;
}

/* The next three functions read a foreign matrix as a view with its own distance between rows. */
static hg_status check_type(hg_context *ctx, const struct hg__dl_tensor *t, struct hg__mat *view)
{
	for (size_t i = 0; i < TYPES; i++)
		if (t->dtype.code == types[i].dl.code && t->dtype.bits == types[i].dl.bits &&
		    t->dtype.lanes == 1) {
			view->dtype = types[i].dtype;
			return HG_OK;
		}
	return hg__fail(ctx, HG_ERR_DTYPE,
	                "from_dlpack: element type (code %d, %d bits, %d lanes), expected float 16 or "
	                "32, int 32 or 64, uint 8 or bool, 1 lane",
	                (int)t->dtype.code, (int)t->dtype.bits, (int)t->dtype.lanes);
}

static hg_status check_shape(hg_context *ctx, const struct hg__dl_tensor *t, struct hg__mat *view)
{
	if ((t->ndim != 1 && t->ndim != 2) || !t->shape)
		return hg__fail(ctx, HG_ERR_SHAPE, "from_dlpack: %d dimensions, expected 1 or 2",
		                (int)t->ndim);
	view->rows = t->shape[0];
	view->cols = t->ndim == 2 ? t->shape[1] : 1;
	view->ld = view->cols;
	if (view->rows < 0 || view->cols < 0)
		return hg__fail(ctx, HG_ERR_SHAPE, "from_dlpack: shape [%lld, %lld] has a negative extent",
		                (long long)view->rows, (long long)view->cols);
	const int64_t *strides = t->strides;
	if (!strides || !view->rows || !view->cols)
		return HG_OK;
	if (t->ndim == 2 && view->cols > 1 && strides[1] != 1)
		return hg__fail(ctx, HG_ERR_SHAPE,
		                "from_dlpack: columns lie %lld elements apart, expected 1 (row-major)",
		                (long long)strides[1]);
	if (view->rows > 1 && strides[0] < view->cols)
		return hg__fail(
		    ctx, HG_ERR_SHAPE,
		    "from_dlpack: rows lie %lld elements apart, expected at least their %lld columns",
		    (long long)strides[0], (long long)view->cols);
	if (view->rows > 1 && strides[0] > INT64_MAX / 8 / view->rows)
		return hg__fail(ctx, HG_ERR_SHAPE,
		                "from_dlpack: %lld rows %lld elements apart are more than memory can hold",
		                (long long)view->rows, (long long)strides[0]);
	if (view->rows > 1)
		view->ld = strides[0];
	return HG_OK;
}

static hg_status read_view(hg_context *ctx, const struct hg__dl_tensor *t, struct hg__mat *view)
{
	const int32_t type = dl_device(ctx->backend->kind);
	const int pinned = type == HG__DL_CUDA && t->device.type == HG__DL_CUDA_HOST;
	if (!pinned &&
	    (t->device.type != type || (type == HG__DL_CUDA && t->device.id != ctx->device_index)))
		return hg__fail(ctx, HG_ERR_ARG,
		                "from_dlpack: tensor is on DLPack device (%d, %d), context on (%d, %d)",
		                (int)t->device.type, (int)t->device.id, (int)type,
		                type == HG__DL_CUDA ? ctx->device_index : 0);
	HG__TRY(check_type(ctx, t, view));
	HG__TRY(check_shape(ctx, t, view));
	if (!t->data && view->rows && view->cols)
		return hg__fail(ctx, HG_ERR_ARG, "from_dlpack: data is NULL for shape [%lld, %lld]",
		                (long long)view->rows, (long long)view->cols);
	const uintptr_t address = (uintptr_t)t->data + (uintptr_t)t->byte_offset;
	if (address % hg_dtype_size(view->dtype))
		return hg__fail(ctx, HG_ERR_ARG,
		                "from_dlpack: data is not aligned to its %zu-byte elements",
		                hg_dtype_size(view->dtype));
	view->data = t->data ? (char *)t->data + t->byte_offset : NULL;
	return HG_OK;
}

/* Copies between matrices whose rows have different distances, through host memory, some rows at a
 * time. A matrix ends with the last element of its last row, not with that row's padding, so no
 * more than that may be read. */
static hg_status copy_rows(hg_context *ctx, const struct hg__mat *to, const struct hg__mat *from)
{
	const int64_t size = (int64_t)hg_dtype_size(to->dtype),
	              wider = to->ld > from->ld ? to->ld : from->ld,
	              fit = HG__STAGING_BYTES / (wider * size);
	const int64_t step = fit < 1 ? 1 : fit < to->rows ? fit : to->rows;
	struct hg__buffer packed = {0}, source = {0};
	HG__TRY(hg__buffer_host(ctx, (step - 1) * from->ld + from->cols, (size_t)size, "copy: staging",
	                        &source));
	hg_status status = hg__buffer_host(ctx, step * to->ld, (size_t)size, "copy: staging", &packed);
	for (int64_t r = 0; r < to->rows && status == HG_OK; r += step) {
		const int64_t count = to->rows - r < step ? to->rows - r : step;
		status = ctx->backend->copy_out(ctx, source.data, (char *)from->data + r * from->ld * size,
		                                (size_t)(((count - 1) * from->ld + from->cols) * size));
		for (int64_t i = 0; i < count && status == HG_OK; i++)
			memcpy((char *)packed.data + i * to->ld * size,
			       (char *)source.data + i * from->ld * size, (size_t)(to->cols * size));
		if (status == HG_OK)
			status = ctx->backend->copy_in(ctx, (char *)to->data + r * to->ld * size, packed.data,
			                               (size_t)(count * to->ld * size));
	}
	hg__buffer_free(ctx, &packed);
	hg__buffer_free(ctx, &source);
	return status;
}

hg_status hg__copy_matrix(hg_context *ctx, const struct hg__mat *to, const struct hg__mat *from)
{
	if (!to->rows || !to->cols)
		return HG_OK;
	if (to->ld != from->ld)
		return copy_rows(ctx, to, from);
	HG__TRY(ctx->backend->copy(ctx, to->data, from->data,
	                           (size_t)((to->rows - 1) * to->ld + to->cols) *
	                               hg_dtype_size(to->dtype)));
	/* the producer may free its memory after this function returns */
	return ctx->backend->synchronize(ctx);
}

static hg_status import_tensor(hg_context *ctx, const struct hg__dl_tensor *from, void *stream,
                               hg_tensor **out)
{
	struct hg__mat view = {NULL, 0, 0, 0, HG_F32};
	hg_tensor *tensor;
	HG__TRY(read_view(ctx, from, &view));
	HG__TRY(hg_tensor_create(ctx, view.dtype, view.rows, view.cols, &tensor));
	hg_status status = ctx->backend->stream_await(ctx, stream);
	if (status == HG_OK)
		/* copies to the host are not ordered after work on the stream */
		status = ctx->backend->synchronize(ctx);
	if (status == HG_OK)
		status = hg__copy_matrix(ctx, &tensor->mat, &view);
	if (status < 0)
		hg_tensor_free(tensor);
	else
		*out = tensor;
	return status;
}

static hg_status check_call(hg_context *ctx, const void *in, hg_tensor **out)
{
	if (out)
		*out = NULL;
	if (!ctx || !in || !out)
		return hg__fail(ctx, HG_ERR_ARG, "from_dlpack: %s is NULL",
		                in ? "the pointer for the result" : "the tensor");
	return HG_OK;
}

hg_status hg_tensor_from_dlpack(hg_context *ctx, struct DLManagedTensorVersioned *in, void *stream,
                                hg_tensor **out)
{
	HG__TRY(check_call(ctx, in, out));
	if (in->version.major != HG__DL_MAJOR) {
		const unsigned major = in->version.major, minor = in->version.minor;
		if (in->deleter)
			in->deleter(in);
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "from_dlpack: version %u.%u, expected %d.x", major,
		                minor, HG__DL_MAJOR);
	}
	HG__TRY(import_tensor(ctx, &in->tensor, stream, out));
	if (in->deleter)
		in->deleter(in);
	return HG_OK;
}

hg_status hg_tensor_from_dlpack_legacy(hg_context *ctx, struct DLManagedTensor *in, void *stream,
                                       hg_tensor **out)
{
	HG__TRY(check_call(ctx, in, out));
	HG__TRY(import_tensor(ctx, &in->tensor, stream, out));
	if (in->deleter)
		in->deleter(in);
	return HG_OK;
}

/* ---- sharing ---- */

/* Vectors of 16 bytes are what kernels read; all allocators align to that at least. */
#define SHARED_ALIGNMENT 16

/* A tensor of ours has no elements beside those of its rows, except where hg__leading asks for
 * them, and may be written. */
static hg_status check_shareable(hg_context *ctx, const struct hg__mat *view, uint64_t flags)
{
	if (flags & HG__DL_READ_ONLY)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "share_dlpack: the memory is read-only");
	if (view->ld != view->cols || hg__leading(view->cols) != view->cols)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "share_dlpack: %lld columns in rows %lld elements apart, expected 1, 2, 4 "
		                "or a multiple of 8, without a gap",
		                (long long)view->cols, (long long)view->ld);
	if ((uintptr_t)view->data % SHARED_ALIGNMENT)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "share_dlpack: data is not aligned to %d bytes",
		                SHARED_ALIGNMENT);
	return HG_OK;
}

static hg_status share_tensor(hg_context *ctx, const struct hg__dl_tensor *from, uint64_t flags,
                              void *stream, struct hg__lent **lent)
{
	struct hg__mat view = {NULL, 0, 0, 0, HG_F32};
	HG__TRY(read_view(ctx, from, &view));
	if (view.rows <= 1)
		view.ld = view.cols;
	HG__TRY(check_shareable(ctx, &view, flags));
	HG__TRY(ctx->backend->stream_await(ctx, stream));
	return hg__tensor_lent(ctx, view, lent);
}

hg_status hg_tensor_share_dlpack(hg_context *ctx, struct DLManagedTensorVersioned *in, void *stream,
                                 hg_tensor **out)
{
	HG__TRY(check_call(ctx, in, out));
	if (in->version.major != HG__DL_MAJOR)
		return hg__fail(ctx, HG_ERR_ARG, "share_dlpack: version %u.%u, expected %d.x",
		                (unsigned)in->version.major, (unsigned)in->version.minor, HG__DL_MAJOR);
	struct hg__lent *lent;
	HG__TRY(share_tensor(ctx, &in->tensor, in->flags, stream, &lent));
	lent->lender = in;
	*out = &lent->tensor;
	return HG_OK;
}

hg_status hg_tensor_share_dlpack_legacy(hg_context *ctx, struct DLManagedTensor *in, void *stream,
                                        hg_tensor **out)
{
	HG__TRY(check_call(ctx, in, out));
	struct hg__lent *lent;
	HG__TRY(share_tensor(ctx, &in->tensor, 0, stream, &lent));
	lent->legacy_lender = in;
	*out = &lent->tensor;
	return HG_OK;
}
