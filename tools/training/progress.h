#ifndef HG_TRAINING_PROGRESS_H
#define HG_TRAINING_PROGRESS_H

#include <stdint.h>

#include "halfgraph/train.h"

/* A progress line that is overwritten in place on a terminal; nothing if stderr is not a
 * terminal. */
struct progress {
	int on;
	int64_t runs, run;   /* number of seeds; the current one, from 0 */
	double begun, shown; /* seconds */
};
void progress_begin(struct progress *p, int64_t runs);
void progress_show(struct progress *p, const hg_train_event *event);
void progress_end(struct progress *p);

#endif
