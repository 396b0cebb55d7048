#ifndef HG_TESTS_BATCHES_PADDED_H
#define HG_TESTS_BATCHES_PADDED_H

#include "nn/batches_schedule.h"
#include "unit/many_graphs.h"

/* A padded batch of a schedule, in a block of device memory of its own. */
struct padded_block {
	struct hg__padded_batch batch;
	struct hg__buffer lists, block;
};

/* Whatever the block held before, the batch is complete. */
static inline void padded_block_open(struct padded_block *b, hg_context *ctx,
                                     const struct hg__padded *padded,
                                     const struct hg__schedule *schedule, int64_t k)
{
	const struct hg__shape_of_batch *shape = &hg__scheduled(schedule, k)->shape;
	memset(b, 0, sizeof *b);
	CHECK_OK(hg__buffer_upload(ctx, (int64_t)schedule->lists.bytes, 1, schedule->lists.data,
	                           "lists", &b->lists));
	CHECK_OK(
	    hg__buffer_device(ctx, (int64_t)hg__padded_bytes(padded, shape), 1, "block", &b->block));
	CHECK_OK(ctx->backend->fill(ctx, b->block.data, 0xFF, b->block.bytes));
	CHECK_OK(hg__padded_open(padded, shape, b->block.data, &b->batch));
	const struct hg__batch_list list = hg__schedule_list(schedule, k, b->lists.data);
	CHECK_OK(hg__padded_assemble(padded, &list, &b->batch));
}

static inline void padded_block_close(struct padded_block *b, hg_context *ctx)
{
	hg__padded_close(&b->batch);
	hg__buffer_free(ctx, &b->lists);
	hg__buffer_free(ctx, &b->block);
}

/* A graph whose tapes have asked for all that they can ask for. Only that is read of it. */
static inline hg_graph padded_probe(const hg_graph *of)
{
	hg_graph probe = *of;
	struct hg__buffer *const arrays[] = {&probe.edge_t,   &probe.inverse_row, &probe.inverse_col,
	                                     &probe.root_row, &probe.root_col,    &probe.bin_first,
	                                     &probe.rowptr_t, &probe.col_t};
	/* the transpose of a symmetric pattern is the pattern itself */
	const size_t count = sizeof arrays / sizeof arrays[0] - (of->pattern_symmetric ? 2 : 0);
	for (size_t i = 0; i < count; i++)
		arrays[i]->bytes = 1;
	if (of->weight.data)
		probe.weight_f16.bytes = 1;
	return probe;
}

#endif
