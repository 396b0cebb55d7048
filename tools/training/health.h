#ifndef HG_TRAINING_HEALTH_H
#define HG_TRAINING_HEALTH_H

#include <stdint.h>

#include "halfgraph/train.h"

/* When is a step bad? A dynamic loss scale begins too high on purpose and falls until the gradients fit, and a policy that replans puts a node in f32 whose guard has tripped:
 * a few skipped steps are their way to work. So a step is bad if
 *
 *     its loss is not finite                       and nothing will be replanned: the loss scale has no part in the forward pass
 *     it was skipped with the scale at its floor   the scale is not to blame
 *     it is the fifth skipped one in a row         from 65536 four halvings lead to 4096; whoever needs more should know why
 *     it is the last and one of the above          nothing after it shows that the run mends it */
#define HEALTH_TOLERATED 4

struct health {
	int replan;     /* the policy's */
	int64_t in_row; /* skipped steps up to now */
};
/* Why the step is bad, as the end of a sentence; NULL: it is not. Called for every step in order. */
const char *health_note(struct health *h, const hg_train_event *event);

#endif
