#ifndef HG_TRAIN_EXPLAIN_H
#define HG_TRAIN_EXPLAIN_H

#include "options.h"

/* Print what --print-plan and --explain ask for. */
hg_status explain_run(const struct options *o, const hg_train *train, const hg_policy *policy,
                      FILE *out);
/* --explain for a run that --unproved refuse does not allow to begin. Such a run has no tape, so
 * this records the same run with guards. Prints nothing where that fails, too. */
void explain_refused(const struct options *o, hg_context *ctx, const hg_train_config *refused,
                     const hg_train_data *data, FILE *out);

#endif
