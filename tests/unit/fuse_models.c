/* Fusion in whole models: fewer kernels a step, and the same gradients. */
#include <stdio.h>

#include "halfgraph/model.h"
#include "unit/capturing.h"
#include "unit/tape.h"

/* ---- how many calls a step makes ---- */

static hg_tape *model_tape(struct bench *b, const char *name, float dropout, hg_graph *graph,
                           const hg_tensor *x, const hg_tensor *label, hg_model **model)
{
	hg_model_config config = hg_model_config_default(name);
	hg_model_input input = HG_MODEL_INPUT_INIT;
	hg_tape *tape = NULL;
	config.in_features = hg_tensor_cols(x);
	config.out_features = 7;
	config.hidden = 64;
	config.dropout = dropout;
	config.attention_dropout = strcmp(name, "gat") ? config.attention_dropout : dropout;
	input.graph = graph;
	input.x = x;
	if (!*model)
		CHECK_OK(hg_model_create(b->params, &config, model));
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &tape));
	const hg_var logits = hg_model_record(*model, tape, &input);
	CHECK_MSG(hg_tape_compile(tape, hg_softmax_xent(tape, logits,
	                                                hg_tape_input(tape, label, "labels", -1.0),
	                                                HG_NONE)) == HG_OK,
	          "%s", hg_context_error(b->ctx));
	return tape;
}

/* Kernels, copies and fills of one forward and backward. */
static int64_t calls_of(hg_context *ctx, hg_tape *tape)
{
	void *work = NULL;
	int64_t operations = 0;
	/* the first run may allocate memory, which a capture forbids */
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tape_backward(tape));
	CHECK_OK(ctx->backend->capture_begin(ctx));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tape_backward(tape));
	CHECK_OK(ctx->backend->capture_end(ctx, &work, &operations));
	ctx->backend->work_free(ctx, work);
	return operations;
}

static void fusion_saves_calls(void)
{
	static const struct {
		const char *name;
		float dropout;
		int64_t saved; /* by fusion, forward and backward together; of gat also the gradient of
		                  * the epilogue of each of 2 layers, which attention's kernel computes */
		int64_t norms; /* more: norms that products compute, where they can */
	} rows[] = {{"gcn", 0.0f, 4, 0},  {"gcn", 0.5f, 6, 0},  {"gin", 0.0f, 16, 4},
	            {"gin", 0.5f, 16, 0}, {"gat", 0.0f, 17, 0}, {"gat", 0.5f, 24, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		hg_model *model = NULL;
		bench_open(&b, capturing_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = ring(b.ctx, 60);
		const hg_tensor *x = random_tensor(&b, HG_F16, 60, 100, 1.0),
		                *label = label_tensor(&b, 60, 7);
		const int64_t saved = rows[i].saved + (b.ctx->backend->takes_norms ? rows[i].norms : 0);
		int64_t calls[2];
		for (int separate = 0; separate < 2; separate++) {
			b.ctx->separate_ops = separate;
			hg_tape *tape =
			    model_tape(&b, rows[i].name, rows[i].dropout, b.graph, x, label, &model);
			calls[separate] = calls_of(b.ctx, tape);
			hg_tape_free(tape);
		}
		test_note("%s, dropout %.1f: %lld calls, %lld apart", rows[i].name, (double)rows[i].dropout,
		          (long long)calls[0], (long long)calls[1]);
		CHECK_MSG(calls[1] - calls[0] == saved, "%s, dropout %.1f: %lld calls, %lld apart",
		          rows[i].name, (double)rows[i].dropout, (long long)calls[0], (long long)calls[1]);
		hg_model_free(model);
		bench_close(&b);
	}
}

/* In f32 every gradient of a model has the same bits as without fusion. gat is no example: without
 * fusion it records other ops, with other roundings (tests/unit/attention.c compares them). */
static void fusion_changes_no_gradient(void)
{
	static const struct {
		const char *name;
		float dropout;
	} rows[] = {{"gcn", 0.5f}, {"gin", 0.0f}, {"gin", 0.5f}};
	enum { MOST = 200000 };
	static float got[2][MOST];
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		hg_model *model = NULL;
		int64_t count[2] = {0, 0};
		bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
		b.graph = ring(b.ctx, 60);
		const hg_tensor *x = random_tensor(&b, HG_F32, 60, 100, 1.0),
		                *label = label_tensor(&b, 60, 7);
		for (int separate = 0; separate < 2; separate++) {
			b.ctx->separate_ops = separate;
			hg_tape *tape =
			    model_tape(&b, rows[i].name, rows[i].dropout, b.graph, x, label, &model);
			CHECK_OK(hg_tape_forward(tape));
			CHECK_OK(hg_tape_backward(tape));
			for (int64_t p = 0; p < hg_params_count(b.params); p++) {
				const hg_tensor *grad = hg_param_grad(hg_params_at(b.params, p));
				if (!grad)
					continue;
				CHECK(count[separate] + hg_tensor_rows(grad) * hg_tensor_cols(grad) <= MOST);
				CHECK_OK(hg_tensor_download(grad, got[separate] + count[separate], HG_F32));
				count[separate] += hg_tensor_rows(grad) * hg_tensor_cols(grad);
			}
			hg_tape_free(tape);
		}
		CHECK_EQ_I(count[0], count[1]);
		CHECK_MSG(memcmp(got[0], got[1], (size_t)count[0] * sizeof(float)) == 0,
		          "%s, dropout %.1f: gradients differ", rows[i].name, (double)rows[i].dropout);
		hg_model_free(model);
		bench_close(&b);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(fusion_saves_calls),
	    TEST(fusion_changes_no_gradient),
	};
	return RUN_TESTS(argc, argv, cases);
}
