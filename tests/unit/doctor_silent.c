/* What is finite and wrong all the same, and what looks like it and is not: sums that stood
 * still where large addends cancel, columns that an upload made zero, gradients that vanish
 * because there is nothing left to learn, and the evaluation, which a training step does not
 * show. */
#include "unit/ward.h"

/* ---- sums whose large addends cancel ---- */

/* Row 0 is the sum of all others in their order; x, a linear and a mean of squares follow. */
static hg_var sum_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	const hg_var x = hg_tape_variable(tape, b->tensor[0], "x");
	const hg_var h = hg_spmm(tape, b->graph, x, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, h, 0x1p-8f),
	              hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

/* Columns 0 and 2 hold noise of either sign that adds up to what it is; column 1 first, n times
 * `small`, last. */
static void cancel_ward(struct ward *w, hg_policy policy, int32_t n, float first, float small,
                        float last)
{
	const int32_t nodes = n + 3;
	float *x = calloc((size_t)nodes * 3, sizeof *x);
	CHECK(x != NULL);
	for (int32_t i = 1; i < nodes; i++) {
		x[3 * i] = (float)(2.0 * test_uniform() - 1.0);
		x[3 * i + 1] = i == 1 ? first : i == nodes - 1 ? last : small;
		x[3 * i + 2] = i % 2 ? 100.0f : -100.0f;
	}
	ward_open(w, policy, sum_scene);
	w->bench.graph = star(w->bench.ctx, nodes);
	tensor_of(&w->bench, HG_F16, nodes, 3, x, HG_F32);
	constant_tensor(&w->bench, nodes, 3, 0.0f);
	free(x);
	ward_compile(w);
}

/* 30000 + 3397 x 0.2 - 29984: at 30000 a unit is 16, so that no 0.2 counts. 1 % of the mass of
 * the addends is lost, and 98 % of the sum. */
static void a_cancelled_sum_that_stood_still_is_found(void)
{
	struct ward w;
	cancel_ward(&w, hg_policy_fp16_naive(), 3397, 30000.0f, 0.2f, -29984.0f);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 1);
	CHECK(f->got == 16.0 && fabs(f->wide - 695.2) < 0.5); /* 0.2 is 0.19995 as a half */
	CHECK_EQ_I(f->ignored, 3397);
	CHECK(f->terms == 3399 && f->partial == 30000.0);
	ward_close(&w);
}

/* The same with the other sign, and down to nothing: it is no underflow, as no half is too small
 * for 699. */
static void a_sum_that_stood_still_at_zero_is_no_underflow(void)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		struct ward w;
		const float s = (float)sign;
		cancel_ward(&w, hg_policy_fp16_naive(), 3500, s * 30000.0f, s * 0.2f, -s * 30000.0f);
		const hg_finding *f = ward_expect(&w, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 1);
		CHECK(f->got == 0.0 && fabs(f->wide - s * 700.0) < 1.0);
		CHECK_EQ_I(w.report->findings, 1);
		ward_close(&w);
	}
}

/* In f32 nothing stands still; in halves of alike sizes what cancels is noise. */
static void sums_that_cancel_are_well(void)
{
	struct ward w;
	cancel_ward(&w, hg_policy_fp16(), 3397, 30000.0f, 0.2f, -29984.0f);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
	for (int32_t n = 10; n < 5000; n *= 3) {
		cancel_ward(&w, hg_policy_fp16_naive(), n, 1.0f, 0.0f, -0.5f);
		(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
		ward_close(&w);
	}
}

/* ---- nothing left to learn ---- */

/* Logits are x w, w = 1; two classes, all labels 0. */
static hg_var class_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "features", -1.0);
	const hg_var h = hg_linear(tape, x, hg_tape_param(tape, param(b, "w", 2, 2)), HG_NONE);
	return hg_softmax_xent(tape, h, hg_tape_input(tape, b->tensor[1], "labels", 1.0), HG_NONE);
}

static void class_ward(struct ward *w, float scale, float apart)
{
	const float identity[4] = {1.0f, 0.0f, 0.0f, 1.0f};
	const int32_t label[50] = {0};
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = scale;
	ward_open(w, policy, class_scene);
	float x[50][2];
	for (int i = 0; i < 50; i++) {
		x[i][0] = apart;
		x[i][1] = -apart;
	}
	tensor_of(&w->bench, HG_F16, 50, 2, x, HG_F32);
	tensor_of(&w->bench, HG_I32, 50, 1, label, HG_I32);
	CHECK_OK(hg_param_set(param(&w->bench, "w", 2, 2), identity));
	ward_compile(w);
}

/* Logits 2 d apart: 1 - p = exp(-2 d). At 40 the loss is 0 and there is no gradient; at 16 and
 * loss scale 1 it is 1e-7, and there is one, which f16 does not hold. */
static void a_converged_run_is_well(void)
{
	struct ward w;
	for (float apart = 10.0f; apart < 100.0f; apart *= 2.0f) {
		class_ward(&w, 65536.0f, apart);
		(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
		ward_close(&w);
	}
	class_ward(&w, 1.0f, 8.0f);
	(void)ward_expect(&w, HG_CAUSE_UNDERFLOW, 1, "softmax_xent", "", 0, 0);
	ward_close(&w);
}

/* A regression that has come to within 1e-9 of its targets, seen from its first step on; who
 * sees only its last cannot know that there was more. */
static hg_var distance_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_variable(tape, b->tensor[0], "x");
	return hg_mse(tape, hg_scale(tape, x, 1.0f), hg_tape_input(tape, b->tensor[1], "targets", -1.0),
	              HG_NONE);
}

static void a_gradient_far_below_the_first_is_well(void)
{
	for (int first = 0; first < 2; first++) {
		struct ward w;
		float target[64];
		hg_policy policy = hg_policy_fp16();
		policy.loss_scale.init_scale = 1.0f;
		ward_open(&w, policy, distance_scene);
		constant_tensor(&w.bench, 64, 1, 4.0f);
		for (int i = 0; i < 64; i++)
			target[i] = first ? 100.0f : 4.0f + 5e-7f;
		hg_tensor *targets = tensor_of(&w.bench, HG_F32, 64, 1, target, HG_F32);
		ward_compile(&w);
		if (first)
			(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
		for (int i = 0; i < 64; i++)
			target[i] = 4.0f + 5e-7f;
		CHECK_OK(hg_tensor_upload(targets, target, HG_F32));
		(void)ward_examine(&w);
		CHECK_EQ_I(w.report->findings, !first);
		ward_close(&w);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_cancelled_sum_that_stood_still_is_found),
	    TEST(a_sum_that_stood_still_at_zero_is_no_underflow),
	    TEST(sums_that_cancel_are_well),
	    TEST(a_converged_run_is_well),
	    TEST(a_gradient_far_below_the_first_is_well),
	};
	return test_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
