/* A run does not depend on how many of its epochs are queued without a wait, nor on where it is cut
 * into
 * pieces, be it that a run ends there or that its progress function asks it to stop (which is what
 * a
 * signal does in hg-train), also where weights outgrow the bounds that tapes rest on, or overflow
 * behind a guard, in the
 * middle of a group: what the host then decides holds from the same epoch on. */
#include <stdio.h>
#include <string.h>

#include "small_run.h"
#include "unit/capturing.h"

enum { GROUPING_EPOCHS = 32, PIECES = 5 };

typedef hg_context *(*open_fn)(void);

/* Masters grow by about lr in an epoch, so that results pass 65504 some epochs after the first
 * capture. */
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

/* Stops a run behind the epoch that user points to. */
static int stop_behind(void *user, const hg_train_event *event)
{
	return event->epoch == *(const int *)user;
}

/* All epochs in `pieces` runs, each from the state that the one before has left, in a new hg_train.
 * Every other piece is a run of all that is left, and stopped from outside where the piece ends. */
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
		small_reach = stop_behind;
		small_reach_user = &last;
		small_open(&r, open(), c);
		if (state)
			CHECK_MSG(hg_train_set_state(r.train, state) == HG_OK, "%s", hg_context_error(r.ctx));
		hg_state_free(state);
		const hg_status status = hg_train_run(r.train, &r.report);
		CHECK_MSG(status == (stopped ? HG_INFO_STOPPED : HG_OK), "%s", hg_context_error(r.ctx));
		CHECK_EQ_I(r.report.epochs_run, piece[i]);
		state = small_state(&r);
		small_close(&r);
	}
	small_reach = NULL;
	return state;
}

/* At least one epoch each. */
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

static void one_setup(open_fn open, const char *device, size_t k, int eval_every, int splits,
                      int *late)
{
	static const int whole[] = {GROUPING_EPOCHS}, together[] = {1, 2, 4, 16};
	const struct setup *s = &setups[k];
	hg_state *alone = state_after(open, s, 1, eval_every, whole, 1);
	*late += alone->promotions > 0;
	for (size_t g = 0; g < sizeof together / sizeof together[0]; g++) {
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

static void runs_are_the_same_in_any_groups(void)
{
	static const struct {
		open_fn open;
		const char *name;
	} devices[] = {{test_context, "device"}, {capturing_context, "capturing"}};
	static const struct {
		int eval_every, splits;
	} looks[] = {{1, 2}, {1000, 5}};
	for (size_t d = 0; d < 2; d++)
		for (size_t e = 0; e < 2; e++) {
			int late = 0;
			for (size_t k = 0; k < sizeof setups / sizeof setups[0]; k++)
				one_setup(devices[d].open, devices[d].name, k, looks[e].eval_every, looks[e].splits,
				          &late);
			CHECK_MSG(late >= 6, "only %d of the runs overflowed behind a guard", late);
		}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(runs_are_the_same_in_any_groups)};
	return RUN_TESTS(argc, argv, cases);
}
