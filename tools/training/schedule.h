#ifndef HG_TRAINING_SCHEDULE_H
#define HG_TRAINING_SCHEDULE_H

#include "training.h"

/* Check the combination of options. Returns 0, or -1 through tool_refuse. */
int schedule_check(struct tool_line *line, const struct training *t);
/* The defaults of the library, overridden by the options. */
void schedule_make(const struct training *t, hg_schedule_config *schedule);

#endif
