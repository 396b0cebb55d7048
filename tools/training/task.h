#ifndef HG_TRAINING_TASK_H
#define HG_TRAINING_TASK_H

#include "training.h"

/* What a run learns of a dataset: what --loss and --task say, or else what the dataset holds.
 * Labels are classes; targets that are all 0, 1 or missing are several labels, others are real. */
hg_loss task_loss(const struct training *t, const hg_dataset *d);
/* Why the dataset lacks what the options want; NULL: it has it. */
const char *task_misfit(const struct training *t, const hg_dataset *d);
/* Sets the loss and what follows from it. */
void task_configure(const struct training *t, const hg_dataset *d, hg_train_config *config);
/* "cross-entropy" and so on, as --loss names them. */
const char *task_loss_name(hg_loss loss);
/* Check the combination of options. Returns 0, or -1 through tool_refuse. */
int task_check(struct tool_line *line, const struct training *t);

/* "7 classes", "3 labels each", "2 targets": what the outputs of the run are, for people. */
void task_outputs(const hg_train_config *config, char text[64]);
/* A value of a metric for people: accuracy in percent, others as they are. */
void task_value(hg_metric metric, double value, char text[32]);
/* The same without the unit. */
void task_deviation(hg_metric metric, double value, char text[32]);

#endif
