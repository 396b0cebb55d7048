#ifndef HG_PRECISION_POLICY_H
#define HG_PRECISION_POLICY_H

#include "halfgraph/policy.h"

HG_EXTERN_C_BEGIN

/* What is wrong with a policy, as a sentence without a subject; NULL if nothing is. For errors that
 * name it: hg__fail(ctx, HG_ERR_ARG, "policy: %s", fault). */
const char *hg__policy_fault(const hg_policy *policy);

HG_EXTERN_C_END
#endif
