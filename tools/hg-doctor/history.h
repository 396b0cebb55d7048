#ifndef HG_DOCTOR_HISTORY_H
#define HG_DOCTOR_HISTORY_H

#include "halfgraph/train.h"

/* The steps of the run so far. */
struct history_step {
	double loss, grad_norm;
	double scale; /* in force during the step */
	int applied;
	hg_step_reason reason;
};
struct history {
	struct history_step *step; /* [count] */
	int64_t count, room, skipped;
	int64_t first; /* number of step[0]: 0, or the step of a checkpoint */
	double scale;  /* in force for the next step */
};
/* scale: in force for the first step. */
void history_begin(struct history *c, int64_t first, double scale);
/* Append a step. Returns 0, or -1 if memory ran out. */
int history_add(struct history *c, const hg_train_event *event);
void history_end(struct history *c);

#endif
