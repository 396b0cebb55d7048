/* A group of models: each has the bits that it has alone, whatever the others do. */
#include "halfgraph/group.h"

#include "halfgraph/ops.h"
#include "halfgraph/state.h"
#include "unit/faulty.h"
#include "unit/step_rig.h"

enum { MODELS = 16 };

/* What a model of a group is. */
struct kind {
	const char *model;
	float scale; /* the first loss scale; 0: the default */
	float lr;    /* 0: the default */
};

struct scene {
	struct rig rig[MODELS];
	int models;
	hg_group *group;
};

static void rate_set(struct rig *r, const struct kind *kind)
{
	if (kind->lr > 0.0f)
		CHECK_OK(hg_optim_set_lr(r->optim, 0, kind->lr));
}

static void scene_open(struct scene *s, hg_context *ctx, const struct kind *kind, int models,
                       const hg_group_config *config)
{
	hg_step *steps[MODELS] = {NULL};
	memset(s, 0, sizeof *s);
	s->models = models;
	for (int i = 0; i < models; i++) {
		if (i)
			rig_join(&s->rig[i], &s->rig[0], kind[i].model, kind[i].scale, 0);
		else
			rig_open(&s->rig[0], ctx, kind[0].model, kind[0].scale);
		rate_set(&s->rig[i], &kind[i]);
		rig_step(&s->rig[i], 0, 0);
		steps[i] = s->rig[i].step;
	}
	CHECK_OK(hg_group_create(ctx, steps, models, config, &s->group));
}

static void scene_close(struct scene *s)
{
	hg_group_free(s->group);
	for (int i = s->models - 1; i > 0; i--)
		rig_leave(&s->rig[i]);
	rig_close(&s->rig[0]);
}

/* Notes the last `count` steps of a model. */
static void note(const struct rig *r, struct trace *t, int count)
{
	for (int i = 0; i < count; i++) {
		CHECK_OK(hg_step_read(r->step, count - 1 - i, &t->loss[t->steps], next_info(t)));
		finish_step(t);
	}
}

/* What each model does alone, in a context of its own. */
static void traces_alone(struct trace *t, open_fn open, const struct kind *kind, int models)
{
	for (int i = 0; i < models; i++) {
		struct rig r;
		rig_open(&r, open(), kind[i].model, kind[i].scale);
		rate_set(&r, &kind[i]);
		t[i].steps = 0;
		while (t[i].steps < STEPS)
			plain_step(&r, &t[i]);
		trace_weights(&t[i], &r);
		rig_close(&r);
	}
}

/* Runs all steps in pieces of these sizes, the last of which is repeated. */
static void check_group(const struct trace *alone, hg_context *ctx, const struct kind *kind,
                        int models, const hg_group_config *config, const int *pieces)
{
	static struct trace t[MODELS];
	struct scene s;
	hg_group_launch launch = HG_GROUP_LAUNCH_INIT;
	scene_open(&s, ctx, kind, models, config);
	const int captures_steps = captures(&s.rig[0]);
	for (int i = 0; i < models; i++)
		t[i].steps = 0;
	while (t[0].steps < STEPS) {
		const int left = STEPS - t[0].steps, count = *pieces < left ? *pieces : left;
		CHECK_MSG(hg_group_run(s.group, count) == HG_OK, "%s", hg_context_error(ctx));
		for (int i = 0; i < models; i++)
			note(&s.rig[i], &t[i], count);
		pieces += pieces[1] != 0;
	}
	CHECK_OK(hg_group_get_launch(s.group, &launch));
	CHECK_EQ_I(launch.captured, captures_steps && !config->eager);
	CHECK(launch.branches >= 1 && launch.branches <= models);
	CHECK(!config->branches || launch.branches <= config->branches);
	CHECK(!launch.captured || (launch.per_launch > 0 && launch.operations > models));
	for (int i = 0; i < models; i++) {
		trace_weights(&t[i], &s.rig[i]);
		check_same_trace(&alone[i], &t[i], kind[i].model);
	}
	scene_close(&s);
}

static const int pieces[][6] = {{50}, {1, 5, 17, 8, 3, 0}, {1}};

