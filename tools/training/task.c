/* The task of a run: classes, several labels or real targets. */
#include "task.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dataset.h"

/* Losses and tasks as the options name them, in the order of hg_loss. */
static const struct {
	const char *loss, *task;
} kinds[] = {
    {"cross-entropy", "classes"}, {"bce", "labels"}, {"mse", "regression"}, {"mae", "regression"}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static hg_loss loss_named(const char *name)
{
	int k = 0;
	while (k < KINDS - 1 && strcmp(kinds[k].loss, name) != 0)
		k++;
	return (hg_loss)k;
}

/* MAE is the usual loss of a regression, because outliers do not dominate it. */
static hg_loss usual_loss(const char *task)
{
	return strcmp(task, "classes") == 0  ? HG_LOSS_CROSS_ENTROPY
	       : strcmp(task, "labels") == 0 ? HG_LOSS_BCE
	                                     : HG_LOSS_MAE;
}

/* Are all targets 0, 1 or missing? */
static int are_labels(const hg_dataset *d)
{
	const int64_t rows = d->graph_ptr ? d->graphs : d->nodes;
	for (int64_t i = 0; i < rows * d->targets; i++) {
		const float t = d->target[i];
		if (t < 0.0f || t > 1.0f || (t > 0.0f && t < 1.0f))
			return 0;
	}
	return 1;
}

hg_loss task_loss(const struct training *t, const hg_dataset *d)
{
	if (t->loss)
		return loss_named(t->loss);
	if (t->task)
		return usual_loss(t->task);
	return d->label || !d->target ? HG_LOSS_CROSS_ENTROPY
	       : are_labels(d)        ? HG_LOSS_BCE
	                              : HG_LOSS_MAE;
}

const char *task_loss_name(hg_loss loss)
{
	return kinds[loss].loss;
}

const char *task_misfit(const struct training *t, const hg_dataset *d)
{
	const hg_loss loss = task_loss(t, d);
	const int classes = loss == HG_LOSS_CROSS_ENTROPY;
	if (classes && !d->label)
		return "has targets but no labels, which cross-entropy learns";
	if (!classes && !d->target)
		return "has no targets, which bce, mse and mae learn";
	if (!dataset_has_split(d, loss, d->train_mask))
		return classes ? "has no label in its training set, and cross-entropy learns labels"
		               : "has no target in its training set, and bce, mse and mae learn targets";
	return loss == HG_LOSS_BCE && !are_labels(d)
	           ? "has targets that are neither 0 nor 1, which bce needs"
	           : NULL;
}

void task_configure(const struct training *t, const hg_dataset *d, hg_train_config *config)
{
	config->loss = task_loss(t, d);
	config->raw_targets = t->raw_targets;
	if (config->loss != HG_LOSS_CROSS_ENTROPY)
		config->model.out_features = d->targets;
}

int task_check(struct tool_line *line, const struct training *t)
{
	const hg_loss loss = t->loss ? loss_named(t->loss) : HG_LOSS_CROSS_ENTROPY;
	if (t->loss && t->task && strcmp(kinds[loss].task, t->task) != 0)
		return tool_refuse(line, "--loss %s is one of --task %s, but --task is %s", t->loss,
		                   kinds[loss].task, t->task);
	return 0;
}

void task_outputs(const hg_train_config *config, char text[64])
{
	static const char *const of[] = {"class", "label", "target", "target"};
	const int64_t count = config->model.out_features;
	const char *word = of[config->loss], *plural = count == 1 ? "" : *word == 'c' ? "es" : "s";
	(void)snprintf(text, 64, "%" PRId64 " %s%s%s", count, word, plural,
	               config->loss == HG_LOSS_BCE ? " each" : "");
}

void task_value(hg_metric metric, double value, char text[32])
{
	if (metric == HG_METRIC_ACCURACY)
		(void)snprintf(text, 32, "%.2f %%", 100 * value);
	else
		(void)snprintf(text, 32, "%.4g", value);
}

void task_deviation(hg_metric metric, double value, char text[32])
{
	task_value(metric, value, text);
	text[strcspn(text, " ")] = 0;
}
