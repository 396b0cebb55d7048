/* Recording on a tape: mistakes, types and casts. */
#include <math.h>

#include "unit/tape.h"

static void first_mistake_is_kept(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	hg_tensor *other = NULL;
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 4, 3, 1.0), "x", -1.0),
	             w = hg_tape_param(b.tape, param(&b, "w", 5, 2));
	hg_tape_scope(b.tape, "conv2");
	const hg_var y = hg_linear(b.tape, x, w, HG_NONE);
	CHECK(y.id < 0);
	CHECK_STATUS(hg_tape_status(b.tape), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "linear: W has 5 rows, X has 3 columns (layer conv2)");
	CHECK(hg_relu(b.tape, x).id < 0);
	CHECK_STATUS(hg_tensor_create(b.ctx, HG_F32, -1, 1, &other), HG_ERR_ARG);
	CHECK_STATUS(hg_tape_compile(b.tape, y), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "linear: W has 5 rows");
	CHECK_STATUS(hg_tape_forward(b.tape), HG_ERR_SHAPE);
	CHECK_STATUS(hg_tape_backward(b.tape), HG_ERR_SHAPE);
	bench_close(&b);
}

static void objects_of_other_owners_are_refused(void)
{
	struct bench b, c;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	bench_open(&c, test_context(), hg_policy_fp32(), HG_TRAIN);
	hg_tape *second = NULL, *third = NULL, *fourth = NULL, *fifth = NULL;
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &second));
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &third));
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &fourth));
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &fifth));
	hg_tensor *x = random_tensor(&b, HG_F32, 4, 3, 1.0);
	const hg_var v = hg_tape_input(b.tape, x, "x", -1.0);
	CHECK(v.id >= 0);
	CHECK(hg_relu(second, v).id < 0);
	CHECK_STATUS(hg_tape_status(second), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b.ctx), "relu: operand 0 is not a variable of this tape");
	CHECK(hg_tape_input(c.tape, x, "x", -1.0).id < 0);
	CHECK_CONTAINS(hg_context_error(c.ctx), "belongs to another context");
	CHECK(hg_tape_param(third, param(&c, "w", 1, 1)).id < 0);
	CHECK_CONTAINS(hg_context_error(b.ctx), "belongs to other parameters");
	CHECK(hg_linear(fourth, hg_tape_input(fourth, x, "x", 1.0), HG_NONE, HG_NONE).id < 0);
	CHECK_CONTAINS(hg_context_error(b.ctx), "linear: ");
	CHECK_CONTAINS(hg_context_error(b.ctx), "is missing");
	CHECK(hg_tape_variable(fifth, label_tensor(&b, 3, 2), "labels").id < 0);
	CHECK_STATUS(hg_tape_status(fifth), HG_ERR_DTYPE);
	hg_tape_free(second);
	CHECK_STATUS(hg_tape_create(NULL, HG_TRAIN, &second), HG_ERR_ARG);
	hg_tape_free(third);
	hg_tape_free(fourth);
	hg_tape_free(fifth);
	CHECK(second == NULL);
	bench_close(&c);
	hg_tape_free(NULL);
	bench_close(&b);
}

/* The policy decides about an unproved result. With HG_UNPROVED_PROMOTE one that is proved neither
 * for all weights nor for assumed ones is computed in f32, with the master weights. An f32 operand
 * that is proved to fit is cast to f16. */
