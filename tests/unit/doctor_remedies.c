/* What the doctor advises who wrote a tape: the first remedy is one that helps, and what cannot
 * help
 * is not offered. Where it can be typed it is applied here, and the step examined again. */
#include <stdio.h>
#include <string.h>

#include "unit/ward.h"

static hg_var x_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_variable(tape, b->tensor[0], "x");
}

static hg_var targets_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_input(tape, b->tensor[1], "targets", -1.0);
}

/* Is there such a call, or the beginning of it? */
static int offers(const hg_finding *f, const char *call)
{
	for (int i = 0; i < f->remedies; i++)
		if (strncmp(f->remedy[i].call, call, strlen(call)) == 0)
			return 1;
	return 0;
}

static void first_is(const hg_finding *f, const char *call)
{
	CHECK(f->remedies > 0);
	for (int i = 0; i < f->remedies; i++)
		test_note("%s: %s", f->remedy[i].call, f->remedy[i].why);
	CHECK_STR(f->remedy[0].call, call);
}

/* ---- a cast that somebody wrote ---- */

static hg_dtype narrow; /* what the product is cast to */

static hg_var cast_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "mix");
	hg_var y = hg_linear(tape, hg_tape_input(tape, b->tensor[0], "x", -1.0),
	                     hg_tape_param(tape, param(b, "w", 3, 3)), HG_NONE);
	y = hg_cast(tape, hg_cast(tape, y, narrow), HG_F32);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* It is an op like others, whatever made its operand; the wider one that is advised helps. */
static void a_cast_of_ones_own_is_an_op(void)
{
	static const float one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
	for (int cured = 0; cured < 2; cured++) {
		struct ward w;
		float x[6][3] = {{1.0f}};
		x[4][2] = -1e5f;
		narrow = cured ? HG_F32 : HG_F16;
		ward_open(&w, hg_policy_fp32(), cast_scene);
		tensor_of(&w.bench, HG_F32, 6, 3, x, HG_F32);
		tensor_of(&w.bench, HG_F32, 6, 3, x, HG_F32);
		ward_compile(&w);
		CHECK_OK(hg_param_set(param(&w.bench, "w", 3, 3), one));
		if (cured) {
			(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
		} else {
			const hg_finding *f = ward_expect(&w, HG_CAUSE_STORE, 0, "cast", "mix", 4, 2);
			CHECK(f->wide == -1e5);
			first_is(f, "hg_cast(tape, x, HG_F32)");
			CHECK(!offers(f, "policy"));
		}
		ward_close(&w);
	}
}

/* ---- what has no quotient, no root, no logarithm ---- */

enum taken { LOG, ROOT, QUOTIENT, SHARE, SUM };
static enum taken taken;

/* Of x; SHARE: divided by 2^-32 of it; SUM: by the sum of these over the row. */
static hg_var taken_scene(struct bench *b, hg_tape *tape)
{
	hg_var x = x_of(b, tape);
	hg_tape_scope(tape, "there");
	if (taken == SHARE || taken == SUM)
		x = hg_scale(tape, hg_scale(tape, x, 0x1p-16f), 0x1p-16f);
	if (taken == SUM)
		x = hg_relu(tape, hg_row_sum(tape, x));
	if (taken == SHARE || taken == QUOTIENT || taken == SUM)
		x = hg_div(tape, hg_tape_input(tape, b->tensor[2], "dividend", -1.0), x);
	else
		x = taken == LOG ? hg_log(tape, x) : hg_sqrt(tape, x);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, x, targets_of(b, tape), HG_NONE);
}

