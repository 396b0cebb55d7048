/* Memory and progress reports of a search for an order. */
#include <stdlib.h>

#include "order/order.h"

hg_status hg__order_alloc(const struct hg__order_work *work, int64_t count, size_t size,
                          struct hg__buffer *memory)
{
	*memory = (struct hg__buffer){0};
	if (count == 0)
		return HG_OK;
	if (work->ctx)
		return hg__buffer_host(work->ctx, count, size, "order", memory);
	memory->data = calloc((size_t)count, size);
	memory->bytes = memory->data ? (size_t)count * size : 0;
	return memory->data ? HG_OK : HG_ERR_NOMEM;
}

void hg__order_free(const struct hg__order_work *work, struct hg__buffer *memory)
{
	if (work->ctx)
		hg__buffer_free(work->ctx, memory);
	else
		free(memory->data);
	*memory = (struct hg__buffer){0};
}

hg_status hg__order_progress(const struct hg__order_work *work, const char *what, int64_t done,
                             int64_t total)
{
	if (!work->progress || !work->progress->step ||
	    !work->progress->step(work->progress->user, what, done, total))
		return HG_OK;
	return hg__fail(work->ctx, HG_ERR_STATE, "%s: stopped on request", what);
}
