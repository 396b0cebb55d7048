#ifndef HG_TRAIN_COMMAND_H
#define HG_TRAIN_COMMAND_H

#include "checkpoint.h"
#include "folds.h"
#include "halfgraph/doctor.h"
#include "health.h"
#include "progress.h"
#include "results.h"
#include "stream.h"

/* Everything that lives as long as the command. */
struct command {
	struct options options;
	hg_dataset *dataset;
	struct results results;
	struct progress progress;
	struct folds folds;
	struct saving saving;
	struct stream json;
	FILE *text;
	int write_error; /* errno of the first JSON line that could not be written; 0: none */
	/* of the current run: */
	hg_train *train;
	struct health health;
	struct learning learning;
	/* a bad step of this run was reported; later faults follow from it and are not reported */
	int examined;
	hg_doctor *doctor;     /* NULL without --doctor */
	hg_status examination; /* the failure of the doctor, if any */
	/* why a checkpoint was not read or written; "" if it was, or if none was requested */
	char unread[HG_DATA_MESSAGE], unsaved[HG_DATA_MESSAGE];
	/* why the ops of the first run were not timed, or metrics of a run not computed; "" if they
	 * were, or need not be */
	char untimed[HG_DATA_MESSAGE];
	/* why the run could not begin; "" if it did */
	char refused[HG_DATA_MESSAGE];
};

/* The seed and the fold of the current run; the fold is -1 without --folds. */
int64_t command_seed(const struct command *c);
int command_fold(const struct command *c);
/* Keep errno of the first JSON line that failed. */
void command_wrote(struct command *c, int failed);

/* Create the doctor, if --doctor asks for it, and replay the step that is about to begin. */
hg_status doctor_begin(struct command *c);
/* Replay the first bad step of a run op by op; while nothing goes wrong, replay a step now and
 * then. A replay does not change the run. */
hg_status doctor_check_step(struct command *c, const hg_train_event *event);
/* Replay an evaluation with the final weights. */
hg_status doctor_end(struct command *c, const hg_train_report *trained);

#endif
