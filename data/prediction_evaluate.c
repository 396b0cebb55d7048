/* How good predictions are: the metrics of the training, on the sets of a dataset. */
#include <inttypes.h>
#include <math.h>

#include "core/versioned.h"
#include "internal.h"

static hg_metric usual_metric(hg_loss loss)
{
	return loss == HG_LOSS_CROSS_ENTROPY ? HG_METRIC_ACCURACY
	       : loss == HG_LOSS_BCE         ? HG_METRIC_ROC_AUC
	       : loss == HG_LOSS_MSE         ? HG_METRIC_RMSE
	                                     : HG_METRIC_MAE;
}

static hg_status check_shapes(const hg_prediction *p, const hg_dataset *d, char *message)
{
	const int64_t rows = hg__data_labelled(d);
	if (rows != p->rows || (d->graph_ptr != NULL) != p->of_graphs)
		return hg__data_fail(message, HG_ERR_SHAPE,
		                     "%" PRId64 " rows are predicted, %s has %" PRId64, p->rows,
		                     hg__data_name(d), rows);
	if (p->label ? !d->label : !d->target)
		return hg__data_fail(message, HG_ERR_STATE, "%s has no %s to compare with",
		                     hg__data_name(d), p->label ? "labels" : "targets");
	if (!p->label && d->targets != p->cols)
		return hg__data_fail(message, HG_ERR_SHAPE,
		                     "%" PRId64 " targets are predicted, %s has %" PRId64, p->cols,
		                     hg__data_name(d), d->targets);
	return HG_OK;
}

static hg_status check_metric(const hg_prediction *p, hg_metric metric, char *message)
{
	const int error = metric == HG_METRIC_MAE || metric == HG_METRIC_RMSE,
	          numbers = p->loss == HG_LOSS_MSE || p->loss == HG_LOSS_MAE;
	if (hg_metric_name(metric) && hg_metric_fits(metric, p->label != NULL, p->cols) &&
	    error == numbers)
		return HG_OK;
	return hg__data_fail(message, HG_ERR_ARG, "metric %s is not one of %s",
	                     hg_metric_name(metric) ? hg_metric_name(metric) : "?",
	                     p->label  ? "classes"
	                     : numbers ? "real targets"
	                               : "several labels");
}

/* The first value that the metric does not take. */
static hg_status check_values(const hg_prediction *p, const hg_dataset *d, char *message)
{
	for (int64_t i = 0; p->label && i < p->rows; i++)
		if (d->label[i] >= p->cols)
			return hg__data_fail(message, HG_ERR_RANGE,
			                     "label of row %" PRId64 " is %" PRId32
			                     ", the model knows classes 0 to %" PRId64,
			                     i, d->label[i], p->cols - 1);
	for (int64_t k = 0; p->loss == HG_LOSS_BCE && k < p->rows * p->cols; k++)
		if (!isnan(d->target[k]) && d->target[k] != 0.0f && d->target[k] != 1.0f)
			return hg__data_fail(message, HG_ERR_RANGE,
			                     "target %" PRId64 " of row %" PRId64
			                     " is %g, expected 0 or 1: the model learnt several labels",
			                     k % p->cols, k / p->cols, (double)d->target[k]);
	return HG_OK;
}

/* ---- counting ---- */

static int has_truth(const hg_prediction *p, const hg_dataset *d, int64_t row)
{
	int has = p->label && d->label[row] >= 0;
	for (int64_t c = 0; !p->label && c < p->cols; c++)
		has |= !isnan(d->target[row * p->cols + c]);
	return has;
}

/* As evaluations of a training count: a row with a NaN is never right. */
static int is_right(const hg_prediction *p, const hg_dataset *d, int64_t row)
{
	for (int64_t c = 0; c < p->cols; c++)
		if (isnan(p->logits[row * p->cols + c]))
			return 0;
	return p->label && p->label[row] == d->label[row];
}

static void count_rows(const hg_prediction *p, const hg_dataset *d, const uint8_t *mask, int set,
                       hg_evaluation *evaluation)
{
	for (int64_t i = 0; mask && i < p->rows; i++) {
		const int in = mask[i] && has_truth(p, d, i);
		evaluation->counted[set] += in;
		evaluation->right[set] += in && is_right(p, d, i);
	}
}

static hg_status evaluate_set(const hg_prediction *p, const hg_dataset *d, const uint8_t *mask,
                              int set, hg_evaluation *evaluation, char *message)
{
	hg_metric_data data = HG_METRIC_DATA_INIT;
	count_rows(p, d, mask, set, evaluation);
	evaluation->value[set] = (double)NAN;
	if (!evaluation->counted[set])
		return HG_OK;
	data.rows = p->rows;
	data.cols = p->cols;
	data.logits = p->logits;
	data.labels = p->label ? d->label : NULL;
	data.targets = p->label ? NULL : d->target;
	data.mask = mask;
	const hg_status status = hg_metric_compute(evaluation->metric, &data, &evaluation->value[set]);
	return status < 0 ? hg__data_fail(message, status, "metric %s: %s",
	                                  hg_metric_name(evaluation->metric), hg_status_text(status))
	                  : HG_OK;
}

hg_status hg_prediction_evaluate(const hg_prediction *prediction, const hg_dataset *dataset,
                                 hg_metric metric, hg_evaluation *evaluation, char *message)
{
	hg_evaluation ours = HG_EVALUATION_INIT;
	const hg_prediction *p = prediction;
	if (!p || !dataset || !evaluation)
		return hg__data_fail(message, HG_ERR_ARG, "prediction_evaluate: %s is NULL",
		                     !p         ? "prediction"
		                     : !dataset ? "dataset"
		                                : "evaluation");
	const uint8_t *const mask[3] = {dataset->train_mask, dataset->val_mask, dataset->test_mask};
	ours.metric = metric ? metric : usual_metric(p->loss);
	HG__TRY(check_shapes(p, dataset, message));
	HG__TRY(check_metric(p, ours.metric, message));
	HG__TRY(check_values(p, dataset, message));
	for (int64_t k = 0; k < p->rows * p->cols; k++)
		ours.nonfinite_logits += !isfinite(p->logits[k]);
	for (int k = 0; k < 3; k++)
		HG__TRY(evaluate_set(p, dataset, mask[k], k, &ours, message));
	return hg__struct_write(evaluation, &ours, sizeof ours)
	           ? HG_OK
	           : hg__data_fail(message, HG_ERR_ARG,
	                           "prediction_evaluate: evaluation.size is not set (start from "
	                           "HG_EVALUATION_INIT)");
}
