#ifndef HG_TRAINING_HEALTH_H
#define HG_TRAINING_HEALTH_H

#include <stdint.h>

#include "halfgraph/doctor.h"

/* When is a step bad? A dynamic loss scale begins too high on purpose and falls until the gradients
 * fit. A policy that replans stores a result that overflowed its guard scaled down, or in f32. Both
 * skip steps in normal operation. So a step is bad if
 *
 *    its loss is not finite                    and nothing will be replanned: the loss scale does
 *                                              not affect the forward pass
 *    it was skipped with the scale at its      the scale is not the cause
 *    floor
 *    it is the fifth in a row whose forward    and no op node overflowed that had not overflowed
 *    pass overflowed                           before, so that nothing was replanned
 *    it is the last, and its loss is not       no later step can show that the run recovers
 *    finite, or it is the fifth skipped in
 *    a row, or no step was applied */
#define HEALTH_TOLERATED 4

struct health {
	int replan;    /* of the policy */
	int64_t steps; /* of the run */
	/* consecutive steps whose forward pass overflowed without a replan */
	int64_t in_row;
	int32_t overflowed;       /* the op node in the last of them */
	int64_t applied, skipped; /* applied steps; steps skipped since the last applied one */
	/* the first finite loss; the last loss, INFINITY if it was not finite; the number of finite
	 * losses */
	double first, last;
	int64_t finite;
};
/* Returns why the step is bad, as the end of a sentence; NULL: it is not. Call it for every step in
 * order. */
const char *health_note(struct health *h, const hg_train_event *event);

/* Will the run recover from this finding by itself? It does from a guard that overflowed, because
 * the policy replans. It does from a gradient that fits at a smaller loss scale, if that scale is
 * reached soon: no step before that is applied, so the scale counts as too high if it takes more
 * than a quarter of the run's steps and more than HEALTH_TOLERATED. It does not recover from a
 * learning rate so high that weights have grown and the loss has risen. */
int health_mends(const struct health *h, const hg_policy *policy, const hg_finding *finding);

/* Should the step after `done` of `steps` steps be replayed although nothing went wrong? These are
 * 1, 2, 4, 8, ..., and the last. */
int health_due(int64_t done, int64_t steps);

#endif