static void what_fp32_cannot_mend_it_is_not_offered_for(void)
{
	static const struct {
		enum taken taken;
		float x, dividend;
		const char *op, *first, *headline; /* first: a call; "": by hand */
		int backward;
	} rows[] = {
	    {LOG, -0.25f, 0, "log", "", "Logarithm of a negative number, -0.25: ", 0},
	    {LOG, 0.0f, 0, "log", "", "Logarithm of zero: ", 0},
	    {ROOT, -4.0f, 0, "sqrt", "", "Root of a negative number, -4: ", 0},
	    {ROOT, 0.0f, 0, "sqrt", "", "Root of zero: ", 1},
	    {QUOTIENT, 0.0f, 0.0f, "div", "", "Division by zero: ", 0},
	    {QUOTIENT, 0.0f, -1.0f, "div", "", "Division by zero: ", 0},
	    {QUOTIENT, 0x1p-20f, 1.0f, "div", "policy = hg_policy_fp32()", "Division by zero: ", 0},
	    {SHARE, 1.0f, 1.0f, "div", "policy = hg_policy_fp32()", "Division by zero: ", 0},
	    {SUM, 1.0f, 1.0f, "div", "policy = hg_policy_fp32()", "Division by zero: ", 0},
	    {SUM, 0.0f, 1.0f, "div", "", "Division by zero: ", 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char headline[400];
		struct ward w;
		float x[3][2], dividend[3][2], target[3][2];
		for (int k = 0; k < 6; k++) {
			const int shares = rows[i].taken == SHARE || rows[i].taken == SUM;
			x[k / 2][k % 2] = shares ? 60000.0f : 1.0f;
			dividend[k / 2][k % 2] = shares ? 0.0f : 1.0f;
			target[k / 2][k % 2] = 0.5f;
		}
		x[1][1] = rows[i].x;
		dividend[1][1] = rows[i].dividend;
		if (rows[i].taken == SUM) { /* a row of nothing else: 0 / 0, and 1 / 0 */
			x[1][0] = x[1][1];
			dividend[1][0] = dividend[1][1];
		}
		taken = rows[i].taken;
		ward_open(&w, hg_policy_fp16(), taken_scene);
		tensor_of(&w.bench, HG_F16, 3, 2, x, HG_F32);
		tensor_of(&w.bench, HG_F16, 3, 2, target, HG_F32);
		tensor_of(&w.bench, HG_F16, 3, 2, dividend, HG_F32);
		ward_compile(&w);
		const hg_finding *f = ward_expect(&w, HG_CAUSE_ZERO, rows[i].backward, rows[i].op, "there",
		                                  1, rows[i].taken != SUM);
		first_is(f, rows[i].first);
		CHECK(*rows[i].first || !offers(f, "policy"));
		(void)hg_finding_headline(f, NULL, NULL, headline, sizeof headline);
		test_note("%s", headline);
		CHECK_CONTAINS(headline, rows[i].headline);
		ward_close(&w);
	}
}

/* ---- sums that are too large ---- */

static int multiplies; /* by a weight, on the way to the sum */

static hg_var sum_scene(struct bench *b, hg_tape *tape)
{
	hg_var y = x_of(b, tape);
	hg_tape_scope(tape, "sum");
	if (multiplies)
		y = hg_linear(tape, y, hg_tape_param(tape, param(b, "w", 1, 1)), HG_NONE);
	y = hg_spmm(tape, b->graph, y, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	y = hg_bias_add(tape, hg_scale(tape, y, 0x1p-10f), hg_tape_param(tape, param(b, "b", 1, 1)));
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* A good step, then features of another size. */
static const hg_finding *later(struct ward *w, float x)
{
	float large[1201];
	for (int i = 0; i < 1201; i++)
		large[i] = x;
	CHECK_OK(hg_tape_forward(w->bench.tape));
	CHECK_OK(hg_tape_backward(w->bench.tape));
	CHECK_OK(hg_optim_step(w->optim));
	CHECK_OK(hg_tensor_upload(w->bench.tensor[0], large, HG_F32));
	return ward_expect(w, HG_CAUSE_STORE, 0, "spmm", "sum", 0, 0);
}

/* Rates and clipping are advised where a weight stands above the sum, after a step, and else not;
 * the type of that one result first: it leaves the model what it is. */
static void no_rate_mends_a_sum_of_raw_features(void)
{
	const float one = 1.0f;
	for (multiplies = 0; multiplies < 2; multiplies++)
		for (int promotes = 0; promotes < 2; promotes++) {
			struct ward w;
			hg_policy policy = hg_policy_fp16();
			policy.unproved = promotes ? HG_UNPROVED_PROMOTE : HG_UNPROVED_GUARD;
			ward_open(&w, policy, sum_scene);
			w.bench.graph = star(w.bench.ctx, 1201);
			constant_tensor(&w.bench, 1201, 1, promotes ? 60.0f : 1.0f);
			constant_tensor(&w.bench, 1201, 1, 0.0f);
			CHECK_OK(hg_param_set(param(&w.bench, "w", 1, 1), &one));
			ward_compile(&w);
			if (promotes) {
				(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
			} else {
				const hg_finding *f = later(&w, 60.0f);
				first_is(f, "policy.unproved = HG_UNPROVED_PROMOTE");
				CHECK_EQ_I(offers(f, "hg_optim_set_lr"), multiplies);
				CHECK_EQ_I(offers(f, "optim_config.clip_norm"), multiplies);
				CHECK(offers(f, "hg_spmm_mean"));
			}
			ward_close(&w);
		}
}

/* Nobody stores a result of a tape of one's own in another way by itself, so sums in f32 alone
 * would
 * leave it infinite. */
static void f32_sums_are_no_remedy_of_a_result_that_does_not_fit(void)
{
	const hg_policy policies[] = {hg_policy_fp16_naive(), hg_policy_fp16_discretized()};
	const float one = 1.0f;
	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
		for (int promotes = 0; promotes < 2; promotes++) {
			struct ward w;
			hg_policy policy = policies[i];
			policy.unproved = promotes ? HG_UNPROVED_PROMOTE : HG_UNPROVED_GUARD;
			multiplies = 0;
			ward_open(&w, policy, sum_scene);
			w.bench.graph = star(w.bench.ctx, 1201);
			constant_tensor(&w.bench, 1201, 1, promotes ? 60.0f : 1.0f);
			constant_tensor(&w.bench, 1201, 1, 0.0f);
			CHECK_OK(hg_param_set(param(&w.bench, "w", 1, 1), &one));
			ward_compile(&w);
			if (promotes) {
				(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
			} else {
				const hg_finding *f = later(&w, 60.0f);
				first_is(f, "policy.unproved = HG_UNPROVED_PROMOTE");
				CHECK(!offers(f, "policy = hg_policy_fp16"));
			}
			ward_close(&w);
		}
}

/* 60 x 1200 and then -60 x 1199 fit as a sum: a mean of the same is summed in the same way. */
static void a_mean_is_no_remedy_of_a_running_sum(void)
{
	struct ward w;
	float x[1201];
	for (int i = 0; i < 1201; i++)
		x[i] = i <= 1200 / 2 ? 120.0f : -120.0f;
	multiplies = 0;
	ward_open(&w, hg_policy_fp16_naive(), sum_scene);
	w.bench.graph = star(w.bench.ctx, 1201);
	tensor_of(&w.bench, HG_F16, 1201, 1, x, HG_F32);
	constant_tensor(&w.bench, 1201, 1, 0.0f);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_ACCUMULATION, 0, "spmm", "sum", 0, 0);
	first_is(f, "policy = hg_policy_fp16()");
	CHECK(!offers(f, "hg_spmm_mean"));
	ward_close(&w);
}

/* ---- what is stored x 2^-k ---- */

static hg_var scaled_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "sum");
	hg_var y = hg_spmm(tape, b->graph, x_of(b, tape), HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, "product");
	y = hg_linear(tape, y, hg_tape_param(tape, param(b, "w", 2, 2)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* The hub's sum is 80000 and everybody else has 2^-13: x 2^-14 that is nothing. Of 2^-8 all is
 * left,
 * and what f16 has no room for in any measure, 2^-26, is not the scale's doing. */
static void a_scale_that_erases_the_others_is_named(void)
{
	static const float small[] = {0x1p-13f, 0x1p-8f, 0.0f};
	for (int i = 0; i < 3; i++) {
		struct ward w;
		float x[41][2], weight[4] = {0x1p-10f, 0.0f, 0.0f, 0x1p-10f};
		for (int k = 0; k < 41; k++) {
			x[k][0] = k == 1 || k == 2 ? 40000.0f : small[i];
			x[k][1] = small[i];
		}
		ward_open(&w, hg_policy_fp16(), scaled_scene);
		w.bench.graph = star(w.bench.ctx, 41);
		tensor_of(&w.bench, HG_F16, 41, 2, x, HG_F32);
		constant_tensor(&w.bench, 41, 2, 0.0f);
		ward_rescale(&w, "spmm", "sum", 14);
		ward_compile(&w);
		CHECK_OK(hg_param_set(param(&w.bench, "w", 2, 2), weight));
		if (i == 0) {
			const hg_finding *f = ward_expect(&w, HG_CAUSE_UNDERFLOW, 0, "spmm", "sum", 1, 1);
			CHECK(f->shift == 14 && f->got == 0.0 && f->wide == 0x1p-13);
			CHECK_EQ_I(f->bad, 38 + 40);
			first_is(f, "policy.unproved = HG_UNPROVED_PROMOTE");
		} else {
			(void)ward_examine(&w);
			for (int k = 0; k < w.report->findings; k++)
				CHECK(w.report->finding[k].backward);
		}
		ward_close(&w);
	}
}

/* ---- updates ---- */

static hg_var product_scene(struct bench *b, hg_tape *tape)
{
	const hg_var w = hg_tape_param(tape, param(b, "w", 2, 2));
	return hg_mse(tape, hg_linear(tape, x_of(b, tape), w, HG_NONE), targets_of(b, tape), HG_NONE);
}

static void product_open(struct ward *w, hg_policy policy, hg_optim_config config)
{
	static const float weight[4] = {0.5f, -0.25f, 0.125f, 0.5f};
	ward_open(w, policy, product_scene);
	constant_tensor(&w->bench, 4, 2, 1.0f);
	constant_tensor(&w->bench, 4, 2, 0.0f);
	CHECK_OK(hg_param_set(param(&w->bench, "w", 2, 2), weight));
	ward_compile_with(w, config);
}

/* The rate, or the decay, that is advised is put in force, and the step examined again. */
static void the_rate_that_is_advised_helps(void)
{
	static const struct {
		hg_optim_kind kind;
		float lr, decay;
		const char *call;
	} rows[] = {{HG_ADAM, 1e6f, 0.0f, "hg_optim_set_lr(optim, 0, %ff)"},
	            {HG_ADAMW, 1e30f, 0.0f, "hg_optim_set_lr(optim, 0, %ff)"},
	            {HG_SGD, 1e7f, 0.0f, "hg_optim_set_lr(optim, 0, %ff)"},
	            {HG_ADAMW, 0.01f, 1e9f, "optim_config.weight_decay = %f"},
	            {HG_SGD, 0.1f, 1e8f, "optim_config.weight_decay = %f"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		struct ward w;
		float advised = -1.0f;
		config.kind = rows[i].kind;
		config.lr = rows[i].lr;
		config.weight_decay = rows[i].decay;
		product_open(&w, hg_policy_fp16(), config);
		const hg_finding *f = ward_examine(&w);
		CHECK(f && f->cause == HG_CAUSE_OPTIMISER);
		test_note("%s: %s", f->sentence, f->remedies ? f->remedy[0].call : "");
		CHECK(f->remedies && sscanf(f->remedy[0].call, rows[i].call, &advised) == 1);
		CHECK(advised > 0.0f && advised < (rows[i].decay > 0.0f ? rows[i].decay : rows[i].lr));
		CHECK(!offers(f, "optim_config.clip_norm")); /* of Adam's steps none, of these rates none */
		*(rows[i].decay > 0.0f ? &config.weight_decay : &config.lr) = advised;
		ward_close(&w);
		product_open(&w, hg_policy_fp16(), config);
		CHECK(ward_examine(&w) == NULL);
		ward_close(&w);
	}
}

/* A gradient whose square is beyond f32: a rate takes it as it is, clipping does not. */
static void a_moment_that_is_beyond_f32_is_clipped(void)
{
	for (int clips = 0; clips < 2; clips++) {
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		struct ward w;
		float x[4][2] = {{1e11f}}, target[4][2] = {{-1.6e11f}};
		config.clip_norm = clips ? 1.0f : 0.0f;
		ward_open(&w, hg_policy_fp32(), product_scene);
		tensor_of(&w.bench, HG_F32, 4, 2, x, HG_F32);
		tensor_of(&w.bench, HG_F32, 4, 2, target, HG_F32);
		ward_compile_with(&w, config);
		const hg_finding *f = ward_examine(&w);
		test_note("%s", f ? f->sentence : "none");
		if (clips)
			CHECK(f == NULL || f->cause != HG_CAUSE_OPTIMISER);
		else {
			CHECK(f && f->cause == HG_CAUSE_OPTIMISER);
			first_is(f, "optim_config.clip_norm = 1");
			CHECK(!offers(f, "hg_optim_set_lr"));
		}
		ward_close(&w);
	}
}

/* What a state brings is bad before the step begins, beside whatever else is. */
static void a_moment_that_was_bad_is_an_input(void)
{
	static const struct {
		int moment;
		float value;
		const char *tensor;
	} rows[] = {{0, NAN, "first moment of w"},
	            {1, INFINITY, "second moment of w"},
	            {1, -1.0f, "second moment of w"}};
	for (int sick = 0; sick < 2; sick++)
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
			char headline[400];
			struct ward w;
			hg_state *state = NULL;
			product_open(&w, hg_policy_fp16(), config);
			CHECK(ward_examine(&w) == NULL);
			CHECK_OK(hg_optim_get_state(w.optim, &state));
			state->tensor[0].moment[rows[i].moment][2] = rows[i].value;
			if (sick)
				state->tensor[0].master[1] = NAN;
			CHECK_OK(hg_optim_set_state(w.optim, state));
			hg_state_free(state);
			(void)ward_examine(&w);
			CHECK(w.report->findings > sick);
			const hg_finding *f = &w.report->finding[sick];
			test_note("%s", f->sentence);
			CHECK(f->cause == HG_CAUSE_INPUT && f->row == 1 && f->col == 0 && f->bad == 1);
			CHECK_STR(f->tensor, rows[i].tensor);
			CHECK_STR(f->op, "adam");
			first_is(f, "");
			CHECK_EQ_I(f->remedies, 1);
			(void)hg_finding_headline(f, NULL, NULL, headline, sizeof headline);
			CHECK_CONTAINS(headline, "Optimiser's state bad before the step: row 1 of ");
			ward_close(&w);
		}
}

/* A first moment of 1e20 is a number, and throws its weight out of f16 whatever the rate is; a
 * momentum of SGD likewise. */
static void a_moment_from_elsewhere_is_no_rate(void)
{
	for (int sgd = 0; sgd < 2; sgd++) {
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		struct ward w;
		hg_state *state = NULL;
		config.kind = sgd ? HG_SGD : HG_ADAM;
		config.momentum = sgd ? 0.9f : 0.0f;
		product_open(&w, hg_policy_fp16(), config);
		CHECK_OK(hg_optim_get_state(w.optim, &state));
		state->tensor[0].moment[0][2] = 1e20f;
		CHECK_OK(hg_optim_set_state(w.optim, state));
		hg_state_free(state);
		const hg_finding *f = ward_examine(&w);
		CHECK(f && f->cause == HG_CAUSE_OPTIMISER);
		first_is(f, "");
		CHECK_EQ_I(f->remedies, 1);
		ward_close(&w);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_cast_of_ones_own_is_an_op),
	    TEST(what_fp32_cannot_mend_it_is_not_offered_for),
	    TEST(no_rate_mends_a_sum_of_raw_features),
	    TEST(f32_sums_are_no_remedy_of_a_result_that_does_not_fit),
	    TEST(a_mean_is_no_remedy_of_a_running_sum),
	    TEST(a_scale_that_erases_the_others_is_named),
	    TEST(the_rate_that_is_advised_helps),
	    TEST(a_moment_that_is_beyond_f32_is_clipped),
	    TEST(a_moment_that_was_bad_is_an_input),
	    TEST(a_moment_from_elsewhere_is_no_rate),
	};
	return RUN_TESTS(argc, argv, cases);
}
