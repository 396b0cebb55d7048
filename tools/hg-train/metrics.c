/* All metrics of a task at the best epoch. */
#include "metrics.h"

#include <math.h>
#include <stdlib.h>

#include "dataset.h"

enum set { TRAINING, VALIDATION, TEST };

int metrics_has(hg_metric metric, hg_loss loss, int64_t cols)
{
	const int real = loss == HG_LOSS_MSE || loss == HG_LOSS_MAE,
	          is_error = metric == HG_METRIC_MAE || metric == HG_METRIC_RMSE;
	return real == is_error && hg_metric_fits(metric, loss == HG_LOSS_CROSS_ENTROPY, cols);
}

int metrics_tells(hg_metric metric, hg_loss loss, int64_t cols)
{
	return metrics_has(metric, loss, cols) &&
	       !(metric == HG_METRIC_MICRO_F1 && loss == HG_LOSS_CROSS_ENTROPY);
}

static void clear(struct metrics *m)
{
	for (int k = 0; k < METRICS; k++)
		for (int set = 0; set < SETS; set++)
			m->value[k][set] = (double)NAN;
}

/* The metrics of one set, from the predictions of all rows. */
static hg_status compute(struct metrics *m, const hg_metric_data *data, hg_loss loss, int set)
{
	hg_status status = HG_OK;
	for (int k = HG_METRIC_NONE + 1; k < METRICS && status >= 0; k++)
		if (metrics_has((hg_metric)k, loss, data->cols))
			status = hg_metric_compute((hg_metric)k, data, &m->value[k][set]);
	return status;
}

static hg_status predict_and_compute(struct metrics *m, hg_train *train, const hg_dataset *d,
                                     hg_loss loss, hg_metric_data *data)
{
	const uint8_t *mask[SETS] = {d->train_mask, d->val_mask, d->test_mask};
	const size_t room = (size_t)(data->rows * data->cols) + 1;
	float *logits = calloc(room, sizeof *logits);
	int32_t *prediction = calloc((size_t)data->rows + 1, sizeof *prediction);
	hg_status status =
	    logits && prediction ? hg_train_predict(train, prediction, logits) : HG_ERR_NOMEM;
	data->logits = logits;
	data->labels = loss == HG_LOSS_CROSS_ENTROPY ? d->label : NULL;
	data->targets = data->labels ? NULL : d->target;
	for (int set = 0; set < SETS && status >= 0; set++) {
		data->mask = mask[set];
		/* without a training mask every row trains */
		if (set == TRAINING || dataset_has_split(d, loss, mask[set]))
			status = compute(m, data, loss, set);
	}
	free(prediction);
	free(logits);
	return status;
}

/* What the run has reported is told by the same digits. */
static void take_reported(struct metrics *m, const hg_train_report *p)
{
	m->value[p->metric][VALIDATION] = p->best_val_metric;
	m->value[p->metric][TEST] = p->test_metric;
	if (p->loss != HG_LOSS_CROSS_ENTROPY)
		return;
	m->value[HG_METRIC_ACCURACY][VALIDATION] = p->best_val_accuracy;
	m->value[HG_METRIC_ACCURACY][TEST] = p->test_accuracy;
}

hg_status metrics_take(struct metrics *m, hg_train *train, const hg_dataset *d,
                       const hg_train_report *report)
{
	hg_metric_data data = HG_METRIC_DATA_INIT;
	hg_status status = HG_OK;
	data.rows = d->graph_ptr ? d->graphs : d->nodes;
	data.cols = hg_model_get_config(hg_train_model(train))->out_features;
	clear(m);
	if (data.rows <= METRICS_MOST / data.cols)
		status = predict_and_compute(m, train, d, report->loss, &data);
	if (status < 0)
		clear(m);
	take_reported(m, report);
	return status;
}

double metrics_mean(const struct metrics *m, int runs, hg_metric metric, int set, double *deviation)
{
	double sum = 0, squares = 0;
	for (int i = 0; i < runs; i++)
		sum += m[i].value[metric][set];
	const double mean = runs ? sum / runs : (double)NAN;
	for (int i = 0; i < runs; i++)
		squares += (m[i].value[metric][set] - mean) * (m[i].value[metric][set] - mean);
	*deviation = isnan(mean) ? (double)NAN : runs > 1 ? sqrt(squares / (runs - 1)) : 0.0;
	return mean;
}
