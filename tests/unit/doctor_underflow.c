/* Parts of a tensor that are rounded to zero although most of it is not: rows, units of a gradient,
 * working copies. And cases that look the same but change nothing. */
#include <string.h>

#include "unit/doctor_subject.h"

enum { NODES = 500, HIDDEN = 8, CLASSES = 4 };
enum activation { ELU, RELU };

/* ---- units of a gradient ---- */

/* Two linear layers, of which the last `units` hidden units have small weights in the second
 * one. */
static struct {
	enum activation activation;
	int sgd;
	float scale;  /* loss scale; 0: none */
	float factor; /* on the weights of these units */
	int units;
	float bias; /* of these units */
} plan;

/* x W1 + b, the activation, W2. The targets are noise. */
static hg_var record_units(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "enc");
	hg_var h = hg_linear(tape, hg_tape_input(tape, b->tensor[0], "x", -1.0),
	                     hg_tape_param(tape, param(b, "w1", HIDDEN, HIDDEN)), HG_NONE);
	h = hg_bias_add(tape, h, hg_tape_param(tape, param(b, "b1", 1, HIDDEN)));
	h = plan.activation == ELU ? hg_elu(tape, h, 1.0f) : hg_relu(tape, h);
	hg_tape_scope(tape, "dec");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w2", HIDDEN, CLASSES)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, h, targets_of(b, tape), HG_NONE);
}

static hg_tensor *noise(struct bench *b, int64_t rows, int64_t cols)
{
	float *x = calloc((size_t)(rows * cols), sizeof *x);
	CHECK(x != NULL);
	for (int64_t i = 0; i < rows * cols; i++)
		x[i] = (float)(2.0 * test_uniform() - 1.0);
	hg_tensor *tensor = tensor_of(b, HG_F16, rows, cols, x, HG_F32);
	free(x);
	return tensor;
}

static void set_weights(struct bench *b)
{
	float w1[HIDDEN][HIDDEN], w2[HIDDEN][CLASSES], b1[HIDDEN] = {0};
	for (int i = 0; i < HIDDEN; i++) {
		const int is_small = i >= HIDDEN - plan.units;
		for (int c = 0; c < HIDDEN; c++)
			w1[i][c] = (float)(2.0 * test_uniform() - 1.0);
		for (int c = 0; c < CLASSES; c++)
			w2[i][c] = (float)(2.0 * test_uniform() - 1.0) * (is_small ? plan.factor : 1.0f);
		b1[i] = is_small ? plan.bias : 0.0f;
	}
	CHECK_OK(hg_param_set(param(b, "w1", HIDDEN, HIDDEN), w1[0]));
	CHECK_OK(hg_param_set(param(b, "w2", HIDDEN, CLASSES), w2[0]));
	CHECK_OK(hg_param_set(param(b, "b1", 1, HIDDEN), b1));
}

static const hg_finding *examine_units(struct subject *s, hg_cause cause)
{
	hg_policy policy = hg_policy_fp16();
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	policy.loss_scale.enabled = plan.scale > 0.0f;
	policy.loss_scale.init_scale = plan.scale > 0.0f ? plan.scale : 1.0f;
	config.kind = plan.sgd ? HG_SGD : HG_ADAM;
	subject_open(s, policy, record_units);
	noise(&s->bench, NODES, HIDDEN);
	noise(&s->bench, NODES, CLASSES);
	set_weights(&s->bench);
	subject_compile_with(s, config);
	const hg_finding *f = subject_examine(s);
	CHECK_STR(f ? hg_cause_name(f->cause) : "none",
	          cause == HG_CAUSE_COUNT ? "none" : hg_cause_name(cause));
	return f;
}

static void expect_healthy_units(void)
{
	struct subject s;
	(void)examine_units(&s, HG_CAUSE_COUNT);
	subject_close(&s);
}

