/* The device memory of a training run. Its peak is what the plan says before the run, and a run
 * that lacks memory is refused before it starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "core/csr.h"
#include "graphs.h"
#include "halfgraph/ops.h"
#include "halfgraph/train.h"
#include "harness.h"

enum { NODES = 3000, DEGREE = 180, EDGES = NODES * DEGREE, FEATURES = 60, CLASSES = 11 };

struct scene {
	hg_context *ctx;
	hg_graph *graph;
	hg_tensor *x;
	int32_t *label;
	hg_train *train;
};

static hg_context *limited_context(size_t limit)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.memory_limit = limit;
	return test_context_with(config);
}

/* A directed graph, of which both orientations are needed. With `symmetric` nonzero, a graph with
 * half of these edges in both directions. */
static void scene_data(struct scene *s, hg_context *ctx, hg_dtype state, int symmetric)
{
	struct coo edges = coo_empty(NODES, NODES);
	float *x = calloc((size_t)NODES * FEATURES, sizeof *x);
	memset(s, 0, sizeof *s);
	s->ctx = ctx;
	s->label = calloc(NODES, sizeof *s->label);
	CHECK(x && s->label);
	for (int e = 0; e < EDGES; e++) {
		const int pair = symmetric ? e / 2 : e, back = symmetric && e % 2;
		const int32_t i = (int32_t)((int64_t)pair * 7919 % NODES),
		              j = (int32_t)((int64_t)pair * 104729 % 2999 * (pair % 17) % NODES);
		coo_add(&edges, back ? j : i, back ? i : j);
	}
	for (int i = 0; i < NODES * FEATURES; i++)
		x[i] = (float)test_normal();
	for (int i = 0; i < NODES; i++)
		s->label[i] = i % CLASSES;
	s->graph = coo_graph(ctx, edges);
	CHECK_OK(hg_tensor_create(ctx, state, NODES, FEATURES, &s->x));
	CHECK_OK(hg_tensor_upload(s->x, x, HG_F32));
	free(x);
}

static hg_status scene_train(struct scene *s, const char *model)
{
	hg_train_config c = hg_train_config_default(model);
	hg_train_data d = HG_TRAIN_DATA_INIT;
	CHECK_OK(hg_policy_parse("fp16", &c.policy));
	c.epochs = 2;
	c.model.hidden = 16;
	c.model.heads = 1;
	d.input.graph = s->graph;
	d.input.x = s->x;
	d.labels = s->label;
	return hg_train_create(s->ctx, &c, &d, &s->train);
}

static void scene_close(struct scene *s)
{
	hg_train_free(s->train);
	hg_tensor_free(s->x);
	hg_graph_free(s->graph);
	free(s->label);
	hg_context_free(s->ctx);
}

static void show(void *user, const char *line)
{
	(void)user;
	puts(line);
}

/* The peak of a run is what the plan says, within a tenth. */
static void peak_is_what_the_plan_says(void)
{
	for (const char *const *model = hg_model_names(); *model; model++)
		for (int symmetric = 0; symmetric < 2; symmetric++) {
			struct scene s;
			hg_plan_info info = HG_PLAN_INFO_INIT;
			hg_train_report report = HG_TRAIN_REPORT_INIT;
			scene_data(&s, test_context(), HG_F16, symmetric);
			CHECK_OK(scene_train(&s, *model));
			CHECK_OK(hg_tape_plan(hg_train_tape(s.train), &info));
			if (getenv("HG_TEST_SHOW"))
				CHECK_OK(hg_tape_print(hg_train_tape(s.train), show, NULL));
			CHECK_OK(hg_train_run(s.train, &report));
			const double ratio = (double)report.peak_bytes / (double)info.total_bytes;
			test_note("%s%s: peak %zu, plan %zu (graphs %zu, arena %zu), ratio %.3f", *model,
			          symmetric ? ", symmetric" : "", report.peak_bytes, info.total_bytes,
			          info.graph_bytes, info.arena_bytes, ratio);
			CHECK(ratio >= 0.9 && ratio <= 1.1);
			CHECK_EQ_I(info.total_bytes, info.graph_bytes + info.input_bytes + info.param_bytes +
			                                 info.arena_bytes + info.workspace_bytes +
			                                 info.library_bytes + info.observer_bytes +
			                                 info.other_bytes);
			scene_close(&s);
		}
}

