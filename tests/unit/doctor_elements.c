/* Elementwise ops of two operands, and smooth functions: the doctor finds the op, the element and
 * its operands. */
#include <string.h>

#include "unit/doctor_subject.h"

enum { ROWS = 4, COLS = 3, ROW = 2, COL = 1 };

/* Two matrices of ones, except for element (ROW, COL), which is a or b. */
static void subject_pair(struct subject *s, record_fn record, float a, float b)
{
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 1.0f;
	subject_open(s, policy, record);
	for (int i = 0; i < 2; i++) {
		float x[ROWS][COLS];
		for (int r = 0; r < ROWS; r++)
			for (int c = 0; c < COLS; c++)
				x[r][c] = r == ROW && c == COL ? (i ? b : a) : 1.0f;
		tensor_of(&s->bench, HG_F16, ROWS, COLS, x, HG_F32);
	}
	constant_tensor(&s->bench, ROWS, COLS, 0.0f);
	subject_compile(s);
}

static hg_var loss_of(struct bench *b, hg_tape *tape, hg_var y)
{
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, y, 0x1p-8f),
	              hg_tape_input(tape, b->tensor[2], "targets", -1.0), HG_NONE);
}

static hg_var a_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_variable(tape, b->tensor[0], "a");
}

static hg_var b_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_variable(tape, b->tensor[1], "b");
}

static hg_var record_mul(struct bench *b, hg_tape *tape)
{
	const hg_var x = a_of(b, tape), y = b_of(b, tape);
	hg_tape_scope(tape, "gate");
	return loss_of(b, tape, hg_mul(tape, x, y));
}

static hg_var record_sub(struct bench *b, hg_tape *tape)
{
	const hg_var x = a_of(b, tape), y = b_of(b, tape);
	hg_tape_scope(tape, "difference");
	return loss_of(b, tape, hg_sub(tape, x, y));
}

/* x y - y x: both products overflow, so the difference is NaN. */
static hg_var record_difference_of_products(struct bench *b, hg_tape *tape)
{
	const hg_var x = a_of(b, tape), y = b_of(b, tape);
	hg_tape_scope(tape, "gate");
	const hg_var one = hg_mul(tape, x, y), other = hg_mul(tape, y, x);
	hg_tape_scope(tape, "difference");
	return loss_of(b, tape, hg_sub(tape, one, other));
}

static hg_var record_smooth(struct bench *b, hg_tape *tape)
{
	hg_var x = hg_add(tape, a_of(b, tape), b_of(b, tape));
	x = hg_gelu(tape, hg_abs(tape, x));
	return loss_of(b, tape, hg_tanh(tape, hg_sigmoid(tape, x)));
}

static void expect_operands(const hg_finding *f, double wide, double x, double y)
{
	CHECK(f->wide == wide);
	CHECK_EQ_I(f->operands, 2);
	CHECK_STR(f->operand[0].role, "x");
	CHECK_STR(f->operand[0].tensor, "a");
	CHECK_STR(f->operand[1].role, "y");
	CHECK_STR(f->operand[1].tensor, "b");
	CHECK(f->operand[0].value == x && f->operand[1].value == y);
	CHECK(f->operand[0].row == ROW && f->operand[1].col == COL);
}

static void product_of_two_large_numbers_overflows(void)
{
	struct subject s;
	subject_pair(&s, record_mul, 300.0f, -300.0f);
	expect_operands(expect_finding(&s, HG_CAUSE_STORE, 0, "mul", "gate", ROW, COL), -90000.0, 300.0,
	                -300.0);
	subject_close(&s);
	subject_pair(&s, record_mul, 200.0f, -300.0f);
	expect_healthy(&s);
	subject_close(&s);
}

static void difference_of_two_large_numbers_overflows(void)
{
	struct subject s;
	subject_pair(&s, record_sub, 40000.0f, -40000.0f);
	expect_operands(expect_finding(&s, HG_CAUSE_STORE, 0, "sub", "difference", ROW, COL), 80000.0,
	                40000.0, -40000.0);
	subject_close(&s);
	subject_pair(&s, record_sub, 40000.0f, 40000.0f);
	expect_healthy(&s);
	subject_close(&s);
}

/* The subtraction makes the first NaN, but its operands are infinite already. */
static void difference_of_infinities_is_not_the_fault(void)
{
	struct subject s;
	int links = 0;
	subject_pair(&s, record_difference_of_products, 300.0f, 300.0f);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_STORE, 0, "mul", "gate", ROW, COL);
	for (int i = 0; i < f->links; i++)
		links += strcmp(f->chain[i].op, "sub") == 0 && !f->chain[i].backward;
	CHECK_EQ_I(links, 1);
	subject_close(&s);
	subject_pair(&s, record_sub, INFINITY, INFINITY);
	f = expect_finding(&s, HG_CAUSE_INPUT, 0, "", "", ROW, COL);
	CHECK_STR(f->tensor, "a");
	subject_close(&s);
}

static void smooth_functions_of_large_numbers_are_healthy(void)
{
	struct subject s;
	subject_pair(&s, record_smooth, 30000.0f, -60000.0f);
	expect_healthy(&s);
	subject_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(product_of_two_large_numbers_overflows),
	    TEST(difference_of_two_large_numbers_overflows),
	    TEST(difference_of_infinities_is_not_the_fault),
	    TEST(smooth_functions_of_large_numbers_are_healthy),
	};
	return RUN_TESTS(argc, argv, cases);
}
