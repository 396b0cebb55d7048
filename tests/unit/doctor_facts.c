/* What a finding says beside its place: all addends of a fused node, both gradients of a sum,
 * the operands of what is no sum, heads by their numbers, and ops that somebody wrote; and
 * faults that have another one beside them. */
#include "unit/ward.h"

static hg_var x_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_variable(tape, b->tensor[0], "x");
}

static hg_var targets_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_input(tape, b->tensor[1], "targets", -1.0);
}

static const hg_operand *operand_of(const hg_finding *f, const char *role)
{
	for (int i = 0; i < f->operands; i++)
		if (strcmp(f->operand[i].role, role) == 0)
			return &f->operand[i];
	test_note("%s has no %s", f->tensor, role);
	return NULL;
}

static void is_operand(const hg_finding *f, const char *role, const char *tensor, int64_t row,
                       int64_t col, double value)
{
	const hg_operand *o = operand_of(f, role);
	CHECK_MSG(o, "no %s", role);
	CHECK_STR(o->tensor, tensor);
	CHECK_EQ_I(o->row, row);
	CHECK_EQ_I(o->col, col);
	CHECK_MSG(fabs(o->value - value) <= 1e-3 * fabs(value), "%s is %g, expected %g", role, o->value,
	          value);
}

/* ---- a fused own term ---- */

static hg_var own_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv0");
	const hg_var x = x_of(b, tape), z = hg_spmm(tape, b->graph, x, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_var y = hg_combine(tape, x, z, hg_tape_param(tape, hg_params_find(b->params, "eps")));
	y = hg_bias_add(tape, y, hg_tape_param(tape, param(b, "bias", 1, 2)));
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, y, 0x1p-12f), targets_of(b, tape), HG_NONE);
}

/* Hub 0 hears 20 x 1000; its own 30000 counts 2.5 times, and there is a bias: 95007.5. */
static void the_own_term_is_an_addend(void)
{
	const float eps = 1.5f, bias[2] = {7.5f, 7.5f};
	struct ward w;
	hg_param *p = NULL;
	ward_open(&w, hg_policy_fp16(), own_scene);
	w.bench.graph = star(w.bench.ctx, 21);
	float x[21][2] = {{0}};
	for (int i = 0; i < 21; i++)
		x[i][1] = i ? 1000.0f : 30000.0f;
	tensor_of(&w.bench, HG_F16, 21, 2, x, HG_F32);
	constant_tensor(&w.bench, 21, 2, 0.0f);
	CHECK_OK(hg_params_add(w.bench.params, "eps", 1, 1, HG_INIT_ZEROS, HG_PARAM_F32, &p));
	CHECK_OK(hg_param_set(p, &eps));
	CHECK_OK(hg_param_set(param(&w.bench, "bias", 1, 2), bias));
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_STORE, 0, "combine", "conv0", 0, 1);
	double sum = 0.0;
	int own = 0, bias_too = 0;
	for (int i = 0; i < f->tops; i++) {
		own += f->top[i].is == HG_TERM_OWN && f->top[i].row == 0 && f->top[i].value == 75000.0;
		bias_too += f->top[i].is == HG_TERM_BIAS;
	}
	for (int i = 0; i < f->tops; i++)
		sum += f->top[i].is == HG_TERM_ADDEND ? f->top[i].value : 0.0;
	CHECK(f->wide == 95007.5 && f->terms == 22);
	CHECK(own == 1 && f->top[0].is == HG_TERM_OWN && f->top[0].factor == 2.5 && sum == 7000.0);
	CHECK_EQ_I(bias_too, 0); /* it is the smallest of 22, and 8 are shown */
	ward_close(&w);
}

/* ---- two gradients of one tensor ---- */

/* y = 3 x in "left", 5 x in "right": the gradient of x is the sum of what comes through both. */
static hg_var ways_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, x_of(b, tape), 1.0f);
	hg_tape_scope(tape, "left");
	const hg_var left = hg_scale(tape, x, 3.0f);
	hg_tape_scope(tape, "right");
	const hg_var right = hg_scale(tape, x, 5.0f);
	hg_tape_scope(tape, "sum");
	const hg_var y = hg_add(tape, left, right);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* dL = 2 (0 - t) S / 4: with t = -1, S = 2^14 that is 8192, and 24576 + 40960 = 65536 of it. */