/* A symmetric graph keeps one CSR and one plan. A directed graph keeps both orientations, but,
 * without weights, no map of edges. */
static void graphs_keep_only_what_they_need(void)
{
	const size_t csr = (NODES + 1) * sizeof(int64_t) + EDGES * sizeof(int32_t),
	             factors = 2 * NODES * sizeof(float);
	const size_t parts =
	    /* At most one part for each row, and less than one for each item, which has 64 edges here,
	     * or 32 beside a cut. */
	    (NODES + EDGES / 32) * sizeof(struct hg__plan_part);
	/* for the plan, which is large here because its items are short */
	const size_t slack = csr / 6;
	for (int symmetric = 0; symmetric < 2; symmetric++) {
		struct scene s;
		hg_plan_info info = HG_PLAN_INFO_INIT;
		scene_data(&s, test_context(), HG_F16, symmetric);
		CHECK_OK(scene_train(&s, "gcn"));
		CHECK_OK(hg_tape_plan(hg_train_tape(s.train), &info));
		CHECK(info.graph_bytes <= (symmetric ? 1 : 2) * (csr + parts) + factors + slack);
		scene_close(&s);
	}
}

/* The limit is more than what is allocated when the tape compiles, and less than what the run
 * needs. Separate ops need most: they keep numbers for each edge. */
static void run_without_memory_is_refused_at_once(void)
{
	struct scene s;
	hg_plan_info info = HG_PLAN_INFO_INIT;
	scene_data(&s, test_context(), HG_F16, 0);
	s.ctx->separate_ops = 1;
	CHECK_OK(scene_train(&s, "gat"));
	CHECK_OK(hg_tape_plan(hg_train_tape(s.train), &info));
	const size_t enough = s.ctx->peak_bytes + info.library_bytes;
	scene_close(&s);
	scene_data(&s, limited_context(enough), HG_F16, 0);
	s.ctx->separate_ops = 1;
	CHECK_OK(scene_train(&s, "gat"));
	scene_close(&s);
	scene_data(&s, limited_context(enough - info.arena_bytes), HG_F16, 0);
	s.ctx->separate_ops = 1;
	const size_t before = s.ctx->current_bytes;
	CHECK_STATUS(scene_train(&s, "gat"), HG_ERR_NOMEM);
	test_note("%s", hg_context_error(s.ctx));
	CHECK_CONTAINS(hg_context_error(s.ctx), "are free; largest: ");
	CHECK_CONTAINS(hg_context_error(s.ctx), "f16 [540000, 1] 1080064");
	CHECK_EQ_I(s.ctx->current_bytes - s.ctx->workspace_bytes, before);
	scene_close(&s);
}

/* The limit holds for every allocation. */
static void memory_limit_holds_for_every_allocation(void)
{
	hg_context *ctx = limited_context(1000000);
	hg_tensor *one = NULL, *two = NULL;
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 1000, 200, &one));
	CHECK_STATUS(hg_tensor_create(ctx, HG_F32, 1000, 200, &two), HG_ERR_NOMEM);
	CHECK_CONTAINS(hg_context_error(ctx), "no device memory for f32 [1000, 200]");
	hg_tensor_free(one);
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 1000, 200, &two));
	hg_tensor_free(two);
	hg_context_free(ctx);
}

/* Host memory does not count where it is other memory than the device's. */
static void memory_limit_does_not_hold_for_pinned_host_memory(void)
{
	hg_context *ctx = limited_context(1000000);
	hg_tensor *tensor = NULL;
	const hg_status status = hg_tensor_create_on_host(ctx, HG_F32, 1000, 2000, &tensor);
	if (hg_context_device(ctx) == HG_DEVICE_CPU) {
		CHECK_STATUS(status, HG_ERR_NOMEM);
		CHECK_CONTAINS(hg_context_error(ctx), "no device memory for f32 [1000, 2000]");
	} else {
		CHECK_OK(status);
		CHECK_EQ_I(ctx->current_bytes, 0);
	}
	hg_tensor_free(tensor);
	hg_context_free(ctx);
}

