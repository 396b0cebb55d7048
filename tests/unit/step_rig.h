#ifndef HG_TESTS_STEP_RIG_H
#define HG_TESTS_STEP_RIG_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/tape.h"
#include "halfgraph/model.h"
#include "halfgraph/ops_norm.h"
#include "halfgraph/step.h"
#include "planted.h"
#include "unit/capturing.h"

/* What the tests of the step object share: a model with its tape and optimiser, and a trace of a
 * run. On a GPU steps are captured. On a CPU the same functions run them call by call, and on the
 * CPU of capturing.h as on a GPU. */

enum { N = 200, M = 1600, D = 12, C = 4, STEPS = 50, WEIGHTS = 1 << 17 };

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

static inline void make_data(struct rig *r)
{
	test_reseed(21);
	const struct planted_features features = {.noise = 1.0, .signal = 1.0};
	struct planted task = planted_make(coo_hub(N, M, 5, 0), D, C, features);
	for (int i = 0; i < N; i += 7)
		task.label[i] = -1;
	r->graph = coo_to_graph(r->ctx, &task.edges);
	CHECK_OK(hg_tensor_create(r->ctx, HG_F16, N, D, &r->x));
	CHECK_OK(hg_tensor_upload(r->x, task.x, HG_F32));
	CHECK_OK(hg_tensor_create(r->ctx, HG_I32, N, 1, &r->label));
	CHECK_OK(hg_tensor_upload(r->label, task.label, HG_I32));
	planted_free(&task);
}

/* Makes a model, its tape and its optimiser. seed: of the params; 0: the context's. */
static inline void rig_model(struct rig *r, const char *name, float scale, uint64_t seed)
{
	hg_context *ctx = r->ctx;
	hg_policy policy = hg_policy_fp16();
	hg_model_config config = hg_model_config_default(name);
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
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
	if (seed)
		CHECK_OK(hg_params_set_seed(r->params, seed));
	CHECK_OK(hg_model_create(r->params, &config, &r->model));
	CHECK_OK(hg_tape_create(r->params, HG_TRAIN, &r->tape));
	r->loss = hg_softmax_xent(r->tape, hg_model_record(r->model, r->tape, &r->input),
	                          hg_tape_input(r->tape, r->label, "labels", -1.0), HG_NONE);
	CHECK_MSG(hg_tape_compile(r->tape, r->loss) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_OK(hg_optim_create(r->params, &adam, &r->optim));
}

/* Takes the context. scale: the loss scale at the start; 0: the default of the policy. */
static inline void rig_open(struct rig *r, hg_context *ctx, const char *name, float scale)
{
	memset(r, 0, sizeof *r);
	r->ctx = ctx;
	make_data(r);
	rig_model(r, name, scale, 0);
}

/* One more model on the context and the data of another one, which is closed after it. */
static inline void rig_join(struct rig *r, const struct rig *of, const char *name, float scale,
                            uint64_t seed)
{
	*r = (struct rig){.ctx = of->ctx, .graph = of->graph, .x = of->x, .label = of->label};
	rig_model(r, name, scale, seed);
}

static inline void rig_leave(struct rig *r)
{
	hg_step_free(r->step);
	hg_optim_free(r->optim);
	hg_tape_free(r->tape);
	hg_model_free(r->model);
	hg_params_free(r->params);
}

static inline void rig_close(struct rig *r)
{
	rig_leave(r);
	hg_tensor_free(r->x);
	hg_tensor_free(r->label);
	hg_graph_free(r->graph);
	hg_context_free(r->ctx);
}

static inline void rig_step(struct rig *r, int eager, int per_launch)
{
	hg_step_config config = HG_STEP_CONFIG_INIT;
	config.eager = eager;
	config.per_launch = per_launch;
	CHECK_OK(hg_step_create(r->tape, r->optim, &config, &r->step));
}

/* The results of a run: loss and outcome of every step, weights and running statistics at the
 * end. */
struct trace {
	int steps;
	double loss[STEPS];
	hg_step_info info[STEPS];
	/* Name of the first parameter whose gradient was not finite. The pointer in `info` is valid
	 * only while the parameters live. */
	char first[STEPS][32];
	int64_t weights;
	float weight[WEIGHTS];
};

static inline void trace_weights(struct trace *t, const struct rig *r)
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

static inline void check_same_info(const hg_step_info *a, const hg_step_info *b, const char *what,
                                   int step)
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

static inline void check_same_trace(const struct trace *a, const struct trace *b, const char *what)
{
	CHECK_EQ_I(a->steps, b->steps);
	CHECK_EQ_I(a->weights, b->weights);
	for (int i = 0; i < a->steps; i++) {
		CHECK_MSG(memcmp(&a->loss[i], &b->loss[i], sizeof a->loss[i]) == 0,
		          "%s: loss of step %d: %.17g, %.17g", what, i, a->loss[i], b->loss[i]);
		check_same_info(&a->info[i], &b->info[i], what, i);
		CHECK_STR(a->first[i], b->first[i]);
	}
	CHECK_MSG(memcmp(a->weight, b->weight, (size_t)a->weights * sizeof(float)) == 0, "%s: weights",
	          what);
}

/* Where the outcome of the next step goes. */
static inline hg_step_info *next_info(struct trace *t)
{
	const hg_step_info none = HG_STEP_INFO_INIT;
	t->info[t->steps] = none;
	return &t->info[t->steps];
}

static inline void finish_step(struct trace *t)
{
	const char *first = t->info[t->steps].first_nonfinite;
	(void)snprintf(t->first[t->steps], sizeof t->first[0], "%s", first ? first : "");
	t->steps++;
}

/* One step by the three calls that a step object stands for: forward, backward, update. */
static inline void plain_step(struct rig *r, struct trace *t)
{
	CHECK_OK(hg_tape_forward(r->tape));
	CHECK_OK(hg_tape_backward(r->tape));
	CHECK_OK(hg_optim_step(r->optim));
	CHECK_OK(hg_tape_scalar(r->tape, r->loss, &t->loss[t->steps]));
	CHECK_OK(hg_optim_info(r->optim, next_info(t)));
	finish_step(t);
}

static inline void step_run(struct rig *r, struct trace *t, int count)
{
	CHECK_MSG(hg_step_run(r->step, count) == HG_OK, "%s", hg_context_error(r->ctx));
	for (int i = 0; i < count; i++) {
		CHECK_OK(hg_step_read(r->step, count - 1 - i, &t->loss[t->steps], next_info(t)));
		finish_step(t);
	}
}

static inline int captures(const struct rig *r)
{
	return r->ctx->backend->capture_begin != NULL;
}

/* Checks whether the last step was captured, if it should be and the device can capture. */
static inline void check_launch(const struct rig *r, int captured)
{
	hg_step_launch launch = HG_STEP_LAUNCH_INIT;
	CHECK_OK(hg_step_get_launch(r->step, &launch));
	CHECK_EQ_I(launch.captured, captured && captures(r));
	CHECK(!launch.captured || (launch.operations > 0 && launch.per_launch > 0));
}

static inline void trace_plain(struct trace *t, open_fn open, const char *model, float scale)
{
	struct rig r;
	rig_open(&r, open(), model, scale);
	t->steps = 0;
	while (t->steps < STEPS)
		plain_step(&r, t);
	trace_weights(t, &r);
	rig_close(&r);
}

#endif
