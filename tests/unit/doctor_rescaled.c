/* Results that are stored x 2^-shift because they overflowed once: what the doctor reports is about
 * the results themselves. */
#include <string.h>

#include "unit/doctor_subject.h"

/* A sum of 100000 fits if it is stored x 1/2; a sum of 200000 does not. */
static void finding_in_a_rescaled_result_has_unscaled_numbers(void)
{
	const float small[6] = {0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f};
	for (int x = 50; x <= 100; x += 50) {
		struct subject s;
		subject_open(&s, hg_policy_fp16(), record_sum);
		s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(2001));
		constant_tensor(&s.bench, 2001, 3, (float)x);
		constant_tensor(&s.bench, 2001, 2, 0.0f);
		subject_rescale(&s, "spmm", "conv1", 1);
		subject_compile(&s);
		CHECK_OK(hg_param_set(hg_params_find(s.bench.params, "w"), small));
		if (x == 50) {
			expect_healthy(&s);
			for (int i = 0; i < s.report->tensors; i++)
				if (strcmp(s.report->tensor[i].name, "conv1/spmm") == 0)
					CHECK_MSG(s.report->tensor[i].shift == 1 &&
					              s.report->tensor[i].amax == 99968.0 &&
					              s.report->tensor[i].headroom < 0.5,
					          "x 2^-%d, %g, %g bits", (int)s.report->tensor[i].shift,
					          s.report->tensor[i].amax, s.report->tensor[i].headroom);
		} else {
			const hg_finding *f = expect_finding(&s, HG_CAUSE_STORE, 0, "spmm", "conv1", 0, 0);
			CHECK(f->shift == 1 && f->wide == 200000.0 && f->limit == 131040.0 && f->terms == 2000);
			CHECK(f->tops > 0 && f->top[0].value == 100.0);
			CHECK_CONTAINS(f->sentence, "stored x 2^-1");
		}
		subject_close(&s);
	}
}

/* y = 64 x + the sum over neighbours. */
static hg_var record_with_own_term(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "x", -1.0), z = hg_scale(tape, x, 64.0f);
	const hg_var y = hg_add(tape, z, hg_spmm(tape, b->graph, x, HG_NONE, HG_NORM_NONE, 1.0f));
	return hg_mse(tape, hg_linear(tape, y, hg_tape_param(tape, param(b, "w", 3, 2)), HG_NONE),
	              targets_of(b, tape), HG_NONE);
}

/* A batch norm of 64 x. */
static hg_var record_norm(struct bench *b, hg_tape *tape)
{
	const hg_var z = hg_scale(tape, hg_tape_input(tape, b->tensor[0], "x", -1.0), 64.0f);
	const hg_var n = batch_norm_of(b, tape, z, 3, 1e-5f);
	return hg_mse(tape, hg_linear(tape, n, hg_tape_param(tape, param(b, "w", 3, 2)), HG_NONE),
	              targets_of(b, tape), HG_NONE);
}

/* The own term is 70400, which fits because it is stored x 2^-4; the sum over neighbours is 2200.
 * The addition overflows, so it is at fault, and not the sum over neighbours. */
static void rescaled_operand_is_added_in_full(void)
{
	struct subject s;
	subject_open(&s, hg_policy_fp16(), record_with_own_term);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(3));
	constant_tensor(&s.bench, 3, 3, 1100.0f);
	constant_tensor(&s.bench, 3, 2, 0.0f);
	subject_rescale(&s, "scale", "", 4);
	subject_compile(&s);
	(void)expect_finding(&s, HG_CAUSE_STORE, 0, "add", "", 0, 0);
	subject_close(&s);
}

/* The columns have a usual variance, however they are stored. The overflow comes from the gain, so
 * it is no division by zero. */
static void rescaled_columns_have_no_small_variance(void)
{
	for (int shift = 0; shift <= HG_SHIFT_MOST; shift += HG_SHIFT_MOST) {
		struct subject s;
		float x[8][3];
		const float gain[3] = {65000.0f, 65000.0f, 65000.0f};
		for (int i = 0; i < 24; i++)
			x[i / 3][i % 3] = (float)(i / 3 % 3) * 0.5f + (float)(i / 3 & 1);
		subject_open(&s, hg_policy_fp16(), record_norm);
		tensor_of(&s.bench, HG_F16, 8, 3, x, HG_F32);
		constant_tensor(&s.bench, 8, 2, 0.0f);
		if (shift)
			subject_rescale(&s, "scale", "", shift);
		subject_compile(&s);
		CHECK_OK(hg_param_set(hg_params_find(s.bench.params, "gamma"), gain));
		const hg_finding *f = subject_examine(&s);
		CHECK(f && f->cause == HG_CAUSE_STORE && strcmp(f->op, "batch_norm") == 0);
		subject_close(&s);
	}
}

/* Stored x 2^-14, numbers below 2^-11 are rounded to zero, and not only those below 2^-25. */
static void underflow_of_a_rescaled_result_is_found(void)
{
	struct subject s;
	subject_open(&s, hg_policy_fp16(), record_with_own_term);
	s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(3));
	constant_tensor(&s.bench, 3, 3, 0x1p-20f);
	constant_tensor(&s.bench, 3, 2, 0.0f);
	subject_rescale(&s, "scale", "", HG_SHIFT_MOST);
	subject_compile(&s);
	const hg_finding *f = subject_examine(&s);
	CHECK(f && f->cause == HG_CAUSE_UNDERFLOW && strcmp(f->op, "scale") == 0 &&
	      f->shift == HG_SHIFT_MOST);
	CHECK(f->wide == 0x1p-14 && f->limit == 0x1p-10 && f->wide < f->limit);
	CHECK_CONTAINS(f->sentence,
	               "below half of the smallest number in fp16, 2^-10 (stored x 2^-14)");
	subject_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(finding_in_a_rescaled_result_has_unscaled_numbers),
	    TEST(rescaled_operand_is_added_in_full),
	    TEST(rescaled_columns_have_no_small_variance),
	    TEST(underflow_of_a_rescaled_result_is_found),
	};
	return RUN_TESTS(argc, argv, cases);
}