static void each_model_has_the_bits_that_it_has_alone(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static const struct kind kinds[] = {
	    {"gcn", 0, 0}, {"gin", 0, 0},     {"gat", 0, 0},      {"gcn", 0, 0.1f}, {"sage", 1024, 0},
	    {"gt", 0, 0},  {"gcn", 65536, 0}, {"gatv2", 0, 0},    {"gin", 0, 0.3f}, {"appnp", 0, 0},
	    {"sgc", 0, 0}, {"agnn", 0, 0},    {"gat", 0, 0.001f},
	};
	static struct trace alone[MODELS];
	const int all = (int)(sizeof kinds / sizeof *kinds), counts[] = {1, 7, all};
	traces_alone(alone, open, kinds, all);
	for (int k = 0; k < 3; k++)
		for (int branches = 0; branches < 4; branches++)
			for (int eager = 0; eager < 2; eager++) {
				hg_group_config config = HG_GROUP_CONFIG_INIT;
				config.branches = branches;
				config.eager = eager;
				check_group(alone, open(), kinds, counts[k], &config,
				            pieces[(branches + eager) % 3]);
			}
}

static void check_seed_noted(const struct rig *r, int64_t seed)
{
	hg_state *state = NULL;
	CHECK_OK(hg_optim_get_state(r->optim, &state));
	CHECK_EQ_I(hg_state_find_setting(state, "seed")->integer, seed);
	hg_state_free(state);
}

/* Ten seeds in one context are ten contexts with these seeds. */
static void seeds_of_params_are_those_of_contexts(void)
{
	static struct trace t[2];
	hg_context *plain = test_context();
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = hg_context_device(plain);
	hg_context_free(plain);
	for (int k = 1; k < 10; k += 4) {
		hg_step *steps[10] = {NULL};
		struct rig r[10], alone;
		hg_group *group = NULL;
		rig_open(&r[0], test_context(), "gat", 0.0f);
		for (int i = 1; i < 10; i++)
			rig_join(&r[i], &r[0], "gat", 0.0f, 100 + (uint64_t)i);
		for (int i = 0; i < 10; i++) {
			rig_step(&r[i], 0, 0);
			steps[i] = r[i].step;
		}
		CHECK_OK(hg_group_create(r[0].ctx, steps, 10, NULL, &group));
		CHECK_OK(hg_group_run(group, STEPS));
		t[0].steps = t[1].steps = 0;
		note(&r[k], &t[0], STEPS);
		trace_weights(&t[0], &r[k]);
		hg_group_free(group);
		check_seed_noted(&r[k], 100 + k);
		for (int i = 9; i > 0; i--)
			rig_leave(&r[i]);
		rig_close(&r[0]);
		config.seed = 100 + (uint64_t)k;
		hg_context *ctx = NULL;
		CHECK_OK(hg_context_create(&config, &ctx));
		rig_open(&alone, ctx, "gat", 0.0f);
		while (t[1].steps < STEPS)
			plain_step(&alone, &t[1]);
		trace_weights(&t[1], &alone);
		check_same_trace(&t[1], &t[0], "seed");
		rig_close(&alone);
	}
	CHECK_STATUS(hg_params_set_seed(NULL, 1), HG_ERR_ARG);
}

static void a_model_that_diverges_changes_no_other(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static const struct kind kinds[] = {
	    {"gcn", 0, 0}, {"gin", 0, 1e3f},        {"gat", 0, 0}, {"gcn", 0, 3e37f},
	    {"gin", 0, 0}, {"gat", 16777216.0f, 0}, {"gcn", 0, 0}, {"sage", 0, 0},
	};
	static struct trace alone[MODELS];
	hg_group_config config = HG_GROUP_CONFIG_INIT;
	int64_t skipped = 0;
	traces_alone(alone, open, kinds, 8);
	for (int i = 0; i < 8; i++)
		skipped += alone[i].info[STEPS - 1].skipped;
	test_note("%lld of %d steps are skipped", (long long)skipped, 8 * STEPS);
	CHECK(skipped > 10 && alone[0].info[STEPS - 1].skipped == 0);
	check_group(alone, open(), kinds, 8, &config, pieces[0]);
}

/* A device that cannot make a launch of several steps ready. */
static struct {
	hg_status (*end)(hg_context *ctx, void **work, int64_t *operations);
	int64_t operations; /* of the first capture, which succeeds */
	int captures;
} narrow;

static hg_status narrow_end(hg_context *ctx, void **work, int64_t *operations)
{
	HG__TRY(narrow.end(ctx, work, operations));
	if (!narrow.captures++)
		narrow.operations = *operations;
	if (*operations <= narrow.operations)
		return HG_OK;
	ctx->backend->work_free(ctx, *work);
	*work = NULL;
	return hg__fail(ctx, HG_ERR_NOMEM, "captured work: no memory");
}

