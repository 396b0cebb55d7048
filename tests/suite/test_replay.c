/* After a tape has compiled and an optimiser has been created, forward, backward and step allocate
 * nothing, neither scratch nor host memory. The sizes are large enough for teams of threads,
 * products that are cut into pieces, and split rows. */
#include <stdlib.h>
#include <string.h>

#include "halfgraph/optim.h"
#include "unit/faulty.h"
#include "unit/tape.h"

enum { NODES = 4096, EDGES = 40000, FEATURES = 512, HIDDEN = 256, HEADS = 5, CLASSES = 10 };

static hg_var weight(struct bench *b, const char *name, int64_t rows, int64_t cols, unsigned flags)
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

static hg_var record_gcn(struct bench *b, hg_var x)
{
	hg_var h = hg_linear(b->tape, hg_dropout(b->tape, x, 0.5f),
	                     weight(b, "w1", FEATURES, HIDDEN, 0), weight(b, "b1", 1, HIDDEN, 0));
	h = hg_relu(b->tape, hg_spmm(b->tape, b->graph, h, HG_NONE, HG_NORM_BOTH, 1.0f));
	return hg_spmm(b->tape, b->graph,
	               hg_linear(b->tape, h, weight(b, "w2", HIDDEN, CLASSES, 0), HG_NONE), HG_NONE,
	               HG_NORM_BOTH, 1.0f);
}

static hg_var record_gin(struct bench *b, hg_var x)
{
	const hg_var sum = hg_spmm(b->tape, b->graph, x, HG_NONE, HG_NORM_RIGHT, 1.0f);
	hg_var h = hg_linear(b->tape, hg_combine(b->tape, x, sum, weight(b, "eps", 1, 1, HG_PARAM_F32)),
	                     weight(b, "w1", FEATURES, HIDDEN, 0), weight(b, "b1", 1, HIDDEN, 0));
	h = hg_batch_norm(b->tape, h, weight(b, "gamma", 1, HIDDEN, HG_PARAM_F32),
	                  weight(b, "beta", 1, HIDDEN, HG_PARAM_F32), buffer(b, "mean", HIDDEN),
	                  buffer(b, "var", HIDDEN), 0.1f, 1e-5f);
	h = hg_concat(b->tape, hg_relu(b->tape, h), hg_spmm_max(b->tape, b->graph, h));
	return hg_linear(b->tape, h, weight(b, "w2", 2 * HIDDEN, CLASSES, 0),
	                 weight(b, "b2", 1, CLASSES, 0));
}

static hg_var record_gat(struct bench *b, hg_var x)
{
	const hg_var h = hg_linear(b->tape, x, weight(b, "w1", FEATURES, HEADS * CLASSES, 0), HG_NONE);
	const hg_var sides = hg_head_dot_pair(b->tape, h, weight(b, "a1", 1, HEADS * CLASSES, 0),
	                                      weight(b, "a2", 1, HEADS * CLASSES, 0), HEADS);
	const hg_var score = hg_add(b->tape, hg_sddmm_add(b->tape, b->graph, sides, HG_NONE),
	                            hg_sddmm_dot(b->tape, b->graph, h, h, HEADS, 0.1f));
	const hg_var p = hg_edge_softmax(b->tape, b->graph, hg_leaky_relu(b->tape, score, 0.2f));
	return hg_head_mean(b->tape, hg_spmm(b->tape, b->graph, h, p, HG_NORM_NONE, 1.0f), HEADS);
}

typedef hg_var (*model_fn)(struct bench *, hg_var);

static void steps_allocate_nothing(const void *item)
{
	const model_fn model = *(const model_fn *)item;
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized"};
	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
		struct bench b;
		struct faulty memory;
		const hg_policy policy = policy_named(policies[i]);
		int32_t label[NODES];
		bench_open(&b, faulty_cpu_context(&memory, 0, 2), policy, HG_TRAIN);
		b.graph = coo_graph(b.ctx, coo_hub(NODES, EDGES, 3, 0)); /* row 0 is in many work items */
		for (int64_t k = 0; k < NODES; k++)
			label[k] = (int32_t)test_below(CLASSES);
		const hg_tensor *x = random_tensor(&b, policy.state, NODES, FEATURES, 1.0),
		                *labels = tensor_of(&b, HG_I32, NODES, 1, label, HG_I32);
		const hg_var logits = model(&b, hg_tape_input(b.tape, x, "x", -1.0));
		const hg_var loss =
		    hg_softmax_xent(b.tape, logits, hg_tape_input(b.tape, labels, "labels", -1.0), HG_NONE);
		CHECK_MSG(hg_tape_compile(b.tape, loss) == HG_OK, "%s: %s", policies[i],
		          hg_context_error(b.ctx));
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		hg_optim *optim = NULL;
		CHECK_OK(hg_optim_create(b.params, &config, &optim));
		const int64_t before = memory.calls;
		for (int step = 0; step < 2; step++) {
			CHECK_OK(hg_tape_forward(b.tape));
			CHECK_MSG(memory.calls == before, "%s: forward allocated", policies[i]);
			CHECK_OK(hg_tape_backward(b.tape));
			CHECK_MSG(memory.calls == before, "%s: backward allocated", policies[i]);
			CHECK_OK(hg_optim_step(optim));
			CHECK_MSG(memory.calls == before, "%s: the step allocated", policies[i]);
		}
		hg_optim_free(optim);
		bench_close(&b);
		CHECK_EQ_I(memory.out, 0);
	}
}

static const model_fn models[] = {record_gcn, record_gin, record_gat};

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    {"gcn", 0, steps_allocate_nothing, &models[0]},
	    {"gin", 0, steps_allocate_nothing, &models[1]},
	    {"gat", 0, steps_allocate_nothing, &models[2]},
	};
	return RUN_TESTS(argc, argv, cases);
}