static void policies_decide_the_types(void)
{
	static const struct {
		hg_unproved unproved;
		double sigma;
		hg_status status;
		hg_verdict linear;
		hg_dtype out;
	} rows[] = {{HG_UNPROVED_GUARD, 1.0, HG_OK, HG_GUARDED, HG_F16},
	            {HG_UNPROVED_PROMOTE, 1.0, HG_OK, HG_GUARDED, HG_F16},
	            {HG_UNPROVED_REFUSE, 1.0, HG_OK, HG_GUARDED, HG_F16},
	            {HG_UNPROVED_GUARD, 12000.0, HG_OK, HG_GUARDED, HG_F16},
	            {HG_UNPROVED_PROMOTE, 12000.0, HG_OK, HG_PROMOTED, HG_F32},
	            {HG_UNPROVED_REFUSE, 12000.0, HG_ERR_RANGE, HG_REFUSED, HG_F16}};
	for (int i = 0; i < 6; i++) {
		struct bench b;
		hg_policy policy = hg_policy_fp16();
		policy.unproved = rows[i].unproved;
		bench_open(&b, test_context(), policy, HG_TRAIN);
		b.graph = ring(b.ctx, 8);
		const hg_var x =
		    hg_tape_input(b.tape, random_tensor(&b, HG_F32, 8, 5, rows[i].sigma), "x", -1.0);
		const hg_var mean = hg_spmm_mean(b.tape, b.graph, x);
		CHECK(mean.id >= 0);
		hg_tape_scope(b.tape, "fc");
		const hg_var y =
		    hg_linear(b.tape, mean, hg_tape_param(b.tape, param(&b, "w", 5, 4)), HG_NONE);
		CHECK_STATUS(hg_tape_status(b.tape), rows[i].status);
		if (rows[i].status < 0) {
			CHECK_CONTAINS(hg_context_error(b.ctx), "linear: |out| may reach");
			CHECK_CONTAINS(hg_context_error(b.ctx), "(layer fc)");
			bench_close(&b);
			continue;
		}
		const hg_var p = hg_spmm_mean(b.tape, b.graph, hg_log_softmax(b.tape, y));
		hg_tape_keep(b.tape, y);
		hg_tape_keep(b.tape, mean);
		CHECK_OK(hg_tape_compile(b.tape, p));
		CHECK_OK(hg_tape_forward(b.tape));
		CHECK_EQ_I(hg_tensor_dtype(hg_tape_value(b.tape, mean)), HG_F16);
		CHECK_EQ_I(hg_tensor_dtype(hg_tape_value(b.tape, y)), rows[i].out);
		CHECK_EQ_I(b.tape->recording.entry[0].node.verdict, HG_PROVED); /* the cast of the input */
		CHECK_EQ_I(b.tape->recording.entry[b.tape->recording.value[hg__tape_index(b.tape, y)].node]
		               .node.verdict,
		           rows[i].linear);
		bench_close(&b);
	}
}

static hg_dtype type_of(const struct bench *b, hg_var var)
{
	CHECK(var.id >= 0);
	return b->tape->recording.value[hg__tape_index(b->tape, var)].dtype;
}

/* An op whose input may exceed f16 is computed in f32. The next result is f16 again, with a guard.
 * What the user casts to f32 stays f32. */
static void f32_lasts_only_where_it_is_needed(void)
{
	struct bench b;
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 64.0f;
	bench_open(&b, test_context(), policy, HG_TRAIN);
	hg_tensor *x = random_tensor(&b, HG_F32, 6, 5, 1.0);
	const hg_var large = hg_tape_input(b.tape, x, "large", 1e6),
	             w = hg_tape_param(b.tape, param(&b, "w", 5, 3));
	const hg_var y = hg_linear(b.tape, large, w, HG_NONE), z = hg_relu(b.tape, y);
	CHECK_EQ_I(type_of(&b, y), HG_F32);
	CHECK_EQ_I(type_of(&b, z), HG_F16);
	const hg_var wide = hg_cast(b.tape, z, HG_F32), sum = hg_add(b.tape, hg_relu(b.tape, wide), z);
	CHECK_EQ_I(type_of(&b, sum), HG_F32);
	CHECK_EQ_I(type_of(&b, hg_relu(b.tape, hg_cast(b.tape, sum, HG_F16))), HG_F16);
	CHECK_OK(hg_tape_compile(
	    b.tape,
	    hg_mse(b.tape, sum, hg_tape_input(b.tape, random_tensor(&b, HG_F32, 6, 3, 1.0), "t", -1.0),
	           HG_NONE)));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	float *dw = download(hg_param_grad(hg_params_find(b.params, "w")));
	for (int i = 0; i < 15; i++)
		CHECK(isfinite(dw[i]));
	free(dw);
	bench_close(&b);
}

