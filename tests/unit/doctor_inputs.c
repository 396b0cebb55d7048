/* Inputs that the doctor examines before the step begins: features, weights and labels. */
#include "unit/doctor_subject.h"

static void bad_feature_is_found(void)
{
	float x[20][3] = {{0}};
	struct subject s;
	subject_star(&s, hg_policy_fp16(), 20, 1.0f);
	x[7][2] = NAN;
	CHECK_OK(hg_tensor_upload(s.bench.tensor[0], x, HG_F32));
	const hg_finding *f = expect_finding(&s, HG_CAUSE_INPUT, 0, "", "", 7, 2);
	CHECK_STR(f->tensor, "features");
	CHECK(isnan(f->got) && f->node == -1 && f->links >= 5);
	CHECK_STR(f->chain[f->links - 1].op, "w");
	subject_close(&s);
}

static void bad_weight_is_found(void)
{
	float x[6] = {1.0f, 1.0f, 1.0f, INFINITY, 1.0f, 1.0f};
	struct subject s;
	subject_star(&s, hg_policy_fp16(), 20, 1.0f);
	CHECK_OK(hg_tensor_upload(hg_param_master(hg_params_find(s.bench.params, "w")), x, HG_F32));
	const hg_finding *f = expect_finding(&s, HG_CAUSE_INPUT, 0, "", "", 1, 1);
	CHECK_STR(f->tensor, "w");
	CHECK_EQ_I(f->row_is, HG_ROW_WEIGHT);
	subject_close(&s);
}

/* The master weight is finite, so fp32 is the remedy. */
static void weight_that_f16_cannot_hold_is_found(void)
{
	const float x[6] = {1.0f, 1.0f, 1.0f, 1.0f, -1e6f, 1.0f},
	            narrow[6] = {1.0f, 1.0f, 1.0f, 1.0f, -INFINITY, 1.0f};
	struct subject s;
	subject_star(&s, hg_policy_fp16(), 20, 1.0f);
	hg_param *const weight = hg_params_find(s.bench.params, "w");
	CHECK_OK(hg_tensor_upload(hg_param_master(weight), x, HG_F32));
	CHECK_OK(hg_tensor_upload(hg_param_working(weight), narrow, HG_F32));
	const hg_finding *f = expect_finding(&s, HG_CAUSE_INPUT, 0, "", "", 2, 0);
	CHECK(isinf(f->got) && f->wide == -1e6 && f->row_is == HG_ROW_WEIGHT && f->limit == 65520.0);
	CHECK(strstr(f->sentence, "is -inf in fp16: the fp32 copy of the weights has -1000000, and "
	                          "fp16 holds 65504 at most") != NULL);
	CHECK_EQ_I(f->remedies, 1);
	CHECK_STR(f->remedy[0].call, "policy = hg_policy_fp32()");
	subject_close(&s);
}

static hg_var record_classes(struct bench *b, hg_tape *tape)
{
	const hg_var h = hg_linear(tape, hg_tape_input(tape, b->tensor[0], "features", -1.0),
	                           hg_tape_param(tape, param(b, "w", 3, 4)), HG_NONE);
	return hg_softmax_xent(tape, h, hg_tape_input(tape, b->tensor[1], "labels", 3.0),
	                       hg_tape_input(tape, b->tensor[2], "mask", 1.0));
}

/* Label 9 is masked, and -1 stands for no label; label 4 is out of range. */
static void wrong_label_is_found(void)
{
	int32_t label[6] = {0, 1, 2, 3, -1, 0};
	const uint8_t mask[6] = {1, 1, 0, 1, 1, 1};
	struct subject s;
	subject_open(&s, hg_policy_fp16(), record_classes);
	constant_tensor(&s.bench, 6, 3, 1.0f);
	tensor_of(&s.bench, HG_I32, 6, 1, label, HG_I32);
	tensor_of(&s.bench, HG_U8, 6, 1, mask, HG_U8);
	subject_compile(&s);
	label[2] = 9;
	label[5] = 4;
	CHECK_OK(hg_tensor_upload(s.bench.tensor[1], label, HG_I32));
	const hg_finding *f = expect_finding(&s, HG_CAUSE_INPUT, 0, "", "", 5, 0);
	CHECK_STR(f->tensor, "labels");
	CHECK(f->got == 4.0 && f->bad == 1);
	subject_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(bad_feature_is_found),
	    TEST(bad_weight_is_found),
	    TEST(weight_that_f16_cannot_hold_is_found),
	    TEST(wrong_label_is_found),
	};
	return RUN_TESTS(argc, argv, cases);
}
