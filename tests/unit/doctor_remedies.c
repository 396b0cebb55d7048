/* Remedies for tapes of the user's own: the first one helps, and what cannot help is not offered.
 * Where a remedy can be applied here, the step is examined once more with it. */
#include <stdio.h>
#include <string.h>

#include "unit/doctor_subject.h"

/* Does the call of a remedy begin like this? */
static int offers(const hg_finding *f, const char *call)
{
	for (int i = 0; i < f->remedies; i++)
		if (strncmp(f->remedy[i].call, call, strlen(call)) == 0)
			return 1;
	return 0;
}

static void expect_first(const hg_finding *f, const char *call)
{
	CHECK(f->remedies > 0);
	for (int i = 0; i < f->remedies; i++)
		test_note("%s: %s", f->remedy[i].call, f->remedy[i].why);
	CHECK_STR(f->remedy[0].call, call);
}

/* ---- casts ---- */

static hg_dtype cast_type; /* of the product */

static hg_var record_cast(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "mix");
	hg_var y = hg_linear(tape, hg_tape_input(tape, b->tensor[0], "x", -1.0),
	                     hg_tape_param(tape, param(b, "w", 3, 3)), HG_NONE);
	y = hg_cast(tape, hg_cast(tape, y, cast_type), HG_F32);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* The user wrote the cast, so it is the op at fault. The wider cast that is offered helps. */
static void cast_to_f16_is_at_fault(void)
{
	static const float one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
	for (int remedied = 0; remedied < 2; remedied++) {
		struct subject s;
		float x[6][3] = {{1.0f}};
		x[4][2] = -1e5f;
		cast_type = remedied ? HG_F32 : HG_F16;
		subject_open(&s, hg_policy_fp32(), record_cast);
		tensor_of(&s.bench, HG_F32, 6, 3, x, HG_F32);
		tensor_of(&s.bench, HG_F32, 6, 3, x, HG_F32);
		subject_compile(&s);
		CHECK_OK(hg_param_set(param(&s.bench, "w", 3, 3), one));
		if (remedied) {
			expect_healthy(&s);
		} else {
			const hg_finding *f = expect_finding(&s, HG_CAUSE_STORE, 0, "cast", "mix", 4, 2);
			CHECK(f->wide == -1e5);
			expect_first(f, "hg_cast(tape, x, HG_F32)");
			CHECK(!offers(f, "policy"));
		}
		subject_close(&s);
	}
}

/* ---- logarithms, roots and quotients ---- */

enum critical { LOG, ROOT, QUOTIENT, SMALL_QUOTIENT, SUM_QUOTIENT };
static enum critical critical;

/* The logarithm or root of x, or a quotient. The divisor is x; 2^-32 of it (SMALL_QUOTIENT); or the
 * sum of these over the row (SUM_QUOTIENT). */
static hg_var record_critical(struct bench *b, hg_tape *tape)
{
	hg_var x = x_of(b, tape);
	hg_tape_scope(tape, "critical");
	if (critical == SMALL_QUOTIENT || critical == SUM_QUOTIENT)
		x = hg_scale(tape, hg_scale(tape, x, 0x1p-16f), 0x1p-16f);
	if (critical == SUM_QUOTIENT)
		x = hg_relu(tape, hg_row_sum(tape, x));
	if (critical == SMALL_QUOTIENT || critical == QUOTIENT || critical == SUM_QUOTIENT)
		x = hg_div(tape, hg_tape_input(tape, b->tensor[2], "dividend", -1.0), x);
	else
		x = critical == LOG ? hg_log(tape, x) : hg_sqrt(tape, x);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, x, targets_of(b, tape), HG_NONE);
}

/* A case: element (1, 1), or the whole row 1 for SUM_QUOTIENT, has x and the dividend. */
struct critical_case {
	enum critical op;
	float x, dividend;
	const char *name, *first, *headline; /* first: a call; "": by hand */
	int backward;
};

