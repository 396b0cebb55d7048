#ifndef HG_DATA_DRAWN_H
#define HG_DATA_DRAWN_H

#include "internal.h"

/* A row that may enter a split, and its sort key. The rows are ordered by a random number that
 * depends on the number that the user gave the node, so reordering the nodes does not change a
 * split. */
struct hg__drawn {
	int64_t row, number;
	uint64_t drawn;
	int32_t label; /* 0 where classes do not matter */
};

/* rows [*count], malloc'd := the labelled rows, or all without labels, in a random order; by_class:
 * within each class, the classes ascending. */
HG_NODISCARD hg_status hg__draw(const hg_dataset *d, uint64_t seed, int by_class,
                                struct hg__drawn **rows, int64_t *count, char *message);

/* Replace the splits: set[row] is 0 (train), 1 (validate), 2 (test) or anything else (none). */
HG_NODISCARD hg_status hg__set_splits(hg_dataset *d, const int8_t *set, char *message);

#endif
