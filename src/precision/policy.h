/* The check of a precision policy, for functions that report its result on a context. */
#ifndef HG_PRECISION_POLICY_H
#define HG_PRECISION_POLICY_H

#include "halfgraph/policy.h"

HG_EXTERN_C_BEGIN

/* Returns what is wrong with a policy, as a phrase for an error message (hg__fail(ctx, HG_ERR_ARG,
 * "policy: %s", fault)), or NULL if the policy is valid. */
const char *hg__policy_fault(const hg_policy *policy);

HG_EXTERN_C_END
#endif
