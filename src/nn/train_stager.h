#ifndef HG_NN_TRAIN_STAGER_H
#define HG_NN_TRAIN_STAGER_H

#include <pthread.h>

#include "nn/batches_padded.h"

HG_EXTERN_C_BEGIN

/* Threads that fill blocks of host memory with padded batches, one block at a time and each a part
 * of it, while the device works on the batch before. They only read what is shared, allocate
 * nothing and cannot fail. */

/* One thread writes a batch of 4,096 molecules in 2 to 4 ms, and a GPU computes 12 layers of it in
 * 0.2 ms, so even eight threads may be slower than the GPU. More of them were not tried. */
#define HG__STAGER_MOST 8

/* What to fill. */
struct hg__staging {
	const struct hg__padded *padded;
	struct hg__shape_of_batch shape;
	const int64_t *graph;
	void *block;
};

struct hg__stager {
	int threads; /* 0: hg__stager_ask fills the block itself */
	struct hg__stager_thread {
		struct hg__stager *of;
		int part;
		pthread_t thread;
	} thread[HG__STAGER_MOST];
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* what is asked of the threads; guarded by the mutex */
	struct hg__staging staging;
	int64_t blocks; /* that were asked for */
	int parts;      /* of the last one that are not filled */
	int asked;      /* a block is wanted or being filled */
	int quits;
};

/* How many threads to start beside a GPU: half of those of the context, or of the cores where that
 * number is 0; at least one. */
int hg__stager_share(const hg_context *ctx);
/* Starts up to so many threads, at most HG__STAGER_MOST. Where the system gives none, blocks are
 * filled by who asks. */
void hg__stager_begin(struct hg__stager *stager, int threads);
/* Asks for a block; the one before must have been waited for. */
void hg__stager_ask(struct hg__stager *stager, const struct hg__staging *staging);
/* Waits for the block that was asked for, if there is one. */
void hg__stager_wait(struct hg__stager *stager);
/* Waits for the threads to end. Without threads it does nothing. */
void hg__stager_end(struct hg__stager *stager);

HG_EXTERN_C_END
#endif
