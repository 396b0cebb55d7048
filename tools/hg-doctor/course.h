#ifndef HG_DOCTOR_COURSE_H
#define HG_DOCTOR_COURSE_H

#include "halfgraph/train.h"

/* The steps up to now. */
struct course_step {
	double loss, grad_norm;
	double scale; /* in force during the step */
	int applied;
	hg_step_reason reason;
};
struct course {
	struct course_step *step; /* [count] */
	int64_t count, room, skipped;
	int64_t first; /* number of step[0]: 0, or what a checkpoint says */
	double scale;  /* in force for the next one */
};
/* scale: in force for the first step. */
void course_begin(struct course *c, int64_t first, double scale);
/* 0, or -1: out of memory. */
int course_note(struct course *c, const hg_train_event *event);
void course_end(struct course *c);

#endif