static void subject_critical(struct subject *s, const struct critical_case *c)
{
	const int is_small = c->op == SMALL_QUOTIENT || c->op == SUM_QUOTIENT;
	float x[3][2], dividend[3][2];
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++) {
			const int is_critical = i == 1 && (k == 1 || c->op == SUM_QUOTIENT);
			x[i][k] = is_critical ? c->x : is_small ? 60000.0f : 1.0f;
			dividend[i][k] = is_critical ? c->dividend : is_small ? 0.0f : 1.0f;
		}
	critical = c->op;
	subject_open(s, hg_policy_fp16(), record_critical);
	tensor_of(&s->bench, HG_F16, 3, 2, x, HG_F32);
	constant_tensor(&s->bench, 3, 2, 0.5f);
	tensor_of(&s->bench, HG_F16, 3, 2, dividend, HG_F32);
	subject_compile(s);
}

static void fp32_is_offered_only_where_it_helps(void)
{
	static const struct critical_case rows[] = {
	    {LOG, -0.25f, 0, "log", "", "Logarithm of a negative number, -0.25: ", 0},
	    {LOG, 0.0f, 0, "log", "", "Logarithm of zero: ", 0},
	    {ROOT, -4.0f, 0, "sqrt", "", "Root of a negative number, -4: ", 0},
	    {ROOT, 0.0f, 0, "sqrt", "", "Root of zero: ", 1},
	    {QUOTIENT, 0.0f, 0.0f, "div", "", "Division by zero: ", 0},
	    {QUOTIENT, 0.0f, -1.0f, "div", "", "Division by zero: ", 0},
	    {QUOTIENT, 0x1p-20f, 1.0f, "div", "policy = hg_policy_fp32()", "Division by zero: ", 0},
	    {SMALL_QUOTIENT, 1.0f, 1.0f, "div", "policy = hg_policy_fp32()", "Division by zero: ", 0},
	    {SUM_QUOTIENT, 1.0f, 1.0f, "div", "policy = hg_policy_fp32()", "Division by zero: ", 0},
	    {SUM_QUOTIENT, 0.0f, 1.0f, "div", "", "Division by zero: ", 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char headline[400];
		struct subject s;
		subject_critical(&s, &rows[i]);
		const hg_finding *f = expect_finding(&s, HG_CAUSE_ZERO, rows[i].backward, rows[i].name,
		                                     "critical", 1, rows[i].op != SUM_QUOTIENT);
		expect_first(f, rows[i].first);
		CHECK(*rows[i].first || !offers(f, "policy"));
		(void)hg_finding_headline(f, NULL, NULL, headline, sizeof headline);
		test_note("%s", headline);
		CHECK_CONTAINS(headline, rows[i].headline);
		subject_close(&s);
	}
}

/* ---- sums that are too large ---- */

static int multiplies_by_weight; /* before the sum */

static hg_var record_sum_of_x(struct bench *b, hg_tape *tape)
{
	hg_var y = x_of(b, tape);
	hg_tape_scope(tape, "sum");
	if (multiplies_by_weight)
		y = hg_linear(tape, y, hg_tape_param(tape, param(b, "w", 1, 1)), HG_NONE);
	y = hg_spmm(tape, b->graph, y, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	y = hg_bias_add(tape, hg_scale(tape, y, 0x1p-10f), hg_tape_param(tape, param(b, "b", 1, 1)));
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* A step with small features, then features of x, whose sum overflows. */
static const hg_finding *step_and_enlarge_features(struct subject *s, float x)
{
	float large[1201];
	for (int i = 0; i < 1201; i++)
		large[i] = x;
	subject_step(s);
	CHECK_OK(hg_tensor_upload(s->bench.tensor[0], large, HG_F32));
	return expect_finding(s, HG_CAUSE_STORE, 0, "spmm", "sum", 0, 0);
}

/* A lower rate and clipping are offered if the sum depends on a weight. The first remedy promotes
 * only this result, so the model stays the same. */
static void rates_are_offered_only_where_weights_are_read(void)
{
	const float one = 1.0f;
	for (multiplies_by_weight = 0; multiplies_by_weight < 2; multiplies_by_weight++)
		for (int promotes = 0; promotes < 2; promotes++) {
			struct subject s;
			hg_policy policy = hg_policy_fp16();
			policy.unproved = promotes ? HG_UNPROVED_PROMOTE : HG_UNPROVED_GUARD;
			subject_open(&s, policy, record_sum_of_x);
			s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(1201));
			constant_tensor(&s.bench, 1201, 1, promotes ? 60.0f : 1.0f);
			constant_tensor(&s.bench, 1201, 1, 0.0f);
			CHECK_OK(hg_param_set(param(&s.bench, "w", 1, 1), &one));
			subject_compile(&s);
			if (promotes) {
				expect_healthy(&s);
			} else {
				const hg_finding *f = step_and_enlarge_features(&s, 60.0f);
				expect_first(f, "policy.unproved = HG_UNPROVED_PROMOTE");
				CHECK_EQ_I(offers(f, "hg_optim_set_lr"), multiplies_by_weight);
				CHECK_EQ_I(offers(f, "optim_config.clip_norm"), multiplies_by_weight);
				CHECK(offers(f, "hg_spmm_mean"));
			}
			subject_close(&s);
		}
}

/* A tape of the user's own is not recorded anew after an overflow, so with sums in f32 the result
 * would still be infinite. */
static void f32_sums_are_not_offered_for_a_result_that_does_not_fit(void)
{
	const hg_policy policies[] = {hg_policy_fp16_naive(), hg_policy_fp16_discretized()};
	const float one = 1.0f;
	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
		for (int promotes = 0; promotes < 2; promotes++) {
			struct subject s;
			hg_policy policy = policies[i];
			policy.unproved = promotes ? HG_UNPROVED_PROMOTE : HG_UNPROVED_GUARD;
			multiplies_by_weight = 0;
			subject_open(&s, policy, record_sum_of_x);
			s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(1201));
			constant_tensor(&s.bench, 1201, 1, promotes ? 60.0f : 1.0f);
			constant_tensor(&s.bench, 1201, 1, 0.0f);
			CHECK_OK(hg_param_set(param(&s.bench, "w", 1, 1), &one));
			subject_compile(&s);
			if (promotes) {
				expect_healthy(&s);
			} else {
				const hg_finding *f = step_and_enlarge_features(&s, 60.0f);
				expect_first(f, "policy.unproved = HG_UNPROVED_PROMOTE");
				CHECK(!offers(f, "policy = hg_policy_fp16"));
			}
			subject_close(&s);
		}
}

/* 600 x 120 - 600 x 120 fits, but its partial sums do not. A mean would have the same partial
 * sums. */
static void mean_is_not_offered_for_a_running_sum(void)
{
	struct subject s;
	float x[1201];
	for (int i = 0; i < 1201; i++)
		x[i] = i <= 1200 / 2 ? 120.0f : -120.0f;
	multiplies_by_weight = 0;
	subject_open(&s, hg_policy_fp16_naive(), record_sum_of_x);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(1201));
	tensor_of(&s.bench, HG_F16, 1201, 1, x, HG_F32);
	constant_tensor(&s.bench, 1201, 1, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_ACCUMULATION, 0, "spmm", "sum", 0, 0);
	expect_first(f, "policy = hg_policy_fp16()");
	CHECK(!offers(f, "hg_spmm_mean"));
	subject_close(&s);
}

