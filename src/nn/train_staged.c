/* Batches on their way to the device, one ahead of the one in place. */
#include "nn/train_staged.h"

#include "core/backend.h"

void hg__staged_begin(struct hg__staged *s, int threads)
{
	s->asked = -1;
	if (threads > 0)
		hg__stager_begin(&s->stager, threads);
}

void hg__staged_end(struct hg__staged *s)
{
	hg__stager_end(&s->stager);
}

void hg__staged_fini(hg_context *ctx, struct hg__staged *s)
{
	for (int k = 0; k < 2; k++)
		hg__buffer_free(ctx, &s->batch[k].block);
}

/* With an eighth to spare, so that few batches need more. */
static hg_status host_grow(hg_context *ctx, size_t bytes, struct hg__buffer *buffer)
{
	if (bytes <= buffer->bytes)
		return HG_OK;
	hg__buffer_free(ctx, buffer);
	return hg__buffer_pinned(ctx, bytes + bytes / 8, "train: a batch", buffer);
}

hg_status hg__staged_ask(struct hg__staged *s, const struct hg__padded *padded, int64_t k,
                         const int64_t *graph, int64_t graphs)
{
	struct hg__staged_batch *to = &s->batch[k % 2];
	to->shape = hg__padded_shape(padded, graph, graphs);
	to->counted = hg__padded_counted(padded, graph, graphs);
	to->bytes = hg__padded_filled(padded, &to->shape);
	HG__TRY(host_grow(padded->all->ctx, to->bytes, &to->block));
	const struct hg__staging staging = {padded, to->shape, graph, to->block.data};
	hg__stager_ask(&s->stager, &staging);
	s->asked = k;
	return HG_OK;
}

int hg__staged_has(const struct hg__staged *s, int64_t k)
{
	return s->asked == k;
}

const struct hg__staged_batch *hg__staged_wait(struct hg__staged *s, int64_t k)
{
	hg__stager_wait(&s->stager);
	return &s->batch[k % 2];
}

hg_status hg__staged_copy(hg_context *ctx, const struct hg__staged_batch *batch, void *block)
{
	const struct hg__backend *backend = ctx->backend;
	return (backend->copy_in_async ? backend->copy_in_async
	                               : backend->copy_in)(ctx, block, batch->block.data, batch->bytes);
}

int hg__staged_runs_ahead(const struct hg__staged *s)
{
	return s->stager.threads > 0;
}
