/* What a run learns from: checking, standardising and uploading labels, targets and masks. */
#include "nn/truth.h"

#include <math.h>
#include <string.h>

#include "nn/predict.h"

/* ---- classes ---- */

/* Refuses a run that has nothing to learn from. If the caller does not set the number of classes,
 * it is the largest label + 1. More classes than labelled rows would mean that this label is a
 * mistake. */
static hg_status labels_check(hg_context *ctx, const hg_train_data *d, int64_t rows,
                              int64_t *classes)
{
	int64_t learnable = 0, labelled = 0, widest = 0;
	for (int64_t i = 0; i < rows; i++) {
		if (d->labels[i] > d->labels[widest])
			widest = i;
		labelled += d->labels[i] >= 0;
		learnable += d->labels[i] >= 0 && (!d->train_mask || d->train_mask[i]);
	}
	if (!learnable)
		return hg__fail(ctx, HG_ERR_ARG, "train: none of %lld rows is labelled and in train_mask",
		                (long long)rows);
	if (*classes)
		return HG_OK;
	*classes = (int64_t)d->labels[widest] + 1;
	if (*classes > labelled)
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: label %d of row %lld means %lld classes, but only %lld rows are "
		                "labelled; if this is intended, set model.out_features",
		                (int)d->labels[widest], (long long)widest, (long long)*classes,
		                (long long)labelled);
	return HG_OK;
}

/* ---- targets ---- */

static int is_number(hg_loss loss)
{
	return loss == HG_LOSS_MSE || loss == HG_LOSS_MAE;
}

/* A target that a loss cannot use. */
static int is_wrong(hg_loss loss, float t)
{
	return isinf(t) || (!is_number(loss) && !isnan(t) && !(t >= 0.0f && t <= 0.0f) &&
	                    !(t >= 1.0f && t <= 1.0f));
}

static hg_status targets_check(hg_context *ctx, hg_loss loss, const hg_train_data *d, int64_t rows,
                               int64_t *columns)
{
	int64_t learnable = 0;
	for (int64_t i = 0; i < rows * d->target_cols; i++) {
		const int64_t row = i / d->target_cols;
		if (is_wrong(loss, d->targets[i]))
			return hg__fail(ctx, HG_ERR_RANGE,
			                "train: target %g in row %lld, column %lld, expected %s",
			                (double)d->targets[i], (long long)row, (long long)(i % d->target_cols),
			                is_number(loss) ? "a number" : "0, 1 or NaN");
		learnable += !isnan(d->targets[i]) && (!d->train_mask || d->train_mask[row]);
	}
	if (!learnable)
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: none of %lld rows has a target and is in train_mask",
		                (long long)rows);
	if (*columns && *columns != d->target_cols)
		return hg__fail(ctx, HG_ERR_SHAPE,
		                "train: the model has %lld out_features, the targets have %lld columns",
		                (long long)*columns, (long long)d->target_cols);
	*columns = d->target_cols;
	return HG_OK;
}

static int is_learnt(const hg_train_data *d, int64_t row, int64_t col)
{
	return (!d->train_mask || d->train_mask[row]) && !isnan(d->targets[row * d->target_cols + col]);
}

/* Mean and deviation of the targets that are learnt, in two passes in f64. A column that is
 * constant, or has no such target, is only shifted. */
static void column_statistics(const hg_train_data *d, int64_t rows, int64_t col, double *mean,
                              double *deviation)
{
	double sum = 0.0, squares = 0.0;
	int64_t count = 0;
	for (int64_t i = 0; i < rows; i++)
		if (is_learnt(d, i, col)) {
			sum += (double)d->targets[i * d->target_cols + col];
			count++;
		}
	*mean = count ? sum / (double)count : 0.0;
	for (int64_t i = 0; i < rows; i++)
		if (is_learnt(d, i, col)) {
			const double from = (double)d->targets[i * d->target_cols + col] - *mean;
			squares += from * from;
		}
	*deviation = count ? sqrt(squares / (double)count) : 0.0;
	if (!(*deviation > 0.0))
		*deviation = 1.0;
}

