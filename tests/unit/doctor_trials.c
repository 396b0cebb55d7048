/* hg_doctor_try: the options of remedies are tried in training runs, each once. */
#include <math.h>
#include <string.h>

#include "unit/doctor_run.h"

static void option_that_works_is_reported(void)
{
	struct planted task = task_with_hub();
	const hg_train_config c = config_of("gin", "fp16-naive");
	struct doctor_run r;
	doctor_run_open(&r, &task, HG_F32, 0);
	doctor_run_train(&r, c, 4);
	const hg_finding *f = first_finding(&r);
	hg_doctor_trial trial = trial_of(&r, &c);
	trial.steps = 30;
	CHECK_STR(f->remedy[0].option, "--precision fp16");
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, f, 1));
	CHECK(f->remedy[0].tried && f->remedy[0].worked);
	doctor_run_close(&r);
	planted_free(&task);
}

/* In fp16 the first steps overflow, until the sum is rescaled. So the last loss is compared with
 * the first finite one. */
static void loss_is_compared_with_the_first_finite_one(void)
{
	struct planted task = task_with_large_features();
	const hg_train_config c = config_of_sums("fp16-naive");
	struct doctor_run r;
	doctor_run_open(&r, &task, HG_F32, 0);
	doctor_run_train(&r, c, 1);
	const hg_finding *f = first_finding(&r);
	hg_doctor_trial trial = trial_of(&r, &c);
	trial.steps = 30;
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, f, 1));
	const hg_remedy *m = remedy_of(f, "--precision fp16");
	CHECK(m != NULL);
	test_note("%s: loss %g to %g %s", m->option, m->loss_first, m->loss_last, m->failure);
	CHECK(m->tried && isfinite(m->loss_first) && m->loss_last < m->loss_first);
	doctor_run_close(&r);
	planted_free(&task);
}

/* ---- each option once ---- */

struct epochs {
	int all, first; /* calls of progress; those for the first epoch of a run */
};

static int count_epochs(void *user, const hg_train_event *event)
{
	struct epochs *epochs = user;
	epochs->all++;
	epochs->first += event->epoch == 1;
	return 0;
}

/* Two findings share two options, and the second one has more. Each option is tried in one run,
 * whose outcome both findings get, until the last option has no run left. */
static void each_option_runs_once(void)
{
	struct planted task = task_with_large_features();
	const hg_train_config c = config_of_sums("fp16-naive");
	struct doctor_run r;
	doctor_run_open(&r, &task, HG_F32, 0);
	doctor_run_train(&r, c, 1);
	const hg_finding *f = first_finding(&r);
	hg_finding two[2] = {*f, *f};
	hg_remedy own[2][8];
	int options = 0;
	CHECK(f->remedies >= 4 && f->remedies <= 8);
	for (int i = 0; i < 2; i++) {
		memcpy(own[i], f->remedy, (size_t)f->remedies * sizeof *f->remedy);
		two[i].remedy = own[i];
	}
	two[0].remedies = 2;
	for (int i = 0; i < f->remedies; i++)
		options += *f->remedy[i].option != 0;
	struct epochs epochs = {0};
	hg_train_config counted = c;
	counted.progress = count_epochs;
	counted.user = &epochs;
	hg_doctor_trial trial = trial_of(&r, &counted);
	trial.most = options - 1;
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, two, 2));
	CHECK_EQ_I(epochs.first, options - 1);
	CHECK_EQ_I(epochs.all, 4 * (options - 1));
	for (int i = 0; i < 2; i++)
		CHECK(own[1][i].worked == own[0][i].worked &&
		      memcmp(&own[1][i].loss_last, &own[0][i].loss_last, sizeof(double)) == 0);
	for (int i = 0; i < options; i++)
		CHECK_EQ_I(own[1][i].tried, i < options - 1);
	CHECK(!f->remedy[0].tried);
	doctor_run_close(&r);
	planted_free(&task);
}

/* ---- trials that begin from a state ---- */

static void spoil_weight(hg_state *state)
{
	for (int64_t i = 0; i < state->tensors; i++)
		if (strcmp(state->tensor[i].name, "conv1.weight") == 0)
			state->tensor[i].master[3] = NAN;
}

/* A bad weight of the state is in every run that begins from it, so no option works; from new
 * weights all of them do. If the state is healthy, the control run works as well. */
