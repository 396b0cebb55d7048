/* The results of a run depend neither on how many of its epochs are in one launch, nor on how it is
 * cut into pieces. A piece ends where its run ends, or where its progress function asks it to stop
 * (as hg-train does on a signal). This holds also where in the middle of a launch weights outgrow
 * the bounds that the tapes assume, or a result overflows behind a guard: what the host decides
 * then takes effect from the same epoch on. */
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "unit/capturing.h"

enum { GROUPING_EPOCHS = 32, PIECES = 5 };

/* Master weights change by about lr in an epoch. With the large ones, results exceed 65504 some
 * epochs after the first capture. */
struct setup {
	const char *model, *policy;
	float lr, lambda, dropout;
};
static const struct setup setups[] = {
    {"gcn", "fp16", 0.01f, 0, 0},          {"gcn", "fp16", 300.0f, 0, 0},
    {"gcn", "fp16", 300.0f, 0, 0.5f},      {"gcn", "fp16-discretized", 300.0f, 0, 0},
    {"gcn", "fp16-naive", 300.0f, 0, 0},   {"gcn", "fp32", 300.0f, 0, 0.5f},
    {"gin", "fp16", 0.01f, 0, 0},          {"gin", "fp16", 2.0f, 64.0f, 0},
    {"gin", "fp16", 2.0f, 64.0f, 0.5f},    {"gin", "fp16-discretized", 2.0f, 64.0f, 0},
    {"gin", "fp16-naive", 2.0f, 64.0f, 0}, {"gin", "fp32", 2.0f, 64.0f, 0.5f},
    {"gat", "fp16", 0.01f, 0, 0},          {"gat", "fp16", 300.0f, 0, 0},
    {"gat", "fp16", 300.0f, 0, 0.5f},      {"gat", "fp16-discretized", 300.0f, 0, 0},
    {"gat", "fp16-naive", 300.0f, 0, 0},   {"gat", "fp32", 300.0f, 0, 0.5f},
    {"gatv2", "fp16", 300.0f, 0, 0.5f},    {"agnn", "fp16", 300.0f, 0, 0.5f},
    {"gt", "fp16", 300.0f, 0, 0.5f},       {"gt", "fp32", 0.01f, 0, 0.5f},
    {"sage", "fp16", 300.0f, 0, 0.5f},     {"appnp", "fp16", 300.0f, 0, 0.5f},
};

static hg_train_config config_of(const struct setup *s, int together, int eval_every)
{
	hg_train_config c = small_config(s->model, s->policy);
	c.optim.lr = s->lr;
	c.model.dropout = s->dropout;
	if (s->lambda > 0)
		c.model.lambda = s->lambda;
	c.epochs = GROUPING_EPOCHS;
	c.eval_every = eval_every;
	c.step.per_launch = together;
	return c;
}

/* Stops a run after the epoch that user points to. */
static int stop_after(void *user, const hg_train_event *event)
{
	return event->epoch == *(const int *)user;
}

/* All epochs in `pieces` runs. Each run is a new hg_train that takes over the state of the run
 * before. Every other run is configured for all remaining epochs, and its progress function stops
 * it where the piece ends. */
static hg_state *state_after(open_fn open, const struct setup *s, int together, int eval_every,
                             const int *piece, int pieces)
{
	int left = GROUPING_EPOCHS;
	static struct small_run r;
	hg_state *state = NULL;
	for (int i = 0; i < pieces; i++) {
		hg_train_config c = config_of(s, together, eval_every);
		const int stopped = i % 2 == 0 && piece[i] < left;
		int last = stopped ? piece[i] : 0; /* no epoch is number 0 */
		c.epochs = stopped ? left : piece[i];
		left -= piece[i];
		const struct small_options options = {.progress = stop_after, .user = &last};
		small_open_with(&r, open(), c, &options);
		if (state)
			CHECK_MSG(hg_train_set_state(r.train, state) == HG_OK, "%s", hg_context_error(r.ctx));
		hg_state_free(state);
		const hg_status status = hg_train_run(r.train, &r.report);
		CHECK_MSG(status == (stopped ? HG_INFO_STOPPED : HG_OK), "%s", hg_context_error(r.ctx));
		CHECK_EQ_I(r.report.epochs_run, piece[i]);
		state = small_state(&r);
		small_close(&r);
	}
	return state;
}

/* Cuts the run at random into pieces of at least one epoch. Returns how many there are. */
static int random_pieces(int *piece)
{
	int left = GROUPING_EPOCHS, count = 0;
	while (left && count < PIECES - 1) {
		piece[count] = 1 + (int)test_below(left);
		left -= piece[count++];
	}
	if (left)
		piece[count++] = left;
	return count;
}

static void pieces_text(const int *piece, int pieces, char *text, size_t size)
{
	int at = 0;
	for (int i = 0; i < pieces; i++)
		at += snprintf(text + at, size - (size_t)at, "%s%d", i ? "+" : "", piece[i]);
}

/* Adds 1 to *overflowed if a result of the run overflowed behind a guard. */
static void check_setup(open_fn open, const char *device, size_t k, int eval_every, int splits,
                        int *overflowed)
{
	static const int whole[] = {GROUPING_EPOCHS}, together[] = {1, 2, 4, 16};
	const struct setup *s = &setups[k];
	hg_state *alone = state_after(open, s, 1, eval_every, whole, 1);
	*overflowed += alone->promotions > 0;
	for (size_t g = TEST_SHARE(0, k % 2); g < sizeof together / sizeof together[0];
	     g += TEST_SHARE(1, 2)) {
		test_reseed(100 * k + g);
		for (int split = 0; split < splits; split++) {
			int piece[PIECES];
			char text[64];
			const int pieces = split ? random_pieces(piece) : 1;
			if (!split)
				piece[0] = GROUPING_EPOCHS;
			pieces_text(piece, pieces, text, sizeof text);
			hg_state *found = state_after(open, s, together[g], eval_every, piece, pieces);
			CHECK_MSG(alone->step == found->step &&
			              alone->loss_scale.skipped == found->loss_scale.skipped,
			          "%s: %s %s lr %g, evaluated every %d, %d together, %s epochs: %lld skipped, "
			          "%lld one by one",
			          device, s->model, s->policy, (double)s->lr, eval_every, together[g], text,
			          (long long)found->loss_scale.skipped, (long long)alone->loss_scale.skipped);
			check_same_state(alone, found, 0);
			hg_state_free(found);
		}
	}
	hg_state_free(alone);
}

static void launches_and_pieces_change_no_result(void)
{
	static const char *const names[] = {"device", "capturing"};
	static const struct {
		int eval_every, splits;
	} ways[] = {{1, TEST_SHARE(2, 1)}, {1000, TEST_SHARE(5, 2)}};
	for (size_t d = 0; d < 2; d++)
		for (size_t e = 0; e < 2; e++) {
			int overflowed = 0;
			for (size_t k = 0; k < sizeof setups / sizeof setups[0]; k++)
				check_setup(devices[d], names[d], k, ways[e].eval_every, ways[e].splits,
				            &overflowed);
			CHECK_MSG(overflowed >= 6, "only %d of the runs overflowed behind a guard", overflowed);
		}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(launches_and_pieces_change_no_result)};
	return RUN_TESTS(argc, argv, cases);
}
