#ifndef HG_NN_TRAIN_STAGER_H
#define HG_NN_TRAIN_STAGER_H

#include <pthread.h>

#include "nn/batches_padded.h"

HG_EXTERN_C_BEGIN

/* A thread that fills blocks of host memory with padded batches, one at a time, while the device
 * works on the batch before. It only reads what is shared, allocates nothing and cannot fail. */

/* What to fill. */
struct hg__staging {
	const struct hg__padded *padded;
	struct hg__shape_of_batch shape;
	const int64_t *graph;
	void *block;
};

struct hg__stager {
	int threaded; /* 0: hg__stager_ask fills the block itself */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* what is asked of the thread; guarded by the mutex */
	struct hg__staging staging;
	int asked; /* a block is wanted or being filled */
	int quits;
};

/* Starts the thread. Where the system gives none, blocks are filled by who asks. */
void hg__stager_begin(struct hg__stager *stager);
/* Asks for a block; the one before must have been waited for. */
void hg__stager_ask(struct hg__stager *stager, const struct hg__staging *staging);
/* Waits for the block that was asked for, if there is one. */
void hg__stager_wait(struct hg__stager *stager);
/* Waits for the thread to end. Without a thread it does nothing. */
void hg__stager_end(struct hg__stager *stager);

HG_EXTERN_C_END
#endif