/* The loss scale that the first remedy sets. If no scale is in force, it must also be enabled. */
static float offered_scale(const hg_finding *f, int enabled)
{
	static const char set[] = "policy.loss_scale.init_scale = ",
	                  on[] = "policy.loss_scale.enabled = 1, ";
	CHECK(f->remedies > 0);
	const char *call = f->remedy[0].call;
	test_note("%s: %s", call, f->remedy[0].why);
	if (!enabled) {
		CHECK(strncmp(call, on, strlen(on)) == 0);
		call += strlen(on);
	}
	CHECK(strncmp(call, set, strlen(set)) == 0);
	return strtof(call + strlen(set), NULL);
}

/* The gradient of the loss is at most 1e-3, and that of the small units 1e-6 of it, which f16 holds
 * from a scale of 2^5 on. Adam moves these units in fp32 as fast as the others. */
static void units_with_zeroed_gradients_are_found(void)
{
	struct subject s;
	for (int units = 1; units <= 4; units *= 2)
		for (int scaled = 0; scaled < 2; scaled++) {
			plan.activation = ELU;
			plan.scale = scaled ? 1.0f : 0.0f;
			plan.factor = 1e-6f;
			plan.units = units;
			const hg_finding *f = examine_units(&s, HG_CAUSE_UNDERFLOW);
			CHECK_STR(f->op, "linear");
			CHECK_STR(f->layer, "dec");
			CHECK(f->backward && f->col >= HIDDEN - units && f->bad <= (int64_t)units * NODES);
			CHECK(f->got == 0.0 && f->wide != 0.0);
			plan.scale = offered_scale(f, scaled);
			subject_close(&s);
			expect_healthy_units();
		}
}

/* SGD would hardly move the units in fp32 either. At scale 65536 their gradients fit, or are below
 * Adam's eps. Weights of 0 and dead relus have no gradient at all. */
static void units_that_would_not_move_are_healthy(void)
{
	plan.activation = ELU;
	plan.sgd = 1;
	plan.scale = 0.0f;
	plan.factor = 1e-6f;
	plan.units = 4;
	expect_healthy_units();
	plan.sgd = 0;
	plan.scale = 65536.0f;
	for (plan.factor = 1e-6f; plan.factor > 1e-13f; plan.factor *= 0.1f)
		expect_healthy_units();
	plan.scale = 0.0f;
	plan.factor = 0.0f;
	expect_healthy_units();
	plan.activation = RELU;
	plan.bias = -100.0f;
	plan.factor = 1e-6f;
	expect_healthy_units();
	plan.bias = 0.0f;
}

/* ---- rows ---- */

static hg_var record_rows(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "unit");
	const hg_var x = x_of(b, tape);
	const hg_var y = hg_scale(tape, x, 0x1p-16f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* 2^-16 of 2^-10 is rounded to zero, and 2^-16 of 1/2 is not. `small` of 200 rows are zeroed, which
 * hold less than 1 % of the sum of |x|. */
static void subject_rows(struct subject *s, int small)
{
	float x[200][4];
	subject_open(s, hg_policy_fp16(), record_rows);
	for (int i = 0; i < 200; i++)
		for (int c = 0; c < 4; c++)
			x[i][c] = i < small ? 0x1p-10f : 0.5f;
	tensor_of(&s->bench, HG_F16, 200, 4, x, HG_F32);
	constant_tensor(&s->bench, 200, 4, 1.0f);
	subject_compile(s);
}

static void zeroed_rows_are_found_if_they_are_most(void)
{
	struct subject s;
	subject_rows(&s, 170);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_UNDERFLOW, 0, "scale", "unit", 0, 0);
	CHECK(f->bad == 680 && f->count == 800 && f->wide == 0x1p-26);
	CHECK_EQ_I(s.report->findings, 1);
	subject_close(&s);
	subject_rows(&s, 90);
	expect_healthy(&s);
	subject_close(&s);
}

/* ---- working copies ---- */

static hg_var record_copy(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "x", -1.0);
	const hg_var w = hg_tape_param(tape, param(b, "w", HIDDEN, HIDDEN));
	const hg_var y = hg_linear(tape, x, w, hg_tape_param(tape, param(b, "b", 1, HIDDEN)));
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

