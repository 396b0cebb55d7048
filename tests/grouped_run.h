#ifndef HG_TESTS_GROUPED_RUN_H
#define HG_TESTS_GROUPED_RUN_H

#include <string.h>

#include "small_run.h"

/* A small run with three groups of parameters and a schedule, and a resume of it that must not
 * change a bit. */

static inline hg_train_config grouped_config(void)
{
	hg_train_config c = small_config("gcn", "fp16");
	c.epochs = 5;
	c.first_layer_decay_only = 0; /* it makes a group of its own */
	c.schedule.kind = HG_SCHEDULE_STEP;
	c.schedule.every = 3;
	c.schedule.factor = 0.7;
	return c;
}

static inline void grouped_assign(struct small_run *r, const char *name, float lr, float decay)
{
	hg_optim *optim = hg_train_optim(r->train);
	int group = 0;
	CHECK_OK(hg_optim_add_group(optim, lr, decay, &group));
	CHECK_OK(hg_optim_assign(optim, hg_params_find(hg_train_params(r->train), name), group));
}

static inline void grouped_open(struct small_run *r, hg_train_config c)
{
	small_open(r, test_context(), c);
	grouped_assign(r, "conv1.weight", 0.004f, 0.01f);
	grouped_assign(r, "conv0.bias", 0.03f, 0.0f);
}

/* What a user changes in the middle of a run. */
static inline void grouped_change(struct small_run *r)
{
	CHECK_OK(hg_optim_set_lr(hg_train_optim(r->train), 0, 0.017f));
	CHECK_OK(hg_optim_set_lr(hg_train_optim(r->train), 2, 0.0007f));
}

/* Trains 5 epochs, changes the rates, and trains 5 and 5 more: in one run, and in one that a second
 * run takes over before the last 5. Both must end in the same state with the same losses. */
static inline void check_grouped_resume(void (*hand_over)(struct small_run *from,
                                                          struct small_run *to))
{
	static struct small_run whole, first, second;
	const hg_train_config c = grouped_config();
	grouped_open(&whole, c);
	grouped_open(&first, c);
	for (int k = 0; k < 3; k++) {
		small_train(&whole);
		if (k < 2)
			small_train(&first);
		if (k)
			continue;
		grouped_change(&whole);
		grouped_change(&first);
	}
	hg_state *expected = small_state(&whole);
	grouped_open(&second, c);
	hand_over(&first, &second);
	small_train(&second);
	hg_state *found = small_state(&second);
	CHECK_EQ_I(found->groups, 3);
	CHECK_EQ_I(hg_state_find_tensor(found, "conv0.bias")->group, 2);
	CHECK(memcmp(&found->group[2], &(hg_state_group){0.0007f, 0.0f}, sizeof *found->group) == 0);
	check_same_state(expected, found, 1);
	check_same_best(expected, found);
	CHECK(memcmp(whole.loss + 10, second.loss, 5 * sizeof *second.loss) == 0);
	hg_state_free(expected);
	hg_state_free(found);
	small_close(&whole);
	small_close(&first);
	small_close(&second);
}

#endif