/* A machine that has less memory than the program asks for, and whose system would still promise
 * it. */
enum { THERE_IS = 40 << 20 };
static hg_status little_memory(hg_context *ctx, size_t *total, size_t *available)
{
	(void)ctx;
	*total = *available = THERE_IS;
	return HG_OK;
}

/* Parameters are allocated before the tape can count what a run needs. Where there is no memory for
 * one it is refused by name, since the system would otherwise end the program when it writes
 * there. */
static void weights_beyond_the_memory_are_refused(void)
{
	hg_context *ctx = test_context();
	if (hg_context_device(ctx) != HG_DEVICE_CPU) { /* a GPU refuses such an allocation itself */
		hg_context_free(ctx);
		return;
	}
	struct hg__backend small = *ctx->backend;
	const struct hg__backend *real = ctx->backend;
	hg_params *params = NULL;
	void *memory = NULL;
	small.memory = little_memory;
	CHECK_OK(hg_params_create(ctx, NULL, &params));
	ctx->backend = &small;
	CHECK_OK(hg_params_add(params, "fits", 1024, 4096, HG_INIT_ZEROS, 0, NULL));
	CHECK_STATUS(hg_params_add(params, "conv0.weight", 4096, 4096, HG_INIT_ZEROS, 0, NULL),
	             HG_ERR_NOMEM);
	test_note("%s", hg_context_error(ctx));
	CHECK_CONTAINS(hg_context_error(ctx), "no device memory for f32 [4096, 4096], 67108864 bytes");
	CHECK_EQ_I(hg_params_count(params), 1);
	CHECK_STATUS(hg__host_alloc(ctx, THERE_IS + 1, 1, "values", &memory), HG_ERR_NOMEM);
	CHECK_CONTAINS(hg_context_error(ctx), "values: no host memory for 41943041 bytes");
	CHECK_OK(hg__host_alloc(ctx, THERE_IS, 1, "values", &memory));
	hg__host_free(ctx, memory, THERE_IS);
	ctx->backend = real;
	hg_params_free(params);
	hg_context_free(ctx);
}

/* The backward pass of leaky relu computes the scores of edges again, unless the tape keeps them.
 * The gradients have the same bits either way. */
static void recomputed_scores_give_the_same_gradients(void)
{
	struct scene s;
	hg_params *params = NULL;
	hg_param *w = NULL;
	hg_policy policy = hg_policy_fp16();
	float *dw[2];
	size_t arena[2];
	scene_data(&s, test_context(), HG_F16, 0);
	CHECK_OK(hg_params_create(s.ctx, &policy, &params));
	CHECK_OK(hg_params_add(params, "w", FEATURES, 16, HG_INIT_GLOROT_UNIFORM, 0, &w));
	for (int kept = 0; kept < 2; kept++) {
		hg_tape *tape = NULL;
		CHECK_OK(hg_tape_create(params, HG_TRAIN, &tape));
		const hg_var u =
		    hg_linear(tape, hg_tape_input(tape, s.x, "x", -1.0), hg_tape_param(tape, w), HG_NONE);
		const hg_var score =
		    hg_sddmm_add(tape, s.graph, hg_head_mean(tape, u, 16), hg_head_mean(tape, u, 16));
		hg_tape_observe(tape, 0); /* with the observer, the arena would have room for both */
		if (kept)
			hg_tape_keep(tape, score);
		const hg_var p = hg_edge_softmax(tape, s.graph, hg_leaky_relu(tape, score, 0.2f));
		const hg_var y = hg_spmm(tape, s.graph, u, p, HG_NORM_NONE, 1.0f);
		CHECK_OK(hg_tape_compile(tape, hg_mse(tape, y, hg_scale(tape, u, 0.5f), HG_NONE)));
		CHECK_OK(hg_tape_forward(tape));
		CHECK_OK(hg_tape_backward(tape));
		dw[kept] = calloc((size_t)FEATURES * 16, sizeof(float));
		CHECK(dw[kept] != NULL);
		CHECK_OK(hg_tensor_download(hg_param_grad(w), dw[kept], HG_F32));
		arena[kept] = tape->plan.arena_bytes;
		CHECK_EQ_I(tape->plan.recomputes, !kept);
		hg_tape_free(tape);
	}
	CHECK(memcmp(dw[0], dw[1], (size_t)FEATURES * 16 * sizeof(float)) == 0);
	test_note("arena %zu, with the scores kept %zu", arena[0], arena[1]);
	CHECK(arena[0] + (size_t)EDGES * sizeof(hg_half) * 9 / 10 <= arena[1]);
	free(dw[0]);
	free(dw[1]);
	hg_params_free(params);
	scene_close(&s);
}

