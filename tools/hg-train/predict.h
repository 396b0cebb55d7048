#ifndef HG_TRAIN_PREDICT_H
#define HG_TRAIN_PREDICT_H

#include "options.h"

/* --evaluate and --predict: read a model and a dataset, and predict. --export-weights: write the
 * model's weights. Returns an exit code. */
int predict_run(const struct options *o);

#endif
