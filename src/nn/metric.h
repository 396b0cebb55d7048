/* What the metrics share: which rows and targets count. */
#ifndef HG_NN_METRIC_H
#define HG_NN_METRIC_H

#include <math.h>

#include "halfgraph/metrics.h"

HG_EXTERN_C_BEGIN

/* Each computes one metric, of data that fit it. */
HG_NODISCARD hg_status hg__metric_accuracy(const hg_metric_data *d, double *value);
HG_NODISCARD hg_status hg__metric_micro_f1(const hg_metric_data *d, double *value);
HG_NODISCARD hg_status hg__metric_macro_f1(const hg_metric_data *d, double *value);
HG_NODISCARD hg_status hg__metric_roc_auc(const hg_metric_data *d, double *value);
HG_NODISCARD hg_status hg__metric_average_precision(const hg_metric_data *d, double *value);
HG_NODISCARD hg_status hg__metric_mae(const hg_metric_data *d, double *value);
HG_NODISCARD hg_status hg__metric_rmse(const hg_metric_data *d, double *value);

/* The rows whose prediction is their class, and those that have one. */
int64_t hg__metric_count_right(const hg_metric_data *d, int64_t *counted);

/* Does row r have a class, or column c of row r a target? */
static inline int hg__metric_has_label(const hg_metric_data *d, int64_t r)
{
	return (!d->mask || d->mask[r]) && d->labels[r] >= 0;
}

static inline int hg__metric_has_target(const hg_metric_data *d, int64_t r, int64_t c)
{
	return (!d->mask || d->mask[r]) && !isnan(d->targets[r * d->cols + c]);
}

HG_EXTERN_C_END
#endif