static hg_status standardise(struct hg__truth *t, hg_context *ctx, const hg_train_data *d)
{
	static const char what[] = "train: mean and deviation of targets";
	HG__TRY(hg__buffer_host(ctx, t->cols, sizeof(double), what, &t->mean));
	HG__TRY(hg__buffer_host(ctx, t->cols, sizeof(double), what, &t->deviation));
	for (int64_t c = 0; c < t->cols; c++)
		column_statistics(d, t->rows, c, (double *)t->mean.data + c,
		                  (double *)t->deviation.data + c);
	return HG_OK;
}

void hg__truth_undo(const struct hg__truth *t, float *x)
{
	if (t->mean.data)
		hg__targets_undo(x, t->rows, t->cols, t->mean.data, t->deviation.data);
}

/* ---- uploads ---- */

static hg_status matrix_upload(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols,
                               const void *host, hg_tensor **tensor)
{
	HG__TRY(hg_tensor_create(ctx, dtype, rows, cols, tensor));
	return hg_tensor_upload(*tensor, host, dtype);
}

/* The targets as they are learnt, and the mask of each of them. */
static hg_status targets_upload(struct hg__truth *t, hg_context *ctx, const hg_train_data *d)
{
	const int64_t count = t->rows * t->cols;
	const double *mean = t->mean.data, *deviation = t->deviation.data;
	struct hg__buffer target = {0}, mask = {0};
	hg_status status = hg__buffer_host(ctx, count, sizeof(float), "train: targets", &target);
	if (status >= 0)
		status = hg__buffer_host(ctx, count, 1, "train: masks of targets", &mask);
	for (int64_t i = 0; status >= 0 && i < count; i++) {
		const int64_t c = i % t->cols;
		const double x = (double)d->targets[i];
		((uint8_t *)mask.data)[i] = (uint8_t)is_learnt(d, i / t->cols, c);
		((float *)target.data)[i] =
		    isnan(x) ? 0.0f : (float)(mean ? (x - mean[c]) / deviation[c] : x);
	}
	if (status >= 0)
		status = matrix_upload(ctx, HG_F32, t->rows, t->cols, target.data, &t->target);
	if (status >= 0)
		status = matrix_upload(ctx, HG_U8, t->rows, t->cols, mask.data, &t->mask[HG__SPLIT_TRAIN]);
	hg__buffer_free(ctx, &target);
	hg__buffer_free(ctx, &mask);
	return status;
}

static hg_status labels_upload(struct hg__truth *t, hg_context *ctx, const hg_train_data *d,
                               const uint8_t *const masks[HG__SPLITS])
{
	HG__TRY(matrix_upload(ctx, HG_I32, t->rows, 1, d->labels, &t->label));
	for (int s = 0; s < HG__SPLITS; s++)
		if (t->has[s])
			HG__TRY(matrix_upload(ctx, HG_U8, t->rows, 1, masks[s], &t->mask[s]));
	return HG_OK;
}

static hg_status host_copy(hg_context *ctx, int64_t count, size_t size, const void *from,
                           struct hg__buffer *copy)
{
	HG__TRY(hg__buffer_host(ctx, count, size, "train: what is evaluated", copy));
	if (count)
		memcpy(copy->data, from, (size_t)count * size);
	return HG_OK;
}

static hg_status copies_keep(struct hg__truth *t, hg_context *ctx, const hg_train_data *d,
                             const uint8_t *const masks[HG__SPLITS])
{
	const int64_t count = t->rows * t->cols;
	HG__TRY(hg__buffer_host(ctx, count, sizeof(float), "train: logits", &t->logits));
	if (t->loss == HG_LOSS_CROSS_ENTROPY)
		HG__TRY(host_copy(ctx, t->rows, sizeof(int32_t), d->labels, &t->labels));
	else
		HG__TRY(host_copy(ctx, count, sizeof(float), d->targets, &t->targets));
	for (int s = 0; s < HG__SPLITS; s++)
		if (t->has[s])
			HG__TRY(host_copy(ctx, t->rows, 1, masks[s], &t->masks[s]));
	return HG_OK;
}

/* ---- all of it ---- */

static int row_counts(const struct hg__truth *t, const hg_train_data *d, int64_t row)
{
	int counts = t->loss == HG_LOSS_CROSS_ENTROPY && d->labels[row] >= 0;
	for (int64_t c = 0; t->loss != HG_LOSS_CROSS_ENTROPY && c < t->cols; c++)
		counts |= !isnan(d->targets[row * t->cols + c]);
	return counts;
}

