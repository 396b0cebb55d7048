/* The named precision policies, the check of a policy, and the names of verdicts and evidence. */
#include "precision/policy.h"

#include <string.h>

#include "precision/scaler.h"

#define LOSS_SCALE_OFF                                                                \
	{                                                                                 \
		sizeof(hg_loss_scale_config), 0, 1.0f, 2.0f, 0.5f, 2000, 1.0f, 16777216.0f, 1 \
	}

/* The policies by name. fp16-naive exists to show what goes wrong, so it protects nothing. fp32
 * does not scale the loss: gradients underflow in f16 long before they underflow in f32. */
enum { FP32, FP16, FP16_DISCRETIZED, FP16_NAIVE, POLICIES };
static const hg_policy table[POLICIES] = {
    [FP32] = {sizeof(hg_policy), "fp32", HG_F32, HG_ACC_F32, HG_UNPROVED_GUARD, 1, LOSS_SCALE_OFF},
    [FP16] = {sizeof(hg_policy), "fp16", HG_F16, HG_ACC_F32, HG_UNPROVED_GUARD, 1,
              HG_LOSS_SCALE_CONFIG_INIT},
    [FP16_DISCRETIZED] = {sizeof(hg_policy), "fp16-discretized", HG_F16, HG_ACC_F16_DISCRETIZED,
                          HG_UNPROVED_GUARD, 1, HG_LOSS_SCALE_CONFIG_INIT},
    [FP16_NAIVE] = {sizeof(hg_policy), "fp16-naive", HG_F16, HG_ACC_F16_NAIVE, HG_UNPROVED_GUARD, 0,
                    HG_LOSS_SCALE_CONFIG_INIT},
};

hg_policy hg_policy_fp32(void)
{
	return table[FP32];
}

hg_policy hg_policy_fp16(void)
{
	return table[FP16];
}

hg_policy hg_policy_fp16_discretized(void)
{
	return table[FP16_DISCRETIZED];
}

hg_policy hg_policy_fp16_naive(void)
{
	return table[FP16_NAIVE];
}

hg_status hg_policy_parse(const char *name, hg_policy *policy)
{
	if (!name || !policy)
		return HG_ERR_ARG;
	for (int i = 0; i < POLICIES; i++)
		if (strcmp(name, table[i].name) == 0) {
			*policy = table[i];
			return HG_OK;
		}
	return HG_ERR_ARG;
}

const char *hg__policy_fault(const hg_policy *p)
{
	if (!p)
		return "it is NULL";
	if (p->size != sizeof *p)
		return "size is not that of hg_policy: start from one of the hg_policy_* functions";
	if (!p->name)
		return "name is NULL";
	if (p->state != HG_F16 && p->state != HG_F32)
		return "state must be HG_F16 or HG_F32";
	if ((unsigned)p->accumulate >= HG_ACC_COUNT)
		return "accumulate is not an hg_accumulate";
	if (p->accumulate != HG_ACC_F32 && p->state != HG_F16)
		return "f16 accumulation needs state HG_F16";
	if ((unsigned)p->unproved > HG_UNPROVED_REFUSE)
		return "unproved is not an hg_unproved";
	return hg__loss_scale_fault(&p->loss_scale);
}

hg_status hg_policy_check(const hg_policy *policy)
{
	return hg__policy_fault(policy) ? HG_ERR_ARG : HG_OK;
}

const char *hg_evidence_name(hg_evidence evidence)
{
	static const char *const name[] = {
	    [HG_EVIDENCE_EXACT] = "exact",
	    [HG_EVIDENCE_PROVED] = "proved",
	    [HG_EVIDENCE_MEASURED] = "measured",
	    [HG_EVIDENCE_UNKNOWN] = "unknown",
	};
	return (size_t)evidence < sizeof name / sizeof name[0] ? name[evidence] : "unknown";
}

const char *hg_verdict_name(hg_verdict verdict)
{
	static const char *const name[] = {
	    [HG_PROVED] = "proved",   [HG_GUARDED] = "guarded", [HG_PROMOTED] = "promoted",
	    [HG_REFUSED] = "refused", [HG_EXACT] = "exact",
	};
	return (size_t)verdict < sizeof name / sizeof name[0] ? name[verdict] : "unknown";
}
