#ifndef HG_NN_TRAIN_BUCKETS_H
#define HG_NN_TRAIN_BUCKETS_H

#include "autograd/observe.h"
#include "core/ahead.h"
#include "halfgraph/observe.h"
#include "halfgraph/train.h"
#include "nn/batches_schedule.h"

HG_EXTERN_C_BEGIN

/* Tapes and steps that serve all padded batches of one shape. The batches of a dataset have few
 * shapes, so after a few epochs nothing is recorded any more, and steps are launched as
 * captured. */

/* Batches of 128 graphs have 9 shapes where graphs are of similar size (ZINC). Where their edges
 * vary most (COLLAB) they have 79 in 30 epochs, and some 120 in 150 (counted in random orders of
 * its graphs): with room for 96, some of these would be thrown away and recorded again. */
enum { HG__BUCKETS = 128 };

struct hg__bucket {
	struct hg__padded_batch batch;
	/* NULL while the bucket is in place: the run has them */
	hg_tape *tape;
	hg_step *step;
	hg_var loss;
	int64_t used; /* when it was last put in place */
};

/* All buckets lie in the same block of device memory, and their tapes run in the same arena. */
struct hg__buckets {
	struct hg__padded padded; /* .all NULL: batches keep their own shapes */
	struct hg__bucket *bucket[HG__BUCKETS];
	struct hg__bucket *current; /* the one in place; NULL: none */
	struct hg__buffer block;    /* device */
	int64_t uses;
	/* The batches of the epoch are those of schedule[now]; a thread makes the other one for the
	 * epoch behind it. lists: a copy of those of the epoch on the device. */
	struct hg__schedule schedule[2];
	int now;
	struct hg__ahead ahead;
	struct hg__buffer lists;
};

/* Tries to give the run padded batches. Its first tape has been recorded on a batch without
 * padding. */
HG_NODISCARD hg_status hg__train_buckets_init(hg_train *train);
void hg__train_buckets_fini(hg_train *train);
/* Before the first epoch of a run, and after its last one or a failure. */
void hg__train_buckets_begin(hg_train *train);
void hg__train_buckets_end(hg_train *train);
/* Before the first batch of an epoch: brings its lists to the device. */
HG_NODISCARD hg_status hg__train_buckets_epoch(hg_train *train, int64_t epoch);
/* Puts batch k of the epoch in place, with a tape and a step for it: queues its assembly behind all
 * that is queued. If it is not ready, what was queued before must have run. */
HG_NODISCARD hg_status hg__train_bucket_begin(hg_train *train, int64_t k);
/* Are there tape, step and memory for batch k, so that putting it in place is a call that only
 * queues? */
int hg__train_bucket_ready(const hg_train *train, int64_t k);
/* least: of the batch in place. Lowers its headroom to that of the other batches with a tape. */
HG_NODISCARD hg_status hg__train_buckets_headroom(hg_train *train, hg_observer *least);
/* What counts in the loss of batch k of the epoch. */
int64_t hg__train_bucket_counted(const hg_train *train, int64_t k);
/* Frees all tapes and steps but those in place: they were recorded with assumptions that no longer
 * hold. */
void hg__train_buckets_forget(hg_train *train);

HG_EXTERN_C_END
#endif