/* Does the split have a row with a label or a target? */
static int split_exists(const struct hg__truth *t, const hg_train_data *d, const uint8_t *mask)
{
	for (int64_t i = 0; mask && i < t->rows; i++)
		if (mask[i] && row_counts(t, d, i))
			return 1;
	return 0;
}

void hg__truth_choose(const struct hg__truth *t, const hg_train_data *d, uint8_t *chosen)
{
	for (int64_t i = 0; i < t->rows; i++)
		chosen[i] = (uint8_t)((!d->train_mask || d->train_mask[i]) && row_counts(t, d, i));
}

static hg_metric usual_metric(hg_loss loss)
{
	static const hg_metric of[] = {[HG_LOSS_CROSS_ENTROPY] = HG_METRIC_ACCURACY,
	                               [HG_LOSS_BCE] = HG_METRIC_ROC_AUC,
	                               [HG_LOSS_MSE] = HG_METRIC_RMSE,
	                               [HG_LOSS_MAE] = HG_METRIC_MAE};
	return of[loss];
}

/* Metrics of errors are for real targets and for nothing else. */
static hg_status metric_check(hg_context *ctx, const struct hg__truth *t)
{
	static const char *const of[] = {"classes", "several labels", "real targets", "real targets"};
	const int classes = t->loss == HG_LOSS_CROSS_ENTROPY,
	          error = t->metric == HG_METRIC_MAE || t->metric == HG_METRIC_RMSE;
	if (hg_metric_fits(t->metric, classes, t->cols) && error == is_number(t->loss))
		return HG_OK;
	if (!hg_metric_name(t->metric))
		return hg__fail(ctx, HG_ERR_ARG, "train: metric is %d, expected one of metrics.h",
		                (int)t->metric);
	return hg__fail(ctx, HG_ERR_ARG, "train: metric %s is not one of %s (%lld columns)",
	                hg_metric_name(t->metric), of[t->loss], (long long)t->cols);
}

int hg__truth_on_host(const struct hg__truth *t)
{
	return t->metric != HG_METRIC_ACCURACY || t->loss != HG_LOSS_CROSS_ENTROPY;
}

hg_status hg__truth_init(struct hg__truth *t, hg_context *ctx, hg_train_config *config,
                         const hg_train_data *d, int64_t rows)
{
	const uint8_t *const masks[HG__SPLITS] = {d->train_mask, d->val_mask, d->test_mask};
	const int classes = config->loss == HG_LOSS_CROSS_ENTROPY;
	int64_t *outputs = &config->model.out_features;
	HG__TRY(classes ? labels_check(ctx, d, rows, outputs)
	                : targets_check(ctx, config->loss, d, rows, outputs));
	t->loss = config->loss;
	t->metric = config->metric ? config->metric : usual_metric(config->loss);
	config->metric = t->metric;
	t->rows = rows;
	t->cols = *outputs;
	HG__TRY(metric_check(ctx, t));
	HG__TRY(hg__class_weights_check(ctx, config, d, rows, t->cols));
	for (int s = 0; s < HG__SPLITS; s++)
		t->has[s] = split_exists(t, d, masks[s]);
	if (is_number(t->loss) && !config->raw_targets)
		HG__TRY(standardise(t, ctx, d));
	HG__TRY(classes ? labels_upload(t, ctx, d, masks) : targets_upload(t, ctx, d));
	HG__TRY(hg__class_weights_upload(t, ctx, config));
	return hg__truth_on_host(t) ? copies_keep(t, ctx, d, masks) : HG_OK;
}

void hg__truth_fini(struct hg__truth *t, hg_context *ctx)
{
	hg_tensor_free(t->label);
	hg_tensor_free(t->target);
	hg_tensor_free(t->weight);
	for (int s = 0; s < HG__SPLITS; s++) {
		hg_tensor_free(t->mask[s]);
		hg__buffer_free(ctx, &t->masks[s]);
	}
	hg__buffer_free(ctx, &t->labels);
	hg__buffer_free(ctx, &t->targets);
	hg__buffer_free(ctx, &t->logits);
	hg__buffer_free(ctx, &t->mean);
	hg__buffer_free(ctx, &t->deviation);
	*t = (struct hg__truth){0};
}
