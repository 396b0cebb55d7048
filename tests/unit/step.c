/* The step object: the same bits as the three calls it stands for, however its steps are launched.
 * On a GPU its steps are captured; on a CPU they run call by call through the same functions, and
 * on a CPU that pretends to capture (capturing.h) as on a GPU. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/tape.h"
#include "harness.h"
#include "unit/capturing.h"

enum { N = 200, M = 1600, D = 12, C = 4, STEPS = 50, WEIGHTS = 8192 };

struct rig {
	hg_context *ctx;
	hg_model_input input;
	hg_graph *graph;
	hg_tensor *x, *label;
	hg_params *params;
	hg_model *model;
	hg_tape *tape;
	hg_var loss;
	hg_optim *optim;
	hg_step *step;
};

/* The devices that every case runs on. */
typedef hg_context *(*open_fn)(void);
static const open_fn devices[] = {test_context, capturing_context};

static void make_data(struct rig *r)
{
	static int32_t dst[M], src[M], label[N];
	static float x[N][D];
	test_reseed(21);
	for (int e = 0; e < M; e++) {
		dst[e] = (int32_t)(e % 5 ? test_below(N) : 0); /* a hub */
		src[e] = (int32_t)test_below(N);
	}
	for (int i = 0; i < N; i++) {
		label[i] = i % 7 ? i % C : -1;
		for (int c = 0; c < D; c++)
			x[i][c] = (float)(test_normal() + (c % C == i % C ? 1.0 : 0.0));
	}
	CHECK_OK(hg_graph_from_coo(r->ctx, N, N, M, dst, src, NULL, NULL, &r->graph));
	CHECK_OK(hg_tensor_create(r->ctx, HG_F16, N, D, &r->x));
	CHECK_OK(hg_tensor_upload(r->x, x, HG_F32));
	CHECK_OK(hg_tensor_create(r->ctx, HG_I32, N, 1, &r->label));
	CHECK_OK(hg_tensor_upload(r->label, label, HG_I32));
}

