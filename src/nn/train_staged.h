#ifndef HG_NN_TRAIN_STAGED_H
#define HG_NN_TRAIN_STAGED_H

#include "nn/train_stager.h"

HG_EXTERN_C_BEGIN

/* Padded batches in host memory, on their way to the device. */

struct hg__staged_batch {
	struct hg__buffer block; /* pinned, where the device has such memory */
	struct hg__shape_of_batch shape;
	int64_t counted; /* what counts in its loss */
	size_t bytes;    /* of the block that are used */
};

struct hg__staged {
	/* Batch k of an epoch is in batch[k % 2], so that batch k + 1 can be put together while the
	 * device reads batch k. */
	struct hg__staged_batch batch[2];
	struct hg__stager stager;
	int64_t asked; /* the last batch that was asked for; -1: none */
};

/* Before the first batch of an epoch, with up to so many threads that run ahead; and after its last
 * one or a failure. */
void hg__staged_begin(struct hg__staged *staged, int threads);
void hg__staged_end(struct hg__staged *staged);
void hg__staged_fini(hg_context *ctx, struct hg__staged *staged);

/* Has batch k of these graphs put together. The device may still read the batch before it. */
HG_NODISCARD hg_status hg__staged_ask(struct hg__staged *staged, const struct hg__padded *padded,
                                      int64_t k, const int64_t *graph, int64_t graphs);
/* Was batch k the last to be asked for? */
int hg__staged_has(const struct hg__staged *staged, int64_t k);
/* Batch k, which was asked for, when it is complete. */
const struct hg__staged_batch *hg__staged_wait(struct hg__staged *staged, int64_t k);
/* Queues the copy of a batch to its block on the device. */
HG_NODISCARD hg_status hg__staged_copy(hg_context *ctx, const struct hg__staged_batch *batch,
                                       void *block);
/* Are there threads, so that asking early saves time? */
int hg__staged_runs_ahead(const struct hg__staged *staged);

HG_EXTERN_C_END
#endif
