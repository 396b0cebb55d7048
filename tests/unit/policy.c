#include <math.h>
#include <string.h>

#include "harness.h"
#include "precision/policy.h"

static void names_give_policies(void)
{
	static const struct {
		const char *name;
		hg_dtype state;
		hg_accumulate accumulate;
		int scaled;
	} expected[] = {
	    {"fp32", HG_F32, HG_ACC_F32, 0},
	    {"fp16", HG_F16, HG_ACC_F32, 1},
	    {"fp16-discretized", HG_F16, HG_ACC_F16_DISCRETIZED, 1},
	    {"fp16-naive", HG_F16, HG_ACC_F16_NAIVE, 1},
	};
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		hg_policy p;
		CHECK_OK(hg_policy_parse(expected[i].name, &p));
		CHECK_STR(p.name, expected[i].name);
		CHECK(p.state == expected[i].state && p.accumulate == expected[i].accumulate &&
		      p.loss_scale.enabled == expected[i].scaled);
		CHECK_OK(hg_policy_check(&p));
		CHECK(p.size == sizeof p && p.unproved == HG_UNPROVED_GUARD);
	}
}

static void functions_and_names_agree(void)
{
	const hg_policy all[] = {hg_policy_fp32(), hg_policy_fp16(), hg_policy_fp16_discretized(),
	                         hg_policy_fp16_naive()};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		hg_policy p;
		CHECK_OK(hg_policy_parse(all[i].name, &p));
		CHECK(p.state == all[i].state && p.accumulate == all[i].accumulate);
	}
}

static void unknown_name_changes_nothing(void)
{
	hg_policy p, before;
	memset(&p, 0x5A, sizeof p);
	memcpy(&before, &p, sizeof p);
	CHECK_STATUS(hg_policy_parse("fp8", &p), HG_ERR_ARG);
	CHECK_STATUS(hg_policy_parse("FP16", &p), HG_ERR_ARG);
	CHECK_STATUS(hg_policy_parse("", &p), HG_ERR_ARG);
	CHECK_STATUS(hg_policy_parse(NULL, &p), HG_ERR_ARG);
	CHECK_STATUS(hg_policy_parse("fp16", NULL), HG_ERR_ARG);
	CHECK(memcmp(&p, &before, sizeof p) == 0);
}

static void bad(hg_policy p, const char *part)
{
	CHECK_STATUS(hg_policy_check(&p), HG_ERR_ARG);
	CHECK_CONTAINS(hg__policy_fault(&p), part);
}

static void each_mistake_is_refused_by_name(void)
{
	hg_policy p;
	CHECK_STATUS(hg_policy_check(NULL), HG_ERR_ARG);
#define BREAK(change, part) \
	p = hg_policy_fp16();   \
	change;                 \
	bad(p, part)
	BREAK(p.size = 8, "size");
	BREAK(p.name = NULL, "name");
	BREAK(p.state = HG_I32, "state");
	BREAK(p.accumulate = HG_ACC_COUNT, "accumulate");
	BREAK((p.state = HG_F32, p.accumulate = HG_ACC_F16_NAIVE), "HG_F16");
	BREAK(p.unproved = (hg_unproved)3, "unproved");
	BREAK(p.loss_scale.size = 0, "loss_scale.size");
	BREAK(p.loss_scale.growth_factor = 1.0f, "growth_factor");
	BREAK(p.loss_scale.growth_factor = INFINITY, "growth_factor");
	BREAK(p.loss_scale.backoff_factor = 1.0f, "backoff_factor");
	BREAK(p.loss_scale.backoff_factor = 0.0f, "backoff_factor");
	BREAK(p.loss_scale.backoff_factor = NAN, "backoff_factor");
	BREAK(p.loss_scale.growth_interval = 0, "growth_interval");
	BREAK(p.loss_scale.hysteresis = 0, "hysteresis");
	BREAK(p.loss_scale.init_scale = 0.5f, "init_scale");
	BREAK(p.loss_scale.init_scale = NAN, "init_scale");
	BREAK(p.loss_scale.min_scale = 0.0f, "min_scale");
	BREAK(p.loss_scale.max_scale = INFINITY, "max_scale");
#undef BREAK
}

static void disabled_loss_scale_is_not_checked(void)
{
	hg_policy p = hg_policy_fp16();
	p.loss_scale.enabled = 0;
	p.loss_scale.growth_factor = 0;
	CHECK_OK(hg_policy_check(&p));
}

static void verdicts_have_names(void)
{
	CHECK_STR(hg_verdict_name(HG_PROVED), "proved");
	CHECK_STR(hg_verdict_name(HG_GUARDED), "guarded");
	CHECK_STR(hg_verdict_name(HG_PROMOTED), "promoted");
	CHECK_STR(hg_verdict_name(HG_REFUSED), "refused");
	CHECK_STR(hg_verdict_name(HG_EXACT), "exact");
	CHECK_STR(hg_verdict_name((hg_verdict)-1), "unknown");
	CHECK_STR(hg_evidence_name(HG_EVIDENCE_EXACT), "exact");
	CHECK_STR(hg_evidence_name(HG_EVIDENCE_PROVED), "proved");
	CHECK_STR(hg_evidence_name(HG_EVIDENCE_MEASURED), "measured");
	CHECK_STR(hg_evidence_name(HG_EVIDENCE_UNKNOWN), "unknown");
	CHECK_STR(hg_evidence_name((hg_evidence)-1), "unknown");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(names_give_policies),
	                                         TEST(functions_and_names_agree),
	                                         TEST(unknown_name_changes_nothing),
	                                         TEST(each_mistake_is_refused_by_name),
	                                         TEST(disabled_loss_scale_is_not_checked),
	                                         TEST(verdicts_have_names)};
	return RUN_TESTS(argc, argv, cases);
}
