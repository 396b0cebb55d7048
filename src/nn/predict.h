#ifndef HG_NN_PREDICT_H
#define HG_NN_PREDICT_H

#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/* Reads logits: the class of each row, and the logits unless they are NULL (hg_train_predict). */
HG_NODISCARD hg_status hg__predict(hg_context *ctx, const hg_tensor *logits, int32_t *prediction,
                                   float *values);

/* Predictions of standardised targets, in place: x * deviation + mean, for each column. */
void hg__targets_undo(float *x, int64_t rows, int64_t cols, const double *mean,
                      const double *deviation);

HG_EXTERN_C_END
#endif