/* ---- rescaled results ---- */

static hg_var record_sum_and_product(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "sum");
	hg_var y = hg_spmm(tape, b->graph, x_of(b, tape), HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, "product");
	y = hg_linear(tape, y, hg_tape_param(tape, param(b, "w", 2, 2)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* The sum of node 0 is 80000, so the result is stored x 2^-14. With 2^-13 in all other rows, these
 * are rounded to zero. With 2^-8 they are not. Zeros are no fault of the shift. */
static void underflow_because_of_the_shift_is_found(void)
{
	static const float small[] = {0x1p-13f, 0x1p-8f, 0.0f};
	for (int i = 0; i < 3; i++) {
		struct subject s;
		float x[41][2], weight[4] = {0x1p-10f, 0.0f, 0.0f, 0x1p-10f};
		for (int k = 0; k < 41; k++) {
			x[k][0] = k == 1 || k == 2 ? 40000.0f : small[i];
			x[k][1] = small[i];
		}
		subject_open(&s, hg_policy_fp16(), record_sum_and_product);
		s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(41));
		tensor_of(&s.bench, HG_F16, 41, 2, x, HG_F32);
		constant_tensor(&s.bench, 41, 2, 0.0f);
		subject_rescale(&s, "spmm", "sum", 14);
		subject_compile(&s);
		CHECK_OK(hg_param_set(param(&s.bench, "w", 2, 2), weight));
		if (i == 0) {
			const hg_finding *f = expect_finding(&s, HG_CAUSE_UNDERFLOW, 0, "spmm", "sum", 1, 1);
			CHECK(f->shift == 14 && f->got == 0.0 && f->wide == 0x1p-13);
			CHECK_EQ_I(f->bad, 38 + 40);
			expect_first(f, "policy.unproved = HG_UNPROVED_PROMOTE");
		} else {
			(void)subject_examine(&s);
			for (int k = 0; k < s.report->findings; k++)
				CHECK(s.report->finding[k].backward);
		}
		subject_close(&s);
	}
}

/* ---- updates ---- */

static hg_var record_product(struct bench *b, hg_tape *tape)
{
	const hg_var w = hg_tape_param(tape, param(b, "w", 2, 2));
	return hg_mse(tape, hg_linear(tape, x_of(b, tape), w, HG_NONE), targets_of(b, tape), HG_NONE);
}

static void subject_product(struct subject *s, hg_policy policy, hg_optim_config config)
{
	static const float weight[4] = {0.5f, -0.25f, 0.125f, 0.5f};
	subject_open(s, policy, record_product);
	constant_tensor(&s->bench, 4, 2, 1.0f);
	constant_tensor(&s->bench, 4, 2, 0.0f);
	CHECK_OK(hg_param_set(param(&s->bench, "w", 2, 2), weight));
	subject_compile_with(s, config);
}

/* The rate, or the decay, that is offered is put in force, and the step is examined once more. */
static void offered_rate_or_decay_helps(void)
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
		struct subject s;
		float offered = -1.0f;
		config.kind = rows[i].kind;
		config.lr = rows[i].lr;
		config.weight_decay = rows[i].decay;
		subject_product(&s, hg_policy_fp16(), config);
		const hg_finding *f = subject_examine(&s);
		CHECK(f && f->cause == HG_CAUSE_OPTIMISER);
		test_note("%s: %s", f->sentence, f->remedies ? f->remedy[0].call : "");
		CHECK(f->remedies && sscanf(f->remedy[0].call, rows[i].call, &offered) == 1);
		CHECK(offered > 0.0f && offered < (rows[i].decay > 0.0f ? rows[i].decay : rows[i].lr));
		CHECK(!offers(f, "optim_config.clip_norm"));
		*(rows[i].decay > 0.0f ? &config.weight_decay : &config.lr) = offered;
		subject_close(&s);
		subject_product(&s, hg_policy_fp16(), config);
		expect_healthy(&s);
		subject_close(&s);
	}
}

