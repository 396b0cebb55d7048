#ifndef HG_TRAINING_OPTIMIZER_H
#define HG_TRAINING_OPTIMIZER_H

#include "training.h"

/* Check the combination of options. Returns 0, or -1 through tool_refuse. */
int optimizer_check(struct tool_line *line, const struct training *t);
/* The defaults of the model and the library, overridden by the options. */
void optimizer_make(const struct training *t, hg_optim_config *optim);

#endif
