#ifndef HG_TRAINING_PROGRESS_H
#define HG_TRAINING_PROGRESS_H

#include <stdint.h>

#include "halfgraph/halfgraph.h"

/* One line on a terminal that is written over and over; silent where standard error is not one. */
struct progress {
	int on;
	int64_t runs, run;   /* seeds in all; the one being trained, from 0 */
	double begun, shown; /* seconds */
};
void progress_begin(struct progress *p, int64_t runs);
void progress_show(struct progress *p, const hg_train_event *event);
void progress_end(struct progress *p);

#endif