/* It is tried once, and then each step is a launch. */
static void a_launch_of_one_step_is_enough(void)
{
	static const struct kind kinds[] = {{"gcn", 0, 0}, {"gat", 0, 0}, {"gin", 0, 0}};
	static struct trace alone[MODELS];
	const hg_group_config config = HG_GROUP_CONFIG_INIT;
	traces_alone(alone, capturing_context, kinds, 3);
	hg_context *ctx = capturing_context();
	narrow.end = capturing.backend.capture_end;
	capturing.backend.capture_end = narrow_end;
	check_group(alone, ctx, kinds, 3, &config, pieces[0]);
	CHECK_EQ_I(narrow.captures, 2);
}

/* What is captured becomes stale when scratch memory or an optimiser's table moves. */
static void between_runs_models_may_change(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static const struct kind kinds[] = {{"gcn", 0, 0}, {"gat", 0, 0}, {"gin", 0, 0}};
	static struct trace t[2][MODELS];
	for (int together = 0; together < 2; together++) {
		struct scene s;
		scene_open(&s, open(), kinds, 3, NULL);
		for (int run = 0; run < 5; run++) {
			if (run == 2)
				CHECK_OK(hg_optim_set_lr(s.rig[1].optim, 0, 0.003f));
			if (run == 3) {
				const hg_param *param = hg_params_at(s.rig[2].params, 0);
				int number = 0;
				CHECK_OK(hg_optim_add_group(s.rig[2].optim, 0.02f, 0.0f, &number));
				CHECK_OK(hg_optim_assign(s.rig[2].optim, param, number));
			}
			if (run == 4) {
				void *workspace;
				CHECK_OK(
				    hg__workspace(s.rig[0].ctx, s.rig[0].ctx->workspace_bytes + 4096, &workspace));
			}
			if (together)
				CHECK_OK(hg_group_run(s.group, 6));
			for (int i = 0; i < 3; i++)
				CHECK_OK(hg_step_run(s.rig[i].step, together ? 1 : 7));
		}
		for (int i = 0; i < 3; i++) {
			t[together][i].steps = 0;
			note(&s.rig[i], &t[together][i], 35);
			trace_weights(&t[together][i], &s.rig[i]);
		}
		scene_close(&s);
	}
	for (int i = 0; i < 3; i++)
		check_same_trace(&t[0][i], &t[1][i], kinds[i].model);
}

