/* Faults beside each other, and faults that look like others: each of them is found with its own
 * cause. */
#include <string.h>

#include "unit/doctor_subject.h"

/* ---- several faults of one op ---- */

static hg_var record_sum_of_x(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "sum");
	const hg_var y = hg_spmm(tape, b->graph, x_of(b, tape), HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, y, 0x1p-14f), targets_of(b, tape), HG_NONE);
}

static const hg_finding *finding_at(const hg_doctor_report *r, hg_cause cause, int64_t row)
{
	for (int i = 0; i < r->findings; i++)
		if (r->finding[i].cause == cause && r->finding[i].row == row)
			return &r->finding[i];
	return NULL;
}

/* Row 0 adds 4096 ones and stops at 2048. Row 1 adds 4000 times 32, which overflows. Row 2 adds
 * 40000 twice and subtracts it twice. */
static void three_faults_of_one_op_are_found(void)
{
	enum { ONES = 4096, LARGE = 4000, CANCEL = 4, M = ONES + LARGE + CANCEL };
	static float x[M];
	struct subject s;
	struct coo edges = coo_empty(3, M);
	for (int64_t e = 0; e < M; e++) {
		const int row = e < ONES ? 0 : e < ONES + LARGE ? 1 : 2;
		coo_add(&edges, row, e);
		x[e] = row == 0 ? 1.0f : row == 1 ? 32.0f : e - ONES - LARGE < 2 ? 40000.0f : -40000.0f;
	}
	subject_open(&s, hg_policy_fp16_naive(), record_sum_of_x);
	s.bench.graph = coo_graph(s.bench.ctx, edges);
	tensor_of(&s.bench, HG_F16, M, 1, x, HG_F32);
	constant_tensor(&s.bench, 3, 1, 0.0f);
	subject_compile(&s);
	(void)subject_examine(&s);
	CHECK(finding_at(s.report, HG_CAUSE_SWAMPING, 0));
	CHECK(finding_at(s.report, HG_CAUSE_STORE, 1));
	CHECK(finding_at(s.report, HG_CAUSE_ACCUMULATION, 2));
	CHECK_EQ_I(s.report->findings, 3);
	subject_close(&s);
}

/* Row 1 overflows. It does not read the NaN, which is in row 3. */
static void bad_input_hides_no_other_fault(void)
{
	struct subject s;
	float x[40];
	struct coo edges = coo_empty(4, 40);
	for (int64_t e = 0; e < 40; e++) {
		coo_add(&edges, e / 10, e);
		x[e] = e < 10 ? 1.0f : e < 20 ? 30000.0f : e == 39 ? NAN : 2.0f;
	}
	subject_open(&s, hg_policy_fp16(), record_sum_of_x);
	s.bench.graph = coo_graph(s.bench.ctx, edges);
	tensor_of(&s.bench, HG_F16, 40, 1, x, HG_F32);
	constant_tensor(&s.bench, 4, 1, 0.0f);
	subject_compile(&s);
	(void)subject_examine(&s);
	CHECK(s.report->findings == 2 && s.report->finding[0].cause == HG_CAUSE_INPUT &&
	      s.report->finding[0].row == 39);
	CHECK(finding_at(s.report, HG_CAUSE_STORE, 1) &&
	      finding_at(s.report, HG_CAUSE_STORE, 1)->wide == 300000.0);
	subject_close(&s);
}

/* ---- norms of a constant ---- */

