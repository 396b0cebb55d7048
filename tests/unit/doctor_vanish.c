/* Rounded to zero where most of the tensor is not: rows, units of a gradient, copies of weights;
 * and what looks like it, and changes nothing. */
#include "unit/ward.h"

enum { NODES = 500, HIDDEN = 8, CLASSES = 4 };
enum act { ELU, RELU };

/* ---- units whose gradient vanishes ---- */

static struct {
	enum act act;
	int sgd;
	float scale; /* 0: none */
	float weak;  /* factor on the way out of the last `units` */
	int units;
	float bias; /* of those */
} plan;

/* x W1 + b, act, W2: the targets are noise. */
static hg_var units_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "enc");
	hg_var h = hg_linear(tape, hg_tape_input(tape, b->tensor[0], "x", -1.0),
	                     hg_tape_param(tape, param(b, "w1", HIDDEN, HIDDEN)), HG_NONE);
	h = hg_bias_add(tape, h, hg_tape_param(tape, param(b, "b1", 1, HIDDEN)));
	h = plan.act == ELU ? hg_elu(tape, h, 1.0f) : hg_relu(tape, h);
	hg_tape_scope(tape, "dec");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w2", HIDDEN, CLASSES)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, h, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
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
		const int weak = i >= HIDDEN - plan.units;
		for (int c = 0; c < HIDDEN; c++)
			w1[i][c] = (float)(2.0 * test_uniform() - 1.0);
		for (int c = 0; c < CLASSES; c++)
			w2[i][c] = (float)(2.0 * test_uniform() - 1.0) * (weak ? plan.weak : 1.0f);
		b1[i] = weak ? plan.bias : 0.0f;
	}
	CHECK_OK(hg_param_set(param(b, "w1", HIDDEN, HIDDEN), w1[0]));
	CHECK_OK(hg_param_set(param(b, "w2", HIDDEN, CLASSES), w2[0]));
	CHECK_OK(hg_param_set(param(b, "b1", 1, HIDDEN), b1));
}

static const hg_finding *units_are(struct ward *w, hg_cause cause)
{
	hg_policy policy = hg_policy_fp16();
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	policy.loss_scale.enabled = plan.scale > 0.0f;
	policy.loss_scale.init_scale = plan.scale > 0.0f ? plan.scale : 1.0f;
	config.kind = plan.sgd ? HG_SGD : HG_ADAM;
	ward_open(w, policy, units_scene);
	noise(&w->bench, NODES, HIDDEN);
	noise(&w->bench, NODES, CLASSES);
	set_weights(&w->bench);
	ward_compile_with(w, config);
	const hg_finding *f = ward_examine(w);
	for (int i = 0; i < w->report->findings; i++)
		test_note("%s", w->report->finding[i].sentence);
	CHECK_STR(f ? hg_cause_name(f->cause) : "none",
	          cause == HG_CAUSE_COUNT ? "none" : hg_cause_name(cause));
	return f;
}

static void units_are_well(void)
{
	struct ward w;
	(void)units_are(&w, HG_CAUSE_COUNT);
	ward_close(&w);
}

/* The loss scale that the first remedy sets; where none is in force it has to be switched on. */
static float scale_of(const hg_finding *f, int enabled)
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

/* The gradient of the loss is 1e-3 at most, and that of half of the units 1e-6 of it, which f16
 * holds from a scale of 2^5 on; with Adam fp32 moves them at full speed. */
static void units_whose_gradient_vanishes_are_found(void)
{
	struct ward w;
	for (int units = 1; units <= 4; units *= 2)
		for (int scaled = 0; scaled < 2; scaled++) {
			plan.act = ELU;
			plan.scale = scaled ? 1.0f : 0.0f;
			plan.weak = 1e-6f;
			plan.units = units;
			const hg_finding *f = units_are(&w, HG_CAUSE_UNDERFLOW);
			CHECK_STR(f->op, "linear");
			CHECK_STR(f->layer, "dec");
			CHECK(f->backward && f->col >= HIDDEN - units && f->bad <= (int64_t)units * NODES);
			CHECK(f->got == 0.0 && f->wide != 0.0);
			plan.scale = scale_of(f, scaled);
			ward_close(&w);
			units_are_well();
		}
}

/* SGD moves them as little in fp32; at 65536 they are there, or below Adam's eps; a unit that is
 * dead has no use for it; and what is cut off is no way out. */
static void units_that_would_not_move_are_well(void)
{
	plan.act = ELU;
	plan.sgd = 1;
	plan.scale = 0.0f;
	plan.weak = 1e-6f;
	plan.units = 4;
	units_are_well();
	plan.sgd = 0;
	plan.scale = 65536.0f;
	for (plan.weak = 1e-6f; plan.weak > 1e-13f; plan.weak *= 0.1f)
		units_are_well();
	plan.scale = 0.0f;
	plan.weak = 0.0f;
	units_are_well();
	plan.act = RELU;
	plan.bias = -100.0f;
	plan.weak = 1e-6f;
	units_are_well();
	plan.bias = 0.0f;
}

/* ---- rows that vanish ---- */

