#ifndef HG_TRAINING_DATASET_H
#define HG_TRAINING_DATASET_H

#include "halfgraph/data.h"
#include "halfgraph/train.h"

struct training;

/* Read the file and prepare everything that does not depend on the device; *rows says whether the
 * rows of the features were divided by their sums, and why. On failure, and for HG_INFO_SUSPECT,
 * one line is in message[HG_DATA_MESSAGE]. */
hg_status dataset_load(const struct training *t, hg_dataset **dataset, hg_rows_advice *rows,
                       char *message);
/* Set the splits to a fold of the dataset as --validate asks. */
hg_status dataset_use_fold(const struct training *t, hg_dataset *d, int64_t fold, char *message);
/* Write "FILE: WHY" into message[HG_DATA_MESSAGE]. */
hg_status dataset_refuse(const struct training *t, const char *why, char *message);

/* What the options, and beside them the run, want of an upload. */
hg_upload_config dataset_upload_config(const struct training *t, const hg_train_config *run);
/* hg_dataset_upload; a message names the file. */
hg_status dataset_upload(const struct training *t, const hg_dataset *d, hg_context *ctx,
                         const hg_upload_config *config, hg_device_data **data, char *message);
/* hg_dataset_train_data, with a note of how the rows were prepared. */
hg_status dataset_train_data(const hg_dataset *d, const hg_device_data *data,
                             const hg_rows_advice *rows, hg_train_data *train, char *message);

/* The text for hg_train_data.features_note. */
const char *dataset_rows_note(const hg_rows_advice *rows);
/* How the features are stored and, if that differs, used: "sparse", "dense", "stored sparse, used
 * dense". */
const char *dataset_features_text(const hg_dataset *d, int sparse);
/* Does a mask of the dataset (or NULL) have a row with the label or target that the loss learns? */
int dataset_has_split(const hg_dataset *d, hg_loss loss, const uint8_t *mask);

#endif