/* A model, its tape and optimiser; takes the context. scale 0: the policy's own. */
static void rig_open(struct rig *r, hg_context *ctx, const char *name, float scale)
{
	hg_policy policy = hg_policy_fp16();
	hg_model_config config = hg_model_config_default(name);
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	memset(r, 0, sizeof *r);
	r->ctx = ctx;
	make_data(r);
	if (scale > 0.0f) {
		policy.loss_scale.init_scale = policy.loss_scale.max_scale = scale;
		policy.loss_scale.growth_interval = 7;
	}
	config.in_features = D;
	config.out_features = C;
	config.hidden = 8;
	config.heads = 3;
	adam.weight_decay = 5e-4f;
	r->input = (hg_model_input)HG_MODEL_INPUT_INIT;
	r->input.graph = r->graph;
	r->input.x = r->x;
	CHECK_OK(hg_params_create(ctx, &policy, &r->params));
	CHECK_OK(hg_model_create(r->params, &config, &r->model));
	CHECK_OK(hg_tape_create(r->params, HG_TRAIN, &r->tape));
	r->loss = hg_softmax_xent(r->tape, hg_model_record(r->model, r->tape, &r->input),
	                          hg_tape_input(r->tape, r->label, "labels", -1.0), HG_NONE);
	CHECK_MSG(hg_tape_compile(r->tape, r->loss) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_OK(hg_optim_create(r->params, &adam, &r->optim));
}

static void rig_close(struct rig *r)
{
	hg_step_free(r->step);
	hg_optim_free(r->optim);
	hg_tape_free(r->tape);
	hg_model_free(r->model);
	hg_params_free(r->params);
	hg_tensor_free(r->x);
	hg_tensor_free(r->label);
	hg_graph_free(r->graph);
	hg_context_free(r->ctx);
}

static void rig_step(struct rig *r, int eager, int per_launch)
{
	hg_step_config config = HG_STEP_CONFIG_INIT;
	config.eager = eager;
	config.per_launch = per_launch;
	CHECK_OK(hg_step_create(r->tape, r->optim, &config, &r->step));
}

/* What a run leaves: results of every step, weights and running statistics at the end. */
struct trace {
	int steps;
	double loss[STEPS];
	hg_step_info info[STEPS];
	/* name of the first parameter whose gradient was not finite; the one in info goes with the
	 * parameters */
	char first[STEPS][32];
	int64_t weights;
	float weight[WEIGHTS];
};

static void trace_weights(struct trace *t, const struct rig *r)
{
	t->weights = 0;
	for (int64_t i = 0; i < hg_params_count(r->params); i++) {
		const hg_tensor *master = hg_param_master(hg_params_at(r->params, i));
		const int64_t count = hg_tensor_rows(master) * hg_tensor_cols(master);
		CHECK(t->weights + count <= WEIGHTS);
		CHECK_OK(hg_tensor_download(master, t->weight + t->weights, HG_F32));
		t->weights += count;
	}
}

static void same_info(const hg_step_info *a, const hg_step_info *b, const char *what, int step)
{
	CHECK_MSG(a->applied == b->applied && a->reason == b->reason &&
	              a->loss_scale == b->loss_scale && a->nonfinite == b->nonfinite &&
	              a->steps == b->steps && a->skipped == b->skipped &&
	              memcmp(&a->grad_norm, &b->grad_norm, sizeof a->grad_norm) == 0,
	          "%s: outcome of step %d: %s, scale %g, norm %.17g, %lld bad; %s, scale %g, norm "
	          "%.17g, %lld bad",
	          what, step, hg_step_reason_text(a->reason), (double)a->loss_scale, a->grad_norm,
	          (long long)a->nonfinite, hg_step_reason_text(b->reason), (double)b->loss_scale,
	          b->grad_norm, (long long)b->nonfinite);
}

static void same_trace(const struct trace *a, const struct trace *b, const char *what)
{
	CHECK_EQ_I(a->steps, b->steps);
	CHECK_EQ_I(a->weights, b->weights);
	for (int i = 0; i < a->steps; i++) {
		CHECK_MSG(memcmp(&a->loss[i], &b->loss[i], sizeof a->loss[i]) == 0,
		          "%s: loss of step %d: %.17g, %.17g", what, i, a->loss[i], b->loss[i]);
		same_info(&a->info[i], &b->info[i], what, i);
		CHECK_STR(a->first[i], b->first[i]);
	}
	CHECK_MSG(memcmp(a->weight, b->weight, (size_t)a->weights * sizeof(float)) == 0, "%s: weights",
	          what);
}

/* The entry of the next step. */
static hg_step_info *next_info(struct trace *t)
{
	const hg_step_info none = HG_STEP_INFO_INIT;
	t->info[t->steps] = none;
	return &t->info[t->steps];
}

static void finish_entry(struct trace *t)
{
	const char *first = t->info[t->steps].first_nonfinite;
	(void)snprintf(t->first[t->steps], sizeof t->first[0], "%s", first ? first : "");
	t->steps++;
}

/* One step by the three calls. */
static void plain_step(struct rig *r, struct trace *t)
{
	CHECK_OK(hg_tape_forward(r->tape));
	CHECK_OK(hg_tape_backward(r->tape));
	CHECK_OK(hg_optim_step(r->optim));
	CHECK_OK(hg_tape_scalar(r->tape, r->loss, &t->loss[t->steps]));
	CHECK_OK(hg_optim_info(r->optim, next_info(t)));
	finish_entry(t);
}

static void step_run(struct rig *r, struct trace *t, int count)
{
	CHECK_MSG(hg_step_run(r->step, count) == HG_OK, "%s", hg_context_error(r->ctx));
	for (int i = 0; i < count; i++) {
		CHECK_OK(hg_step_read(r->step, count - 1 - i, &t->loss[t->steps], next_info(t)));
		finish_entry(t);
	}
}

static int captures(const struct rig *r)
{
	return r->ctx->backend->capture_begin != NULL;
}

/* Did the last step run as it should on this device? */
static void check_launch(const struct rig *r, int captured)
{
	hg_step_launch launch = HG_STEP_LAUNCH_INIT;
	CHECK_OK(hg_step_get_launch(r->step, &launch));
	CHECK_EQ_I(launch.captured, captured && captures(r));
	CHECK(!launch.captured || (launch.operations > 0 && launch.per_launch > 0));
}

/* Ways to make 50 steps; count 0 ends the list, the last count repeats. */
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

static void trace_plain(struct trace *t, open_fn open, const char *model, float scale)
{
	struct rig r;
	rig_open(&r, open(), model, scale);
	t->steps = 0;
	while (t->steps < STEPS)
		plain_step(&r, t);
	trace_weights(t, &r);
	rig_close(&r);
}

/* Dropout, batch norm's running statistics, Adam's bias correction: whatever counts steps must
 * count them alike. */
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
			same_trace(&plain, &other, ways[w].name);
		}
	}
}

