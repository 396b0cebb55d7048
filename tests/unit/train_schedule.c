/* Schedules of the learning rate in training runs: the rates of all epochs, the same bits however
 * many epochs run together and wherever a run is resumed, and what is refused. */
#include <math.h>
#include <string.h>

#include "nn/train.h"
#include "small_run.h"
#include "unit/capturing.h"

static hg_train_config scheduled(hg_schedule_kind kind)
{
	hg_train_config c = small_config("gcn", "fp16");
	c.eval_every = 1;
	c.schedule.kind = kind;
	c.schedule.warmup = 3;
	c.schedule.every = 4;
	c.schedule.patience = 0;
	c.schedule.threshold = 0.05;
	return c;
}

/* ---- the rates ---- */

static double factors[SMALL_EPOCHS];
static int stop_at; /* 0: never */

static int note_factor(void *user, const hg_train_event *event)
{
	(void)user;
	factors[event->epoch - 1] = event->step.lr_factor;
	return event->epoch == stop_at;
}

static void every_epoch_has_the_rate_of_its_step(void)
{
	for (int kind = HG_SCHEDULE_CONSTANT; kind <= HG_SCHEDULE_ONE_CYCLE; kind++) {
		static struct small_run r;
		const struct small_options options = {.progress = note_factor};
		hg_train_config c = scheduled((hg_schedule_kind)kind);
		small_open_with(&r, test_context(), c, &options);
		for (int run = 0; run < 2; run++) { /* the second one ends later */
			c.schedule.total = 10 * (run + 1);
			small_train(&r);
			r.events = 0;
			for (int e = 0; e < 10; e++) {
				const double expected = hg_schedule_factor(&c.schedule, 10 * run + e);
				CHECK_MSG(factors[e] >= expected && factors[e] <= expected,
				          "%s, run %d, epoch %d: %g, expected %g",
				          hg_schedule_name(c.schedule.kind), run, e + 1, factors[e], expected);
			}
		}
		small_close(&r);
	}
}

/* The plateau as PyTorch has it, from the validation metrics that the events have. */
static double metrics[SMALL_EPOCHS];

static int note_metric(void *user, const hg_train_event *event)
{
	metrics[event->epoch - 1] = event->val_metric;
	return note_factor(user, event);
}

static void plateau_follows_the_validation_metric(void)
{
	static const hg_metric each[] = {HG_METRIC_ACCURACY, HG_METRIC_MACRO_F1};
	for (size_t m = 0; m < 2; m++) {
		static struct small_run r;
		const struct small_options options = {.progress = note_metric};
		hg_train_config c = scheduled(HG_SCHEDULE_PLATEAU);
		c.metric = each[m];
		c.epochs = 30;
		c.schedule.warmup = 0;
		c.schedule.least = 0.1;
		small_open_with(&r, test_context(), c, &options);
		small_train(&r);
		double best = -(double)INFINITY, factor = 1.0;
		int drops = 0;
		for (int e = 0; e < 30; e++) {
			CHECK_MSG(factors[e] >= factor && factors[e] <= factor, "epoch %d: %g, expected %g",
			          e + 1, factors[e], factor);
			if (metrics[e] > best * (1.0 + (best > 0.0 ? c.schedule.threshold : 0.0)))
				best = metrics[e];
			else
				factor = fmax(0.1, pow(0.5, (double)++drops));
		}
		CHECK_MSG(drops > 3, "%d drops, expected several", drops);
		small_close(&r);
	}
}

/* ---- together, and resumed ---- */

/* Predictions after 20 epochs, so many of them together. */
static void run_together(hg_context *ctx, hg_train_config c, int eager, int together, float *logits)
{
	static struct small_run r;
	static int32_t row[SMALL_N];
	c.epochs = 20;
	c.step.eager = eager;
	c.step.per_launch = together;
	small_open(&r, ctx, c);
	small_train(&r);
	CHECK_EQ_I(r.report.epochs_together, together);
	CHECK_OK(hg_train_predict(r.train, row, logits));
	small_close(&r);
}

static void epochs_in_one_launch_have_the_same_rates(void)
{
	static float alone[SMALL_N * SMALL_C], together[SMALL_N * SMALL_C];
	for (int kind = HG_SCHEDULE_CONSTANT; kind <= HG_SCHEDULE_PLATEAU; kind++) {
		const hg_train_config c = scheduled((hg_schedule_kind)kind);
		run_together(capturing_context(), c, 1, 1, alone);
		run_together(capturing_context(), c, 0, 7, together);
		CHECK_MSG(memcmp(alone, together, sizeof alone) == 0, "%s",
		          hg_schedule_name((hg_schedule_kind)kind));
	}
}

static void hand_over(struct small_run *from, struct small_run *to)
{
	hg_state *state = small_state(from);
	CHECK_MSG(hg_train_set_state(to->train, state) == HG_OK, "%s", hg_context_error(to->ctx));
	hg_state_free(state);
}

static void resumed_runs_have_the_same_bits(void)
{
	for (int kind = HG_SCHEDULE_CONSTANT; kind <= HG_SCHEDULE_PLATEAU; kind++) {
		hg_train_config c = scheduled((hg_schedule_kind)kind);
		c.schedule.total = 20;
		check_resumed_run(test_context, c, hand_over);
	}
}