/* The gradient fits f32, but its square does not. A lower rate does not change that; clipping
 * does. */
static void clipping_is_offered_for_a_moment_beyond_f32(void)
{
	for (int clips = 0; clips < 2; clips++) {
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		struct subject s;
		float x[4][2] = {{1e11f}}, target[4][2] = {{-1.6e11f}};
		config.clip_norm = clips ? 1.0f : 0.0f;
		subject_open(&s, hg_policy_fp32(), record_product);
		tensor_of(&s.bench, HG_F32, 4, 2, x, HG_F32);
		tensor_of(&s.bench, HG_F32, 4, 2, target, HG_F32);
		subject_compile_with(&s, config);
		const hg_finding *f = subject_examine(&s);
		if (clips)
			CHECK(f == NULL || f->cause != HG_CAUSE_OPTIMISER);
		else {
			CHECK(f && f->cause == HG_CAUSE_OPTIMISER);
			expect_first(f, "optim_config.clip_norm = 1");
			CHECK(!offers(f, "hg_optim_set_lr"));
		}
		subject_close(&s);
	}
}

/* A moment that a state brings is bad before the step begins; it is found beside a bad weight,
 * too. */
static void bad_moment_of_a_state_is_an_input(void)
{
	static const struct {
		int moment;
		float value;
		const char *tensor;
	} rows[] = {{0, NAN, "first moment of w"},
	            {1, INFINITY, "second moment of w"},
	            {1, -1.0f, "second moment of w"}};
	for (int bad_weight = 0; bad_weight < 2; bad_weight++)
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
			char headline[400];
			struct subject s;
			hg_state *state = NULL;
			subject_product(&s, hg_policy_fp16(), config);
			expect_healthy(&s);
			CHECK_OK(hg_optim_get_state(s.optim, &state));
			state->tensor[0].moment[rows[i].moment][2] = rows[i].value;
			if (bad_weight)
				state->tensor[0].master[1] = NAN;
			CHECK_OK(hg_optim_set_state(s.optim, state));
			hg_state_free(state);
			(void)subject_examine(&s);
			CHECK(s.report->findings > bad_weight);
			const hg_finding *f = &s.report->finding[bad_weight];
			CHECK(f->cause == HG_CAUSE_INPUT && f->row == 1 && f->col == 0 && f->bad == 1);
			CHECK_STR(f->tensor, rows[i].tensor);
			CHECK_STR(f->op, "adam");
			expect_first(f, "");
			CHECK_EQ_I(f->remedies, 1);
			(void)hg_finding_headline(f, NULL, NULL, headline, sizeof headline);
			CHECK_CONTAINS(headline, "Optimiser's state bad before the step: row 1 of ");
			subject_close(&s);
		}
}