static void trials_begin_from_the_state(void)
{
	struct planted task = task_make();
	hg_train_config c = config_of("gcn", "fp16");
	c.model.dropout = 0.0f;
	for (int spoilt = 0; spoilt < 2; spoilt++) {
		struct doctor_run r;
		hg_state *state = NULL;
		hg_remedy control = {.option = ""};
		hg_remedy remedy[2] = {{.option = "--loss-scale 256"}, {.option = "--lr 0.001"}};
		hg_finding finding = {.size = sizeof finding, .remedy = remedy, .remedies = 2};
		doctor_run_open(&r, &task, HG_F32, 0);
		doctor_run_train(&r, c, 5);
		CHECK_OK(hg_train_get_state(r.run.train, &state));
		if (spoilt)
			spoil_weight(state);
		for (int from = 0; from < 2; from++) {
			hg_doctor_trial trial = trial_of(&r, &c);
			const int works = !(spoilt && from);
			trial.steps = 5;
			trial.from = from ? state : NULL;
			trial.control = &control;
			remedy[0].tried = remedy[1].tried = 0;
			CHECK_OK(hg_doctor_try(r.run.ctx, &trial, &finding, 1));
			CHECK(control.tried && remedy[0].tried && remedy[1].tried);
			CHECK(control.worked == works && remedy[0].worked == works &&
			      remedy[1].worked == works);
			if (from && !spoilt) /* it continues where the run was */
				CHECK(control.loss_first < r.loss[5] &&
				      control.loss_first < remedy[0].loss_first + 0.1);
		}
		hg_state_free(state);
		doctor_run_close(&r);
	}
	planted_free(&task);
}

/* A run with a group of its own has it in its trials, too. */
static void trials_have_the_groups_of_the_state(void)
{
	struct planted task = task_make();
	struct doctor_run r;
	hg_train_config c = config_of("gcn", "fp16");
	hg_state *state = NULL;
	hg_remedy control = {.option = ""}, remedy = {.option = "--lr 0.001"};
	hg_finding finding = {.size = sizeof finding, .remedy = &remedy, .remedies = 1};
	int group = 0;
	doctor_run_open(&r, &task, HG_F32, 0);
	doctor_run_train(&r, c, 5);
	hg_optim *optim = hg_train_optim(r.run.train);
	CHECK_OK(hg_optim_add_group(optim, 0.002f, 0.0f, &group));
	CHECK_OK(
	    hg_optim_assign(optim, hg_params_find(hg_train_params(r.run.train), "conv0.bias"), group));
	CHECK_OK(hg_train_get_state(r.run.train, &state));
	hg_doctor_trial trial = trial_of(&r, &c);
	trial.steps = 5;
	trial.from = state;
	trial.control = &control;
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, &finding, 1));
	CHECK_MSG(control.worked && remedy.worked, "%s; %s", control.failure, remedy.failure);
	hg_state_free(state);
	doctor_run_close(&r);
	planted_free(&task);
}

/* ---- arguments ---- */

static void bad_trials_are_refused(void)
{
	struct planted task = task_make();
	const hg_train_config c = config_of("gcn", "fp16");
	struct doctor_run r;
	doctor_run_open(&r, &task, HG_F32, 0);
	const hg_doctor_trial good = trial_of(&r, &c);
	hg_doctor_trial bad[6] = {good, good, good, good, good, good};
	bad[0].size = 0;
	bad[1].config = NULL;
	bad[2].data = NULL;
	bad[3].steps = 0;
	bad[4].most = 0;
	bad[5].features = task.x;
	bad[5].features_dtype = HG_I32;
	for (int i = 0; i < 6; i++)
		CHECK_STATUS(hg_doctor_try(r.run.ctx, &bad[i], NULL, 0),
		             i == 5 ? HG_ERR_DTYPE : HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_try(r.run.ctx, &good, NULL, 1), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_try(r.run.ctx, NULL, NULL, 0), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_try(NULL, &good, NULL, 0), HG_ERR_ARG);
	CHECK_OK(hg_doctor_try(r.run.ctx, &good, NULL, 0));
	doctor_run_close(&r);
	planted_free(&task);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(option_that_works_is_reported),
	    TEST(loss_is_compared_with_the_first_finite_one),
	    TEST(each_option_runs_once),
	    TEST(trials_begin_from_the_state),
	    TEST(trials_have_the_groups_of_the_state),
	    TEST(bad_trials_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