/* A tape for evaluation can use the arena of the training tape. Both give the same results as in
 * arenas of their own, and each overwrites the values of the other. */
static void tapes_share_an_arena(void)
{
	struct scene s;
	hg_params *params = NULL;
	hg_param *w = NULL;
	hg_policy policy = hg_policy_fp16();
	hg_tape *tape[3] = {NULL};
	double value[3];
	float *y[3];
	hg_var out[3];
	scene_data(&s, test_context(), HG_F16, 0);
	CHECK_OK(hg_params_create(s.ctx, &policy, &params));
	CHECK_OK(hg_params_add(params, "w", FEATURES, 16, HG_INIT_GLOROT_UNIFORM, 0, &w));
	/* the owner of the arena, a tape that uses it too, and one with an arena of its own */
	for (int i = 0; i < 3; i++) {
		y[i] = calloc((size_t)NODES * 16, sizeof(float));
		CHECK_OK(hg_tape_create(params, i ? HG_EVAL : HG_TRAIN, &tape[i]));
		const hg_var u = hg_linear(tape[i], hg_tape_input(tape[i], s.x, "x", -1.0),
		                           hg_tape_param(tape[i], w), HG_NONE);
		const hg_var h =
		    hg_spmm(tape[i], s.graph, hg_relu(tape[i], u), HG_NONE, HG_NORM_RIGHT, 1.0f);
		out[i] = i ? h : hg_mse(tape[i], h, hg_scale(tape[i], u, 0.5f), HG_NONE);
		hg_tape_keep(tape[i], out[i]);
		if (i == 1)
			hg__tape_borrow(tape[1], tape[0]);
		const size_t before = s.ctx->current_bytes - s.ctx->workspace_bytes;
		CHECK_OK(hg_tape_compile(tape[i], out[i]));
		if (i == 1)
			CHECK(tape[1]->program.arena.data == tape[0]->program.arena.data &&
			      s.ctx->current_bytes - s.ctx->workspace_bytes <
			          before + tape[1]->plan.arena_bytes);
	}
	for (int turn = 0; turn < 3; turn++) {
		CHECK_OK(hg_tape_forward(tape[0]));
		CHECK_OK(hg_tape_scalar(tape[0], out[0], &value[turn]));
		CHECK_EQ_I(memcmp(&value[turn], &value[0], sizeof value[0]), 0);
		for (int i = 1; i < 3; i++) {
			CHECK_OK(hg_tape_forward(tape[i]));
			CHECK_OK(hg_tensor_download(hg_tape_value(tape[i], out[i]), y[i], HG_F32));
		}
		CHECK_EQ_I(memcmp(y[1], y[2], (size_t)NODES * 16 * sizeof(float)), 0);
		CHECK_STATUS(hg_tape_backward(tape[0]), HG_ERR_STATE);
	}
	for (int i = 2; i >= 0; i--) {
		hg_tape_free(tape[i]);
		free(y[i]);
	}
	hg_params_free(params);
	scene_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(peak_is_what_the_plan_says),
	    TEST(graphs_keep_only_what_they_need),
	    TEST(run_without_memory_is_refused_at_once),
	    TEST(memory_limit_holds_for_every_allocation),
	    TEST(memory_limit_does_not_hold_for_pinned_host_memory),
	    TEST(weights_beyond_the_memory_are_refused),
	    TEST(recomputed_scores_give_the_same_gradients),
	    TEST(tapes_share_an_arena),
	};
	return RUN_TESTS(argc, argv, cases);
}
