#ifndef HG_TRAIN_EXPLAIN_H
#define HG_TRAIN_EXPLAIN_H

#include "options.h"

/* --print-plan and --explain, where they were given. */
hg_status explain_run(const struct options *o, const hg_train *train, const hg_policy *policy,
                      FILE *out);
/* --explain of a run that --unproved refuse does not begin: it has no tape; the same one with
 * guards has. Prints nothing where that cannot be made either. */
void explain_refused(const struct options *o, hg_context *ctx, const hg_train_config *refused,
                     const hg_train_data *data, FILE *out);

#endif