/* A run that was stopped goes on with the epochs that are left, and its schedule ends where it
 * would have ended. A plateau does not count an evaluation that only a stop brings. */
static void stopped_runs_keep_their_schedule(void)
{
	for (int kind = HG_SCHEDULE_CONSTANT; kind <= HG_SCHEDULE_PLATEAU; kind++) {
		static struct small_run whole, part, rest;
		const struct small_options options = {.progress = note_factor};
		hg_train_config c = scheduled((hg_schedule_kind)kind);
		c.epochs = 20;
		c.eval_every = kind == HG_SCHEDULE_PLATEAU ? 4 : 1;
		small_open(&whole, test_context(), c);
		small_train(&whole);
		small_open_with(&part, test_context(), c, &options);
		stop_at = kind == HG_SCHEDULE_PLATEAU ? 3 : 8;
		CHECK_STATUS(hg_train_run(part.train, &part.report), HG_INFO_STOPPED);
		c.epochs = 20 - stop_at;
		if (kind == HG_SCHEDULE_PLATEAU) { /* the first evaluation of the whole run is at 4 */
			hg_state *state = small_state(&part);
			CHECK_EQ_I(state->plateau.evaluations, 0);
			hg_state_free(state);
			c.eval_every = 1;
		}
		stop_at = 0;
		small_open(&rest, test_context(), c);
		hand_over(&part, &rest);
		small_train(&rest);
		if (kind != HG_SCHEDULE_PLATEAU) {
			hg_state *expected = small_state(&whole), *found = small_state(&rest);
			check_same_state(expected, found, 1);
			hg_state_free(expected);
			hg_state_free(found);
		}
		small_close(&whole);
		small_close(&part);
		small_close(&rest);
	}
}

/* ---- settings, and what is refused ---- */

static void other_schedules_are_reported(void)
{
	static const struct {
		hg_schedule_kind kind, other;
		int64_t total, other_total;
		const char *message;
	} rows[] = {{HG_SCHEDULE_COSINE, HG_SCHEDULE_CONSTANT, 10, 0,
	             "schedule.kind is cosine in the state, the run has constant"},
	            {HG_SCHEDULE_CONSTANT, HG_SCHEDULE_STEP, 0, 0,
	             "schedule.kind is constant in the state, the run has step"},
	            {HG_SCHEDULE_COSINE, HG_SCHEDULE_COSINE, 40, 30,
	             "schedule.total is 40 in the state, the run has 30"},
	            {HG_SCHEDULE_COSINE, HG_SCHEDULE_COSINE, 0, 0, /* 10 steps and 10 epochs */
	             "schedule.total is 10 in the state, the run has 20"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		static struct small_run a, b;
		hg_train_config c = scheduled(rows[i].kind);
		c.schedule.total = rows[i].total;
		small_open(&a, test_context(), c);
		small_train(&a);
		hg_state *state = small_state(&a);
		c = scheduled(rows[i].other);
		c.schedule.total = rows[i].other_total;
		small_open(&b, test_context(), c);
		CHECK_STATUS(hg_train_set_state(b.train, state), HG_INFO_DIFFERS);
		CHECK_MSG(strstr(hg_context_error(b.ctx), rows[i].message), "row %zu: %s", i,
		          hg_context_error(b.ctx));
		hg_state_free(state);
		small_close(&a);
		small_close(&b);
	}
}

static void bad_schedules_are_refused(void)
{
	static const struct {
		hg_schedule_kind kind;
		int64_t warmup, every;
		int no_validation;
		const char *message;
	} rows[] = {{HG_SCHEDULE_STEP, 0, 0, 0, "train: schedule: every must be at least 1"},
	            {HG_SCHEDULE_COSINE, 10, 1, 0,
	             "train: schedule.warmup is 10, expected less than the 10 epochs of the cosine"},
	            {HG_SCHEDULE_PLATEAU, 0, 1, 1,
	             "train: the schedule waits for a plateau of the validation metric, but "
	             "data.val_mask is NULL"}};
	static struct small_run r;
	small_open(&r, test_context(), scheduled(HG_SCHEDULE_CONSTANT));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		hg_train *train = NULL;
		hg_train_data data = r.run.data;
		hg_train_config c = scheduled(rows[i].kind);
		c.schedule.warmup = rows[i].warmup;
		c.schedule.every = rows[i].every;
		if (rows[i].no_validation)
			data.val_mask = NULL;
		CHECK_STATUS(hg_train_create(r.ctx, &c, &data, &train), HG_ERR_ARG);
		CHECK_STR(hg_context_error(r.ctx), rows[i].message);
	}
	small_close(&r);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_epoch_has_the_rate_of_its_step),
	    TEST(plateau_follows_the_validation_metric),
	    TEST(epochs_in_one_launch_have_the_same_rates),
	    TEST(resumed_runs_have_the_same_bits),
	    TEST(stopped_runs_keep_their_schedule),
	    TEST(other_schedules_are_reported),
	    TEST(bad_schedules_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
