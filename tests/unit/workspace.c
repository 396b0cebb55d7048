#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "graphs.h"
#include "halfgraph/model.h"
#include "halfgraph/ops_norm.h"
#include "kernels/cpu/backend.h"
#include "small_run.h"
#include "strict.h"

/* Workspace: how much the rows of kernels declare, how much kernels use, and how much tapes
 * reserve. The battery compares the kernels of ops with their rows, too, on all its samples. */

static void check_table(const struct hg__kernels *table, const char *name)
{
#define HG_KERNEL(kernel, args)                                                                   \
	CHECK_MSG(table->kernel.run && table->kernel.workspace, "%s: the row of %s has a hole", name, \
	          #kernel);
#include "kernels/kernels.def"
#undef HG_KERNEL
}

static void every_row_is_complete(void)
{
	size_t count = 0;
	const struct hg__cpu_isa *isas = hg__cpu_isas(&count);
	hg_context *ctx = test_context();
	CHECK(count > 0);
	for (size_t i = 0; i < count; i++)
		check_table(isas[i].kernels, isas[i].name);
	check_table(ctx->backend->kernels, ctx->backend->name);
	hg_context_free(ctx);
}

/* A run with evaluations and an observer, so that kernels run that no op uses. */
static void training_keeps_to_the_rows(const void *item)
{
	hg_context *ctx = test_context();
	struct small_run r;
	const hg_train_config config = small_config(item, "fp16");
	strict_make(ctx);
	small_open(&r, ctx, config);
	small_train(&r);
	test_note("%lld kernel calls", (long long)strict.calls);
	CHECK(strict.calls > 100);
	small_close(&r);
}

/* A kernel that uses one byte more than it declares is found. */
static hg_status takes_too_much(hg_context *ctx, const struct hg__dot_all_args *a)
{
	void *memory = NULL;
	return hg__workspace(ctx, ctx->backend->kernels->dot_all.workspace(ctx, a) + 1, &memory);
}

static void kernel_that_uses_one_byte_more_is_found(void)
{
	hg_context *ctx = test_context();
	struct hg__kernels kernels = *ctx->backend->kernels;
	struct hg__backend backend = *ctx->backend;
	const struct hg__dot_all_args args = {.a = {.rows = 1000, .cols = 8, .ld = 8}};
	kernels.dot_all.run = takes_too_much;
	backend.kernels = &kernels;
	ctx->backend = &backend;
	const size_t says = kernels.dot_all.workspace(ctx, &args);
	size_t whole = 0;
	strict_begin(ctx, says, &whole);
	CHECK_OK(kernels.dot_all.run(ctx, &args));
	CHECK(ctx->workspace_bytes == says + 1);
	hg_context_free(ctx);
}

/* ---- what tapes reserve ---- */

/* The workspace of a training tape is a published number, which must not change by accident.
 *
 * A ring of 3000 nodes, in which node 0 has edges from all other nodes, so that its row is
 * split. */
enum { NODES = 3000, FEATURES = 500, CLASSES = 7 };

struct reserved {
	const char *model;
	hg_dtype state;
	size_t workspace;
};

static struct coo ring_with_a_hub(void)
{
	struct coo list = coo_ring(NODES);
	for (int64_t i = 2; i < NODES - 1; i++)
		coo_add(&list, 0, i);
	return list;
}

static void tapes_reserve_what_they_did(const void *item)
{
	const struct reserved *expected = item;
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	config.device = HG_DEVICE_CPU;
	config.threads = 2; /* each has a part of a product's workspace */
	CHECK_OK(hg_context_create(&config, &ctx));
	const hg_policy policy = expected->state == HG_F16 ? hg_policy_fp16() : hg_policy_fp32();
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_model *model = NULL;
	hg_tensor *x = NULL, *label = NULL;
	hg_model_config shape = hg_model_config_default(expected->model);
	shape.in_features = FEATURES;
	shape.out_features = CLASSES;
	shape.hidden = 64;
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	CHECK_OK(hg_model_create(params, &shape, &model));
	CHECK_OK(hg_tape_create(params, HG_TRAIN, &tape));
	CHECK_OK(hg_tensor_create(ctx, expected->state, NODES, FEATURES, &x));
	CHECK_OK(hg_tensor_create(ctx, HG_I32, NODES, 1, &label));
	struct coo edges = ring_with_a_hub();
	hg_model_input input = HG_MODEL_INPUT_INIT;
	input.graph = coo_to_graph(ctx, &edges);
	input.x = x;
	const hg_var logits = hg_model_record(model, tape, &input);
	CHECK_OK(hg_tape_compile(
	    tape, hg_softmax_xent(tape, logits, hg_tape_input(tape, label, "labels", -1.0), HG_NONE)));
	CHECK_EQ_I(tape->program.workspace_bytes, expected->workspace);
	hg_tape_free(tape);
	hg_model_free(model);
	hg_params_free(params);
	hg_graph_free((hg_graph *)(uintptr_t)input.graph);
	hg_tensor_free(label);
	hg_tensor_free(x);
	coo_free(&edges);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	/* attention stages two sums for each column of a split row: of all edges, and of those with a
	 * positive score */
	static const struct reserved gcn = {"gcn", HG_F16, 1426432}, gcn_f32 = {"gcn", HG_F32, 1728320},
	                             gin = {"gin", HG_F16, 1426432}, gin_f32 = {"gin", HG_F32, 1426432},
	                             gat = {"gat", HG_F16, 16090880},
	                             gat_f32 = {"gat", HG_F32, 16090880};
	static const struct test_case cases[] = {
	    {"every_row_is_complete", every_row_is_complete, NULL, NULL},
	    {"gcn_keeps_to_the_rows", NULL, training_keeps_to_the_rows, "gcn"},
	    {"gin_keeps_to_the_rows", NULL, training_keeps_to_the_rows, "gin"},
	    {"gat_keeps_to_the_rows", NULL, training_keeps_to_the_rows, "gat"},
	    {"kernel_that_uses_one_byte_more_is_found", kernel_that_uses_one_byte_more_is_found, NULL,
	     NULL},
	    {"gcn_reserves_what_it_did", NULL, tapes_reserve_what_they_did, &gcn},
	    {"gin_reserves_what_it_did", NULL, tapes_reserve_what_they_did, &gin},
	    {"gat_reserves_what_it_did", NULL, tapes_reserve_what_they_did, &gat},
	    {"gcn_in_f32_reserves_what_it_did", NULL, tapes_reserve_what_they_did, &gcn_f32},
	    {"gin_in_f32_reserves_what_it_did", NULL, tapes_reserve_what_they_did, &gin_f32},
	    {"gat_in_f32_reserves_what_it_did", NULL, tapes_reserve_what_they_did, &gat_f32},
	};
	return RUN_TESTS(argc, argv, cases);
}
