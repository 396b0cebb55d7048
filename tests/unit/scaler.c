#include <math.h>
#include <string.h>

#include "halfgraph/policy.h"
#include "harness.h"

static hg_loss_scale_config defaults(void)
{
	const hg_loss_scale_config c = HG_LOSS_SCALE_CONFIG_INIT;
	return c;
}

static hg_loss_scale start(const hg_loss_scale_config *c)
{
	hg_loss_scale s;
	CHECK_OK(hg_loss_scale_init(&s, c));
	return s;
}

static void defaults_are_pytorchs(void)
{
	const hg_loss_scale_config c = defaults();
	CHECK(c.enabled && c.init_scale == 65536.0f && c.growth_factor == 2.0f &&
	      c.backoff_factor == 0.5f && c.growth_interval == 2000 && c.hysteresis == 1);
	const hg_loss_scale s = start(&c);
	CHECK(s.scale == 65536.0f && s.growth_tracker == 0 && s.steps == 0 && s.applied == 0 &&
	      s.skipped == 0);
}

/* PyTorch's rule, implemented a second time: half the scale and start again, or double it after
 * 2000 finite steps in a row. */
static void long_run_follows_pytorch(void)
{
	const hg_loss_scale_config c = defaults();
	hg_loss_scale s = start(&c);
	double scale = 65536;
	int tracker = 0;
	int64_t skipped = 0;
	for (int step = 0; step < 200000; step++) {
		const int bad = test_below(3000) == 0;
		const hg_step_reason reason = hg_loss_scale_update(&s, &c, bad);
		const double before = scale;
		if (bad) {
			scale = fmax(scale * 0.5, 1.0);
			tracker = 0;
			skipped++;
		} else if (++tracker == 2000) {
			scale = fmin(scale * 2.0, 16777216.0);
			tracker = 0;
		}
		CHECK(s.scale == (float)scale && s.growth_tracker == tracker && s.skipped == skipped &&
		      s.steps == step + 1 && s.applied + s.skipped == s.steps);
		CHECK_EQ_I(reason, !bad ? (scale > before ? HG_STEP_APPLIED_GREW : HG_STEP_APPLIED)
		                   : scale < before ? HG_STEP_SKIPPED_BACKOFF
		                                    : HG_STEP_SKIPPED_AT_FLOOR);
	}
}

static void hysteresis_tolerates_then_backs_off(void)
{
	hg_loss_scale_config c = defaults();
	c.hysteresis = 3;
	c.growth_interval = 2;
	hg_loss_scale s = start(&c);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 1), HG_STEP_SKIPPED_TOLERATED);
	/* one finite step does not reset the tolerance */
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 0), HG_STEP_APPLIED);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 1), HG_STEP_SKIPPED_TOLERATED);
	CHECK(s.scale == 65536.0f);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 1), HG_STEP_SKIPPED_BACKOFF);
	/* the tolerance is used up: every bad step halves the scale */
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 1), HG_STEP_SKIPPED_BACKOFF);
	CHECK(s.scale == 16384.0f);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 0), HG_STEP_APPLIED);
	/* when the scale grows, the tolerance is reset */
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 0), HG_STEP_APPLIED_GREW);
	CHECK(s.scale == 32768.0f && s.tolerance == 3);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 1), HG_STEP_SKIPPED_TOLERATED);
}

static void floor_and_ceiling_hold(void)
{
	hg_loss_scale_config c = defaults();
	c.init_scale = 3.0f;
	c.min_scale = 2.0f;
	c.max_scale = 5.0f;
	c.growth_interval = 1;
	hg_loss_scale s = start(&c);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 1), HG_STEP_SKIPPED_BACKOFF);
	CHECK(s.scale == 2.0f);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 1), HG_STEP_SKIPPED_AT_FLOOR);
	CHECK(s.scale == 2.0f);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 0), HG_STEP_APPLIED_GREW);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 0), HG_STEP_APPLIED_GREW);
	CHECK(s.scale == 5.0f);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 0), HG_STEP_APPLIED);
	CHECK(s.scale == 5.0f);
}

