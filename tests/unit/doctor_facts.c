/* What a finding says besides its cause and element: the addends of fused chains, the two gradients
 * of a sum, operands, attention heads, and the chain without implicit casts. */
#include <string.h>

#include "unit/doctor_subject.h"

/* ---- the own term of a fused chain ---- */

static hg_var record_own_term(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv0");
	const hg_var x = x_of(b, tape), z = hg_spmm(tape, b->graph, x, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_var y = hg_combine(tape, x, z, hg_tape_param(tape, hg_params_find(b->params, "eps")));
	y = hg_bias_add(tape, y, hg_tape_param(tape, param(b, "bias", 1, 2)));
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, y, 0x1p-12f), targets_of(b, tape), HG_NONE);
}

/* Node 0 has 20 neighbours with 1000. Its own 30000 counts 2.5 times, and the bias is 7.5, so the
 * result is 95007.5. The bias is the smallest of 22 addends, so it is not among the 8 largest. */
static void own_term_is_an_addend(void)
{
	const float eps = 1.5f, bias[2] = {7.5f, 7.5f};
	struct subject s;
	hg_param *p = NULL;
	subject_open(&s, hg_policy_fp16(), record_own_term);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(21));
	float x[21][2] = {{0}};
	for (int i = 0; i < 21; i++)
		x[i][1] = i ? 1000.0f : 30000.0f;
	tensor_of(&s.bench, HG_F16, 21, 2, x, HG_F32);
	constant_tensor(&s.bench, 21, 2, 0.0f);
	CHECK_OK(hg_params_add(s.bench.params, "eps", 1, 1, HG_INIT_ZEROS, HG_PARAM_F32, &p));
	CHECK_OK(hg_param_set(p, &eps));
	CHECK_OK(hg_param_set(param(&s.bench, "bias", 1, 2), bias));
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_STORE, 0, "combine", "conv0", 0, 1);
	double sum = 0.0;
	int own = 0, bias_listed = 0;
	for (int i = 0; i < f->tops; i++) {
		own += f->top[i].is == HG_TERM_OWN && f->top[i].row == 0 && f->top[i].value == 75000.0;
		bias_listed += f->top[i].is == HG_TERM_BIAS;
	}
	for (int i = 0; i < f->tops; i++)
		sum += f->top[i].is == HG_TERM_ADDEND ? f->top[i].value : 0.0;
	CHECK(f->wide == 95007.5 && f->terms == 22);
	CHECK(own == 1 && f->top[0].is == HG_TERM_OWN && f->top[0].factor == 2.5 && sum == 7000.0);
	CHECK_EQ_I(bias_listed, 0);
	subject_close(&s);
}

/* h is read by a chain whose own term it is, and by a skip connection, whose gradient comes
 * first. */
static hg_var record_skip(struct bench *b, hg_tape *tape)
{
	const hg_var h = hg_scale(tape, x_of(b, tape), 1.0f);
	hg_tape_scope(tape, "conv0");
	const hg_var z = hg_spmm(tape, b->graph, h, HG_NONE, HG_NORM_NONE, 3e19f),
	             y = hg_add(tape, h, z);
	hg_tape_scope(tape, "skip");
	const hg_var skip = hg_scale(tape, h, 3e19f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_add(tape, y, skip), targets_of(b, tape), HG_NONE);
}

/* In f32. The gradient of the loss is -7e18 at both nodes. So the neighbour and the skip connection
 * each contribute -2.1e38 to the gradient of h, and their sum is beyond f32. The own term is -7e18,
 * far below the limit of f32, so the aggregation is named. */
static void own_term_is_not_blamed_for_other_gradients(void)
{
	const float x[2] = {0.0f, 0.0f}, target[2] = {7e18f, 7e18f};
	struct subject s;
	subject_open(&s, hg_policy_fp32(), record_skip);
	s.bench.graph = coo_graph(s.bench.ctx, coo_cycle(2));
	tensor_of(&s.bench, HG_F32, 2, 1, x, HG_F32);
	tensor_of(&s.bench, HG_F32, 2, 1, target, HG_F32);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_EXPLOSION, 1, "spmm", "conv0", 0, 0);
	CHECK_EQ_I(f->terms, 2);
	subject_close(&s);
}

/* ---- two gradients of one tensor ---- */

/* 3 x in "left", 5 x in "right": the gradient of x is the sum of both paths. */
static hg_var record_two_paths(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, x_of(b, tape), 1.0f);
	hg_tape_scope(tape, "left");
	const hg_var left = hg_scale(tape, x, 3.0f);
	hg_tape_scope(tape, "right");
	const hg_var right = hg_scale(tape, x, 5.0f);
	hg_tape_scope(tape, "sum");
	const hg_var y = hg_add(tape, left, right);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* The gradient of the loss is 2 (0 - target) scale / 4 = 8192, so the paths give 24576 and
 * 40960. */
