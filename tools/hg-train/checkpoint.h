#ifndef HG_TRAIN_CHECKPOINT_H
#define HG_TRAIN_CHECKPOINT_H

#include "options.h"

/* Check the files of --save and --json before the training: they must not overwrite an input, must
 * differ, and --save must be possible. One line in message[HG_DATA_MESSAGE]. */
HG_NODISCARD hg_status files_check(const struct options *o, char *message);

/* Apply --resume and --save if they were given. `message` says why they failed and is "" otherwise.
 * A checkpoint of a run with another configuration is accepted; stderr names the differences. */
hg_status checkpoint_resume(const struct options *o, hg_train *train, char *message);
hg_status checkpoint_save(const struct options *o, hg_train *train, char *message);

#endif
