/* What the doctor says of ops that work element by element: which, where, and what it was made
 * of. */
#include "unit/ward.h"

enum { ROWS = 4, COLS = 3, ROW = 2, COL = 1 };

/* Two matrices of ones, but at (2, 1). */
static void pair_ward(struct ward *w, scene_fn scene, float a, float b)
{
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 1.0f;
	ward_open(w, policy, scene);
	for (int i = 0; i < 2; i++) {
		float x[ROWS][COLS];
		for (int r = 0; r < ROWS; r++)
			for (int c = 0; c < COLS; c++)
				x[r][c] = r == ROW && c == COL ? (i ? b : a) : 1.0f;
		tensor_of(&w->bench, HG_F16, ROWS, COLS, x, HG_F32);
	}
	constant_tensor(&w->bench, ROWS, COLS, 0.0f);
	ward_compile(w);
}

static hg_var loss(struct bench *b, hg_tape *tape, hg_var y)
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

static hg_var mul_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = a_of(b, tape), y = b_of(b, tape);
	hg_tape_scope(tape, "gate");
	return loss(b, tape, hg_mul(tape, x, y));
}

static hg_var sub_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = a_of(b, tape), y = b_of(b, tape);
	hg_tape_scope(tape, "gap");
	return loss(b, tape, hg_sub(tape, x, y));
}

/* x y - y x, both beyond f16. */
static hg_var difference_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = a_of(b, tape), y = b_of(b, tape);
	hg_tape_scope(tape, "gate");
	const hg_var one = hg_mul(tape, x, y), other = hg_mul(tape, y, x);
	hg_tape_scope(tape, "gap");
	return loss(b, tape, hg_sub(tape, one, other));
}

static hg_var smooth_scene(struct bench *b, hg_tape *tape)
{
	hg_var x = hg_add(tape, a_of(b, tape), b_of(b, tape));
	x = hg_gelu(tape, hg_abs(tape, x));
	return loss(b, tape, hg_tanh(tape, hg_sigmoid(tape, x)));
}

static void expect_two(const hg_finding *f, double wide, double x, double y)
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

static void a_product_of_two_large_numbers_overflows(void)
{
	struct ward w;
	pair_ward(&w, mul_scene, 300.0f, -300.0f);
	expect_two(ward_expect(&w, HG_CAUSE_STORE, 0, "mul", "gate", ROW, COL), -90000.0, 300.0,
	           -300.0);
	ward_close(&w);
	pair_ward(&w, mul_scene, 200.0f, -300.0f);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

static void a_difference_of_two_large_numbers_overflows(void)
{
	struct ward w;
	pair_ward(&w, sub_scene, 40000.0f, -40000.0f);
	expect_two(ward_expect(&w, HG_CAUSE_STORE, 0, "sub", "gap", ROW, COL), 80000.0, 40000.0,
	           -40000.0);
	ward_close(&w);
	pair_ward(&w, sub_scene, 40000.0f, 40000.0f);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

/* The NaN is the difference's, the fault that of what it is made of. */
static void a_difference_of_infinities_is_told_by_where_they_come_from(void)
{
	struct ward w;
	int links = 0;
	pair_ward(&w, difference_scene, 300.0f, 300.0f);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_STORE, 0, "mul", "gate", ROW, COL);
	for (int i = 0; i < f->links; i++)
		links += strcmp(f->chain[i].op, "sub") == 0 && !f->chain[i].backward;
	CHECK_EQ_I(links, 1);
	ward_close(&w);
	pair_ward(&w, sub_scene, INFINITY, INFINITY);
	f = ward_expect(&w, HG_CAUSE_INPUT, 0, "", "", ROW, COL);
	CHECK_STR(f->tensor, "a");
	ward_close(&w);
}

static void smooth_functions_of_large_numbers_are_well(void)
{
	struct ward w;
	pair_ward(&w, smooth_scene, 30000.0f, -60000.0f);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_product_of_two_large_numbers_overflows),
	    TEST(a_difference_of_two_large_numbers_overflows),
	    TEST(a_difference_of_infinities_is_told_by_where_they_come_from),
	    TEST(smooth_functions_of_large_numbers_are_well),
	};
	return RUN_TESTS(argc, argv, cases);
}