static void both_gradients_of_a_sum_are_shown(void)
{
	struct ward w;
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 16384.0f;
	ward_open(&w, policy, ways_scene);
	const float target[4] = {0.0f, 0.0f, -1.0f, 0.0f};
	constant_tensor(&w.bench, 4, 1, 0.0f);
	tensor_of(&w.bench, HG_F16, 4, 1, target, HG_F32);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_LOSS_SCALE, 1, "scale", "left", 2, 0);
	CHECK(f->wide == 65536.0 && f->terms == 2 && f->tops == 2);
	CHECK(f->top[0].value + f->top[1].value == f->wide);
	CHECK_EQ_I(f->operands, 2);
	for (int i = 0; i < 2; i++) {
		const hg_operand *o = &f->operand[i];
		const int left = strcmp(o->tensor, "left/scale") == 0;
		CHECK(left || strcmp(o->tensor, "right/scale") == 0);
		CHECK(o->value == (left ? 24576.0 : 40960.0));
	}
	ward_close(&w);
}

/* A linear's gradient is added to one that is there already: both count, and both are shown. */
static hg_var added_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, x_of(b, tape), 1.0f);
	hg_tape_scope(tape, "first");
	const hg_var u = hg_linear(tape, x, hg_tape_param(tape, param(b, "u", 2, 2)), HG_NONE);
	hg_tape_scope(tape, "second");
	const hg_var v = hg_linear(tape, x, hg_tape_param(tape, param(b, "v", 2, 2)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_add(tape, u, v), targets_of(b, tape), HG_NONE);
}

static void the_gradient_before_counts(void)
{
	const float u[4] = {3.0f, 0.0f, 0.0f, 1.0f}, v[4] = {5.0f, 0.0f, 0.0f, 1.0f};
	struct ward w;
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 32768.0f;
	ward_open(&w, policy, added_scene);
	const float target[4][2] = {{0}, {0}, {-1.0f, 0.0f}, {0}};
	constant_tensor(&w.bench, 4, 2, 0.0f);
	tensor_of(&w.bench, HG_F16, 4, 2, target, HG_F32);
	CHECK_OK(hg_param_set(param(&w.bench, "u", 2, 2), u));
	CHECK_OK(hg_param_set(param(&w.bench, "v", 2, 2), v));
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_LOSS_SCALE, 1, "linear", "first", 2, 0);
	CHECK(f->wide == 65536.0);
	double sum = 0.0;
	int before = 0;
	for (int i = 0; i < f->tops; i++) {
		sum += f->top[i].value;
		before += f->top[i].is == HG_TERM_BEFORE;
	}
	CHECK_MSG(sum == f->wide && (before == 1 || f->operands == 2), "%g, %d", sum, before);
	ward_close(&w);
}

/* ---- operands ---- */

static hg_var exp_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "powers");
	return hg_mse(tape, hg_exp(tape, x_of(b, tape)), targets_of(b, tape), HG_NONE);
}

static hg_var div_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "ratio");
	const hg_var x = x_of(b, tape), y = hg_tape_input(tape, b->tensor[2], "divisors", -1.0);
	return hg_mse(tape, hg_div(tape, x, y), targets_of(b, tape), HG_NONE);
}

static hg_var scale_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "scaled");
	return hg_mse(tape, hg_scale(tape, x_of(b, tape), 10000.0f), targets_of(b, tape), HG_NONE);
}

