#ifndef HG_NN_BATCHES_SCHEDULE_H
#define HG_NN_BATCHES_SCHEDULE_H

#include "nn/batches_padded.h"

HG_EXTERN_C_BEGIN

/* The padded batches of an epoch: which graphs each has, where they begin in it, its shape. That is
 * all the host has to say of them, some 24 bytes for each graph, and one copy brings it to the
 * device before the first of them. */

struct hg__scheduled {
	struct hg__shape_of_batch shape;
	int64_t counted; /* what counts in its loss */
	int64_t bins;    /* of its list */
};

struct hg__schedule {
	const struct hg__padded *padded;
	int64_t epoch;
	int64_t count;                    /* graphs of all batches */
	int64_t batches, most;            /* the most graphs of a batch */
	struct hg__buffer batch;          /* struct hg__scheduled [batches] */
	struct hg__buffer lists;          /* pinned where the device has such memory */
	struct hg__buffer order, scratch; /* int64 [graphs], [most] */
};

/* Its epoch is none. After a failure, too, hg__schedule_fini frees everything. */
HG_NODISCARD hg_status hg__schedule_init(struct hg__schedule *schedule,
                                         const struct hg__padded *padded);
void hg__schedule_fini(struct hg__schedule *schedule);
/* A schedule of all graphs of the dataset in their order, so many in a batch; it is complete. */
HG_NODISCARD hg_status hg__schedule_init_all(struct hg__schedule *schedule,
                                             const struct hg__padded *padded, int64_t most);
/* A shape without bins that holds each of the batches first .. end - 1, which have as many
 * graphs. */
struct hg__shape_of_batch hg__schedule_shape(const struct hg__schedule *schedule, int64_t first,
                                             int64_t end);
/* Schedules an epoch. Safe on any thread: it only reads what is shared, allocates nothing and
 * cannot fail. */
void hg__schedule_make(struct hg__schedule *schedule, int64_t epoch);

static inline const struct hg__scheduled *hg__scheduled(const struct hg__schedule *schedule,
                                                        int64_t k)
{
	return (const struct hg__scheduled *)schedule->batch.data + k;
}
/* The list of batch k. lists: schedule->lists.data, or where a copy of it is. */
struct hg__batch_list hg__schedule_list(const struct hg__schedule *schedule, int64_t k,
                                        const void *lists);

HG_EXTERN_C_END
#endif
