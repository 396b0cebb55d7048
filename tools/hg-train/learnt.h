#ifndef HG_TRAIN_LEARNT_H
#define HG_TRAIN_LEARNT_H

#include <stdint.h>

#include "halfgraph/train.h"

/* Did a run learn anything? The tool's exit code rests on the answer, so only what cannot be a
 * healthy run counts:
 *
 *     the last loss is not a number
 *     every step was skipped                       no weight has moved
 *     every gradient was 0, and the loss is not    weight decay alone has moved them
 *     no loss is below the first                   of a run that began with fresh weights and made
 *                                                  LEARNT_STEPS
 *                                                  steps, and whose first loss is not 0
 *
 * Losses are those of training, dropout included. Without any learning, by chance alone, one of
 * LEARNT_STEPS noisy
 * losses is below the first in 20 runs of 21, so the last line seldom speaks where a single small
 * step has helped. */
#define LEARNT_STEPS 20

enum learnt { LEARNT, LEARNT_NOT_FINITE, LEARNT_ALL_SKIPPED, LEARNT_NO_GRADIENT, LEARNT_NO_GAIN };

struct learning {
	int resumed;
	int64_t steps, applied, moved; /* moved: applied with a gradient that is not 0 */
	/* losses: the first that is finite, the least behind an applied step, the last */
	double first, least, last;
};
void learning_begin(struct learning *l, int resumed);
/* For every step in order. */
void learning_note(struct learning *l, const hg_train_event *event);
enum learnt learning_verdict(const struct learning *l);

#endif