static void operands_are_shown(void)
{
	struct ward w;
	float x[4][2] = {{0}}, y[4] = {1.0f, 1.0f, 1.0f, 0x1p-16f};
	x[3][1] = 12.0f;
	for (int k = 0; k < 3; k++) {
		ward_open(&w, hg_policy_fp16(), k == 0 ? exp_scene : k == 1 ? div_scene : scale_scene);
		w.bench.params->policy.replan = 0;
		tensor_of(&w.bench, HG_F16, 4, 2, x, HG_F32);
		constant_tensor(&w.bench, 4, 2, 0.0f);
		tensor_of(&w.bench, HG_F16, 4, 1, y, HG_F32);
		ward_compile(&w);
		const hg_finding *f = ward_examine(&w);
		CHECK(f && f->row == 3 && f->col == 1 && f->terms == 0);
		is_operand(f, k == 1 ? "dividend" : "x", "x", 3, 1, 12.0);
		if (k == 1)
			is_operand(f, "divisor", "divisors", 3, 0, 0x1p-16);
		if (k == 2)
			is_operand(f, "factor", "", -1, -1, 10000.0);
		ward_close(&w);
	}
}

/* ---- heads ---- */

static hg_var heads_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv0");
	const hg_var dst = hg_tape_param(tape, param(b, "dst", 1, 8)),
	             src = hg_tape_param(tape, param(b, "src", 1, 8));
	const hg_var s = hg_head_dot_pair(tape, x_of(b, tape), dst, src, 4);
	const hg_var e = hg_sddmm_add_leaky(tape, b->graph, s, HG_NONE, 0.2f);
	return hg_mse(tape, e, targets_of(b, tape), HG_NONE);
}

/* Column 6 of both ends' scores, of four heads, is head 2 of the source; column 1 is head 1 of
 * the destination. */
static void heads_have_numbers(void)
{
	for (int second = 0; second < 2; second++) {
		struct ward w;
		float a[8] = {0}, none[8] = {0};
		ward_open(&w, hg_policy_fp16(), heads_scene);
		w.bench.graph = ring(w.bench.ctx, 5);
		constant_tensor(&w.bench, 5, 8, 100.0f);
		constant_tensor(&w.bench, 15, 4, 0.0f);
		a[second ? 4 : 2] = 1000.0f;
		CHECK_OK(hg_param_set(param(&w.bench, "dst", 1, 8), second ? none : a));
		CHECK_OK(hg_param_set(param(&w.bench, "src", 1, 8), second ? a : none));
		ward_compile(&w);
		const hg_finding *f =
		    ward_expect(&w, HG_CAUSE_STORE, 0, "head_dot", "conv0", 0, second ? 6 : 1);
		CHECK_EQ_I(f->head, second ? 2 : 1);
		CHECK_STR(f->head_of, second ? "source" : "destination");
		ward_close(&w);
	}
}

/* ---- weights of edges, as an input of one number an edge and head ---- */

static hg_var weighted_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv0");
	const hg_var h = hg_tape_param(tape, param(b, "embedding", 5, 4)),
	             trust = hg_tape_input(tape, b->tensor[0], "trust", -1.0);
	const hg_var y = hg_spmm(tape, b->graph, h, trust, HG_NORM_NONE, 1.0f);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* Nodes that are trained themselves are read by edges of a graph all the same: these are no
 * elements of a matrix of features. */
static void a_weight_of_an_edge_is_none_of_a_feature(void)
{
	struct ward w;
	float weight[15 * 2];
	for (int i = 0; i < 30; i++)
		weight[i] = i == 2 * 7 + 1 ? NAN : 1.0f;
	ward_open(&w, hg_policy_fp16(), weighted_scene);
	w.bench.graph = ring(w.bench.ctx, 5);
	CHECK_EQ_I(hg_graph_edges(w.bench.graph), 15);
	tensor_of(&w.bench, HG_F16, 15, 2, weight, HG_F32);
	constant_tensor(&w.bench, 5, 4, 0.0f);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_INPUT, 0, "", "", 7, 1);
	CHECK_STR(f->tensor, "trust");
	CHECK(f->row_is == HG_ROW_EDGE && f->edge_row == 2 && f->edge_col >= 0);
	ward_close(&w);
}

/* ---- casts that nobody wrote ---- */

/* An f16 tensor is cast for an addition in f32: the gradient that comes back is narrowed by the
 * cast, and is the gradient of what read it. */
static hg_var promoted_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "first");
	const hg_var u = hg_tape_param(tape, param(b, "u", 2, 2));
	hg_var y = hg_linear(tape, x_of(b, tape), u, HG_NONE);
	hg_tape_scope(tape, "second");
	const hg_var shift = hg_cast(tape, hg_tape_input(tape, b->tensor[2], "shift", -1.0), HG_F32);
	y = hg_add(tape, y, shift);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