/* A loss scale that overflows at first, backs off, and grows into the next overflow every few
 * steps. */
static void skipped_steps_are_skipped_alike(const void *item)
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
			same_trace(&plain, &other, ways[w].name);
		}
	}
}

/* ---- what changes between runs ---- */

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

/* Another tape, a hundred times as wide: its scratch moves the workspace that captured kernels
 * point to. */
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

/* The same events, by the three calls (no step object) or by runs of a step object. */
static void eventful_run(struct trace *t, open_fn open, int with_step)
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
		if (phase == 2) { /* the group table moves */
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
		if (phase == 6) /* a step of another kind in between */
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
	/* as after any step: forward comes first */
	CHECK_STATUS(hg_tape_backward(r.tape), HG_ERR_STATE);
	trace_weights(t, &r);
	hg_tensor_free(wide);
	rig_close(&r);
}

static void changes_between_runs_are_noticed(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static struct trace plain, stepped;
	eventful_run(&plain, open, 0);
	eventful_run(&stepped, open, 1);
	same_trace(&plain, &stepped, "with events");
}

/* ---- a device that cannot capture after all ---- */

struct refusal {
	int begun, dropped, warned;
};
static struct refusal refusal; /* the backend's functions know nothing but the context */

static hg_status begin_refused(hg_context *ctx)
{
	refusal.begun++;
	return hg__fail(ctx, HG_ERR_DEVICE, "capture: somebody else's stream");
}

static hg_status begin_accepted(hg_context *ctx)
{
	(void)ctx;
	refusal.begun++;
	return HG_OK;
}

/* What was caught cannot be made ready; or was not wanted. */
static hg_status end_refused(hg_context *ctx, void **work, int64_t *operations)
{
	if (!work) {
		refusal.dropped++;
		return HG_OK;
	}
	*work = NULL;
	*operations = 0;
	return hg__fail(ctx, HG_ERR_NOMEM, "captured work: no memory");
}

static void note_warning(void *user, hg_log_level level, const char *text)
{
	struct refusal *seen = user;
	if (level != HG_LOG_WARN)
		return;
	seen->warned++;
	CHECK_CONTAINS(text, "step: 1 could not be captured and will be queued call by call: capture");
}

/* Such a backend in front of the context's own, which keeps running the kernels. */
static void refuse_captures(struct rig *r, struct hg__backend *backend,
                            hg_status (*begin)(hg_context *))
{
	*backend = *r->ctx->backend;
	backend->capture_begin = begin;
	backend->capture_end = end_refused;
	r->ctx->backend = backend;
	r->ctx->log = note_warning;
	r->ctx->log_user = &refusal;
	r->ctx->log_level = HG_LOG_WARN;
	refusal = (struct refusal){0, 0, 0};
}

/* The capture is given up once and for all, with one line of the log, and every step runs. */
static void a_refused_capture_changes_nothing(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static struct trace plain, other;
	struct rig r;
	struct hg__backend backend;
	trace_plain(&plain, open, "gcn", 0.0f);
	rig_open(&r, open(), "gcn", 0.0f);
	rig_step(&r, 0, 8);
	refuse_captures(&r, &backend, begin_refused);
	other.steps = 0;
	step_run(&r, &other, 1);
	CHECK_EQ_I(refusal.begun, 0); /* the first step comes before any capture */
	step_run(&r, &other, STEPS - 1);
	trace_weights(&other, &r);
	CHECK(refusal.begun == 1 && refusal.warned == 1 && refusal.dropped == 0);
	same_trace(&plain, &other, "refused");
	hg_step_launch launch = HG_STEP_LAUNCH_INIT;
	CHECK_OK(hg_step_get_launch(r.step, &launch));
	CHECK(!launch.captured && launch.operations == 0);
	rig_close(&r);
}

/* A kernel that fails while it is captured: what was caught is dropped, and the failure is reported
 * by the run that follows. */
static hg_status failing_gemm(hg_context *ctx, const struct hg__gemm_args *args)
{
	(void)args;
	return hg__fail(ctx, HG_ERR_DEVICE, "captured gemm: no such luck");
}

