/* Silent faults, which leave all numbers finite, and runs that only look as if they had one: f16
 * sums whose large addends cancel, and gradients that are rounded to zero because the run has
 * converged. */
#include "unit/doctor_subject.h"

/* ---- sums whose large addends cancel ---- */

static hg_var record_sum_of_x(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	const hg_var x = x_of(b, tape);
	const hg_var h = hg_spmm(tape, b->graph, x, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, h, 0x1p-8f), targets_of(b, tape), HG_NONE);
}

/* Column 1 has `first`, then n times `small`, then `last`. The other columns have numbers of either
 * sign. */
static void subject_cancelling(struct subject *s, hg_policy policy, int32_t n, float first,
                               float small, float last)
{
	const int32_t nodes = n + 3;
	float *x = calloc((size_t)nodes * 3, sizeof *x);
	CHECK(x != NULL);
	for (int32_t i = 1; i < nodes; i++) {
		x[3 * i] = (float)(2.0 * test_uniform() - 1.0);
		x[3 * i + 1] = i == 1 ? first : i == nodes - 1 ? last : small;
		x[3 * i + 2] = i % 2 ? 100.0f : -100.0f;
	}
	subject_open(s, policy, record_sum_of_x);
	s->bench.graph = coo_graph(s->bench.ctx, coo_star_loops(nodes));
	tensor_of(&s->bench, HG_F16, nodes, 3, x, HG_F32);
	constant_tensor(&s->bench, nodes, 3, 0.0f);
	free(x);
	subject_compile(s);
}

/* 30000 + 3397 x 0.2 - 29984: near 30000 a unit is 16, so every 0.2 is ignored. That is 1 % of the
 * sum of all sizes, but 98 % of the result. (0.2 is 0.19995 in f16.) */
static void swamping_of_a_cancelled_sum_is_found(void)
{
	struct subject s;
	subject_cancelling(&s, hg_policy_fp16_naive(), 3397, 30000.0f, 0.2f, -29984.0f);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 1);
	CHECK(f->got == 16.0 && fabs(f->wide - 695.2) < 0.5);
	CHECK_EQ_I(f->ignored, 3397);
	CHECK(f->terms == 3399 && f->partial == 30000.0);
	subject_close(&s);
}

/* The sum is 0 in place of 700 or -700, which is no underflow, because f16 holds these numbers. */
static void swamped_sum_of_zero_is_no_underflow(void)
{
	for (float sign = -1.0f; sign <= 1.0f; sign += 2.0f) {
		struct subject s;
		subject_cancelling(&s, hg_policy_fp16_naive(), 3500, sign * 30000.0f, sign * 0.2f,
		                   -sign * 30000.0f);
		const hg_finding *f = expect_finding(&s, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 1);
		CHECK(f->got == 0.0 && fabs(f->wide - (double)sign * 700.0) < 1.0);
		CHECK_EQ_I(s.report->findings, 1);
		subject_close(&s);
	}
}

/* A sum in f32 ignores nothing. In f16 sums of numbers of similar sizes that cancel, the error is
 * noise. */
static void sums_that_only_cancel_are_healthy(void)
{
	struct subject s;
	subject_cancelling(&s, hg_policy_fp16(), 3397, 30000.0f, 0.2f, -29984.0f);
	expect_healthy(&s);
	subject_close(&s);
	for (int32_t n = 10; n < 5000; n *= 3) {
		subject_cancelling(&s, hg_policy_fp16_naive(), n, 1.0f, 0.0f, -0.5f);
		expect_healthy(&s);
		subject_close(&s);
	}
}

/* ---- converged runs ---- */

/* The logits are x w, where w is the identity; all labels are 0. */
static hg_var record_two_classes(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "features", -1.0);
	const hg_var h = hg_linear(tape, x, hg_tape_param(tape, param(b, "w", 2, 2)), HG_NONE);
	return hg_softmax_xent(tape, h, hg_tape_input(tape, b->tensor[1], "labels", 1.0), HG_NONE);
}

/* The logits are `half_gap` and -half_gap. */
static void subject_two_classes(struct subject *s, float scale, float half_gap)
{
	const float identity[4] = {1.0f, 0.0f, 0.0f, 1.0f};
	const int32_t label[50] = {0};
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = scale;
	subject_open(s, policy, record_two_classes);
	float x[50][2];
	for (int i = 0; i < 50; i++) {
		x[i][0] = half_gap;
		x[i][1] = -half_gap;
	}
	tensor_of(&s->bench, HG_F16, 50, 2, x, HG_F32);
	tensor_of(&s->bench, HG_I32, 50, 1, label, HG_I32);
	CHECK_OK(hg_param_set(param(&s->bench, "w", 2, 2), identity));
	subject_compile(s);
}

/* 1 - p = exp(-2 half_gap). From 20 on the loss is 0 in f32, so there is no gradient. At 8 and loss
 * scale 1 the loss is 1e-7, and its gradient is rounded to zero. */
static void converged_run_is_healthy(void)
{
	struct subject s;
	for (float half_gap = 10.0f; half_gap < 100.0f; half_gap *= 2.0f) {
		subject_two_classes(&s, 65536.0f, half_gap);
		expect_healthy(&s);
		subject_close(&s);
	}
	subject_two_classes(&s, 1.0f, 8.0f);
	(void)expect_finding(&s, HG_CAUSE_UNDERFLOW, 1, "softmax_xent", "", 0, 0);
	subject_close(&s);
}

static hg_var record_distance(struct bench *b, hg_tape *tape)
{
	const hg_var x = x_of(b, tape);
	return hg_mse(tape, hg_scale(tape, x, 1.0f), targets_of(b, tape), HG_NONE);
}

/* A regression that has come within 5e-7 of its targets. A doctor that has seen an earlier step
 * with large gradients reports nothing; a doctor that has not cannot know that the run has
 * converged. */
static void gradient_far_below_an_earlier_one_is_healthy(void)
{
	for (int saw_earlier = 0; saw_earlier < 2; saw_earlier++) {
		struct subject s;
		float target[64];
		hg_policy policy = hg_policy_fp16();
		policy.loss_scale.init_scale = 1.0f;
		subject_open(&s, policy, record_distance);
		constant_tensor(&s.bench, 64, 1, 4.0f);
		for (int i = 0; i < 64; i++)
			target[i] = saw_earlier ? 100.0f : 4.0f + 5e-7f;
		hg_tensor *targets = tensor_of(&s.bench, HG_F32, 64, 1, target, HG_F32);
		subject_compile(&s);
		if (saw_earlier)
			expect_healthy(&s);
		for (int i = 0; i < 64; i++)
			target[i] = 4.0f + 5e-7f;
		CHECK_OK(hg_tensor_upload(targets, target, HG_F32));
		(void)subject_examine(&s);
		CHECK_EQ_I(s.report->findings, !saw_earlier);
		subject_close(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(swamping_of_a_cancelled_sum_is_found),
	    TEST(swamped_sum_of_zero_is_no_underflow),
	    TEST(sums_that_only_cancel_are_healthy),
	    TEST(converged_run_is_healthy),
	    TEST(gradient_far_below_an_earlier_one_is_healthy),
	};
	return RUN_TESTS(argc, argv, cases);
}
