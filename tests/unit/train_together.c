/* Epochs that run together in one launch give the same results as epochs that run one by one. */
#include "unit/capturing.h"
#include "unit/train_task.h"

/* Everything that a run reports. */
struct record {
	int stop_at, events;
	hg_train_event event[EPOCHS];
	uint8_t outgrown[EPOCHS]; /* 1: the event named a parameter that outgrew its bound */
	hg_train_report report;
	float logits[N][C]; /* after the run */
	float again[N][C];  /* after another run, which continues it */
};

static int record_event(void *user, const hg_train_event *event)
{
	struct record *s = user;
	hg_train_event *e = &s->event[s->events++];
	*e = *event;
	e->epoch_ms = 0.0;
	e->step.first_nonfinite = NULL; /* a pointer, valid only while the run lives */
	s->outgrown[s->events - 1] = e->step.outgrown != NULL;
	e->step.outgrown = NULL;
	return event->epoch == s->stop_at;
}

static void record_run(struct record *s, hg_context *ctx, const struct planted *t,
                       hg_train_config c, int stop_at, int eager, int per_launch)
{
	int32_t prediction[N];
	struct planted_run r;
	memset(s, 0, sizeof *s);
	s->stop_at = stop_at;
	c.progress = record_event;
	c.user = s;
	c.step.eager = eager;
	c.step.per_launch = per_launch;
	planted_train(&r, ctx, t, &c, 0);
	CHECK_OK(hg_train_predict(r.train, prediction, &s->logits[0][0]));
	s->report = r.report;
	const int captures = ctx->backend->capture_begin != NULL;
	CHECK_EQ_I(s->report.captured, captures && !eager && s->report.epochs_run > 1);
	if (per_launch) /* an event that ends a launch early makes it shorter */
		CHECK_MSG(s->report.epochs_together <= per_launch &&
		              (s->report.epochs_together > 1) == (per_launch > 1),
		          "%d epochs together", s->report.epochs_together);
	s->events = 0;
	s->stop_at = 2;
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK_OK(hg_train_predict(r.train, prediction, &s->again[0][0]));
	s->report.epoch_ms_median = 0.0;
	s->report.peak_bytes = 0; /* depends on the length of a launch, which is kept to be undone */
	s->report.captured = s->report.epochs_together = 0;
	CHECK(s->report.headroom_name && s->report.headroom > 0.0);
	s->report.headroom_name = NULL;
	planted_close(&r);
}

static void check_same_record(const struct record *a, const struct record *b, size_t run,
                              int per_launch)
{
	CHECK_EQ_I(a->report.epochs_run, b->report.epochs_run);
	CHECK_MSG(memcmp(a->event, b->event, sizeof a->event) == 0, "run %zu, %d in a launch: events",
	          run, per_launch);
	CHECK_MSG(memcmp(a->outgrown, b->outgrown, sizeof a->outgrown) == 0,
	          "run %zu, %d in a launch: weights beyond their bounds", run, per_launch);
	CHECK_MSG(memcmp(&a->report, &b->report, sizeof a->report) == 0,
	          "run %zu, %d in a launch: report", run, per_launch);
	CHECK_MSG(memcmp(a->logits, b->logits, sizeof a->logits) == 0,
	          "run %zu, %d in a launch: logits", run, per_launch);
	CHECK_MSG(memcmp(a->again, b->again, sizeof a->again) == 0, "run %zu, %d in a launch: going on",
	          run, per_launch);
}

/* The number of epochs in a launch changes nothing: neither the events of the epochs, nor where the
 * run stops, nor how another run continues it. */
static void epochs_in_one_launch_give_the_same_results(void)
{
	static const struct {
		const char *model;
		int eval_every, patience, stop_at;
		float scale;
	} runs[] = {
	    {"gcn", 1, 0, 0, 0x1p16f},   {"gcn", 10, 0, 0, 0x1p16f},   {"gcn", 50, 0, 5, 0x1p16f},
	    {"gcn", 50, 0, 16, 0x1p16f}, {"gcn", 25, 0, 37, 0x1p40f},  {"gcn", 4, 10, 0, 0x1p16f},
	    {"gin", 60, 0, 3, 0x1p16f},  {"gin", 9, 0, 20, 0x1p40f},   {"gat", 60, 0, 11, 0x1p16f},
	    {"gat", 7, 3, 0, 0x1p40f},   {"gatv2", 9, 0, 20, 0x1p40f}, {"gt", 9, 0, 20, 0x1p40f}};
	static const int per_launch[] = {0, 1, 7, 16};
	enum { COUNTS = sizeof per_launch / sizeof per_launch[0] };
	static struct record alone, together;
	struct planted t = task_make();
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		hg_train_config c = config_of(runs[i].model, "fp16");
		c.eval_every = runs[i].eval_every;
		c.patience = runs[i].patience;
		c.policy.loss_scale.init_scale = c.policy.loss_scale.max_scale = runs[i].scale;
		c.policy.loss_scale.growth_interval = 5;
		if (runs[i].patience)
			c.optim.lr = 0.5f; /* too large for the run to improve for long */
		record_run(&alone, test_context(), &t, c, runs[i].stop_at, 1, 1);
		for (size_t k = 0; k < COUNTS; k += TEST_SHARE(1, 2)) {
			record_run(&together, test_context(), &t, c, runs[i].stop_at, 0, per_launch[k]);
			check_same_record(&alone, &together, i, per_launch[k]);
		}
		record_run(&alone, capturing_context(), &t, c, runs[i].stop_at, 1, 1);
		for (size_t k = 0; k < COUNTS; k += TEST_SHARE(1, 2)) {
			record_run(&together, capturing_context(), &t, c, runs[i].stop_at, 0, per_launch[k]);
			check_same_record(&alone, &together, i, per_launch[k]);
		}
	}
	planted_free(&t);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(epochs_in_one_launch_give_the_same_results),
	};
	return RUN_TESTS(argc, argv, cases);
}
