/* The rates of groups of parameters are part of a state: a run that goes on has those that the
 * other one had last. */
#include <math.h>
#include <string.h>

#include "grouped_run.h"

static void hand_over(struct small_run *from, struct small_run *to)
{
	hg_state *state = small_state(from);
	CHECK_MSG(hg_train_set_state(to->train, state) == HG_OK, "%s", hg_context_error(to->ctx));
	hg_state_free(state);
}

static void resumed_groups_have_the_same_bits(void)
{
	check_grouped_resume(hand_over);
}

/* Rates that the run was given another value of are the run's own, in every group. */
static void other_settings_keep_the_rates_of_the_run(void)
{
	static struct small_run r, other;
	hg_train_config c = grouped_config();
	grouped_open(&r, c);
	grouped_change(&r);
	hg_state *state = small_state(&r), *found;
	static const hg_state_group expected[2][3] = {
	    {{0.05f, 5e-4f}, {0.004f, 0.01f}, {0.03f, 0.0f}},
	    {{0.017f, 0.25f}, {0.004f, 0.01f}, {0.0007f, 0.0f}}};
	for (int decay = 0; decay < 2; decay++) {
		c = grouped_config();
		c.optim.lr = decay ? c.optim.lr : 0.05f;
		c.optim.weight_decay = decay ? 0.25f : c.optim.weight_decay;
		grouped_open(&other, c);
		CHECK_STATUS(hg_train_set_state(other.train, state), HG_INFO_DIFFERS);
		CHECK_CONTAINS(hg_context_error(other.ctx), decay ? "optim.weight_decay" : "optim.lr");
		found = small_state(&other);
		CHECK(found->groups == 3 &&
		      memcmp(found->group, expected[decay], sizeof expected[decay]) == 0);
		hg_state_free(found);
		small_close(&other);
	}
	hg_state_free(state);
	small_close(&r);
}

static void states_without_groups_leave_the_rates(void)
{
	static struct small_run r;
	grouped_open(&r, grouped_config());
	hg_state *state = small_state(&r);
	for (int64_t i = 0; i < state->tensors; i++)
		state->tensor[i].group = 0;
	state->groups = 0;
	grouped_change(&r);
	CHECK_STATUS(hg_train_set_state(r.train, state), HG_OK);
	hg_state *found = small_state(&r);
	CHECK(found->groups == 3 &&
	      memcmp(&found->group[0], &(hg_state_group){0.017f, 5e-4f}, sizeof *found->group) == 0);
	hg_state_free(found);
	hg_state_free(state);
	small_close(&r);
}

static void one_group_less(hg_state *s)
{
	s->groups--;
	for (int64_t i = 0; i < s->tensors; i++)
		s->tensor[i].group = s->tensor[i].group == 2 ? 0 : s->tensor[i].group;
}
static void one_group_more(hg_state *s)
{
	CHECK_OK(hg_state_add_group(s, &(hg_state_group){1.0f, 0.0f}));
}
static void another_group(hg_state *s)
{
	s->tensor[0].group = 1;
}
static void no_such_group(hg_state *s)
{
	s->tensor[0].group = 3;
}
static void negative_group(hg_state *s)
{
	s->tensor[0].group = -1;
}
static void rate_nan(hg_state *s)
{
	s->group[1].lr = NAN;
}
static void decay_negative(hg_state *s)
{
	s->group[2].weight_decay = -0.5f;
}

static const struct {
	void (*spoil)(hg_state *state);
	hg_status status;
	const char *part;
} mistakes[] = {
    {one_group_less, HG_ERR_SHAPE,
     "the state has 2 groups of parameters, the optimiser has 3: make the same ones before"},
    {one_group_more, HG_ERR_SHAPE, "the state has 4 groups of parameters, the optimiser has 3"},
    {another_group, HG_ERR_SHAPE,
     "conv0.weight is in group 1 of parameters in the state, the optimiser has it in group 0"},
    {no_such_group, HG_ERR_ARG, "a tensor is in a group of parameters that it does not have"},
    {negative_group, HG_ERR_ARG, "a tensor is in a group of parameters that it does not have"},
    {rate_nan, HG_ERR_ARG, "a learning rate or weight decay is not a finite number"},
    {decay_negative, HG_ERR_ARG, "a learning rate or weight decay is not a finite number"},
};

static void states_that_contradict_the_groups_are_refused(void)
{
	static struct small_run r;
	grouped_open(&r, grouped_config());
	hg_state *before = small_state(&r);
	for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++) {
		hg_state *state = small_state(&r), *after;
		state->tensor[0].master[0] = 77.0f;
		state->group[0].lr = 77.0f;
		mistakes[k].spoil(state);
		CHECK_MSG(hg_train_set_state(r.train, state) == mistakes[k].status, "%zu: %s", k,
		          hg_context_error(r.ctx));
		CHECK_CONTAINS(hg_context_error(r.ctx), mistakes[k].part);
		after = small_state(&r);
		check_same_state(before, after, 1);
		hg_state_free(after);
		hg_state_free(state);
	}
	hg_state_free(before);
	small_close(&r);
}

static void groups_are_added_by_calls(void)
{
	hg_state *s = NULL;
	const hg_state_group good = {0.5f, 0.0f};
	CHECK_OK(hg_state_create(&s));
	for (int k = 0; k < 5; k++)
		CHECK_OK(hg_state_add_group(s, &good));
	CHECK_STATUS(hg_state_add_group(s, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_group(NULL, &good), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_group(s, &(hg_state_group){INFINITY, 0.0f}), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_group(s, &(hg_state_group){0.5f, NAN}), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_group(s, &(hg_state_group){-0.5f, 0.0f}), HG_ERR_ARG);
	CHECK(s->groups == 5 && memcmp(&s->group[4], &good, sizeof good) == 0);
	hg_state_free(s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(resumed_groups_have_the_same_bits),
	    TEST(other_settings_keep_the_rates_of_the_run),
	    TEST(states_without_groups_leave_the_rates),
	    TEST(states_that_contradict_the_groups_are_refused),
	    TEST(groups_are_added_by_calls),
	};
	return RUN_TESTS(argc, argv, cases);
}