static void nobody_wrote_that_cast(void)
{
	const float u[4] = {1.0f, 0.0f, 0.0f, 1.0f}, target[4][2] = {{0}, {0}, {-10.0f, 0.0f}, {0}};
	struct ward w;
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 65536.0f;
	ward_open(&w, policy, promoted_scene);
	constant_tensor(&w.bench, 4, 2, 0.0f);
	tensor_of(&w.bench, HG_F32, 4, 2, target, HG_F32);
	constant_tensor(&w.bench, 4, 2, 0.0f);
	CHECK_OK(hg_param_set(param(&w.bench, "u", 2, 2), u));
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_LOSS_SCALE, 1, "add", "second", 2, 0);
	for (int i = 0; i < f->links; i++)
		CHECK(strcmp(f->chain[i].op, "cast") != 0);
	ward_close(&w);
}

/* ---- several faults ---- */

/* Rows of one sum: hub 0 of 4096 ones gets stuck, hub 1 of 4000 times 32 is beyond fp16, hub 2
 * adds 40000 twice and takes it off again. */
static hg_var rows_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "sum");
	const hg_var y = hg_spmm(tape, b->graph, x_of(b, tape), HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, y, 0x1p-14f), targets_of(b, tape), HG_NONE);
}

static const hg_finding *found_at(const hg_doctor_report *r, hg_cause cause, int64_t row)
{
	for (int i = 0; i < r->findings; i++)
		if (r->finding[i].cause == cause && r->finding[i].row == row)
			return &r->finding[i];
	return NULL;
}

static void faults_of_one_op_do_not_wait(void)
{
	enum { ONES = 4096, LARGE = 4000, CANCEL = 4, M = ONES + LARGE + CANCEL };
	static int32_t dst[M], src[M];
	static float x[M];
	struct ward w;
	for (int32_t e = 0; e < M; e++) {
		dst[e] = e < ONES ? 0 : e < ONES + LARGE ? 1 : 2;
		src[e] = e;
		x[e] = dst[e] == 0            ? 1.0f
		       : dst[e] == 1          ? 32.0f
		       : e - ONES - LARGE < 2 ? 40000.0f
		                              : -40000.0f;
	}
	ward_open(&w, hg_policy_fp16_naive(), rows_scene);
	CHECK_OK(hg_graph_from_coo(w.bench.ctx, 3, M, M, dst, src, NULL, NULL, &w.bench.graph));
	tensor_of(&w.bench, HG_F16, M, 1, x, HG_F32);
	constant_tensor(&w.bench, 3, 1, 0.0f);
	ward_compile(&w);
	(void)ward_examine(&w);
	for (int i = 0; i < w.report->findings; i++)
		test_note("%s", w.report->finding[i].sentence);
	CHECK(found_at(w.report, HG_CAUSE_SWAMPING, 0));
	CHECK(found_at(w.report, HG_CAUSE_STORE, 1));
	CHECK(found_at(w.report, HG_CAUSE_ACCUMULATION, 2));
	CHECK_EQ_I(w.report->findings, 3);
	ward_close(&w);
}

/* A NaN among the features of row 4 has no part in row 1, which overflows by itself. */
static void a_bad_input_hides_no_other_fault(void)
{
	struct ward w;
	float x[40];
	for (int i = 0; i < 40; i++)
		x[i] = i == 39 ? NAN : i < 10 ? 1.0f : 30000.0f;
	ward_open(&w, hg_policy_fp16(), rows_scene);
	int32_t dst[40], src[40];
	for (int32_t e = 0; e < 40; e++) {
		dst[e] = e / 10;
		src[e] = e;
	}
	for (int i = 10; i < 40; i++)
		x[i] = i < 20 ? 30000.0f : i == 39 ? NAN : 2.0f;
	CHECK_OK(hg_graph_from_coo(w.bench.ctx, 4, 40, 40, dst, src, NULL, NULL, &w.bench.graph));
	tensor_of(&w.bench, HG_F16, 40, 1, x, HG_F32);
	constant_tensor(&w.bench, 4, 1, 0.0f);
	ward_compile(&w);
	(void)ward_examine(&w);
	for (int i = 0; i < w.report->findings; i++)
		test_note("%s", w.report->finding[i].sentence);
	CHECK(w.report->findings == 2 && w.report->finding[0].cause == HG_CAUSE_INPUT &&
	      w.report->finding[0].row == 39);
	CHECK(found_at(w.report, HG_CAUSE_STORE, 1) &&
	      found_at(w.report, HG_CAUSE_STORE, 1)->wide == 300000.0);
	ward_close(&w);
}