static void bad_groups_are_refused(void)
{
	static const struct kind kinds[] = {{"gcn", 0, 0}, {"gin", 0, 0}};
	struct scene s;
	struct rig other;
	hg_group *group = NULL;
	hg_group_config config = HG_GROUP_CONFIG_INIT;
	hg_group_launch launch = {0};
	hg_context *ctx = test_context();
	scene_open(&s, ctx, kinds, 2, NULL);
	rig_open(&other, test_context(), "gcn", 0.0f);
	rig_step(&other, 0, 0);
	hg_step *const twice[] = {s.rig[0].step, s.rig[0].step}, *const missing[] = {NULL},
	               *const foreign[] = {other.step}, *const one[] = {s.rig[0].step};
	CHECK_STATUS(hg_group_create(NULL, one, 1, NULL, &group), HG_ERR_ARG);
	CHECK_STATUS(hg_group_create(ctx, NULL, 1, NULL, &group), HG_ERR_ARG);
	CHECK_STATUS(hg_group_create(ctx, one, 1, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_group_create(ctx, one, 0, NULL, &group), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "count is 0, expected 1 to 256");
	CHECK_STATUS(hg_group_create(ctx, twice, 2, NULL, &group), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "steps 0 and 1 are the same");
	CHECK_STATUS(hg_group_create(ctx, missing, 1, NULL, &group), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "step 0 is NULL");
	CHECK_STATUS(hg_group_create(ctx, foreign, 1, NULL, &group), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "step 0 is of another context");
	config.branches = -1;
	CHECK_STATUS(hg_group_create(ctx, one, 1, &config, &group), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "branches is -1");
	config.size = 0;
	CHECK_STATUS(hg_group_create(ctx, one, 1, &config, &group), HG_ERR_ARG);
	CHECK(group == NULL);
	CHECK_STATUS(hg_group_run(s.group, -1), HG_ERR_ARG);
	CHECK_STATUS(hg_group_run(NULL, 1), HG_ERR_ARG);
	CHECK_STATUS(hg_group_get_launch(s.group, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_group_get_launch(s.group, &launch), HG_ERR_ARG);
	CHECK_OK(hg_group_run(s.group, 0));
	hg_group_free(NULL);
	rig_close(&other);
	scene_close(&s);
}

/* Two steps of one tape, and a tape in the arena of another one. */
static void what_steps_write_to_is_not_shared(void)
{
	static const struct kind kinds[] = {{"gcn", 0, 0}};
	struct scene s;
	struct rig *r = &s.rig[0];
	hg_step *second = NULL;
	hg_group *group = NULL;
	hg_context *ctx = test_context();
	scene_open(&s, ctx, kinds, 1, NULL);
	CHECK_OK(hg_step_create(r->tape, r->optim, NULL, &second));
	hg_step *const steps[] = {r->step, second};
	CHECK_STATUS(hg_group_create(ctx, steps, 2, NULL, &group), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "steps 0 and 1 have the same tape");
	hg_step_free(second);
	scene_close(&s);
}

/* A group gives back all memory that it takes. */
static void a_group_gives_its_memory_back(const void *item)
{
	static const struct kind kinds[] = {{"gcn", 0, 0}, {"gat", 0, 0}, {"gin", 0, 0}};
	struct scene s;
	hg_memory_info before = HG_MEMORY_INFO_INIT, with = HG_MEMORY_INFO_INIT,
	               after = HG_MEMORY_INFO_INIT;
	hg_context *ctx = (*(const open_fn *)item)();
	scene_open(&s, ctx, kinds, 3, NULL);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hg_step_run(s.rig[i].step, 2));
	CHECK_OK(hg_context_memory(ctx, &before));
	CHECK_OK(hg_group_run(s.group, 5));
	CHECK_OK(hg_context_memory(ctx, &with));
	hg_group_free(s.group);
	s.group = NULL;
	CHECK_OK(hg_context_memory(ctx, &after));
	CHECK(with.current_bytes >= before.current_bytes + ctx->workspace_bytes);
	CHECK_EQ_I((int64_t)after.current_bytes, (int64_t)before.current_bytes);
	scene_close(&s);
}

/* The device has no room for the scratch memory of the branches. */
static void a_full_device_is_reported(void)
{
	static const struct kind kinds[] = {{"gcn", 0, 0}, {"gin", 0, 0}};
	struct scene s;
	hg_context *ctx = test_context();
	scene_open(&s, ctx, kinds, 2, NULL);
	for (int i = 0; i < 2; i++)
		CHECK_OK(hg_step_run(s.rig[i].step, 2));
	const size_t held = ctx->current_bytes;
	ctx->memory_limit = held;
	CHECK_STATUS(hg_group_run(s.group, 5), HG_ERR_NOMEM);
	CHECK_CONTAINS(hg_context_error(ctx), "workspace");
	CHECK_EQ_I((int64_t)ctx->current_bytes, (int64_t)held);
	ctx->memory_limit = 0;
	CHECK_OK(hg_group_run(s.group, 5));
	scene_close(&s);
}

static hg_status group_once(const struct scene *s)
{
	hg_step *const steps[] = {s->rig[0].step, s->rig[1].step};
	hg_group *group = NULL;
	hg_status status = hg_group_create(s->rig[0].ctx, steps, 2, NULL, &group);
	if (status == HG_OK)
		status = hg_group_run(group, 3);
	hg_group_free(group);
	return status;
}

static void failed_allocations_leak_nothing(void)
{
	static const struct kind kinds[] = {{"gcn", 0, 0}, {"gin", 0, 0}};
	struct faulty f;
	struct scene s;
	hg_context *ctx = faulty_context(&f);
	scene_open(&s, ctx, kinds, 2, NULL);
	CHECK_OK(group_once(&s));
	const int64_t before = f.out;
	hg_status status = HG_ERR_NOMEM;
	for (f.fail_at = 0; status == HG_ERR_NOMEM; f.fail_at++) {
		f.calls = 0;
		status = group_once(&s);
		CHECK_EQ_I(f.out, before);
	}
	CHECK_OK(status);
	test_note("%lld allocations", (long long)f.fail_at - 1);
	CHECK(f.fail_at > 6);
	f.fail_at = -1;
	scene_close(&s);
	CHECK_EQ_I(f.out, 0);
	hg_context_free(f.plain);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    ON_BOTH(each_model_has_the_bits_that_it_has_alone),
	    TEST(seeds_of_params_are_those_of_contexts),
	    ON_BOTH(a_model_that_diverges_changes_no_other),
	    TEST(a_launch_of_one_step_is_enough),
	    ON_BOTH(between_runs_models_may_change),
	    ON_BOTH(a_group_gives_its_memory_back),
	    TEST(bad_groups_are_refused),
	    TEST(what_steps_write_to_is_not_shared),
	    TEST(a_full_device_is_reported),
	    TEST(failed_allocations_leak_nothing),
	};
	return RUN_TESTS(argc, argv, cases);
}
