#ifndef HG_TRAINING_DATASET_H
#define HG_TRAINING_DATASET_H

#include "halfgraph/data.h"
#include "rows.h"

struct training;

/* Read the file and prepare everything that does not depend on the device; *rows says how the
 * features were prepared. On failure one line is in message[HG_DATA_MESSAGE]. */
hg_status dataset_load(const struct training *t, hg_dataset **dataset, struct feature_rows *rows,
                       char *message);
/* Write "FILE: WHY" into message[HG_DATA_MESSAGE]. */
hg_status dataset_refuse(const struct training *t, const char *why, char *message);

/* A dataset on the device of a context. */
struct device_data {
	hg_graph *graph, *x_sparse;
	hg_tensor *x;
};
hg_status dataset_upload(const hg_dataset *d, const struct training *t, hg_context *ctx,
                         hg_dtype state, struct device_data *out);
void dataset_release(struct device_data *data);
/* The data for hg_train_create, which borrows both arguments. */
hg_train_data dataset_to_train(const hg_dataset *d, const struct device_data *data,
                               const struct feature_rows *rows);

/* The share of the features that are not zero, as stored: 1 for dense ones. */
double dataset_density(const hg_dataset *d);
int dataset_is_sparse(const hg_dataset *d, const struct training *t);
/* How the features are stored and, if that differs, used: "sparse", "dense", "stored sparse, used
 * dense". */
const char *dataset_features_text(const hg_dataset *d, int sparse);
int dataset_has_validation(const hg_dataset *d);

#endif
