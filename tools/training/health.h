#ifndef HG_TRAINING_HEALTH_H
#define HG_TRAINING_HEALTH_H

#include <stdint.h>

#include "halfgraph/doctor.h"

/* When is a step bad? A dynamic loss scale begins too high on purpose and falls until the
 * gradients fit, and a policy that replans stores otherwise, or in f32, what a guard has tripped
 * for: skipped steps are their way to work. So a step is bad if
 *
 *     its loss is not finite                    and nothing will be replanned: the loss scale has
 *                                               no part in the forward pass
 *     it was skipped with the scale at its      the scale is not to blame
 *     floor
 *     it is the fifth in a row whose forward    and where no other node than before tripped its
 *     pass overflowed                           guard, so that nothing was mended
 *     it is the last, and its loss is not       nothing after it shows that the run mends it
 *     finite, or it is the fifth that was
 *     skipped in a row, or none was applied */
#define HEALTH_TOLERATED 4

struct health {
	int replan;    /* the policy's */
	int64_t steps; /* of the run */
	/* steps one after the other whose forward pass overflowed, and nothing mended it */
	int64_t in_row;
	int32_t tripped;          /* the node in the last of them */
	int64_t applied, skipped; /* steps that were applied; skipped ones since the last of them */
	/* the first loss that was finite, and how many there were; the last one, INFINITY if it was
	 * not */
	double first, last;
	int64_t finite;
};
/* Why the step is bad, as the end of a sentence; NULL: it is not. Called for every step in
 * order. */
const char *health_note(struct health *h, const hg_train_event *event);

/* Will the run mend this by itself? A node whose guard has tripped; and a gradient that overflows
 * and fits at a smaller loss scale, where that is reached soon: no step before is applied, so the
 * scale is too high for the run if that takes a quarter of its steps and more than
 * HEALTH_TOLERATED. Not where a learning rate that is too high has made them overflow, and the
 * loss has risen. */
int health_mends(const struct health *h, const hg_policy *policy, const hg_finding *finding);

/* Is the step after `done` of `steps` one to look at although nothing has gone wrong: 1, 2, 4,
 * 8, ..., the last? */
int health_due(int64_t done, int64_t steps);

#endif
