#ifndef HG_TRAIN_CHECKPOINT_H
#define HG_TRAIN_CHECKPOINT_H

#include "options.h"

/* Check the files of --save and --json before the training: they must not overwrite an input, must
 * differ, and --save must be possible. One line in message[HG_DATA_MESSAGE]. */
HG_NODISCARD hg_status files_check(const struct options *o, char *message);

/* --continue: resume from its checkpoint, if that exists, and save it. *epochs, those of all runs,
 * becomes those that are left; what is done is printed. */
hg_status checkpoint_continue(struct options *o, int *epochs, FILE *text, char *message);

/* When the checkpoint was last written during the training. */
struct saving {
	int epoch, failed; /* failed: it could not be written */
	double at;         /* seconds */
};
/* Write the checkpoint if --save-every or --continue wants it after this epoch. Call it for every
 * epoch in order, after everything else that the epoch changes. */
void checkpoint_note(const struct options *o, struct saving *s, hg_train *train,
                     const hg_train_event *event);

/* Apply --resume and --import-weights, or --save, --save-best and --export-weights, if they were
 * given. `message` says why they failed, and is "" otherwise. A checkpoint of a run with another
 * configuration is accepted; stderr names the differences. Of several runs save each that is better
 * than those before it: only --save-best is for several. */
hg_status checkpoint_resume(const struct options *o, hg_train *train, char *message);
hg_status checkpoint_save(const struct options *o, hg_train *train, char *message);

#endif
