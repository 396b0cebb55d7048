/* Predictions beside the truth. */
#include "judged.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"

/* A confusion matrix of more classes is larger than any page. */
enum { MOST_CLASSES = 2048 };

static int64_t rows_of(const hg_dataset *d)
{
	return d->graph_ptr ? d->graphs : d->nodes;
}

static const uint8_t *choose_set(const hg_dataset *d, hg_loss loss, const char **name)
{
	*name = "test";
	if (dataset_has_split(d, loss, d->test_mask))
		return d->test_mask;
	*name = "validation";
	if (dataset_has_split(d, loss, d->val_mask))
		return d->val_mask;
	*name = "training";
	return d->train_mask;
}

/* ---- classes ---- */

static hg_status take_classes(struct judged *j, hg_train *train, const hg_dataset *d,
                              const uint8_t *mask)
{
	const int64_t rows = rows_of(d);
	int32_t *prediction = calloc((size_t)rows + 1, sizeof *prediction);
	j->cols = d->classes;
	if (j->cols > MOST_CLASSES) {
		free(prediction);
		return HG_OK;
	}
	j->confusion = calloc((size_t)(j->cols * j->cols) + 1, sizeof *j->confusion);
	j->name = d->class_name ? malloc((size_t)d->class_name_bytes) : NULL;
	if (j->name) {
		memcpy(j->name, d->class_name, (size_t)d->class_name_bytes);
		j->name_bytes = d->class_name_bytes;
	}
	hg_status status = prediction && j->confusion && !j->name == !d->class_name
	                       ? hg_train_predict(train, prediction, NULL)
	                       : HG_ERR_NOMEM;
	for (int64_t i = 0; i < rows && status >= 0; i++) {
		const int32_t truth = d->label[i], said = prediction[i];
		if (truth < 0 || truth >= j->cols || (mask && !mask[i]))
			continue;
		j->counted++;
		if (said >= 0 && said < j->cols)
			j->confusion[truth * j->cols + said]++;
		else
			j->missed++;
	}
	free(prediction);
	return status;
}

/* ---- targets ---- */

/* Keeps the rows of the set. */
static void keep_rows(struct judged *j, const hg_dataset *d, const uint8_t *mask,
                      const float *logits)
{
	const int64_t rows = rows_of(d), cols = j->cols;
	for (int64_t i = 0; i < rows; i++) {
		if (mask && !mask[i])
			continue;
		int there = 0;
		for (int64_t c = 0; c < cols; c++) {
			there |= !isnan(d->target[i * cols + c]);
			j->truth[j->rows * cols + c] = d->target[i * cols + c];
			j->prediction[j->rows * cols + c] = logits[i * cols + c];
		}
		j->counted += there;
		j->rows++;
	}
}

/* The prediction is whether the logit is above 0. */
static hg_status count_labels(struct judged *j)
{
	const size_t cols = (size_t)j->cols;
	float *one = calloc((size_t)(2 * j->rows) + 1, sizeof *one);
	j->counts = calloc(cols + 1, sizeof *j->counts);
	j->area = calloc(cols + 1, sizeof *j->area);
	hg_status status = one && j->counts && j->area ? HG_OK : HG_ERR_NOMEM;
	for (int64_t c = 0; c < j->cols && status >= 0; c++) {
		for (int64_t i = 0; i < j->rows; i++) {
			const float t = j->truth[i * j->cols + c], x = j->prediction[i * j->cols + c];
			one[i] = x;
			one[j->rows + i] = t;
			if (!isnan(t))
				j->counts[c][t > 0.5f ? (x > 0.0f ? 0 : 2) : (x > 0.0f ? 1 : 3)]++;
		}
		hg_metric_data data = HG_METRIC_DATA_INIT;
		data.rows = j->rows;
		data.cols = 1;
		data.logits = one;
		data.targets = one + j->rows;
		status = hg_metric_compute(HG_METRIC_ROC_AUC, &data, &j->area[c]);
	}
	free(one);
	return status;
}

static hg_status take_targets(struct judged *j, hg_train *train, const hg_dataset *d,
                              const uint8_t *mask)
{
	const size_t all = (size_t)(rows_of(d) * d->targets) + 1;
	float *logits = calloc(all, sizeof *logits);
	j->cols = d->targets;
	j->truth = calloc(all, sizeof *j->truth);
	j->prediction = calloc(all, sizeof *j->prediction);
	hg_status status =
	    logits && j->truth && j->prediction ? hg_train_predict(train, NULL, logits) : HG_ERR_NOMEM;
	if (status >= 0)
		keep_rows(j, d, mask, logits);
	free(logits);
	return status >= 0 && j->loss == HG_LOSS_BCE ? count_labels(j) : status;
}

hg_status judged_take(struct judged *j, hg_train *train, const hg_dataset *d, hg_loss loss)
{
	*j = (struct judged){.loss = loss};
	const uint8_t *mask = choose_set(d, loss, &j->set);
	const hg_status status = loss == HG_LOSS_CROSS_ENTROPY ? take_classes(j, train, d, mask)
	                                                       : take_targets(j, train, d, mask);
	j->known = status >= 0 && j->counted > 0;
	return status;
}

void judged_free(struct judged *j)
{
	free(j->confusion);
	free(j->name);
	free(j->counts);
	free(j->area);
	free(j->truth);
	free(j->prediction);
	*j = (struct judged){0};
}