/* Sums over neighbours use the arithmetic of the policy, all other sums f32. */
static void policy_decides_the_accumulation(void)
{
	const hg_policy policies[] = {hg_policy_fp32(), hg_policy_fp16(), hg_policy_fp16_discretized(),
	                              hg_policy_fp16_naive()};
	for (int i = 0; i < 4; i++) {
		struct bench b;
		bench_open(&b, test_context(), policies[i], HG_TRAIN);
		b.graph = ring(b.ctx, 8);
		const hg_var x =
		    hg_tape_input(b.tape, random_tensor(&b, policies[i].state, 8, 5, 1.0), "x", -1.0);
		const hg_var y =
		    hg_spmm(b.tape, b.graph,
		            hg_linear(b.tape, x, hg_tape_param(b.tape, param(&b, "w", 5, 4)), HG_NONE),
		            HG_NONE, HG_NORM_NONE, 1.0f);
		CHECK(y.id >= 0);
		CHECK_EQ_I(b.tape->recording.entry[0].node.accumulate, HG_ACC_F32);
		CHECK_EQ_I(b.tape->recording.entry[1].node.accumulate, policies[i].accumulate);
		CHECK_EQ_I(b.tape->recording.entry[1].node.verdict,
		           i ? HG_GUARDED : HG_EXACT); /* the bound of three numbers is 3 x 65504 */
		bench_close(&b);
	}
}

/* Two uses of one f32 input share one cast. A scalar is not narrowed. */
static void casts_are_made_once(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 6, 5, 1.0), "x", -1.0);
	const hg_var y = hg_add(b.tape, hg_relu(b.tape, x), hg_scale(b.tape, x, 2.0f));
	const hg_var t = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 6, 5, 1.0), "t", -1.0);
	const hg_var one = hg_mse(b.tape, y, t, HG_NONE),
	             two = hg_mse(b.tape, hg_relu(b.tape, y), t, HG_NONE);
	const hg_var sum = hg_add(b.tape, one, hg_scale(b.tape, two, 0.5f));
	CHECK_OK(hg_tape_compile(b.tape, sum));
	int casts = 0;
	for (int64_t k = 0; k < b.tape->recording.entries; k++)
		casts += strcmp(b.tape->recording.entry[k].node.op->name, "cast") == 0;
	CHECK_EQ_I(casts, 1);
	CHECK_EQ_I(hg_tensor_dtype(hg_tape_value(b.tape, sum)), HG_F32);
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	bench_close(&b);
}

/* The batch of a graph cannot be changed after a readout has been recorded with it. */
static void recorded_batch_cannot_change(void)
{
	const int64_t ptr[] = {0, 2, 4, 6, 8}, whole[] = {0, 8};
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_EVAL);
	b.graph = ring(b.ctx, 8);
	const hg_var y = hg_readout(
	    b.tape, b.graph, hg_tape_input(b.tape, random_tensor(&b, HG_F32, 8, 3, 1.0), "x", -1.0),
	    HG_REDUCE_SUM);
	CHECK_STATUS(hg_graph_set_batch(b.graph, 1, whole), HG_ERR_STATE);
	CHECK_STATUS(hg_graph_set_batch(b.graph, 4, ptr), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "set it once, before the graph is used");
	CHECK_OK(hg_tape_compile(b.tape, y));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_EQ_I(hg_tensor_rows(hg_tape_value(b.tape, y)), 1);
	bench_close(&b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(first_mistake_is_kept),           TEST(objects_of_other_owners_are_refused),
	    TEST(policies_decide_the_types),       TEST(f32_lasts_only_where_it_is_needed),
	    TEST(policy_decides_the_accumulation), TEST(casts_are_made_once),
	    TEST(recorded_batch_cannot_change),
	};
	return RUN_TESTS(argc, argv, cases);
}
