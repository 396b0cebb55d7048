/** @file
 * Metrics: how good predictions are, on the host, in f64, from logits in f32. They are those of the
 * Open Graph Benchmark's evaluators and of scikit-learn.
 *
 *     hg_metric_data data = HG_METRIC_DATA_INIT;       logits, and labels or targets
 *     hg_metric_compute(HG_METRIC_ROC_AUC, &data, &value);
 *
 * A row is a node or a graph. Its truth is a class (labels) or, for each column, a number
 * (targets): 0 or 1 for each of several labels, or a real value. What is missing is left out: rows
 * whose mask is 0 or whose label is negative, and targets that are NaN. A metric of targets is the
 * mean over the columns in which it is defined, except for the two F1.
 *
 * Threads   Safe from any thread. No context, no state. */
#ifndef HALFGRAPH_METRICS_H
#define HALFGRAPH_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/export.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/** A metric. For classes the prediction is the first largest logit of the row; for several labels
 * it is whether the logit is above 0. A NaN logit is a wrong prediction. */
typedef enum hg_metric {
	/** no metric; in a configuration: that of the task */
	HG_METRIC_NONE = 0,
	/** right predictions / all, in [0, 1] */
	HG_METRIC_ACCURACY = 1,
	/** 2 TP / (2 TP + FP + FN), in [0, 1], where TP, FP and FN count true positives, false
	 * positives and false negatives of all classes or columns together; 0 if they are all 0 */
	HG_METRIC_MICRO_F1 = 2,
	/** the mean of the F1 of each class that is a label or a prediction of some row, or of each
	 * column that has a target */
	HG_METRIC_MACRO_F1 = 3,
	/** the probability that a positive has a larger logit than a negative, where equal ones count
	 * half: the area under the ROC curve, in [0, 1]. Defined in columns with a 0 and a 1. Two
	 * classes are one column, with the logit x[1] - x[0] */
	HG_METRIC_ROC_AUC = 4,
	/** sum over thresholds k, from the largest logit to the smallest, of (R_k - R_{k-1}) P_k, where
	 * P is precision, R recall, and equal logits are one threshold; in (0, 1]. Defined as the
	 * area */
	HG_METRIC_AVERAGE_PRECISION = 5,
	/** mean absolute error, the mean of |x - t|; at least 0 */
	HG_METRIC_MAE = 6,
	/** root of the mean of (x - t)^2; at least 0 */
	HG_METRIC_RMSE = 7
} hg_metric;

/** What a metric reads: host memory, rows one after the other. */
typedef struct hg_metric_data {
	size_t size;
	int64_t rows;          /**< n */
	int64_t cols;          /**< C classes, or t columns of targets */
	const float *logits;   /**< [n, cols]; for real targets the predictions */
	const int32_t *labels; /**< [n] classes, below C; negative: missing; or NULL */
	const float *targets; /**< [n, cols]; NaN: missing; or NULL. One of labels and targets is set */
	const uint8_t *mask;  /**< [n]: 0: the row is left out; or NULL */
} hg_metric_data;
/** An empty hg_metric_data with its size set. */
#define HG_METRIC_DATA_INIT HG__INIT_ZERO(hg_metric_data)

/** The name of a metric: "accuracy", "micro-f1", "macro-f1", "roc-auc", "average-precision", "mae",
 * "rmse".
 * @param metric  a metric.
 * @return a constant text; NULL for HG_METRIC_NONE and for a number that is no metric. */
HG_API const char *hg_metric_name(hg_metric metric);

/** The metric of a name.
 * @param name  as hg_metric_name gives it, or NULL.
 * @return the metric; HG_METRIC_NONE if there is none of this name. */
HG_API hg_metric hg_metric_find(const char *name);

/** Whether a larger value is the better one.
 * @param metric  a metric.
 * @return 1: larger is better; 0: smaller is better (HG_METRIC_MAE, HG_METRIC_RMSE). */
HG_API int hg_metric_rises(hg_metric metric);

/** Whether a metric is defined for a kind of truth, whatever its values are.
 * @param metric   a metric.
 * @param classes  1: for labels; 0: for targets.
 * @param cols     columns of the logits.
 * @return 1 if hg_metric_compute takes such data, 0 if it refuses them. */
HG_API int hg_metric_fits(hg_metric metric, int classes, int64_t cols);

/** Computes a metric. Sums are f64, in the order of the rows.
 *
 * Shapes    logits, targets [n, cols]; labels, mask [n].
 * Range     as each hg_metric says; NaN where it is undefined: nothing is left to compare, or no
 *           column has both a 0 and a 1, or a NaN logit has no rank (ROC_AUC, AVERAGE_PRECISION) or
 *           no error (MAE, RMSE).
 * Cost      n cols operations; for ROC_AUC and AVERAGE_PRECISION a sort of each column, n log n,
 *           and 16 n bytes.
 * @param metric  the metric.
 * @param data    what it reads.
 * @param value   receives the value.
 * @return HG_OK, also if the value is NaN; HG_ERR_ARG (a pointer is NULL, size is not set, rows or
 *         cols is negative, both or neither of labels and targets is set, or not a metric);
 *         HG_ERR_UNSUPPORTED (hg_metric_fits is 0: MAE and RMSE are of targets, and the two areas
 *         of targets or of 2 classes); HG_ERR_RANGE (a label is not below cols, or a target is
 *         neither 0 nor 1 in a metric of labels); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_metric_compute(hg_metric metric, const hg_metric_data *data,
                                                double *value);

HG_EXTERN_C_END
#endif
