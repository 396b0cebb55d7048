/* Labels and splits: what a training run can learn and measure with them. */
#include <stdlib.h>
#include <string.h>

#include "fitness/report.h"
#include "halfgraph/upload.h"

/* More declared classes than these are not looked at one by one: two counters for each of them
 * would need more than 256 MiB. */
#define MOST_CLASSES (1 << 24)

/* Rows of each class: all, and those of the training set. */
struct classes {
	int64_t *all, *train; /* [d->classes] */
};

static hg_status judge_classes(const struct hg__exam *exam, const struct classes *c)
{
	const hg_dataset *d = exam->d;
	hg_fitness_finding empty = {.kind = HG_FITNESS_EMPTY_CLASS, .at = -1, .of = d->classes};
	for (int32_t k = 0; k < d->classes; k++) {
		if (c->all[k] == 0)
			empty.at = empty.count++ ? empty.at : k;
		else if (d->train_mask && c->train[k] == 0)
			HG__TRY(
			    hg__report_add(exam, (hg_fitness_finding){.kind = HG_FITNESS_UNTRAINED,
			                                              .severity = HG_SEVERITY_LOSS,
			                                              .at = k,
			                                              .count = c->all[k],
			                                              .of = c->all[k],
			                                              .option = "--split per-class:20/30/rest",
			                                              .call = "hg_dataset_split_per_class"}));
	}
	return empty.count ? hg__report_add(exam, empty) : HG_OK;
}

/* Labels that are all the same. Without any label there is nothing to say here. */
static hg_status judge_variety(const struct hg__exam *exam, const struct classes *c)
{
	hg_fitness_finding one = {.kind = HG_FITNESS_ONE_CLASS, .severity = HG_SEVERITY_LOSS};
	int32_t used = 0;
	for (int32_t k = 0; k < exam->d->classes; k++)
		if (c->all[k] > 0) {
			one.at = k;
			one.of = one.count = c->all[k];
			used++;
		}
	return used == 1 ? hg__report_add(exam, one) : HG_OK;
}

static hg_status examine_classes(const struct hg__exam *exam)
{
	const hg_dataset *d = exam->d;
	struct classes c = {NULL, NULL};
	const int64_t rows = hg__data_labelled(d);
	if (!d->label || d->classes < 1 || d->classes > MOST_CLASSES)
		return HG_OK;
	hg_status status = hg__data_alloc(2 * (int64_t)d->classes, sizeof *c.all, "rows of classes",
	                                  (void **)&c.all, exam->message);
	if (status == HG_OK) {
		memset(c.all, 0, 2 * (size_t)d->classes * sizeof *c.all);
		c.train = c.all + d->classes;
		for (int64_t i = 0; i < rows; i++)
			if (d->label[i] >= 0) {
				c.all[d->label[i]]++;
				c.train[d->label[i]] += d->train_mask && d->train_mask[i];
			}
		status = judge_classes(exam, &c);
		if (status == HG_OK)
			status = judge_variety(exam, &c);
	}
	free(c.all);
	return status;
}

static int64_t ones_in(const uint8_t *mask, int64_t rows)
{
	int64_t ones = 0;
	for (int64_t i = 0; mask && i < rows; i++)
		ones += mask[i] != 0;
	return ones;
}

/* A set that is missing although there is one to train on. */
static hg_status examine_sets(const struct hg__exam *exam)
{
	const hg_dataset *d = exam->d;
	const uint8_t *const mask[3] = {d->train_mask, d->val_mask, d->test_mask};
	const int64_t rows = hg__data_labelled(d);
	for (int k = 1; k < 3 && mask[0]; k++)
		if (ones_in(mask[k], rows) == 0)
			HG__TRY(
			    hg__report_add(exam, (hg_fitness_finding){.kind = HG_FITNESS_NO_SPLIT,
			                                              .at = k,
			                                              .option = "--split random:0.6/0.2/0.2",
			                                              .call = "hg_dataset_split_random"}));
	return HG_OK;
}

static hg_status examine_unlabelled(const struct hg__exam *exam)
{
	const hg_dataset *d = exam->d;
	hg_fitness_finding f = {.kind = HG_FITNESS_UNLABELLED, .at = -1};
	const int64_t rows = hg__data_labelled(d);
	for (int64_t i = 0; d->label && d->train_mask && i < rows; i++) {
		f.of += d->train_mask[i];
		f.count += d->train_mask[i] && d->label[i] < 0;
	}
	return f.count ? hg__report_add(exam, f) : HG_OK;
}

/* What every run refuses at once. A dataset without any split may be meant for something else than
 * training. */
static hg_status examine_readiness(const struct hg__exam *exam)
{
	char why[HG_DATA_MESSAGE] = "";
	const hg_dataset *d = exam->d;
	const int is_split = d->train_mask || d->val_mask || d->test_mask;
	return hg_dataset_check_training(d, exam->origin, why) < 0
	           ? hg__report_refusal(exam, HG_FITNESS_UNREADY,
	                                is_split ? HG_SEVERITY_LOSS : HG_SEVERITY_NOTE, why)
	           : HG_OK;
}

hg_status hg__examine_labels(const struct hg__exam *exam)
{
	const unsigned needed =
	    1u << HG__PART_GRAPH | 1u << HG__PART_BATCH | 1u << HG__PART_LABELS | 1u << HG__PART_SPLITS;
	if (exam->broken & needed)
		return HG_OK;
	HG__TRY(examine_classes(exam));
	HG__TRY(examine_sets(exam));
	HG__TRY(examine_unlabelled(exam));
	return exam->broken ? HG_OK : examine_readiness(exam);
}