static void both_gradients_of_a_sum_are_listed(void)
{
	struct subject s;
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 16384.0f;
	subject_open(&s, policy, record_two_paths);
	const float target[4] = {0.0f, 0.0f, -1.0f, 0.0f};
	constant_tensor(&s.bench, 4, 1, 0.0f);
	tensor_of(&s.bench, HG_F16, 4, 1, target, HG_F32);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_LOSS_SCALE, 1, "scale", "left", 2, 0);
	CHECK(f->wide == 65536.0 && f->terms == 2 && f->tops == 2);
	CHECK(f->top[0].value + f->top[1].value == f->wide);
	CHECK_EQ_I(f->operands, 2);
	for (int i = 0; i < 2; i++) {
		const hg_operand *o = &f->operand[i];
		const int left = strcmp(o->tensor, "left/scale") == 0;
		CHECK(left || strcmp(o->tensor, "right/scale") == 0);
		CHECK(o->value == (left ? 24576.0 : 40960.0));
	}
	subject_close(&s);
}

/* Both linear layers contribute to the gradient of x. The second contribution is added to the first
 * one. */
static hg_var record_added_gradients(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, x_of(b, tape), 1.0f);
	hg_tape_scope(tape, "first");
	const hg_var u = hg_linear(tape, x, hg_tape_param(tape, param(b, "u", 2, 2)), HG_NONE);
	hg_tape_scope(tape, "second");
	const hg_var v = hg_linear(tape, x, hg_tape_param(tape, param(b, "v", 2, 2)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_add(tape, u, v), targets_of(b, tape), HG_NONE);
}

static void gradient_so_far_is_an_addend(void)
{
	const float u[4] = {3.0f, 0.0f, 0.0f, 1.0f}, v[4] = {5.0f, 0.0f, 0.0f, 1.0f};
	struct subject s;
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 32768.0f;
	subject_open(&s, policy, record_added_gradients);
	const float target[4][2] = {{0}, {0}, {-1.0f, 0.0f}, {0}};
	constant_tensor(&s.bench, 4, 2, 0.0f);
	tensor_of(&s.bench, HG_F16, 4, 2, target, HG_F32);
	CHECK_OK(hg_param_set(param(&s.bench, "u", 2, 2), u));
	CHECK_OK(hg_param_set(param(&s.bench, "v", 2, 2), v));
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_LOSS_SCALE, 1, "linear", "first", 2, 0);
	CHECK(f->wide == 65536.0);
	double sum = 0.0;
	int before = 0;
	for (int i = 0; i < f->tops; i++) {
		sum += f->top[i].value;
		before += f->top[i].is == HG_TERM_BEFORE;
	}
	CHECK_MSG(sum == f->wide && (before == 1 || f->operands == 2), "%g, %d", sum, before);
	subject_close(&s);
}

/* ---- operands ---- */

static hg_var record_exp(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "powers");
	return hg_mse(tape, hg_exp(tape, x_of(b, tape)), targets_of(b, tape), HG_NONE);
}

static hg_var record_div(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "ratio");
	const hg_var x = x_of(b, tape), y = hg_tape_input(tape, b->tensor[2], "divisors", -1.0);
	return hg_mse(tape, hg_div(tape, x, y), targets_of(b, tape), HG_NONE);
}

static hg_var record_scale(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "scaled");
	return hg_mse(tape, hg_scale(tape, x_of(b, tape), 10000.0f), targets_of(b, tape), HG_NONE);
}

static void operands_are_listed(void)
{
	struct subject s;
	float x[4][2] = {{0}}, y[4] = {1.0f, 1.0f, 1.0f, 0x1p-16f};
	x[3][1] = 12.0f;
	for (int k = 0; k < 3; k++) {
		subject_open(&s, hg_policy_fp16(),
		             k == 0   ? record_exp
		             : k == 1 ? record_div
		                      : record_scale);
		s.bench.params->policy.replan = 0;
		tensor_of(&s.bench, HG_F16, 4, 2, x, HG_F32);
		constant_tensor(&s.bench, 4, 2, 0.0f);
		tensor_of(&s.bench, HG_F16, 4, 1, y, HG_F32);
		subject_compile(&s);
		const hg_finding *f = subject_examine(&s);
		CHECK(f && f->row == 3 && f->col == 1 && f->terms == 0);
		expect_operand(f, k == 1 ? "dividend" : "x", "x", 3, 1, 12.0);
		if (k == 1)
			expect_operand(f, "divisor", "divisors", 3, 0, 0x1p-16);
		if (k == 2)
			expect_operand(f, "factor", "", -1, -1, 10000.0);
		subject_close(&s);
	}
}

/* ---- heads ---- */