/* ---- norms of what is constant ---- */

static hg_var norm_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, x_of(b, tape), 1.0f);
	const hg_var gamma = hg_tape_param(tape, hg_params_find(b->params, "gamma"));
	const hg_var beta = hg_tape_param(tape, hg_params_find(b->params, "beta"));
	hg_tape_scope(tape, "norm");
	const hg_var y = b->graph
	                     ? hg_layer_norm(tape, x, gamma, beta, 1e-5f)
	                     : hg_batch_norm(tape, x, gamma, beta, hg_params_find(b->params, "mean"),
	                                     hg_params_find(b->params, "var"), 0.1f, 1e-5f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

/* Column 2 of a batch norm, or row 2 of a layer norm, is 1 everywhere: what is left of the
 * variance is eps, and the gradient is 316 times as large, which overflows at this loss scale
 * and not at 1. The column is to blame. */
static void a_constant_column_is_no_loss_scale(void)
{
	static const struct {
		const char *name;
		unsigned flags;
		hg_init init;
	} part[] = {{"gamma", HG_PARAM_F32, HG_INIT_ONES},
	            {"beta", HG_PARAM_F32, HG_INIT_ZEROS},
	            {"mean", HG_PARAM_F32 | HG_PARAM_BUFFER, HG_INIT_ZEROS},
	            {"var", HG_PARAM_F32 | HG_PARAM_BUFFER, HG_INIT_ONES}};
	for (int rows = 0; rows < 2; rows++) {
		struct ward w;
		float x[8][8], target[8][8] = {{0}};
		hg_policy policy = hg_policy_fp16();
		policy.loss_scale.init_scale = 65536.0f;
		ward_open(&w, policy, norm_scene);
		if (rows)
			w.bench.graph = ring(w.bench.ctx, 3); /* only says which */
		for (int i = 0; i < 8; i++)
			for (int c = 0; c < 8; c++)
				x[i][c] = (rows ? i : c) == 2 ? 1.0f : (float)((i + c) % 2);
		target[2][2] = 1.0f;
		tensor_of(&w.bench, HG_F16, 8, 8, x, HG_F32);
		tensor_of(&w.bench, HG_F16, 8, 8, target, HG_F32);
		for (int k = 0; k < 4; k++) {
			hg_param *p = NULL;
			CHECK_OK(
			    hg_params_add(w.bench.params, part[k].name, 1, 8, part[k].init, part[k].flags, &p));
		}
		ward_compile(&w);
		const hg_finding *f = ward_examine(&w);
		CHECK(f != NULL);
		test_note("%s", f->sentence);
		CHECK_STR(hg_cause_name(f->cause), "zero");
		CHECK(f->zero == HG_ZERO_VARIANCE && f->backward && (rows ? f->row : f->col) == 2);
		CHECK_STR(f->op, rows ? "layer_norm" : "batch_norm");
		CHECK_STR(f->layer, "norm");
		is_operand(f, "eps", "", -1, -1, 1e-5);
		CHECK(operand_of(f, "variance")->value < 1e-9);
		CHECK(f->remedies >= 2 && strstr(f->remedy[0].call, "init_scale") != NULL);
		ward_close(&w);
	}
}

/* ---- weights that updates have blown up ---- */

static hg_var deep_scene(struct bench *b, hg_tape *tape)
{
	const hg_var u = hg_tape_param(tape, param(b, "u", 8, 8));
	hg_var y = hg_linear(tape, x_of(b, tape), u, HG_NONE);
	hg_tape_scope(tape, "second");
	y = hg_linear(tape, y, hg_tape_param(tape, param(b, "v", 8, 8)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

enum blow { RATE, ONE, ALL };

/* One step of Adam; then, of v, one weight or all of them set by hand. */
static void step_on(struct ward *w, enum blow how, float v[64])
{
	CHECK_OK(hg_tape_forward(w->bench.tape));
	CHECK_OK(hg_tape_backward(w->bench.tape));
	CHECK_OK(hg_optim_step(w->optim));
	for (int i = 0; i < 64; i++)
		v[i] = how == ALL || i == 9 ? 50000.0f : v[i];
	if (how != RATE)
		CHECK_OK(hg_param_set(param(&w->bench, "v", 8, 8), v));
}

/* How weights become 1000 times as large: by a rate of 100; by a hand that sets one, or all. */
static void a_rate_too_high_is_no_loss_scale(void)
{
	for (enum blow how = RATE; how <= ALL; how++) {
		struct ward w;
		float u[64], v[64];
		hg_policy policy = hg_policy_fp16();
		hg_optim_config config = HG_OPTIM_CONFIG_INIT;
		policy.loss_scale.init_scale = 256.0f;
		config.lr = how == RATE ? 100.0f : 1e-4f;
		ward_open(&w, policy, deep_scene);
		random_tensor(&w.bench, HG_F16, 16, 8, 1.0);
		random_tensor(&w.bench, HG_F16, 16, 8, 1.0);
		for (int i = 0; i < 64; i++) {
			u[i] = (float)(0.1 * test_normal());
			v[i] = (float)(0.1 * test_normal());
		}
		CHECK_OK(hg_param_set(param(&w.bench, "u", 8, 8), u));
		CHECK_OK(hg_param_set(param(&w.bench, "v", 8, 8), v));
		ward_compile_with(&w, config);
		CHECK(ward_examine(&w) == NULL);
		step_on(&w, how, v);
		const hg_finding *f = ward_examine(&w);
		CHECK(f != NULL);
		test_note("%s", f->sentence);
		CHECK_EQ_I(f->cause == HG_CAUSE_OPTIMISER, how == RATE);
		CHECK_EQ_I(*f->grown != 0, how == RATE);
		if (how == RATE) {
			CHECK(f->grown_by > 100.0);
			CHECK_STR(f->remedy[0].call, "hg_optim_set_lr(optim, 0, 0.01f)");
		}
		ward_close(&w);
	}
}

/* ---- remedies of tapes ---- */

static hg_var scores_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "scores");
	const hg_var p = hg_softmax(tape, x_of(b, tape));
	return hg_mse(tape, hg_log(tape, p), targets_of(b, tape), HG_NONE);
}

/* The remedies of who wrote a tape are calls. */
static void remedies_of_a_tape_are_calls(void)
{
	struct ward w;
	float x[3][4] = {{0}};
	x[1][2] = -60.0f;
	ward_open(&w, hg_policy_fp16(), scores_scene);
	tensor_of(&w.bench, HG_F16, 3, 4, x, HG_F32);
	constant_tensor(&w.bench, 3, 4, 0.0f);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_ZERO, 0, "log", "scores", 1, 2);
	CHECK(f->remedies > 0);
	CHECK(strstr(f->remedy[0].call, "hg_log_softmax") != NULL);
	for (int i = 0; i < f->remedies; i++)
		CHECK_STR(f->remedy[i].option, "");
	ward_close(&w);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(the_own_term_is_an_addend),
	    TEST(both_gradients_of_a_sum_are_shown),
	    TEST(the_gradient_before_counts),
	    TEST(operands_are_shown),
	    TEST(heads_have_numbers),
	    TEST(a_weight_of_an_edge_is_none_of_a_feature),
	    TEST(nobody_wrote_that_cast),
	    TEST(faults_of_one_op_do_not_wait),
	    TEST(a_bad_input_hides_no_other_fault),
	    TEST(a_constant_column_is_no_loss_scale),
	    TEST(a_rate_too_high_is_no_loss_scale),
	    TEST(remedies_of_a_tape_are_calls),
	};
	return RUN_TESTS(argc, argv, cases);
}
