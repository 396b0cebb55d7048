#ifndef HG_TRAIN_COMPARE_H
#define HG_TRAIN_COMPARE_H

#include "options.h"

/* --compare: read the JSON lines of several runs, and write the page of --html about them. Returns
 * an exit code. */
int compare_run(const struct options *o);

#endif
