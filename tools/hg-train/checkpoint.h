#ifndef HG_TRAIN_CHECKPOINT_H
#define HG_TRAIN_CHECKPOINT_H

#include "options.h"

/* What --save and --json write: not over what is needed, not into one file, and --save where it can
 * be. Before an hour of training, not behind it. message[HG_DATA_MESSAGE]. */
HG_NODISCARD hg_status files_check(const struct options *o, char *message);

/* --resume and --save, where they were given; message: why they failed, "" where they did not. A
 * checkpoint of a run that was set up otherwise is taken, and stderr says in what it differs. */
hg_status checkpoint_resume(const struct options *o, hg_train *train, char *message);
hg_status checkpoint_save(const struct options *o, hg_train *train, char *message);

#endif