static void a_failure_while_capturing_is_reported(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	struct rig r;
	struct hg__backend backend;
	rig_open(&r, open(), "gcn", 0.0f);
	rig_step(&r, 0, 0);
	CHECK_OK(hg_step_run(r.step, 1));
	refuse_captures(&r, &backend, begin_accepted);
	struct hg__kernels kernels = *r.ctx->backend->kernels;
	kernels.gemm = failing_gemm;
	for (int64_t i = 0; i < r.tape->forwards; i++)
		r.tape->forward[i].call.k = &kernels;
	CHECK_STATUS(hg_step_run(r.step, 1), HG_ERR_DEVICE);
	CHECK_CONTAINS(hg_context_error(r.ctx), "no such luck");
	CHECK(refusal.begun == 1 && refusal.dropped == 1 && refusal.warned == 1);
	rig_close(&r);
}

/* ---- results ---- */

static void the_last_results_are_remembered(const void *item)
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

static void mistakes_are_named(const void *item)
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
	/* captured or not, the optimiser does not know it */
	CHECK_OK(hg_params_add(r.params, "late", 1, 1, HG_INIT_ONES, 0, &late));
	CHECK_STATUS(hg_step_run(r.step, 1), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(r.ctx), "when the optimiser was made");
	hg_tape_free(tape);
	hg_optim_free(foreign);
	hg_params_free(others);
	rig_close(&r);
}

/* What a GPU forbids in a capture breaks the pretended one: the step goes on call by call. */
static hg_status waiting_fill(hg_context *ctx, void *memory, int byte, size_t bytes)
{
	HG__TRY(hg_context_synchronize(ctx));
	return capturing.real->fill(ctx, memory, byte, bytes);
}

static void a_wait_breaks_a_capture(void)
{
	struct rig r;
	hg_param *unused = NULL;
	rig_open(&r, capturing_context(), "gcn", 0.0f);
	hg_optim_free(r.optim);
	hg_tape_free(r.tape);
	/* its gradient is filled with 0 in every step */
	CHECK_OK(hg_params_add(r.params, "unused", 3, 3, HG_INIT_ONES, 0, &unused));
	CHECK_OK(hg_tape_create(r.params, HG_TRAIN, &r.tape));
	const hg_var logits = hg_model_record(r.model, r.tape, &r.input);
	(void)hg_tape_param(r.tape, unused);
	r.loss =
	    hg_softmax_xent(r.tape, logits, hg_tape_input(r.tape, r.label, "labels", -1.0), HG_NONE);
	CHECK_OK(hg_tape_compile(r.tape, r.loss));
	const hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	CHECK_OK(hg_optim_create(r.params, &adam, &r.optim));
	rig_step(&r, 0, 4);
	capturing.backend.fill = waiting_fill;
	CHECK_OK(hg_step_run(r.step, 20));
	CHECK(capturing.captures == 1 && capturing.launches == 0 && capturing.kept == 0);
	rig_close(&r);
}

/* Several steps go in one launch, and what was captured is given back. */
static void launches_are_counted(void)
{
	struct rig r;
	rig_open(&r, capturing_context(), "gat", 0.0f);
	rig_step(&r, 0, 8);
	CHECK_OK(hg_step_run(r.step, 1 + 3 * 8 + 5)); /* the first call by call */
	CHECK(capturing.captures == 2 && capturing.launches == 3 + 5 && capturing.kept == 2);
	rig_close(&r);
	CHECK_EQ_I(capturing.kept, 0);
}

#define ON_BOTH(function)                                \
	{#function, 0, function, &devices[0]},               \
	{                                                    \
#function ".capturing", 0, function, &devices[1] \
	}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    ON_BOTH(every_way_gives_the_same_bits),
	    ON_BOTH(skipped_steps_are_skipped_alike),
	    ON_BOTH(changes_between_runs_are_noticed),
	    ON_BOTH(a_refused_capture_changes_nothing),
	    ON_BOTH(a_failure_while_capturing_is_reported),
	    ON_BOTH(the_last_results_are_remembered),
	    ON_BOTH(mistakes_are_named),
	    TEST(a_wait_breaks_a_capture),
	    TEST(launches_are_counted),
	};
	return RUN_TESTS(argc, argv, cases);
}
