#ifndef HG_TRAINING_WEIGHTS_H
#define HG_TRAINING_WEIGHTS_H

#include "training.h"

/* Sets what --class-weights and --label-smoothing say of a run on this dataset. *weights is to be
 * freed after hg_train_create; NULL: there are none. On failure one line may be in
 * message[HG_DATA_MESSAGE]. */
hg_status weights_make(const struct training *t, const hg_dataset *d, hg_train_config *config,
                       float **weights, char *message);
/* The file of --class-weights; NULL: there is none. */
const char *weights_file(const struct training *t);

#endif
