#ifndef HG_TESTS_STATES_H
#define HG_TESTS_STATES_H

#include <math.h>
#include <string.h>

#include "small_run.h"
#include "support.h"

/* What the tests of checkpoints share: a state with unusual numbers, and calls that must
 * succeed. */

/* The state after two epochs of a GCN in fp16, into which unusual numbers are put: NaN, infinity, a
 * subnormal number, -0, a number beyond the range of halves. */
static inline hg_state *odd_state(void)
{
	static struct small_run r;
	static const float odd[] = {NAN, -INFINITY, 1e-45f, -0.0f, 3e38f};
	hg_train_config c = small_config("gcn", "fp16");
	c.epochs = 2;
	small_open(&r, test_context(), c);
	small_train(&r);
	hg_state *state = small_state(&r);
	memcpy(state->tensor[0].master, odd, sizeof odd);
	memcpy(state->tensor[1].moment[1], odd, sizeof odd);
	memcpy(state->tensor[1].best, odd, sizeof odd);
	state->epoch[1].loss = (double)INFINITY;
	state->epoch[1].val_accuracy = 1.0 / 3.0;
	CHECK_OK(hg_state_set_columns(state, 3, (const double[]){0.1, -1e300, 0},
	                              (const double[]){1.0 / 3.0, 0, 5e-324}));
	CHECK_OK(hg_state_set_class_names(state, "a\0\0c", sizeof "a\0\0c"));
	state->plateau = (hg_plateau){.evaluations = 7, .waited = 2, .drops = 1, .best = (double)NAN};
	small_close(&r);
	return state;
}

static inline void must_write_state(const hg_state *state, const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_status status = hg_checkpoint_write(state, path, message);
	CHECK_MSG(status == HG_OK, "write: %s", message);
}

static inline hg_state *must_read_state(const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_state *state = NULL;
	const hg_status status = hg_checkpoint_read(path, &state, message);
	CHECK_MSG(status == HG_OK, "read: %s", message);
	return state;
}

#endif
