#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "halfgraph/ops.h"
#include "halfgraph/optim.h"
#include "harness.h"

/* After a tape has compiled and an optimiser has been made, forward, backward and step ask the
 * memory hooks for nothing: neither scratch nor host memory. The sizes are those where teams of
 * threads, products cut into pieces and split rows are at work. */

static void *counted_alloc(void *user, size_t bytes, int device)
{
	(void)device;
	++*(int64_t *)user;
	return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void plain_free(void *user, void *memory, size_t bytes, int device)
{
	(void)user;
	(void)bytes;
	(void)device;
	free(memory);
}

enum { NODES = 4096, EDGES = 40000, FEATURES = 512, HIDDEN = 256, HEADS = 5, CLASSES = 10 };

struct bench {
	hg_context *ctx;
	hg_params *params;
	hg_tape *tape;
	hg_graph *graph;
	hg_tensor *x, *labels;
	int64_t calls;
};

/* Random edges, a third of them into node 0: rows that span many work items. */
static hg_graph *hub_graph(hg_context *ctx)
{
	return coo_graph(ctx, coo_hub(NODES, EDGES, 3, 0));
}

static void bench_open(struct bench *b, const char *policy_name)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_policy policy;
	memset(b, 0, sizeof *b);
	config.device = HG_DEVICE_CPU;
	config.threads = 2;
	config.allocator = (hg_allocator){counted_alloc, plain_free, &b->calls};
	CHECK_OK(hg_context_create(&config, &b->ctx));
	CHECK_OK(hg_policy_parse(policy_name, &policy));
	CHECK_OK(hg_params_create(b->ctx, &policy, &b->params));
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &b->tape));
	b->graph = hub_graph(b->ctx);
	float *x = calloc(NODES * FEATURES, sizeof *x);
	int32_t *label = calloc(NODES, sizeof *label);
	for (int64_t i = 0; i < NODES * FEATURES; i++)
		x[i] = (float)test_normal();
	for (int64_t i = 0; i < NODES; i++)
		label[i] = (int32_t)test_below(CLASSES);
	CHECK_OK(hg_tensor_create(b->ctx, policy.state, NODES, FEATURES, &b->x));
	CHECK_OK(hg_tensor_upload(b->x, x, HG_F32));
	CHECK_OK(hg_tensor_create(b->ctx, HG_I32, NODES, 1, &b->labels));
	CHECK_OK(hg_tensor_upload(b->labels, label, HG_I32));
	free(x);
	free(label);
}

static hg_var param(struct bench *b, const char *name, int64_t rows, int64_t cols, unsigned flags)
{
	hg_param *p = NULL;
	CHECK_OK(hg_params_add(b->params, name, rows, cols, HG_INIT_GLOROT_UNIFORM, flags, &p));
	return hg_tape_param(b->tape, p);
}

static hg_param *buffer(struct bench *b, const char *name, int64_t cols)
{
	hg_param *p = NULL;
	CHECK_OK(
	    hg_params_add(b->params, name, 1, cols, HG_INIT_ONES, HG_PARAM_F32 | HG_PARAM_BUFFER, &p));
	return p;
}

static hg_var gcn(struct bench *b, hg_var x)
{
	hg_var h = hg_linear(b->tape, hg_dropout(b->tape, x, 0.5f), param(b, "w1", FEATURES, HIDDEN, 0),
	                     param(b, "b1", 1, HIDDEN, 0));
	h = hg_relu(b->tape, hg_spmm(b->tape, b->graph, h, HG_NONE, HG_NORM_BOTH, 1.0f));
	return hg_spmm(b->tape, b->graph,
	               hg_linear(b->tape, h, param(b, "w2", HIDDEN, CLASSES, 0), HG_NONE), HG_NONE,
	               HG_NORM_BOTH, 1.0f);
}

static hg_var gin(struct bench *b, hg_var x)
{
	const hg_var sum = hg_spmm(b->tape, b->graph, x, HG_NONE, HG_NORM_RIGHT, 1.0f);
	hg_var h = hg_linear(b->tape, hg_combine(b->tape, x, sum, param(b, "eps", 1, 1, HG_PARAM_F32)),
	                     param(b, "w1", FEATURES, HIDDEN, 0), param(b, "b1", 1, HIDDEN, 0));
	h = hg_batch_norm(b->tape, h, param(b, "gamma", 1, HIDDEN, HG_PARAM_F32),
	                  param(b, "beta", 1, HIDDEN, HG_PARAM_F32), buffer(b, "mean", HIDDEN),
	                  buffer(b, "var", HIDDEN), 0.1f, 1e-5f);
	h = hg_concat(b->tape, hg_relu(b->tape, h), hg_spmm_max(b->tape, b->graph, h));
	return hg_linear(b->tape, h, param(b, "w2", 2 * HIDDEN, CLASSES, 0),
	                 param(b, "b2", 1, CLASSES, 0));
}

static hg_var gat(struct bench *b, hg_var x)
{
	const hg_var h = hg_linear(b->tape, x, param(b, "w1", FEATURES, HEADS * CLASSES, 0), HG_NONE);
	const hg_var sides = hg_head_dot_pair(b->tape, h, param(b, "a1", 1, HEADS * CLASSES, 0),
	                                      param(b, "a2", 1, HEADS * CLASSES, 0), HEADS);
	const hg_var score = hg_add(b->tape, hg_sddmm_add(b->tape, b->graph, sides, HG_NONE),
	                            hg_sddmm_dot(b->tape, b->graph, h, h, HEADS, 0.1f));
	const hg_var p = hg_edge_softmax(b->tape, b->graph, hg_leaky_relu(b->tape, score, 0.2f));
	return hg_head_mean(b->tape, hg_spmm(b->tape, b->graph, h, p, HG_NORM_NONE, 1.0f), HEADS);
}

typedef hg_var (*model_fn)(struct bench *, hg_var);

static void runs_without_memory(const void *item)
{
	const model_fn model = *(const model_fn *)item;
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized"};
	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
		struct bench b;
		bench_open(&b, policies[i]);
		const hg_var logits = model(&b, hg_tape_input(b.tape, b.x, "x", -1.0));
		const hg_var loss = hg_softmax_xent(
		    b.tape, logits, hg_tape_input(b.tape, b.labels, "labels", -1.0), HG_NONE);
		CHECK_MSG(hg_tape_compile(b.tape, loss) == HG_OK, "%s: %s", policies[i],
		          hg_context_error(b.ctx));
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		hg_optim *optim = NULL;
		CHECK_OK(hg_optim_create(b.params, &config, &optim));
		const int64_t before = b.calls;
		for (int step = 0; step < 2; step++) {
			CHECK_OK(hg_tape_forward(b.tape));
			CHECK_MSG(b.calls == before, "%s: forward allocated", policies[i]);
			CHECK_OK(hg_tape_backward(b.tape));
			CHECK_MSG(b.calls == before, "%s: backward allocated", policies[i]);
			CHECK_OK(hg_optim_step(optim));
			CHECK_MSG(b.calls == before, "%s: the step allocated", policies[i]);
		}
		hg_optim_free(optim);
		hg_tape_free(b.tape);
		hg_tensor_free(b.x);
		hg_tensor_free(b.labels);
		hg_graph_free(b.graph);
		hg_params_free(b.params);
		hg_context_free(b.ctx);
	}
}

static const model_fn models[] = {gcn, gin, gat};

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    {"gcn", 0, runs_without_memory, &models[0]},
	    {"gin", 0, runs_without_memory, &models[1]},
	    {"gat", 0, runs_without_memory, &models[2]},
	};
	return RUN_TESTS(argc, argv, cases);
}