/* min = init = max is a fixed scale. */
static void fixed_scale_never_moves(void)
{
	hg_loss_scale_config c = defaults();
	c.init_scale = c.min_scale = c.max_scale = 128.0f;
	c.growth_interval = 1;
	hg_loss_scale s = start(&c);
	for (int i = 0; i < 10; i++)
		CHECK_EQ_I(hg_loss_scale_update(&s, &c, i % 2),
		           i % 2 ? HG_STEP_SKIPPED_AT_FLOOR : HG_STEP_APPLIED);
	CHECK(s.scale == 128.0f);
}

static void disabled_stays_at_one_and_still_skips(void)
{
	hg_loss_scale_config c = defaults();
	c.enabled = 0;
	c.growth_interval = 1;
	hg_loss_scale s = start(&c);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 0), HG_STEP_APPLIED);
	CHECK_EQ_I(hg_loss_scale_update(&s, &c, 1), HG_STEP_SKIPPED_AT_FLOOR);
	CHECK(s.scale == 1.0f && s.skipped == 1 && s.applied == 1);
}

static void history_keeps_the_last_steps(void)
{
	hg_loss_scale_config c = defaults();
	c.growth_interval = 3;
	hg_loss_scale s = start(&c);
	float in_force[200];
	int32_t reason[200];
	for (int i = 0; i < 200; i++) {
		in_force[i] = s.scale;
		reason[i] = (int32_t)hg_loss_scale_update(&s, &c, test_below(5) == 0);
		for (int k = 0; k < HG_LOSS_SCALE_HISTORY && k <= i; k++) {
			const int64_t place = (s.steps - 1 - k) % HG_LOSS_SCALE_HISTORY;
			CHECK(s.history[place].scale == in_force[i - k] &&
			      s.history[place].reason == reason[i - k]);
		}
	}
}

static void bad_configuration_changes_nothing(void)
{
	hg_loss_scale_config c = defaults();
	hg_loss_scale s, before;
	memset(&s, 0x33, sizeof s);
	memcpy(&before, &s, sizeof s);
	c.growth_interval = 0;
	CHECK_STATUS(hg_loss_scale_init(&s, &c), HG_ERR_ARG);
	CHECK_STATUS(hg_loss_scale_init(&s, NULL), HG_ERR_ARG);
	CHECK(memcmp(&s, &before, sizeof s) == 0);
	c = defaults();
	CHECK_STATUS(hg_loss_scale_init(NULL, &c), HG_ERR_ARG);
	CHECK_EQ_I(hg_loss_scale_update(NULL, &c, 0), HG_STEP_SKIPPED_AT_FLOOR);
	CHECK_EQ_I(hg_loss_scale_update(&s, NULL, 0), HG_STEP_SKIPPED_AT_FLOOR);
	CHECK(memcmp(&s, &before, sizeof s) == 0);
}

static void every_reason_has_its_text(void)
{
	CHECK_STR(hg_step_reason_text(HG_STEP_APPLIED), "applied");
	CHECK_CONTAINS(hg_step_reason_text(HG_STEP_APPLIED_GREW), "grew");
	CHECK_CONTAINS(hg_step_reason_text(HG_STEP_SKIPPED_BACKOFF), "lowered");
	CHECK_CONTAINS(hg_step_reason_text(HG_STEP_SKIPPED_TOLERATED), "hysteresis");
	CHECK_CONTAINS(hg_step_reason_text(HG_STEP_SKIPPED_AT_FLOOR), "minimum");
	CHECK_STR(hg_step_reason_text((hg_step_reason)77), "unknown reason");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(defaults_are_pytorchs),
	    TEST(long_run_follows_pytorch),
	    TEST(hysteresis_tolerates_then_backs_off),
	    TEST(floor_and_ceiling_hold),
	    TEST(fixed_scale_never_moves),
	    TEST(disabled_stays_at_one_and_still_skips),
	    TEST(history_keeps_the_last_steps),
	    TEST(bad_configuration_changes_nothing),
	    TEST(every_reason_has_its_text),
	};
	return RUN_TESTS(argc, argv, cases);
}
