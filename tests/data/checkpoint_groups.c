/* Groups of parameters in checkpoints: a run that goes on from a file has the rates of the one that
 * wrote it, and a file whose groups cannot be is refused by name. */
#include <stdlib.h>

#include "grouped_run.h"
#include "spoil.h"
#include "states.h"

static void hand_over_by_file(struct small_run *from, struct small_run *to)
{
	const char *path = scratch(0, "groups.h5");
	char message[HG_DATA_MESSAGE] = "";
	CHECK_MSG(hg_checkpoint_save(from->train, path, message) == HG_OK, "%s", message);
	CHECK_MSG(hg_checkpoint_load(path, to->train, message) == HG_OK, "%s", message);
}

static void groups_resume_from_their_file(void)
{
	check_grouped_resume(hand_over_by_file);
}

/* Three groups, whose rates have no short decimals and reach into the subnormal numbers. */
static hg_state *grouped_state(void)
{
	hg_state *state = odd_state();
	CHECK_EQ_I(state->groups, 2); /* layers behind the first have no decay */
	state->group[0] = (hg_state_group){0.1f, -0.0f};
	state->group[1] = (hg_state_group){1e-45f, 3e38f};
	CHECK_OK(hg_state_add_group(state, &(hg_state_group){0.0f, 1.0f / 3.0f}));
	state->tensor[0].group = 2;
	return state;
}

static void groups_come_back_bit_for_bit(void)
{
	hg_state *state = grouped_state();
	const char *path = scratch(0, "groups.h5");
	must_write_state(state, path);
	hg_state *back = must_read_state(path);
	CHECK_EQ_I(back->groups, 3);
	check_same_state(state, back, 1);
	hg_state_free(back);
	hg_state_free(state);
}

/* Such a file is of a version before groups were kept. */
static void files_without_groups_are_read(void)
{
	hg_state *state = odd_state();
	for (int64_t i = 0; i < state->tensors; i++)
		state->tensor[i].group = 0;
	const char *path = scratch(0, "older.h5");
	must_write_state(state, path);
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	drop(file, "groups");
	H5Fclose(file);
	hg_state *back = must_read_state(path);
	CHECK_EQ_I(back->groups, 0);
	state->groups = 0;
	check_same_state(state, back, 1);
	hg_state_free(back);
	hg_state_free(state);
}

static void unknown_group(hid_t f)
{
	put_integer(f, "/params/conv0.weight", "group", 3);
}
static void negative_group(hid_t f)
{
	put_integer(f, "/params/conv0.weight", "group", -1);
}
static void text_group(hid_t f)
{
	put_text(f, "/params/conv0.weight", "group", "2");
}
static void lost_groups(hid_t f)
{
	drop(f, "groups");
}
static void no_decays(hid_t f)
{
	drop(f, "groups/weight_decay");
}
static void few_decays(hid_t f)
{
	put_zeros(f, "groups/weight_decay", H5T_IEEE_F32LE, 1, 2, 0);
}
static void no_rates(hid_t f)
{
	put_zeros(f, "groups/lr", H5T_IEEE_F32LE, 1, 0, 0);
	put_zeros(f, "groups/weight_decay", H5T_IEEE_F32LE, 1, 0, 0);
}
static void text_rates(hid_t f)
{
	put_zeros(f, "groups/lr", H5T_C_S1, 1, 3, 0);
}
static void infinite_rate(hid_t f)
{
	put_reals(f, "groups/lr", H5T_IEEE_F32LE, 3, (const double[]){0.5, 0.5, INFINITY});
}
static void negative_decay(hid_t f)
{
	put_reals(f, "groups/weight_decay", H5T_IEEE_F32LE, 3, (const double[]){0.5, 0.5, -0.25});
}

static const struct {
	void (*spoil)(hid_t file);
	const char *part;
} damages[] = {
    {unknown_group, "/params/conv0.weight: attribute group is 3, but /groups has 3"},
    {negative_group, "/params/conv0.weight: attribute group is -1, but /groups has 3"},
    {text_group, "/params/conv0.weight: attribute group is not one integer"},
    {lost_groups, "/params/conv0.weight: attribute group is 2, but /groups has 0"},
    {no_decays, "/groups/weight_decay: no such dataset"},
    {few_decays, "/groups: 3 learning rates and 2 weight decays, expected one of each for every"},
    {no_rates, "/groups: 0 learning rates and 0 weight decays, expected one of each for every"},
    {text_rates, "/groups/lr: elements are of type text (1 bytes), expected float"},
    {infinite_rate, "/groups: group 2 has lr inf and weight_decay 0.333333: expected finite"},
    {negative_decay, "/groups: group 2 has lr 0 and weight_decay -0.25: expected finite"},
};

static void groups_that_cannot_be_are_refused_by_name(void)
{
	hg_state *state = grouped_state();
	const char *path = scratch(0, "bad.h5");
	for (size_t k = 0; k < sizeof damages / sizeof *damages; k++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_state *back = NULL;
		must_write_state(state, path);
		unseal(path);
		const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
		CHECK(file >= 0);
		damages[k].spoil(file);
		H5Fclose(file);
		CHECK_MSG(hg_checkpoint_read(path, &back, message) == HG_ERR_FORMAT, "%s: %s",
		          damages[k].part, message);
		CHECK_CONTAINS(message, damages[k].part);
		CHECK(!back);
	}
	hg_state_free(state);
}

/* A run whose groups are others than those of the file keeps its own weights and rates. */
static void files_that_contradict_the_run_are_refused(void)
{
	static struct small_run r;
	const char *path = scratch(0, "groups.h5");
	char message[HG_DATA_MESSAGE] = "";
	grouped_open(&r, grouped_config());
	CHECK_STATUS(hg_checkpoint_save(r.train, path, message), HG_OK);
	small_close(&r);
	small_open(&r, test_context(), grouped_config());
	hg_state *before = small_state(&r);
	CHECK_STATUS(hg_checkpoint_load(path, r.train, message), HG_ERR_SHAPE);
	CHECK_CONTAINS(message, "groups.h5 has 3 groups of parameters, the optimiser has 1");
	hg_state *after = small_state(&r);
	check_same_state(before, after, 1);
	hg_state_free(before);
	hg_state_free(after);
	small_close(&r);
}

/* No optimiser goes on from a model to predict with. */
static void models_have_no_groups(void)
{
	static struct small_run r;
	const char *path = scratch(0, "model.h5");
	char message[HG_DATA_MESSAGE] = "";
	grouped_open(&r, grouped_config());
	small_train(&r);
	CHECK_MSG(hg_model_save(r.train, path, message) == HG_OK, "%s", message);
	hg_state *model = must_read_state(path);
	CHECK_EQ_I(model->groups, 0);
	hg_state_free(model);
	small_close(&r);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(groups_resume_from_their_file),
	    TEST(groups_come_back_bit_for_bit),
	    TEST(files_without_groups_are_read),
	    TEST(groups_that_cannot_be_are_refused_by_name),
	    TEST(files_that_contradict_the_run_are_refused),
	    TEST(models_have_no_groups),
	};
	return RUN_TESTS(argc, argv, cases);
}