static hg_var record_batch_norm(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, x_of(b, tape), 1.0f);
	hg_tape_scope(tape, "norm");
	const hg_var y = batch_norm_of(b, tape, x, 8, 1e-5f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

static hg_var record_layer_norm(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, x_of(b, tape), 1.0f),
	             gamma = hg_tape_param(tape, norm_param(b, "gamma", 8, 0)),
	             beta = hg_tape_param(tape, norm_param(b, "beta", 8, 0));
	hg_tape_scope(tape, "norm");
	const hg_var y = hg_layer_norm(tape, x, gamma, beta, 1e-5f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* Column 2 of a batch norm, or row 2 of a layer norm, is 1 everywhere. Of its variance only eps is
 * left, so its gradient is 316 times as large. It overflows at this loss scale and not at 1, but
 * the constant is at fault. */
static void constant_is_not_blamed_on_the_loss_scale(void)
{
	for (int rows = 0; rows < 2; rows++) {
		struct subject s;
		float x[8][8], target[8][8] = {{0}};
		hg_policy policy = hg_policy_fp16();
		policy.loss_scale.init_scale = 65536.0f;
		subject_open(&s, policy, rows ? record_layer_norm : record_batch_norm);
		for (int i = 0; i < 8; i++)
			for (int c = 0; c < 8; c++)
				x[i][c] = (rows ? i : c) == 2 ? 1.0f : (float)((i + c) % 2);
		target[2][2] = 1.0f;
		tensor_of(&s.bench, HG_F16, 8, 8, x, HG_F32);
		tensor_of(&s.bench, HG_F16, 8, 8, target, HG_F32);
		subject_compile(&s);
		const hg_finding *f = subject_examine(&s);
		CHECK(f != NULL);
		CHECK_STR(hg_cause_name(f->cause), "zero");
		CHECK(f->zero == HG_ZERO_VARIANCE && f->backward && (rows ? f->row : f->col) == 2);
		CHECK_STR(f->op, rows ? "layer_norm" : "batch_norm");
		CHECK_STR(f->layer, "norm");
		expect_operand(f, "eps", "", -1, -1, 1e-5);
		CHECK(operand_of(f, "variance")->value < 1e-9);
		CHECK(f->remedies >= 2 && strstr(f->remedy[0].call, "init_scale") != NULL);
		subject_close(&s);
	}
}

/* ---- weights that updates have enlarged ---- */

static hg_var record_two_layers(struct bench *b, hg_tape *tape)
{
	const hg_var u = hg_tape_param(tape, param(b, "u", 8, 8));
	hg_var y = hg_linear(tape, x_of(b, tape), u, HG_NONE);
	hg_tape_scope(tape, "second");
	y = hg_linear(tape, y, hg_tape_param(tape, param(b, "v", 8, 8)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* How weights become 1000 times as large: by a learning rate of 100, or because somebody sets one
 * or all of them. */
enum enlarge { BY_RATE, SET_ONE, SET_ALL };

static void step_and_enlarge(struct subject *s, enum enlarge how, float v[64])
{
	subject_step(s);
	for (int i = 0; i < 64; i++)
		v[i] = how == SET_ALL || i == 9 ? 50000.0f : v[i];
	if (how != BY_RATE)
		CHECK_OK(hg_param_set(param(&s->bench, "v", 8, 8), v));
}

static void only_a_learning_rate_is_blamed_for_grown_weights(void)
{
	for (enum enlarge how = BY_RATE; how <= SET_ALL; how++) {
		struct subject s;
		float u[64], v[64];
		hg_policy policy = hg_policy_fp16();
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		policy.loss_scale.init_scale = 256.0f;
		config.lr = how == BY_RATE ? 100.0f : 1e-4f;
		subject_open(&s, policy, record_two_layers);
		random_tensor(&s.bench, HG_F16, 16, 8, 1.0);
		random_tensor(&s.bench, HG_F16, 16, 8, 1.0);
		for (int i = 0; i < 64; i++) {
			u[i] = (float)(0.1 * test_normal());
			v[i] = (float)(0.1 * test_normal());
		}
		CHECK_OK(hg_param_set(param(&s.bench, "u", 8, 8), u));
		CHECK_OK(hg_param_set(param(&s.bench, "v", 8, 8), v));
		subject_compile_with(&s, config);
		expect_healthy(&s);
		step_and_enlarge(&s, how, v);
		const hg_finding *f = subject_examine(&s);
		CHECK(f != NULL);
		CHECK_EQ_I(f->cause == HG_CAUSE_OPTIMISER, how == BY_RATE);
		CHECK_EQ_I(*f->grown != 0, how == BY_RATE);
		if (how == BY_RATE) {
			CHECK(f->grown_by > 100.0);
			CHECK_STR(f->remedy[0].call, "hg_optim_set_lr(optim, 0, 0.01f)");
		}
		subject_close(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(three_faults_of_one_op_are_found),
	    TEST(bad_input_hides_no_other_fault),
	    TEST(constant_is_not_blamed_on_the_loss_scale),
	    TEST(only_a_learning_rate_is_blamed_for_grown_weights),
	};
	return RUN_TESTS(argc, argv, cases);
}