/* A first moment of 1e20 moves its weight out of f16 at any rate; so does a momentum of SGD. */
static void large_moment_of_a_state_is_not_blamed_on_the_rate(void)
{
	for (int sgd = 0; sgd < 2; sgd++) {
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		struct subject s;
		hg_state *state = NULL;
		config.kind = sgd ? HG_SGD : HG_ADAM;
		config.momentum = sgd ? 0.9f : 0.0f;
		subject_product(&s, hg_policy_fp16(), config);
		CHECK_OK(hg_optim_get_state(s.optim, &state));
		state->tensor[0].moment[0][2] = 1e20f;
		CHECK_OK(hg_optim_set_state(s.optim, state));
		hg_state_free(state);
		const hg_finding *f = subject_examine(&s);
		CHECK(f && f->cause == HG_CAUSE_OPTIMISER);
		expect_first(f, "");
		CHECK_EQ_I(f->remedies, 1);
		subject_close(&s);
	}
}

/* ---- calls ---- */

static hg_var record_scores(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "scores");
	const hg_var p = hg_softmax(tape, x_of(b, tape));
	return hg_mse(tape, hg_log(tape, p), targets_of(b, tape), HG_NONE);
}

/* Tapes of the user's own have no options. */
static void remedies_of_a_tape_are_calls(void)
{
	struct subject s;
	float x[3][4] = {{0}};
	x[1][2] = -60.0f;
	subject_open(&s, hg_policy_fp16(), record_scores);
	tensor_of(&s.bench, HG_F16, 3, 4, x, HG_F32);
	constant_tensor(&s.bench, 3, 4, 0.0f);
	subject_compile(&s);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_ZERO, 0, "log", "scores", 1, 2);
	CHECK(f->remedies > 0);
	CHECK(strstr(f->remedy[0].call, "hg_log_softmax") != NULL);
	for (int i = 0; i < f->remedies; i++)
		CHECK_STR(f->remedy[i].option, "");
	subject_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(cast_to_f16_is_at_fault),
	    TEST(fp32_is_offered_only_where_it_helps),
	    TEST(rates_are_offered_only_where_weights_are_read),
	    TEST(f32_sums_are_not_offered_for_a_result_that_does_not_fit),
	    TEST(mean_is_not_offered_for_a_running_sum),
	    TEST(underflow_because_of_the_shift_is_found),
	    TEST(offered_rate_or_decay_helps),
	    TEST(clipping_is_offered_for_a_moment_beyond_f32),
	    TEST(bad_moment_of_a_state_is_an_input),
	    TEST(large_moment_of_a_state_is_not_blamed_on_the_rate),
	    TEST(remedies_of_a_tape_are_calls),
	};
	return RUN_TESTS(argc, argv, cases);
}