static hg_var record_heads(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv0");
	const hg_var dst = hg_tape_param(tape, param(b, "dst", 1, 8)),
	             src = hg_tape_param(tape, param(b, "src", 1, 8));
	const hg_var s = hg_head_dot_pair(tape, x_of(b, tape), dst, src, 4);
	const hg_var e = hg_sddmm_add_leaky(tape, b->graph, s, HG_NONE, 0.2f);
	return hg_mse(tape, e, targets_of(b, tape), HG_NONE);
}

/* A tensor holds the scores of both ends, for four heads each. Its column 6 is head 2 of the
 * source; its column 1 is head 1 of the destination. */
static void heads_have_numbers(void)
{
	for (int second = 0; second < 2; second++) {
		struct subject s;
		float a[8] = {0}, none[8] = {0};
		subject_open(&s, hg_policy_fp16(), record_heads);
		s.bench.graph = ring(s.bench.ctx, 5);
		constant_tensor(&s.bench, 5, 8, 100.0f);
		constant_tensor(&s.bench, 15, 4, 0.0f);
		a[second ? 4 : 2] = 1000.0f;
		CHECK_OK(hg_param_set(param(&s.bench, "dst", 1, 8), second ? none : a));
		CHECK_OK(hg_param_set(param(&s.bench, "src", 1, 8), second ? a : none));
		subject_compile(&s);
		const hg_finding *f =
		    expect_finding(&s, HG_CAUSE_STORE, 0, "head_dot", "conv0", 0, second ? 6 : 1);
		CHECK_EQ_I(f->head, second ? 2 : 1);
		CHECK_STR(f->head_of, second ? "source" : "destination");
		subject_close(&s);
	}
}

/* ---- edge weights ---- */

static hg_var record_weighted(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv0");
	const hg_var h = hg_tape_param(tape, param(b, "embedding", 5, 4)),
	             trust = hg_tape_input(tape, b->tensor[0], "trust", -1.0);
	const hg_var y = hg_spmm(tape, b->graph, h, trust, HG_NORM_NONE, 1.0f);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* A graph through which trained nodes are read is not a matrix of features, so its edges stay
 * edges. */
static void edge_weight_is_not_a_feature(void)
{
	struct subject s;
	float weight[15 * 2];
	for (int i = 0; i < 30; i++)
		weight[i] = i == 2 * 7 + 1 ? NAN : 1.0f;
	subject_open(&s, hg_policy_fp16(), record_weighted);
	s.bench.graph = ring(s.bench.ctx, 5);
	CHECK_EQ_I(hg_graph_edges(s.bench.graph), 15);
	tensor_of(&s.bench, HG_F16, 15, 2, weight, HG_F32);
	constant_tensor(&s.bench, 5, 4, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_INPUT, 0, "", "", 7, 1);
	CHECK_STR(f->tensor, "trust");
	CHECK(f->row_is == HG_ROW_EDGE && f->edge_row == 2 && f->edge_col >= 0);
	subject_close(&s);
}

/* ---- implicit casts ---- */

/* The f16 tensor y is cast to f32 for the addition. On the way back, the cast narrows the
 * gradient. */
static hg_var record_implicit_cast(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "first");
	const hg_var u = hg_tape_param(tape, param(b, "u", 2, 2));
	hg_var y = hg_linear(tape, x_of(b, tape), u, HG_NONE);
	hg_tape_scope(tape, "second");
	const hg_var shift = hg_cast(tape, hg_tape_input(tape, b->tensor[2], "shift", -1.0), HG_F32);
	y = hg_add(tape, y, shift);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* The overflow is attributed to the addition, which the user wrote, and not to the cast. */
static void implicit_cast_is_not_named(void)
{
	const float u[4] = {1.0f, 0.0f, 0.0f, 1.0f}, target[4][2] = {{0}, {0}, {-10.0f, 0.0f}, {0}};
	struct subject s;
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 65536.0f;
	subject_open(&s, policy, record_implicit_cast);
	constant_tensor(&s.bench, 4, 2, 0.0f);
	tensor_of(&s.bench, HG_F32, 4, 2, target, HG_F32);
	constant_tensor(&s.bench, 4, 2, 0.0f);
	CHECK_OK(hg_param_set(param(&s.bench, "u", 2, 2), u));
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_LOSS_SCALE, 1, "add", "second", 2, 0);
	for (int i = 0; i < f->links; i++)
		CHECK(strcmp(f->chain[i].op, "cast") != 0);
	subject_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(own_term_is_an_addend),        TEST(both_gradients_of_a_sum_are_listed),
	    TEST(gradient_so_far_is_an_addend), TEST(operands_are_listed),
	    TEST(heads_have_numbers),           TEST(edge_weight_is_not_a_feature),
	    TEST(implicit_cast_is_not_named),   TEST(own_term_is_not_blamed_for_other_gradients),
	};
	return RUN_TESTS(argc, argv, cases);
}
