#ifndef HG_TRAIN_METRICS_H
#define HG_TRAIN_METRICS_H

#include "halfgraph/data.h"

/* All metrics of a run's task, with the weights of its best epoch. */

enum { METRICS = HG_METRIC_RMSE + 1, SETS = 3 };

struct metrics {
	double value[METRICS][SETS]; /* of the training, validation and test set; NaN: not known */
};

/* Larger predictions than these are not brought to the host for it. Then only the run's own metric
 * and the accuracy of classes are known. */
#define METRICS_MOST ((int64_t)1 << 27)

/* Is it a metric of the task: of `cols` classes or labels, or of real targets? */
int metrics_has(hg_metric metric, hg_loss loss, int64_t cols);
/* A metric of the task that tells people something that others do not: of classes micro-F1 is the
 * accuracy. */
int metrics_tells(hg_metric metric, hg_loss loss, int64_t cols);

/* Predict with the weights in place. What `report` has is taken from there. On failure the rest is
 * NaN. */
hg_status metrics_take(struct metrics *m, hg_train *train, const hg_dataset *d,
                       const hg_train_report *report);

/* The mean of a value over several runs, and its sample deviation; NaN where one of them is. */
double metrics_mean(const struct metrics *m, int runs, hg_metric metric, int set,
                    double *deviation);

#endif
