/* Weights of the classes, or of the ones of several labels, and label smoothing: what a run checks
 * and uploads of them, and the weights that balance a training set. */
#include <math.h>
#include <stdlib.h>

#include "core/versioned.h"
#include "nn/truth.h"

static int is_weighted(const hg_train_config *c)
{
	return c->class_weights || c->class_weight_count;
}

static hg_status fits_loss(hg_context *ctx, const hg_train_config *c)
{
	const int classes = c->loss == HG_LOSS_CROSS_ENTROPY;
	if (is_weighted(c) && !classes && c->loss != HG_LOSS_BCE)
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: class_weights are of cross-entropy and BCE, but the loss learns "
		                "real targets");
	if (!(c->label_smoothing >= 0.0f && c->label_smoothing < 1.0f) ||
	    (c->label_smoothing > 0.0f && !classes))
		return hg__fail(ctx, HG_ERR_ARG, "train: label_smoothing is %g, expected %s",
		                (double)c->label_smoothing,
		                classes ? "at least 0 and below 1" : "0: the loss is not cross-entropy");
	return HG_OK;
}

/* A class that is learnt with weight 0 would not be learnt, and with this weight alone the mean
 * would have nothing to divide by. */
static hg_status learnt_check(hg_context *ctx, const hg_train_config *c, const hg_train_data *d,
                              int64_t rows)
{
	for (int64_t i = 0; i < rows; i++) {
		const int32_t class = d->labels[i];
		if (class >= 0 && class < c->class_weight_count && (!d->train_mask || d->train_mask[i]) &&
		    !(c->class_weights[class] > 0.0f))
			return hg__fail(ctx, HG_ERR_ARG,
			                "train: class_weights[%d] is 0, but the training set has rows of this "
			                "class; leave them out of train_mask instead",
			                (int)class);
	}
	return HG_OK;
}

hg_status hg__class_weights_check(hg_context *ctx, const hg_train_config *c, const hg_train_data *d,
                                  int64_t rows, int64_t cols)
{
	HG__TRY(fits_loss(ctx, c));
	if (!is_weighted(c))
		return HG_OK;
	if (!c->class_weights || c->class_weight_count != cols)
		return hg__fail(
		    ctx, HG_ERR_ARG, "train: %s%lld class_weights, the model has %lld out_features",
		    c->class_weights ? "" : "class_weights is NULL: ", (long long)c->class_weight_count,
		    (long long)cols);
	for (int64_t k = 0; k < cols; k++) {
		const float w = c->class_weights[k];
		if (!(w >= 0.0f && w < INFINITY))
			return hg__fail(ctx, HG_ERR_ARG,
			                "train: class_weights[%lld] is %g, expected a number from 0",
			                (long long)k, (double)w);
	}
	return c->loss == HG_LOSS_CROSS_ENTROPY ? learnt_check(ctx, c, d, rows) : HG_OK;
}

hg_status hg__class_weights_upload(struct hg__truth *t, hg_context *ctx, const hg_train_config *c)
{
	t->smoothing = c->label_smoothing;
	if (!c->class_weights)
		return HG_OK;
	HG__TRY(hg_tensor_create(ctx, HG_F32, 1, t->cols, &t->weight));
	return hg_tensor_upload(t->weight, c->class_weights, HG_F32);
}

/* ---- balancing ---- */

static hg_status balance_classes(const hg_train_data *d, int64_t rows, int64_t count,
                                 float *weights)
{
	int64_t all = 0, *of = calloc((size_t)count, sizeof *of);
	if (!of)
		return HG_ERR_NOMEM;
	for (int64_t i = 0; i < rows; i++) {
		const int32_t class = d->labels[i];
		if (class < 0 || class >= count || (d->train_mask && !d->train_mask[i]))
			continue;
		of[class]++;
		all++;
	}
	for (int64_t k = 0; k < count; k++)
		weights[k] = of[k] ? (float)((double)all / ((double)count * (double)of[k])) : 1.0f;
	free(of);
	return HG_OK;
}

static void balance_columns(const hg_train_data *d, int64_t rows, int64_t count, float *weights)
{
	for (int64_t k = 0; k < count; k++) {
		int64_t ones = 0, zeros = 0;
		for (int64_t i = 0; i < rows; i++) {
			const float t = d->targets[i * count + k];
			if (isnan(t) || (d->train_mask && !d->train_mask[i]))
				continue;
			ones += t > 0.0f;
			zeros += !(t > 0.0f);
		}
		weights[k] = ones && zeros ? (float)((double)zeros / (double)ones) : 1.0f;
	}
}

hg_status hg_train_balance(const hg_train_data *data, int64_t rows, hg_loss loss, int64_t count,
                           float *weights)
{
	hg_train_data d = HG_TRAIN_DATA_INIT;
	const int classes = loss == HG_LOSS_CROSS_ENTROPY;
	if (!data || !weights || rows < 0 || count < 1 || (!classes && loss != HG_LOSS_BCE) ||
	    !hg__struct_read(&d, sizeof d, data))
		return HG_ERR_ARG;
	if (classes ? !d.labels : !d.targets || d.target_cols != count)
		return HG_ERR_ARG;
	if (classes)
		return balance_classes(&d, rows, count, weights);
	balance_columns(&d, rows, count, weights);
	return HG_OK;
}
