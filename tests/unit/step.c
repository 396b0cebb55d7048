/* The step object gives the same bits as the three calls that it stands for, however its steps are
 * launched, and it remembers the results of the last steps. */
#include "halfgraph/ops.h"
#include "unit/step_rig.h"

/* Ways to run 50 steps: how many steps each call of hg_step_run is asked for. 0 ends the list, and
 * the last number is repeated. */
static const struct way {
	const char *name;
	int eager, per_launch, count[6];
} ways[] = {
    {"call by call", 1, 0, {1}},
    {"captured one by one", 0, 1, {50}},
    {"as the rule says", 0, 0, {50}},
    {"one at a time", 0, 0, {1}},
    {"eight in a launch, in uneven runs", 0, 8, {1, 5, 17, 8, 3, 16}},
    {"more in a launch than there are", 0, 64, {50}},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void trace_way(struct trace *t, open_fn open, const struct way *way, const char *model,
                      float scale)
{
	struct rig r;
	rig_open(&r, open(), model, scale);
	rig_step(&r, way->eager, way->per_launch);
	t->steps = 0;
	for (int i = 0, count = 0; t->steps < STEPS; i++) {
		count = i < 6 && way->count[i] ? way->count[i] : count;
		step_run(&r, t, count < STEPS - t->steps ? count : STEPS - t->steps);
	}
	check_launch(&r, !way->eager);
	trace_weights(t, &r);
	rig_close(&r);
}

/* Dropout, running statistics and the bias correction of Adam depend on the number of the step: in
 * every way of launching, all of them must count the same steps. */
static void every_way_gives_the_same_bits(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static struct trace plain, other;
	for (const char *const *model = hg_model_names(); *model; model++) {
		trace_plain(&plain, open, *model, 0.0f);
		CHECK(plain.info[STEPS - 1].steps == STEPS && isfinite(plain.loss[STEPS - 1]) &&
		      plain.loss[STEPS - 1] < plain.loss[0]);
		for (int w = 0; w < WAYS; w++) {
			trace_way(&other, open, &ways[w], *model, 0.0f);
			test_note("%s, %s", *model, ways[w].name);
			check_same_trace(&plain, &other, ways[w].name);
		}
	}
}

/* The loss scale overflows at first, becomes smaller, and grows again until the next overflow,
 * every few steps. */
static void every_way_skips_the_same_steps(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static struct trace plain, other;
	for (const char *const *model = hg_model_names(); *model; model++) {
		int skipped = 0, grew = 0;
		trace_plain(&plain, open, *model, 0x1p40f);
		for (int i = 0; i < STEPS; i++) {
			skipped += plain.info[i].reason == HG_STEP_SKIPPED_BACKOFF;
			grew += plain.info[i].reason == HG_STEP_APPLIED_GREW;
		}
		CHECK_MSG(skipped > 2 && grew > 2 && plain.info[0].reason == HG_STEP_SKIPPED_BACKOFF,
		          "%s: %d skipped, %d grew", *model, skipped, grew);
		for (int w = 0; w < WAYS; w++) {
			trace_way(&other, open, &ways[w], *model, 0x1p40f);
			check_same_trace(&plain, &other, ways[w].name);
		}
	}
}

/* ---- changes between runs ---- */

static hg_status count_nodes(void *user, const hg_tape *tape, int32_t line, int backward,
                             const struct hg__call *call)
{
	(void)tape;
	(void)line;
	(void)backward;
	(void)call;
	++*(int *)user;
	return HG_OK;
}

/* Another tape with a hundred times as many columns. It needs a larger workspace than the one that
 * captured kernels point to. */
static hg_tape *wide_tape(struct rig *r, hg_tensor **x)
{
	enum { WIDE = 100 * D };
	hg_tape *tape = NULL;
	CHECK_OK(hg_tensor_create(r->ctx, HG_F16, N, WIDE, x));
	CHECK_OK(hg_tape_create(r->params, HG_EVAL, &tape));
	const hg_var input = hg_tape_input(tape, *x, "wide", 1.0);
	const size_t before = r->ctx->workspace_bytes;
	CHECK_OK(hg_tape_compile(tape, hg_spmm_max(tape, r->graph, input)));
	CHECK(r->ctx->workspace_bytes > before);
	return tape;
}

/* The same changes between steps, with the three calls or with a step object. */
static void run_with_changes(struct trace *t, open_fn open, int with_step)
{
	static float x[N * D];
	struct rig r;
	int group = 0, nodes = 0;
	const struct hg__hook hook = {count_nodes, &nodes};
	hg_tensor *wide = NULL;
	rig_open(&r, open(), "gcn", 0.0f);
	if (with_step)
		rig_step(&r, 0, 4);
	t->steps = 0;
	for (int phase = 0; phase < 7; phase++) {
		if (phase == 1)
			CHECK_OK(hg_optim_set_lr(r.optim, 0, 0.003f));
		if (phase == 2) { /* the table of groups gets another address */
			CHECK_OK(hg_optim_add_group(r.optim, 0.05f, 0.0f, &group));
			CHECK_OK(hg_optim_assign(r.optim, hg_params_at(r.params, 0), group));
		}
		hg_tape *tape = phase == 3 ? wide_tape(&r, &wide) : NULL;
		hg__tape_hook(r.tape, phase == 4 ? &hook : NULL);
		if (phase == 5) { /* other features in the same tensor */
			CHECK_OK(hg_tensor_download(r.x, x, HG_F32));
			for (int i = 0; i < N * D; i++)
				x[i] *= 0.5f;
			CHECK_OK(hg_tensor_upload(r.x, x, HG_F32));
		}
		if (phase == 6) /* one step by the three calls in between */
			plain_step(&r, t);
		if (with_step)
			step_run(&r, t, 6);
		for (int i = 0; i < 6 && !with_step; i++)
			plain_step(&r, t);
		if (with_step)
			check_launch(&r, phase != 4);
		CHECK((nodes > 0) == (phase >= 4));
		hg_tape_free(tape);
	}
	/* As after every step, backward needs a forward pass first. */
	CHECK_STATUS(hg_tape_backward(r.tape), HG_ERR_STATE);
	trace_weights(t, &r);
	hg_tensor_free(wide);
	rig_close(&r);
}

static void changes_between_runs_take_effect(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static struct trace plain, stepped;
	run_with_changes(&plain, open, 0);
	run_with_changes(&stepped, open, 1);
	check_same_trace(&plain, &stepped, "with events");
}

/* ---- results ---- */

static void last_results_are_remembered(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	struct rig r;
	double loss = 0.0, direct = 1.0;
	hg_step_info info = HG_STEP_INFO_INIT;
	hg_step_launch launch = HG_STEP_LAUNCH_INIT;
	rig_open(&r, open(), "gcn", 0.0f);
	rig_step(&r, 0, 0);
	CHECK_STATUS(hg_step_read(r.step, 0, &loss, &info), HG_ERR_STATE);
	CHECK_OK(hg_step_get_launch(r.step, &launch));
	CHECK(!launch.captured && launch.per_launch == 0 && launch.operations == 0);
	CHECK_OK(hg_step_run(r.step, 0));
	CHECK_OK(hg_step_run(r.step, 3));
	CHECK_OK(hg_step_read(r.step, 2, &loss, NULL));
	CHECK_STATUS(hg_step_read(r.step, 3, &loss, NULL), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(r.ctx),
	               "back is 3, expected 0 or more and less than the 3 steps");
	CHECK_OK(hg_step_run(r.step, 3 * HG_STEP_REMEMBERED));
	CHECK_OK(hg_step_read(r.step, 0, &loss, &info));
	CHECK_OK(hg_tape_scalar(r.tape, r.loss, &direct));
	CHECK(loss == direct && info.steps == 3 + 3 * HG_STEP_REMEMBERED);
	CHECK_OK(hg_step_read(r.step, HG_STEP_REMEMBERED - 1, NULL, &info));
	CHECK_EQ_I(info.steps, 4 + 2 * HG_STEP_REMEMBERED);
	CHECK_STATUS(hg_step_read(r.step, HG_STEP_REMEMBERED, &loss, &info), HG_ERR_STATE);
	CHECK_STATUS(hg_step_read(r.step, -1, &loss, &info), HG_ERR_STATE);
	CHECK_OK(hg_step_get_launch(r.step, &launch));
	CHECK(launch.captured == captures(&r) && (launch.per_launch >= 1) == captures(&r) &&
	      (launch.operations > 0) == captures(&r));
	test_note("a step: %lld operations, %d in a launch", (long long)launch.operations,
	          launch.per_launch);
	info.size = 0;
	CHECK_STATUS(hg_step_read(r.step, 0, NULL, &info), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(r.ctx), "step_read: info->size is not set");
	rig_close(&r);
}

static void mistakes_are_refused_by_name(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	struct rig r;
	hg_step *step = NULL;
	hg_params *others = NULL;
	hg_optim *foreign = NULL;
	hg_tape *tape = NULL;
	hg_param *late = NULL;
	hg_step_config config = HG_STEP_CONFIG_INIT;
	const hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	rig_open(&r, open(), "gcn", 0.0f);
	CHECK_STATUS(hg_step_create(NULL, r.optim, NULL, &step), HG_ERR_ARG);
	CHECK_STATUS(hg_step_create(r.tape, NULL, NULL, &step), HG_ERR_ARG);
	CHECK_STATUS(hg_step_create(r.tape, r.optim, NULL, NULL), HG_ERR_ARG);
	config.per_launch = HG_STEP_REMEMBERED + 1;
	CHECK_STATUS(hg_step_create(r.tape, r.optim, &config, &step), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(r.ctx), "per_launch is 65, expected 0 to 64");
	config.size = 0;
	CHECK_STATUS(hg_step_create(r.tape, r.optim, &config, &step), HG_ERR_ARG);
	CHECK_OK(hg_params_create(r.ctx, NULL, &others));
	CHECK_OK(hg_params_add(others, "w", 1, 1, HG_INIT_ONES, 0, &late));
	CHECK_OK(hg_optim_create(others, &adam, &foreign));
	CHECK_STATUS(hg_step_create(r.tape, foreign, NULL, &step), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(r.ctx), "other parameters");
	CHECK_OK(hg_tape_create(r.params, HG_EVAL, &tape));
	CHECK_STATUS(hg_step_create(tape, r.optim, NULL, &step), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(r.ctx), "not compiled");
	CHECK_OK(hg_tape_compile(tape, hg_relu(tape, hg_tape_input(tape, r.x, "x", -1.0))));
	CHECK_STATUS(hg_step_create(tape, r.optim, NULL, &step), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(r.ctx), "no loss");
	CHECK(step == NULL);
	CHECK_OK(hg_step_create(r.tape, r.optim, NULL, &r.step));
	CHECK_STATUS(hg_step_run(r.step, -1), HG_ERR_ARG);
	CHECK_STATUS(hg_step_run(NULL, 1), HG_ERR_ARG);
	CHECK_STATUS(hg_step_read(NULL, 0, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_step_get_launch(r.step, NULL), HG_ERR_ARG);
	CHECK_OK(hg_step_run(r.step, 3));
	/* A parameter that the optimiser does not know is an error whether or not steps are
	 * captured. */
	CHECK_OK(hg_params_add(r.params, "late", 1, 1, HG_INIT_ONES, 0, &late));
	CHECK_STATUS(hg_step_run(r.step, 1), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(r.ctx), "when the optimiser was made");
	hg_tape_free(tape);
	hg_optim_free(foreign);
	hg_params_free(others);
	rig_close(&r);
}

/* Several steps are in one launch, and captured work is freed. */
static void launches_are_counted(void)
{
	struct rig r;
	rig_open(&r, capturing_context(), "gat", 0.0f);
	rig_step(&r, 0, 8);
	CHECK_OK(hg_step_run(r.step, 1 + 3 * 8 + 5)); /* the first step runs call by call */
	CHECK(capturing.captures == 2 && capturing.launches == 3 + 5 && capturing.kept == 2);
	rig_close(&r);
	CHECK_EQ_I(capturing.kept, 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    ON_BOTH(every_way_gives_the_same_bits),    ON_BOTH(every_way_skips_the_same_steps),
	    ON_BOTH(changes_between_runs_take_effect), ON_BOTH(last_results_are_remembered),
	    ON_BOTH(mistakes_are_refused_by_name),     TEST(launches_are_counted),
	};
	return RUN_TESTS(argc, argv, cases);
}