static hg_var rows_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "unit");
	const hg_var x = hg_tape_variable(tape, b->tensor[0], "x");
	const hg_var y = hg_scale(tape, x, 0x1p-16f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

/* 2^-16 of 2^-10 is below half of 2^-24, and of 2^-1 it is not: `small` of 200 rows vanish, which
 * hold less than 1 % of all. */
static void rows_ward(struct ward *w, int small)
{
	float x[200][4];
	ward_open(w, hg_policy_fp16(), rows_scene);
	for (int i = 0; i < 200; i++)
		for (int c = 0; c < 4; c++)
			x[i][c] = i < small ? 0x1p-10f : 0.5f;
	tensor_of(&w->bench, HG_F16, 200, 4, x, HG_F32);
	constant_tensor(&w->bench, 200, 4, 1.0f);
	ward_compile(w);
}

static void most_rows_that_vanish_are_found(void)
{
	struct ward w;
	rows_ward(&w, 170);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_UNDERFLOW, 0, "scale", "unit", 0, 0);
	CHECK(f->bad == 680 && f->count == 800 && f->wide == 0x1p-26);
	CHECK_EQ_I(w.report->findings, 1);
	ward_close(&w);
	rows_ward(&w, 90); /* the smaller part */
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

/* ---- working copies ---- */

static hg_var copy_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "x", -1.0);
	const hg_var w = hg_tape_param(tape, param(b, "w", HIDDEN, HIDDEN));
	const hg_var y = hg_linear(tape, x, w, hg_tape_param(tape, param(b, "b", 1, HIDDEN)));
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static void copy_ward(struct ward *w, float weight, float bias, float rate)
{
	float values[HIDDEN * HIDDEN];
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	config.lr = rate;
	ward_open(w, hg_policy_fp16(), copy_scene);
	noise(&w->bench, NODES, HIDDEN);
	noise(&w->bench, NODES, HIDDEN);
	for (int i = 0; i < HIDDEN * HIDDEN; i++)
		values[i] = i == 11 ? -2.0f * weight : weight;
	CHECK_OK(hg_param_set(param(&w->bench, "w", HIDDEN, HIDDEN), values));
	for (int i = 0; i < HIDDEN; i++)
		values[i] = bias;
	CHECK_OK(hg_param_set(param(&w->bench, "b", 1, HIDDEN), values));
	ward_compile_with(w, config);
}

static void a_factor_that_is_all_zero_is_found(void)
{
	struct ward w;
	copy_ward(&w, 1e-9f, 0.5f, 0.01f);
	const hg_finding *f = ward_examine(&w);
	CHECK(f != NULL);
	CHECK_STR(f->tensor, "w");
	CHECK(f->cause == HG_CAUSE_UNDERFLOW && f->node < 0 && f->row_is == HG_ROW_WEIGHT);
	CHECK(f->row == 1 && f->col == 3 && f->bad == 64 && f->count == 64 && f->got == 0.0);
	CHECK(f->wide == (double)-2e-9f && f->remedies == 1 && f->links > 1);
	CHECK_STR(f->remedy[0].call, "policy = hg_policy_fp32()");
	ward_close(&w);
}

/* One weight that is left; a bias; what began at 0 and is on its way up. */
static void copies_that_take_part_are_well(void)
{
	struct ward w;
	copy_ward(&w, 2e-8f, 0.5f, 0.01f); /* twice that is no 0 */
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
	copy_ward(&w, 0.1f, 1e-9f, 0.01f);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
	copy_ward(&w, 0.0f, 0.0f, 1e-10f);
	for (int step = 0; step < 4; step++) {
		CHECK_OK(hg_tape_forward(w.bench.tape));
		CHECK_OK(hg_tape_backward(w.bench.tape));
		CHECK_OK(hg_optim_step(w.optim));
	}
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	hg_doctor_free(w.doctor); /* one that has not seen the beginning */
	CHECK_OK(hg_doctor_create(w.bench.params, w.optim, record_scene, &w, NULL, &w.doctor));
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

/* ---- nothing left to learn ---- */

static hg_var fit_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "x", -1.0);
	const hg_var y = hg_linear(tape, x, hg_tape_param(tape, param(b, "w", 1, 1)), HG_NONE);
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

/* x w with w = 1/2 is off by `by`: so the gradients of 900 elements are 2 by S / 900. */
static void fit_ward(struct ward *w, hg_optim_kind kind, float by)
{
	const float half = 0.5f;
	float x[900], target[900];
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	config.kind = kind;
	ward_open(w, hg_policy_fp16(), fit_scene);
	for (int i = 0; i < 900; i++) {
		x[i] = i % 9 ? 0.0f : 4.0f;
		target[i] = i % 9 ? by : 2.0f;
	}
	tensor_of(&w->bench, HG_F16, 900, 1, x, HG_F32);
	tensor_of(&w->bench, HG_F32, 900, 1, target, HG_F32);
	CHECK_OK(hg_param_set(param(&w->bench, "w", 1, 1), &half));
	ward_compile_with(w, config);
}

/* 2 x 1e-10 / 900 x 65536 = 1.5e-8, and the loss is 1e-20: all gradients together are below Adam's
 * eps, and times a rate of 0.01 below what is half a unit of a weight of 1/2. */
static void a_gradient_that_moves_nothing_is_well(void)
{
	const hg_optim_kind kinds[] = {HG_ADAM, HG_ADAMW, HG_SGD};
	for (int k = 0; k < 3; k++) {
		struct ward w;
		fit_ward(&w, kinds[k], 1e-10f);
		(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
		ward_close(&w);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(units_whose_gradient_vanishes_are_found), TEST(units_that_would_not_move_are_well),
	    TEST(most_rows_that_vanish_are_found),         TEST(a_factor_that_is_all_zero_is_found),
	    TEST(copies_that_take_part_are_well),          TEST(a_gradient_that_moves_nothing_is_well),
	};
	return test_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
