/* Faults of ops, gradients and updates on small tapes: the doctor finds the cause, op and
 * element. */
#include <string.h>

#include "unit/doctor_subject.h"

/* ---- elementwise ops ---- */

static hg_var record_exp(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "gate");
	const hg_var y = hg_exp(tape, x_of(b, tape));
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

static hg_var record_log(struct bench *b, hg_tape *tape)
{
	const hg_var y = hg_log(tape, x_of(b, tape));
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

static hg_var record_sqrt(struct bench *b, hg_tape *tape)
{
	const hg_var y = hg_sqrt(tape, x_of(b, tape));
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

static hg_var record_div(struct bench *b, hg_tape *tape)
{
	const hg_var one = targets_of(b, tape);
	return hg_mse(tape, hg_div(tape, one, x_of(b, tape)), one, HG_NONE);
}

/* All elements are `usual`, except for element (row, col), which is x. */
static void open_with_element(struct subject *s, record_fn record, float usual, int row, int col,
                              float x)
{
	float values[5][4];
	subject_open(s, hg_policy_fp16(), record);
	for (int i = 0; i < 5 * 4; i++)
		values[i / 4][i % 4] = i == 4 * row + col ? x : usual;
	tensor_of(&s->bench, HG_F16, 5, 4, values, HG_F32);
	constant_tensor(&s->bench, 5, 4, 1.0f);
	subject_compile(s);
}

static void faults_of_elementwise_ops_are_found(void)
{
	static const struct {
		record_fn record;
		float usual, x;
		hg_cause cause;
		int backward;
		const char *op, *layer;
	} rows[] = {
	    {record_exp, 0.0f, 12.0f, HG_CAUSE_STORE, 0, "exp", "gate"},
	    {record_exp, 0.0f, 200.0f, HG_CAUSE_STORE, 0, "exp", "gate"},
	    {record_log, 1.0f, 0.0f, HG_CAUSE_ZERO, 0, "log", ""},
	    {record_log, 1.0f, -1.0f, HG_CAUSE_ZERO, 0, "log", ""},
	    {record_sqrt, 1.0f, -1.0f, HG_CAUSE_ZERO, 0, "sqrt", ""},
	    {record_sqrt, 1.0f, 0.0f, HG_CAUSE_ZERO, 1, "sqrt", ""},
	    {record_div, 1.0f, 0.0f, HG_CAUSE_ZERO, 0, "div", ""},
	    {record_div, 1.0f, 1e-5f, HG_CAUSE_ZERO, 0, "div", ""},
	    {record_exp, 0.0f, 10.0f, HG_CAUSE_LOSS_SCALE, 1, "mse", ""},
	    {record_div, 1.0f, 0.25f, HG_CAUSE_LOSS_SCALE, 1, "div", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct subject s;
		open_with_element(&s, rows[i].record, rows[i].usual, 3, 1, rows[i].x);
		(void)expect_finding(&s, rows[i].cause, rows[i].backward, rows[i].op, rows[i].layer, 3, 1);
		subject_close(&s);
	}
}

/* ---- a fused chain ---- */

/* The graph sum, bias, relu and dropout become one fused chain. */
static hg_var record_chain(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	hg_var h = hg_spmm(tape, b->graph, hg_tape_input(tape, b->tensor[0], "features", -1.0), HG_NONE,
	                   HG_NORM_NONE, 1.0f);
	h = hg_relu(tape, hg_bias_add(tape, h, hg_tape_input(tape, b->tensor[2], "bias", -1.0)));
	hg_tape_scope(tape, "conv2");
	h = hg_dropout(tape, h, 0.5f);
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w", 3, 2)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, h, 0x1p-12f), targets_of(b, tape), HG_NONE);
}

/* The op at fault is the one that takes the element over the limit. Dropout decides in which
 * columns. */
static void op_at_fault_in_a_fused_chain_is_named(void)
{
	static const struct {
		float x, bias; /* the sum has 100 addends x */
		const char *op, *layer;
	} rows[] = {{700.0f, 0.0f, "spmm", "conv1"},
	            {650.0f, 1000.0f, "bias_add", "conv1"},
	            {500.0f, 0.0f, "dropout", "conv2"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct subject s;
		subject_open(&s, hg_policy_fp16(), record_chain);
		s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(101));
		constant_tensor(&s.bench, 101, 3, rows[i].x);
		constant_tensor(&s.bench, 101, 2, 0.0f);
		constant_tensor(&s.bench, 1, 3, rows[i].bias);
		subject_compile(&s);
		const hg_finding *f = subject_examine(&s);
		CHECK(f != NULL);
		CHECK_EQ_I(f->cause, HG_CAUSE_STORE);
		CHECK_STR(f->op, rows[i].op);
		CHECK_STR(f->layer, rows[i].layer);
		CHECK_EQ_I(f->row, 0);
		subject_close(&s);
	}
}

/* ---- gradients ---- */

/* y = h / factor * factor: on the way back, the gradient is first multiplied by `factor`. */
static hg_var record_scaled_gradient(struct bench *b, hg_tape *tape, float factor)
{
	hg_tape_scope(tape, "conv1");
	const hg_var h =
	    hg_linear(tape, x_of(b, tape), hg_tape_param(tape, param(b, "w", 4, 4)), HG_NONE);
	hg_tape_scope(tape, "conv2");
	const hg_var y = hg_scale(tape, hg_scale(tape, h, 1.0f / factor), factor);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

static hg_var record_explode(struct bench *b, hg_tape *tape)
{
	return record_scaled_gradient(b, tape, 1e6f);
}

static hg_var record_grow(struct bench *b, hg_tape *tape)
{
	return record_scaled_gradient(b, tape, 1000.0f);
}

static hg_var record_vanish(struct bench *b, hg_tape *tape)
{
	return record_scaled_gradient(b, tape, 0x1p-20f);
}

static void faults_of_gradients_are_found(void)
{
	static const struct {
		record_fn record;
		float scale; /* loss scale */
		hg_cause cause;
	} rows[] = {
	    {record_grow, 65536.0f, HG_CAUSE_LOSS_SCALE}, {record_grow, 1.0f, HG_CAUSE_COUNT},
	    {record_explode, 1.0f, HG_CAUSE_EXPLOSION},   {record_explode, 1024.0f, HG_CAUSE_EXPLOSION},
	    {record_vanish, 1.0f, HG_CAUSE_UNDERFLOW},    {record_vanish, 65536.0f, HG_CAUSE_COUNT},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct subject s;
		hg_policy policy = hg_policy_fp16();
		policy.loss_scale.init_scale = rows[i].scale;
		subject_open(&s, policy, rows[i].record);
		constant_tensor(&s.bench, 5, 4, rows[i].record == record_vanish ? 0.01f : 0.25f);
		constant_tensor(&s.bench, 5, 4, rows[i].record == record_vanish ? 0.0f : 4.0f);
		subject_compile(&s);
		const hg_finding *f = subject_examine(&s);
		CHECK((f != NULL) == (rows[i].cause != HG_CAUSE_COUNT));
		if (f) {
			CHECK_STR(hg_cause_name(f->cause), hg_cause_name(rows[i].cause));
			CHECK_STR(f->op, "scale");
			CHECK_STR(f->layer, "conv2");
			CHECK(f->backward && f->row_is == HG_ROW_NODE);
			CHECK_STR(f->tensor, "gradient of conv2/scale #1");
		}
		subject_close(&s);
	}
}

static hg_var record_norm(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "bn");
	const hg_var y = batch_norm_of(b, tape, x_of(b, tape), 4, 1e-38f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* Column 2 is the same in every row, so its variance is 0 and the norm divides by the root of a
 * tiny eps. */
static void gradient_of_a_constant_column_divides_by_zero(void)
{
	float x[5][4], target[5][4] = {{0}};
	struct subject s;
	subject_open(&s, hg_policy_fp16(), record_norm);
	for (int i = 0; i < 5 * 4; i++) {
		x[i / 4][i % 4] = i % 4 == 2 ? 1.0f : (float)i;
		target[i / 4][i % 4] = (float)(i % 7);
	}
	tensor_of(&s.bench, HG_F16, 5, 4, x, HG_F32);
	tensor_of(&s.bench, HG_F16, 5, 4, target, HG_F32);
	subject_compile(&s);
	const hg_finding *f = subject_examine(&s);
	CHECK(f != NULL);
	CHECK_STR(hg_cause_name(f->cause), "zero");
	CHECK_STR(f->op, "batch_norm");
	CHECK_STR(f->layer, "bn");
	CHECK(f->backward && f->col == 2);
	subject_close(&s);
}

/* ---- several findings ---- */

/* A product that is rounded to zero. */
static hg_var small_product(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "small");
	const hg_var y = hg_scale(tape, hg_tape_input(tape, b->tensor[0], "x", -1.0), 0x1p-30f);
	hg_tape_scope(tape, NULL);
	return y;
}

/* An exponential that f16 cannot hold. */
static hg_var large_exponential(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "large");
	const hg_var y = hg_exp(tape, hg_tape_input(tape, b->tensor[1], "y", -1.0));
	hg_tape_scope(tape, NULL);
	return y;
}

static hg_var record_both(struct bench *b, hg_tape *tape, int small_first)
{
	const hg_var a = small_first ? small_product(b, tape) : large_exponential(b, tape),
	             c = small_first ? large_exponential(b, tape) : small_product(b, tape);
	const hg_var w = hg_tape_param(tape, param(b, "w", 5, 4));
	return hg_mse(tape, hg_add(tape, hg_add(tape, a, c), w),
	              hg_tape_input(tape, b->tensor[0], "x", -1.0), HG_NONE);
}

static hg_var record_small_first(struct bench *b, hg_tape *tape)
{
	return record_both(b, tape, 1);
}

static hg_var record_large_first(struct bench *b, hg_tape *tape)
{
	return record_both(b, tape, 0);
}

/* If there is room for one finding only, it is the one that is not finite. */
static void findings_are_in_the_order_of_the_step(void)
{
	const float y[5][4] = {{0}, {0}, {0, 20.0f}};
	for (int small_first = 0; small_first < 2; small_first++) {
		struct subject s;
		hg_doctor *doctor_of_one = NULL;
		hg_doctor_config one = HG_DOCTOR_CONFIG_INIT;
		one.most_findings = 1;
		subject_open(&s, hg_policy_fp16(), small_first ? record_small_first : record_large_first);
		constant_tensor(&s.bench, 5, 4, 0.01f);
		tensor_of(&s.bench, HG_F16, 5, 4, y, HG_F32);
		subject_compile(&s);
		(void)subject_examine(&s);
		CHECK_EQ_I(s.report->findings, 2);
		CHECK_EQ_I(s.report->finding[small_first].cause, HG_CAUSE_STORE);
		CHECK_STR(s.report->finding[small_first].layer, "large");
		CHECK_EQ_I(s.report->finding[!small_first].cause, HG_CAUSE_UNDERFLOW);
		CHECK_STR(s.report->finding[!small_first].layer, "small");
		CHECK_STATUS(
		    hg_doctor_create(s.bench.params, s.optim, record_subject, &s, &one, &doctor_of_one),
		    HG_OK);
		CHECK_OK(hg_doctor_examine(doctor_of_one, 0, &s.report));
		CHECK(s.report->findings == 1 && s.report->finding[0].cause == HG_CAUSE_STORE);
		hg_doctor_free(doctor_of_one);
		subject_close(&s);
	}
}

/* ---- updates ---- */

/* Case 0: without features all gradients are 0, and with eps 0 the update is 0 / 0. Case 1: a rate
 * of 1e6 makes weights that f16 cannot hold, but f32 can. Case 2 is healthy. */
static void bad_updates_are_found(void)
{
	struct subject s;
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	for (int i = 0; i < 3; i++) {
		float zero[6] = {0};
		subject_open(&s, hg_policy_fp16(), record_sum);
		s.bench.graph = coo_graph(s.bench.ctx, coo_star_loops(20));
		constant_tensor(&s.bench, 20, 3, i == 0 ? 0.0f : 1.0f);
		constant_tensor(&s.bench, 20, 2, 1.0f);
		config.eps = i == 0 ? 0.0f : 1e-8f;
		config.lr = i == 1 ? 1e6f : 0.01f;
		subject_compile_with(&s, config);
		if (i == 0)
			CHECK_OK(hg_param_set(hg_params_find(s.bench.params, "w"), zero));
		if (i == 2) {
			expect_healthy(&s);
		} else {
			const hg_finding *f = expect_finding(&s, HG_CAUSE_OPTIMISER, 0, "adam", "", 0, 0);
			CHECK_STR(f->tensor, "w");
			CHECK(f->row_is == HG_ROW_WEIGHT && f->node == -1);
			const char *last = f->remedy[f->remedies - 1].call;
			CHECK((strcmp(last, "policy = hg_policy_fp32()") == 0) == (i == 1));
		}
		subject_close(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(faults_of_elementwise_ops_are_found),
	    TEST(op_at_fault_in_a_fused_chain_is_named),
	    TEST(faults_of_gradients_are_found),
	    TEST(gradient_of_a_constant_column_divides_by_zero),
	    TEST(findings_are_in_the_order_of_the_step),
	    TEST(bad_updates_are_found),
	};
	return RUN_TESTS(argc, argv, cases);
}
