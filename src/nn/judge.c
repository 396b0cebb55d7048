/* One evaluation on the host: the metric of each split, and the loss of one, from the logits of all
 * rows. Sums are f64, in the order of the rows. */
#include <math.h>

#include "nn/metric.h"
#include "nn/truth.h"

/* ---- the loss ---- */

/* log(sum over c of exp(x[c])) - x[label]. */
static double cross_entropy(const float *x, int64_t cols, int32_t label)
{
	double top = -(double)INFINITY, sum = 0.0;
	for (int64_t c = 0; c < cols; c++)
		top = fmax(top, (double)x[c]);
	for (int64_t c = 0; c < cols; c++)
		sum += exp((double)x[c] - top);
	return log(sum) + (top - (double)x[label]);
}

/* Of a target as it is learnt. */
static double pointwise(hg_loss loss, double x, double t)
{
	if (loss == HG_LOSS_BCE)
		return fmax(x, 0.0) - x * t + log1p(exp(-fabs(x))) + (x - x); /* x - x keeps a NaN */
	return loss == HG_LOSS_MSE ? (x - t) * (x - t) : fabs(x - t);
}

static double standardised(const struct hg__truth *t, double target, int64_t c)
{
	const double *mean = t->mean.data, *deviation = t->deviation.data;
	return mean ? (target - mean[c]) / deviation[c] : target;
}

/* The mean that the loss op computes for this split. */
static double loss_of(const struct hg__truth *t, const hg_metric_data *d)
{
	double sum = 0.0;
	int64_t counted = 0;
	for (int64_t r = 0; r < d->rows; r++) {
		const float *x = d->logits + r * d->cols;
		if (d->labels && hg__metric_has_label(d, r)) {
			sum += cross_entropy(x, d->cols, d->labels[r]);
			counted++;
		}
		for (int64_t c = 0; d->targets && c < d->cols; c++)
			if (hg__metric_has_target(d, r, c)) {
				const double target = (double)d->targets[r * d->cols + c];
				sum += pointwise(t->loss, (double)x[c], standardised(t, target, c));
				counted++;
			}
	}
	return counted ? sum / (double)counted : 0.0;
}

/* ---- a judgement ---- */

static int64_t count_nonfinite(const float *x, int64_t count)
{
	int64_t nonfinite = 0;
	for (int64_t i = 0; i < count; i++)
		nonfinite += !isfinite(x[i]);
	return nonfinite;
}

/* Without a mask all rows train, and no row is in another split. */
static int is_evaluated(const struct hg__truth *t, int split)
{
	return t->has[split] || split == HG__SPLIT_TRAIN;
}

hg_status hg__judge(const struct hg__truth *t, hg_context *ctx, const hg_tensor *value,
                    struct hg__judgement *j)
{
	const int judged = t->has[HG__SPLIT_VAL] ? HG__SPLIT_VAL : HG__SPLIT_TRAIN;
	hg_metric_data d = HG_METRIC_DATA_INIT;
	float *x = t->logits.data;
	HG__TRY(hg_tensor_download(value, x, HG_F32));
	*j = (struct hg__judgement){.counts = {.nonfinite = count_nonfinite(x, t->rows * t->cols)}};
	d.rows = t->rows;
	d.cols = t->cols;
	d.logits = x;
	d.labels = t->labels.data;
	d.targets = t->targets.data;
	d.mask = t->masks[judged].data;
	j->loss = (float)loss_of(t, &d);
	hg__truth_undo(t, x);
	for (int s = 0; s < HG__SPLITS; s++) {
		hg_status status = HG_OK;
		j->metric[s] = (double)NAN;
		d.mask = t->masks[s].data;
		if (is_evaluated(t, s))
			status = hg_metric_compute(t->metric, &d, &j->metric[s]);
		if (status < 0)
			return hg__fail(ctx, status, "train: metric %s: %s", hg_metric_name(t->metric),
			                hg_status_text(status));
		if (is_evaluated(t, s) && d.labels)
			j->counts.right[s] = hg__metric_count_right(&d, &j->counts.counted[s]);
	}
	return HG_OK;
}
