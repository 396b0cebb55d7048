/* Buffers of host and device memory, and copies between the two. */
#include "core/buffer.h"

hg_status hg__buffer_host(hg_context *ctx, int64_t count, size_t size, const char *what,
                          struct hg__buffer *buffer)
{
	const struct hg__buffer none = {NULL, 0, 0};
	*buffer = none;
	HG__TRY(hg__host_alloc(ctx, (size_t)count, size, what, &buffer->data));
	buffer->bytes = (size_t)count * size;
	return HG_OK;
}

hg_status hg__buffer_device(hg_context *ctx, int64_t count, size_t size, const char *what,
                            struct hg__buffer *buffer)
{
	const struct hg__buffer none = {NULL, 0, 1};
	*buffer = none;
	if (count > 0 && (size_t)count > SIZE_MAX / size)
		return hg__fail(ctx, HG_ERR_NOMEM,
		                "%s: %lld elements of %zu bytes are more than memory can hold", what,
		                (long long)count, size);
	HG__TRY(hg__device_alloc(ctx, (size_t)count * size, what, &buffer->data));
	buffer->bytes = (size_t)count * size;
	return HG_OK;
}

hg_status hg__buffer_pinned(hg_context *ctx, size_t bytes, const char *what,
                            struct hg__buffer *buffer)
{
	void *memory = ctx->backend->host_alloc ? ctx->backend->host_alloc(ctx, bytes) : NULL;
	if (!memory)
		return hg__buffer_host(ctx, (int64_t)bytes, 1, what, buffer);
	const struct hg__buffer pinned = {memory, bytes, HG__PINNED};
	*buffer = pinned;
	return HG_OK;
}

void hg__buffer_free(hg_context *ctx, struct hg__buffer *buffer)
{
	if (buffer->device == 1)
		hg__device_free(ctx, buffer->data, buffer->bytes);
	else if (buffer->device == HG__PINNED && buffer->data)
		ctx->backend->host_free(ctx, buffer->data);
	else if (buffer->device == 0)
		hg__host_free(ctx, buffer->data, buffer->bytes);
	buffer->data = NULL;
	buffer->bytes = 0;
}

hg_status hg__buffer_upload(hg_context *ctx, int64_t count, size_t size, const void *host,
                            const char *what, struct hg__buffer *buffer)
{
	HG__TRY(hg__buffer_device(ctx, count, size, what, buffer));
	const hg_status status =
	    buffer->bytes ? ctx->backend->copy_in(ctx, buffer->data, host, buffer->bytes) : HG_OK;
	if (status < 0)
		hg__buffer_free(ctx, buffer);
	return status;
}

hg_status hg__buffer_download(hg_context *ctx, const struct hg__buffer *from, const char *what,
                              struct hg__buffer *buffer)
{
	HG__TRY(hg__buffer_host(ctx, (int64_t)from->bytes, 1, what, buffer));
	const hg_status status =
	    buffer->bytes ? ctx->backend->copy_out(ctx, buffer->data, from->data, buffer->bytes)
	                  : HG_OK;
	if (status < 0)
		hg__buffer_free(ctx, buffer);
	return status;
}
