#ifndef HG_TRAIN_TIMING_H
#define HG_TRAIN_TIMING_H

#include "halfgraph/profile.h"
#include "options.h"

/* The times of the training tape, line by line, as they are after the profile is gone. */
struct timed_line {
	hg_profile_phase phase;
	char name[HG_NARROWING_NAME], op[HG_NARROWING_NAME], layer[64];
	double us, bytes, written, roofline;
	int64_t rows, cols;
	hg_dtype dtype;
};
struct timing {
	int known; /* 1: it was taken */
	double forward_us, backward_us, bandwidth;
	int64_t lines;
	struct timed_line *line; /* [lines] */
};

/* Time the training tape of a run whose epochs took about epoch_ms each, if --html or --trace wants
 * it, and write the file of --trace. The run stays as it was. `message` [HG_DATA_MESSAGE] says why
 * it failed, and is "" otherwise. */
hg_status timing_take(const struct options *o, hg_train *train, double epoch_ms,
                      struct timing *timing, char *message);
void timing_free(struct timing *timing);

#endif