static void subject_copy(struct subject *s, float weight, float bias, float rate)
{
	float values[HIDDEN * HIDDEN];
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	config.lr = rate;
	subject_open(s, hg_policy_fp16(), record_copy);
	noise(&s->bench, NODES, HIDDEN);
	noise(&s->bench, NODES, HIDDEN);
	for (int i = 0; i < HIDDEN * HIDDEN; i++)
		values[i] = i == 11 ? -2.0f * weight : weight;
	CHECK_OK(hg_param_set(param(&s->bench, "w", HIDDEN, HIDDEN), values));
	for (int i = 0; i < HIDDEN; i++)
		values[i] = bias;
	CHECK_OK(hg_param_set(param(&s->bench, "b", 1, HIDDEN), values));
	subject_compile_with(s, config);
}

static void zeroed_factor_is_found(void)
{
	struct subject s;
	subject_copy(&s, 1e-9f, 0.5f, 0.01f);
	const hg_finding *f = subject_examine(&s);
	CHECK(f != NULL);
	CHECK_STR(f->tensor, "w");
	CHECK(f->cause == HG_CAUSE_UNDERFLOW && f->node < 0 && f->row_is == HG_ROW_WEIGHT);
	CHECK(f->row == 1 && f->col == 3 && f->bad == 64 && f->count == 64 && f->got == 0.0);
	CHECK(f->wide == (double)-2e-9f && f->remedies == 1 && f->links > 1);
	CHECK_STR(f->remedy[0].call, "policy = hg_policy_fp32()");
	subject_close(&s);
}

/* A copy with one weight left; a bias, which is an addend; and weights that began at 0 and grow,
 * also for a doctor that was created later. */
static void other_working_copies_are_healthy(void)
{
	struct subject s;
	subject_copy(&s, 2e-8f, 0.5f, 0.01f);
	expect_healthy(&s);
	subject_close(&s);
	subject_copy(&s, 0.1f, 1e-9f, 0.01f);
	expect_healthy(&s);
	subject_close(&s);
	subject_copy(&s, 0.0f, 0.0f, 1e-10f);
	for (int step = 0; step < 4; step++)
		subject_step(&s);
	expect_healthy(&s);
	hg_doctor_free(s.doctor);
	CHECK_OK(hg_doctor_create(s.bench.params, s.optim, record_subject, &s, NULL, &s.doctor));
	expect_healthy(&s);
	subject_close(&s);
}

/* ---- gradients that move nothing ---- */

static hg_var record_fit(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "x", -1.0);
	const hg_var y = hg_linear(tape, x, hg_tape_param(tape, param(b, "w", 1, 1)), HG_NONE);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* x w with w = 1/2 is wrong by `by`, so the gradients of 900 elements are 2 by scale / 900. */
static void subject_fit(struct subject *s, hg_optim_kind kind, float by)
{
	const float half = 0.5f;
	float x[900], target[900];
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	config.kind = kind;
	subject_open(s, hg_policy_fp16(), record_fit);
	for (int i = 0; i < 900; i++) {
		x[i] = i % 9 ? 0.0f : 4.0f;
		target[i] = i % 9 ? by : 2.0f;
	}
	tensor_of(&s->bench, HG_F16, 900, 1, x, HG_F32);
	tensor_of(&s->bench, HG_F32, 900, 1, target, HG_F32);
	CHECK_OK(hg_param_set(param(&s->bench, "w", 1, 1), &half));
	subject_compile_with(s, config);
}

/* 2 x 1e-10 / 900 x 65536 = 1.5e-8 is rounded to zero. But all gradients together are below Adam's
 * eps, and times a rate of 0.01 they are below half a unit of a weight of 1/2. */
static void gradient_that_moves_nothing_is_healthy(void)
{
	const hg_optim_kind kinds[] = {HG_ADAM, HG_ADAMW, HG_SGD};
	for (int k = 0; k < 3; k++) {
		struct subject s;
		subject_fit(&s, kinds[k], 1e-10f);
		expect_healthy(&s);
		subject_close(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(units_with_zeroed_gradients_are_found),  TEST(units_that_would_not_move_are_healthy),
	    TEST(zeroed_rows_are_found_if_they_are_most), TEST(zeroed_factor_is_found),
	    TEST(other_working_copies_are_healthy),       TEST(gradient_that_moves_nothing_is_healthy),
	};
	return RUN_TESTS(argc, argv, cases);
}
