#ifndef HG_TRAIN_LEARNT_H
#define HG_TRAIN_LEARNT_H

#include <stdint.h>

#include "halfgraph/train.h"

/* Did a run learn anything? The tool's exit code depends on the answer, so only signs that a
 * healthy run cannot show count:
 *
 *    the last loss is not a number
 *    every step was skipped                       no weight has changed
 *    every gradient was 0, and the loss is not    only weight decay has changed weights; where
 *                                                 every epoch tells the gradient of all its steps
 *    no loss is below the first                   if the run began with fresh weights, made more
 *                                                 than LEARNT_STEPS steps, and its first loss is
 *                                                 not 0
 *
 * The losses are those of training, dropout included. Without any learning, by chance alone, one of
 * LEARNT_STEPS noisy losses is below the first in 20 runs of 21, so the last rule seldom applies to
 * a run in which even a single small step has helped. */
#define LEARNT_STEPS 20

enum learnt { LEARNT, LEARNT_NOT_FINITE, LEARNT_ALL_SKIPPED, LEARNT_NO_GRADIENT, LEARNT_NO_GAIN };

struct learning {
	int resumed;
	int64_t steps, applied, moved; /* moved: applied, with a gradient that is not 0 */
	/* the first finite loss, the least loss after an applied step, the last loss */
	double first, least, last;
};
void learning_begin(struct learning *l, int resumed);
/* Call it for every step in order. */
void learning_note(struct learning *l, const hg_train_event *event);
enum learnt learning_verdict(const struct learning *l);

#endif
