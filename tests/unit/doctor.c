/* The doctor: faults of each cause on small tapes and models, found where they were put; and the
 * run that it watches keeps every bit. */
#include "halfgraph/doctor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/faulty.h"
#include "unit/ward.h"

/* mean of (spmm(x) w)^2 in a layer "conv1" */
static hg_var sum_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	hg_var h = hg_spmm(tape, b->graph, hg_tape_input(tape, b->tensor[0], "features", -1.0), HG_NONE,
	                   HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, "head");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w", hg_tensor_cols(b->tensor[0]), 2)),
	              HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, h, 0x1p-12f),
	              hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static void sum_ward(struct ward *w, hg_policy policy, int32_t n, float x)
{
	ward_open(w, policy, sum_scene);
	w->bench.graph = star(w->bench.ctx, n);
	constant_tensor(&w->bench, n, 3, x);
	constant_tensor(&w->bench, n, 2, 0.0f);
	ward_compile(w);
}

/* ---- sums in f16 ---- */

static void star_sticks_at_2048(void)
{
	struct ward w;
	sum_ward(&w, hg_policy_fp16_naive(), 13001, 1.0f);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 0);
	CHECK_EQ_I(f->partial_at, 2048);
	CHECK_EQ_I(f->terms, 13000);
	CHECK(f->partial == 2048.0 && f->got == 2048.0 && f->wide == 13000.0 && f->limit == 1.0);
	CHECK(f->tops == HG_DOCTOR_TOP && f->top[0].row == 1 && f->top[0].value == 1.0);
	CHECK_STR(f->tensor, "conv1/spmm");
	CHECK_STR(f->remedy[0].call, "policy = hg_policy_fp16()");
	ward_close(&w);
}

/* 30000, 1500 fives that are less than half a unit of it, -30000, 1500 fives that count. */
static void sum_of_both_signs_sticks(void)
{
	enum { FIVES = 1500, N = 2 * FIVES + 3 };
	static float x[N][3];
	struct ward w;
	ward_open(&w, hg_policy_fp16_naive(), sum_scene);
	w.bench.graph = star(w.bench.ctx, N);
	for (int i = 1; i < N; i++)
		x[i][1] = i == 1 ? 30000.0f : i == FIVES + 2 ? -30000.0f : 5.0f;
	tensor_of(&w.bench, HG_F16, N, 3, x, HG_F32);
	constant_tensor(&w.bench, N, 2, 0.0f);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 1);
	CHECK(f->got < 0.6 * f->wide && f->wide == 10.0 * (double)FIVES);
	CHECK(f->partial == 30000.0 && f->partial_at == 1 && f->partial_factor == 1.0 &&
	      f->limit == 8.0);
	CHECK_EQ_I(f->terms, 2 * FIVES + 2);
	/* on its way to 7500 the sum rounds, too */
	CHECK(f->ignored >= FIVES && f->ignored < FIVES + FIVES / 2);
	CHECK(f->ignored_share >= 5.0 * (double)FIVES / (60000.0 + 10.0 * (double)FIVES));
	ward_close(&w);
}

static void star_in_f32_sums_is_well(void)
{
	struct ward w;
	sum_ward(&w, hg_policy_fp16(), 13001, 1.0f);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	CHECK(w.report->headroom > 0.0 && w.report->headroom < 3.0); /* 13000 of 65520 */
	CHECK(*w.report->headroom_at);
	ward_close(&w);
}

static void sum_beyond_f16_is_no_fault_of_the_order(void)
{
	struct ward w;
	sum_ward(&w, hg_policy_fp16_naive(), 2001, 40.0f);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_STORE, 0, "spmm", "conv1", 0, 0);
	CHECK(f->wide == 80000.0 && isinf(f->got) && f->terms == 2000 && f->bad == 3);
	CHECK(f->row_is == HG_ROW_NODE);
	ward_close(&w);
}

/* +x +x -x -x over four leaves: 0, but the second addend is beyond f16. */
static void partial_sum_overflows(void)
{
	const float x[5] = {0.0f, 40000.0f, 40000.0f, -40000.0f, -40000.0f};
	float features[5][3] = {{0}};
	struct ward w;
	ward_open(&w, hg_policy_fp16_naive(), sum_scene);
	w.bench.graph = star(w.bench.ctx, 5);
	for (int i = 0; i < 5; i++)
		features[i][1] = x[i];
	tensor_of(&w.bench, HG_F16, 5, 3, features, HG_F32);
	constant_tensor(&w.bench, 5, 2, 0.0f);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_ACCUMULATION, 0, "spmm", "conv1", 0, 1);
	CHECK_EQ_I(f->partial_at, 2);
	CHECK(f->partial == 40000.0 && f->wide == 0.0 && f->terms == 4);
	ward_close(&w);
}

static hg_var mean_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	const hg_var h =
	    hg_spmm_mean(tape, b->graph, hg_tape_input(tape, b->tensor[0], "features", -1.0));
	hg_tape_scope(tape, NULL);
	const hg_var y = hg_linear(
	    tape, h, hg_tape_param(tape, param(b, "w", hg_tensor_cols(b->tensor[0]), 2)), HG_NONE);
	return hg_mse(tape, hg_scale(tape, y, 0x1p-12f),
	              hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

/* The running sum stands before the factor of the row, and the sentence says so. */
static void mean_of_ones_sticks_before_its_factor(void)
{
	struct ward w;
	ward_open(&w, hg_policy_fp16_naive(), mean_scene);
	w.bench.graph = star(w.bench.ctx, 4097);
	constant_tensor(&w.bench, 4097, 3, 1.0f);
	constant_tensor(&w.bench, 4097, 2, 0.0f);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_SWAMPING, 0, "spmm", "conv1", 0, 0);
	CHECK(f->partial == 2048.0 && f->partial_at == 2048 && f->partial_factor == 1.0 / 4096.0 &&
	      f->wide == 1.0 && f->got == 0.5);
	CHECK(f->ignored == 2048 && f->ignored_share == 0.5);
	CHECK(strstr(f->sentence, "(not yet multiplied by 0.000244141), which") != NULL);
	ward_close(&w);
}

static void call_it(void *user, const hg_finding *f, char *name, size_t room)
{
	(void)snprintf(name, room, "%s %lld", (const char *)user, (long long)f->row);
}

/* With a name of the reader's, cut where there is no room. */
static void sentence_takes_a_name(void)
{
	char text[512], name[] = "paper", small[8];
	struct ward w;
	sum_ward(&w, hg_policy_fp16_naive(), 2001, 40.0f);
	const hg_finding *f = ward_examine(&w);
	const int length = hg_finding_sentence(f, call_it, name, text, sizeof text);
	CHECK_EQ_I(length, strlen(text));
	CHECK(strstr(text,
	             "(result of spmm: sum over neighbours in conv1) at paper 0, feature 0 is inf: ") !=
	      NULL);
	CHECK_EQ_I(hg_finding_sentence(f, call_it, name, small, sizeof small), length);
	CHECK(strlen(small) == sizeof small - 1 && strncmp(small, text, sizeof small - 1) == 0);
	CHECK_EQ_I(hg_finding_sentence(f, call_it, name, NULL, 0), length);
	(void)hg_finding_sentence(f, NULL, NULL, text, sizeof text);
	CHECK(strncmp(f->sentence, text, strlen(text)) == 0);
	ward_close(&w);
}

/* A mean of 20000: four of them are 80000 before they are divided by the degree. */
static void batch_overflows_before_its_factor(void)
{
	struct ward w;
	ward_open(&w, hg_policy_fp16_discretized(), mean_scene);
	w.bench.graph = star(w.bench.ctx, 201);
	constant_tensor(&w.bench, 201, 3, 20000.0f);
	constant_tensor(&w.bench, 201, 2, 0.0f);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_ACCUMULATION, 0, "spmm", "conv1", 0, 0);
	CHECK_EQ_I(f->partial_at, 4);
	CHECK(f->partial == 60000.0 && fabs(f->wide - 20000.0) < 1e-2);
	ward_close(&w);
}

/* ---- inputs ---- */

static void bad_feature_is_named(void)
{
	float x[20][3] = {{0}};
	struct ward w;
	sum_ward(&w, hg_policy_fp16(), 20, 1.0f);
	x[7][2] = NAN;
	CHECK_OK(hg_tensor_upload(w.bench.tensor[0], x, HG_F32));
	const hg_finding *f = ward_expect(&w, HG_CAUSE_INPUT, 0, "", "", 7, 2);
	CHECK_STR(f->tensor, "features");
	CHECK(isnan(f->got) && f->node == -1 && f->links >= 5);
	CHECK_STR(f->chain[f->links - 1].op, "w");
	ward_close(&w);
}

static void bad_weight_is_named(void)
{
	float x[6] = {1.0f, 1.0f, 1.0f, INFINITY, 1.0f, 1.0f};
	struct ward w;
	sum_ward(&w, hg_policy_fp16(), 20, 1.0f);
	CHECK_OK(hg_tensor_upload(hg_param_master(hg_params_find(w.bench.params, "w")), x, HG_F32));
	const hg_finding *f = ward_expect(&w, HG_CAUSE_INPUT, 0, "", "", 1, 1);
	CHECK_STR(f->tensor, "w");
	CHECK_EQ_I(f->row_is, HG_ROW_WEIGHT);
	ward_close(&w);
}

/* The master holds what no half can: f32 is the remedy. */
static void weight_beyond_f16_is_told(void)
{
	const float x[6] = {1.0f, 1.0f, 1.0f, 1.0f, -1e6f, 1.0f},
	            narrow[6] = {1.0f, 1.0f, 1.0f, 1.0f, -INFINITY, 1.0f};
	struct ward w;
	sum_ward(&w, hg_policy_fp16(), 20, 1.0f);
	hg_param *const weight = hg_params_find(w.bench.params, "w");
	CHECK_OK(hg_tensor_upload(hg_param_master(weight), x, HG_F32));
	CHECK_OK(hg_tensor_upload(hg_param_working(weight), narrow, HG_F32));
	const hg_finding *f = ward_expect(&w, HG_CAUSE_INPUT, 0, "", "", 2, 0);
	CHECK(isinf(f->got) && f->wide == -1e6 && f->row_is == HG_ROW_WEIGHT && f->limit == 65520.0);
	CHECK(strstr(f->sentence, "is -inf in fp16: the fp32 copy of the weights has -1000000, and "
	                          "fp16 holds 65504 at most") != NULL);
	CHECK_EQ_I(f->remedies, 1);
	CHECK_STR(f->remedy[0].call, "policy = hg_policy_fp32()");
	ward_close(&w);
}

static hg_var class_scene(struct bench *b, hg_tape *tape)
{
	const hg_var h = hg_linear(tape, hg_tape_input(tape, b->tensor[0], "features", -1.0),
	                           hg_tape_param(tape, param(b, "w", 3, 4)), HG_NONE);
	return hg_softmax_xent(tape, h, hg_tape_input(tape, b->tensor[1], "labels", 3.0),
	                       hg_tape_input(tape, b->tensor[2], "mask", 1.0));
}

static void wrong_label_is_named(void)
{
	int32_t label[6] = {0, 1, 2, 3, -1, 0};
	const uint8_t mask[6] = {1, 1, 0, 1, 1, 1};
	struct ward w;
	ward_open(&w, hg_policy_fp16(), class_scene);
	constant_tensor(&w.bench, 6, 3, 1.0f);
	tensor_of(&w.bench, HG_I32, 6, 1, label, HG_I32);
	tensor_of(&w.bench, HG_U8, 6, 1, mask, HG_U8);
	ward_compile(&w);
	label[2] = 9; /* does not count */
	label[5] = 4;
	CHECK_OK(hg_tensor_upload(w.bench.tensor[1], label, HG_I32));
	const hg_finding *f = ward_expect(&w, HG_CAUSE_INPUT, 0, "", "", 5, 0);
	CHECK_STR(f->tensor, "labels");
	CHECK(f->got == 4.0 && f->bad == 1);
	ward_close(&w);
}

/* ---- forward ---- */

static hg_var exp_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "gate");
	const hg_var y = hg_exp(tape, hg_tape_variable(tape, b->tensor[0], "x"));
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static hg_var log_scene(struct bench *b, hg_tape *tape)
{
	const hg_var y = hg_log(tape, hg_tape_variable(tape, b->tensor[0], "x"));
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static hg_var sqrt_scene(struct bench *b, hg_tape *tape)
{
	const hg_var y = hg_sqrt(tape, hg_tape_variable(tape, b->tensor[0], "x"));
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static hg_var div_scene(struct bench *b, hg_tape *tape)
{
	const hg_var one = hg_tape_input(tape, b->tensor[1], "targets", -1.0);
	return hg_mse(tape, hg_div(tape, one, hg_tape_variable(tape, b->tensor[0], "x")), one, HG_NONE);
}

static void element_ward(struct ward *w, scene_fn scene, float usual, int row, int col, float x)
{
	float values[5][4];
	ward_open(w, hg_policy_fp16(), scene);
	for (int i = 0; i < 5 * 4; i++)
		values[i / 4][i % 4] = i == 4 * row + col ? x : usual;
	tensor_of(&w->bench, HG_F16, 5, 4, values, HG_F32);
	constant_tensor(&w->bench, 5, 4, 1.0f);
	ward_compile(w);
}

static void elements_go_wrong(void)
{
	static const struct {
		scene_fn scene;
		float usual, x;
		hg_cause cause;
		int backward;
		const char *op, *layer;
	} rows[] = {
	    {exp_scene, 0.0f, 12.0f, HG_CAUSE_STORE, 0, "exp", "gate"},
	    {exp_scene, 0.0f, 200.0f, HG_CAUSE_STORE, 0, "exp", "gate"},
	    {log_scene, 1.0f, 0.0f, HG_CAUSE_ZERO, 0, "log", ""},
	    {log_scene, 1.0f, -1.0f, HG_CAUSE_ZERO, 0, "log", ""},
	    {sqrt_scene, 1.0f, -1.0f, HG_CAUSE_ZERO, 0, "sqrt", ""},
	    {sqrt_scene, 1.0f, 0.0f, HG_CAUSE_ZERO, 1, "sqrt", ""},
	    {div_scene, 1.0f, 0.0f, HG_CAUSE_ZERO, 0, "div", ""},
	    {div_scene, 1.0f, 1e-5f, HG_CAUSE_ZERO, 0, "div", ""},
	    {exp_scene, 0.0f, 10.0f, HG_CAUSE_LOSS_SCALE, 1, "mse", ""},
	    {div_scene, 1.0f, 0.25f, HG_CAUSE_LOSS_SCALE, 1, "div", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ward w;
		element_ward(&w, rows[i].scene, rows[i].usual, 3, 1, rows[i].x);
		(void)ward_expect(&w, rows[i].cause, rows[i].backward, rows[i].op, rows[i].layer, 3, 1);
		ward_close(&w);
	}
}

/* spmm + bias + relu + dropout, fused: who took it over the limit? */
static hg_var chain_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	hg_var h = hg_spmm(tape, b->graph, hg_tape_input(tape, b->tensor[0], "features", -1.0), HG_NONE,
	                   HG_NORM_NONE, 1.0f);
	h = hg_relu(tape, hg_bias_add(tape, h, hg_tape_input(tape, b->tensor[2], "bias", -1.0)));
	hg_tape_scope(tape, "conv2");
	h = hg_dropout(tape, h, 0.5f);
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w", 3, 2)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, h, 0x1p-12f),
	              hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static void the_guilty_one_of_a_chain_is_named(void)
{
	static const struct {
		float x, bias; /* 100 addends x, a bias */
		const char *op, *layer;
	} rows[] = {{700.0f, 0.0f, "spmm", "conv1"},
	            {650.0f, 1000.0f, "bias_add", "conv1"},
	            {500.0f, 0.0f, "dropout", "conv2"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ward w;
		ward_open(&w, hg_policy_fp16(), chain_scene);
		w.bench.graph = star(w.bench.ctx, 101);
		constant_tensor(&w.bench, 101, 3, rows[i].x);
		constant_tensor(&w.bench, 101, 2, 0.0f);
		constant_tensor(&w.bench, 1, 3, rows[i].bias);
		ward_compile(&w);
		const hg_finding *f = ward_examine(&w);
		CHECK(f != NULL);
		test_note("%s", f->sentence);
		CHECK_EQ_I(f->cause, HG_CAUSE_STORE);
		CHECK_STR(f->op, rows[i].op);
		CHECK_STR(f->layer, rows[i].layer);
		CHECK_EQ_I(f->row, 0); /* the column depends on what dropout leaves */
		ward_close(&w);
	}
}

/* ---- backward ---- */

/* The gradient of each layer is `factor` times that of the one above. */
static hg_var scale_scene(struct bench *b, hg_tape *tape, float factor)
{
	hg_tape_scope(tape, "conv1");
	const hg_var h = hg_linear(tape, hg_tape_variable(tape, b->tensor[0], "x"),
	                           hg_tape_param(tape, param(b, "w", 4, 4)), HG_NONE);
	hg_tape_scope(tape, "conv2");
	const hg_var y = hg_scale(tape, hg_scale(tape, h, 1.0f / factor), factor);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static hg_var explode_scene(struct bench *b, hg_tape *tape)
{
	return scale_scene(b, tape, 1e6f);
}

static hg_var grow_scene(struct bench *b, hg_tape *tape)
{
	return scale_scene(b, tape, 1000.0f);
}

static hg_var vanish_scene(struct bench *b, hg_tape *tape)
{
	return scale_scene(b, tape, 0x1p-20f);
}

static void gradients_go_wrong(void)
{
	static const struct {
		scene_fn scene;
		float scale; /* loss scale */
		hg_cause cause;
	} rows[] = {
	    {grow_scene, 65536.0f, HG_CAUSE_LOSS_SCALE}, {grow_scene, 1.0f, HG_CAUSE_COUNT},
	    {explode_scene, 1.0f, HG_CAUSE_EXPLOSION},   {explode_scene, 1024.0f, HG_CAUSE_EXPLOSION},
	    {vanish_scene, 1.0f, HG_CAUSE_UNDERFLOW},    {vanish_scene, 65536.0f, HG_CAUSE_COUNT},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ward w;
		hg_policy policy = hg_policy_fp16();
		policy.loss_scale.init_scale = rows[i].scale;
		ward_open(&w, policy, rows[i].scene);
		constant_tensor(&w.bench, 5, 4, rows[i].scene == vanish_scene ? 0.01f : 0.25f);
		constant_tensor(&w.bench, 5, 4, rows[i].scene == vanish_scene ? 0.0f : 4.0f);
		ward_compile(&w);
		const hg_finding *f = ward_examine(&w);
		test_note("%s", f ? f->sentence : "none");
		CHECK((f != NULL) == (rows[i].cause != HG_CAUSE_COUNT));
		if (f) {
			CHECK_STR(hg_cause_name(f->cause), hg_cause_name(rows[i].cause));
			CHECK_STR(f->op, "scale");
			CHECK_STR(f->layer, "conv2");
			CHECK(f->backward && f->row_is == HG_ROW_NODE);
			CHECK_STR(f->tensor, "gradient of conv2/scale #1");
		}
		ward_close(&w);
	}
}

/* The gradient of a star turned round: 4096 leaves hear the hub, whose gradient is a naive sum of
 * 4096 ones. */
static hg_var fan_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	const hg_var h = hg_spmm(tape, b->graph, hg_tape_variable(tape, b->tensor[0], "x"), HG_NONE,
	                         HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, h, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static void backward_sum_sticks(void)
{
	enum { LEAVES = 4096 };
	static int32_t dst[LEAVES], src[LEAVES];
	hg_policy policy = hg_policy_fp16_naive();
	struct ward w;
	policy.loss_scale.init_scale = (LEAVES + 1) / 2.0f; /* d = 2 (x - t) scale / n */
	ward_open(&w, policy, fan_scene);
	for (int32_t i = 0; i < LEAVES; i++)
		dst[i] = i + 1;
	CHECK_OK(hg_graph_from_coo(w.bench.ctx, LEAVES + 1, LEAVES + 1, LEAVES, dst, src, NULL, NULL,
	                           &w.bench.graph));
	constant_tensor(&w.bench, LEAVES + 1, 1, 1.0f);
	constant_tensor(&w.bench, LEAVES + 1, 1, 0.0f);
	ward_compile(&w);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_SWAMPING, 1, "spmm", "conv1", 0, 0);
	CHECK(f->partial == 2048.0 && f->partial_at == 2048 && f->wide == 4096.0);
	ward_close(&w);
}

/* A column that is the same in every row: 1 / sqrt(0 + eps). */
static hg_var norm_scene(struct bench *b, hg_tape *tape)
{
	hg_param *part[4];
	static const char *const name[] = {"gamma", "beta", "mean", "var"};
	for (int i = 0; i < 4; i++) {
		part[i] = hg_params_find(b->params, name[i]);
		if (!part[i])
			CHECK_OK(hg_params_add(b->params, name[i], 1, 4, i == 0 ? HG_INIT_ONES : HG_INIT_ZEROS,
			                       HG_PARAM_F32 | (i > 1 ? HG_PARAM_BUFFER : 0u), &part[i]));
	}
	hg_tape_scope(tape, "bn");
	const hg_var y =
	    hg_batch_norm(tape, hg_tape_variable(tape, b->tensor[0], "x"), hg_tape_param(tape, part[0]),
	                  hg_tape_param(tape, part[1]), part[2], part[3], 0.1f, 1e-38f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static void vanishing_variance_is_a_division_by_zero(void)
{
	float x[5][4], target[5][4] = {{0}};
	struct ward w;
	ward_open(&w, hg_policy_fp16(), norm_scene);
	for (int i = 0; i < 5 * 4; i++) {
		x[i / 4][i % 4] = i % 4 == 2 ? 1.0f : (float)i;
		target[i / 4][i % 4] = (float)(i % 7);
	}
	tensor_of(&w.bench, HG_F16, 5, 4, x, HG_F32);
	tensor_of(&w.bench, HG_F16, 5, 4, target, HG_F32);
	ward_compile(&w);
	const hg_finding *f = ward_examine(&w);
	CHECK(f != NULL);
	test_note("%s", f->sentence);
	CHECK_STR(hg_cause_name(f->cause), "zero");
	CHECK_STR(f->op, "batch_norm");
	CHECK_STR(f->layer, "bn");
	CHECK(f->backward && f->col == 2);
	ward_close(&w);
}

/* ---- several at once ---- */

/* A product that is rounded to zero and an exponential beyond f16, in either order. */
static hg_var faint_of(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "faint");
	const hg_var y = hg_scale(tape, hg_tape_input(tape, b->tensor[0], "x", -1.0), 0x1p-30f);
	hg_tape_scope(tape, NULL);
	return y;
}

static hg_var power_of(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "loud");
	const hg_var y = hg_exp(tape, hg_tape_input(tape, b->tensor[1], "y", -1.0));
	hg_tape_scope(tape, NULL);
	return y;
}

static hg_var both_of(struct bench *b, hg_tape *tape, int faint_first)
{
	const hg_var a = faint_first ? faint_of(b, tape) : power_of(b, tape),
	             c = faint_first ? power_of(b, tape) : faint_of(b, tape);
	const hg_var w = hg_tape_param(tape, param(b, "w", 5, 4));
	return hg_mse(tape, hg_add(tape, hg_add(tape, a, c), w),
	              hg_tape_input(tape, b->tensor[0], "x", -1.0), HG_NONE);
}

static hg_var faint_first_scene(struct bench *b, hg_tape *tape)
{
	return both_of(b, tape, 1);
}

static hg_var loud_first_scene(struct bench *b, hg_tape *tape)
{
	return both_of(b, tape, 0);
}

static void findings_stand_in_the_order_of_the_step(void)
{
	const float y[5][4] = {{0}, {0}, {0, 20.0f}};
	for (int faint_first = 0; faint_first < 2; faint_first++) {
		struct ward w;
		hg_doctor *narrow = NULL;
		hg_doctor_config one = HG_DOCTOR_CONFIG_INIT;
		one.most_findings = 1;
		ward_open(&w, hg_policy_fp16(), faint_first ? faint_first_scene : loud_first_scene);
		constant_tensor(&w.bench, 5, 4, 0.01f);
		tensor_of(&w.bench, HG_F16, 5, 4, y, HG_F32);
		ward_compile(&w);
		(void)ward_examine(&w);
		CHECK_EQ_I(w.report->findings, 2);
		CHECK_EQ_I(w.report->finding[faint_first].cause, HG_CAUSE_STORE);
		CHECK_STR(w.report->finding[faint_first].layer, "loud");
		CHECK_EQ_I(w.report->finding[!faint_first].cause, HG_CAUSE_UNDERFLOW);
		CHECK_STR(w.report->finding[!faint_first].layer, "faint");
		/* what is loud is never left out for what is silent */
		CHECK_STATUS(hg_doctor_create(w.bench.params, w.optim, record_scene, &w, &one, &narrow),
		             HG_OK);
		CHECK_OK(hg_doctor_examine(narrow, 0, &w.report));
		CHECK(w.report->findings == 1 && w.report->finding[0].cause == HG_CAUSE_STORE);
		hg_doctor_free(narrow);
		ward_close(&w);
	}
}

/* ---- being watched ---- */

struct patience {
	int64_t told, last, all, stop_at; /* stop_at 0: never */
};

static int on_replay(void *user, const char *what, int64_t done, int64_t total)
{
	struct patience *p = user;
	CHECK_STR(what, "replay");
	CHECK(done < total && done == p->told);
	p->all = total;
	return ++p->told == p->stop_at;
}

/* Wherever a replay is stopped, weights and counters are what they were, and the next one finds
 * what it would have found. */
static void a_replay_can_be_stopped(void)
{
	const float y[5][4] = {{0}, {0}, {0, 20.0f}};
	struct ward w;
	struct patience patience = {0};
	const hg_progress watch = {on_replay, &patience};
	hg_doctor *watched = NULL;
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	config.progress = &watch;
	ward_open(&w, hg_policy_fp16(), loud_first_scene);
	constant_tensor(&w.bench, 5, 4, 0.01f);
	tensor_of(&w.bench, HG_F16, 5, 4, y, HG_F32);
	ward_compile(&w);
	(void)ward_examine(&w);
	const int findings = w.report->findings;
	CHECK_OK(hg_doctor_create(w.bench.params, w.optim, record_scene, &w, &config, &watched));
	CHECK_OK(hg_doctor_examine(watched, 0, &w.report));
	CHECK_EQ_I(w.report->findings, findings);
	CHECK_EQ_I(patience.told, patience.all);
	for (int64_t k = 1; k <= patience.all; k++) {
		patience = (struct patience){.stop_at = k, .all = patience.all};
		CHECK_STATUS(hg_doctor_examine(watched, 0, &w.report), HG_ERR_STATE);
		CHECK_CONTAINS(hg_context_error(w.bench.ctx), "stopped on request");
		CHECK(!w.report && patience.told == k);
	}
	patience.stop_at = patience.told = 0;
	CHECK_OK(hg_doctor_examine(watched, 0, &w.report));
	CHECK_EQ_I(w.report->findings, findings);
	CHECK_EQ_I(w.report->step, 0);
	hg_doctor_free(watched);
	ward_close(&w);
}

/* ---- the optimiser ---- */

static void updates_go_wrong(void)
{
	struct ward w;
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	for (int i = 0; i < 3; i++) {
		float zero[6] = {0};
		ward_open(&w, hg_policy_fp16(), sum_scene);
		w.bench.graph = star(w.bench.ctx, 20);
		/* no features: gradients 0, moments 0 */
		constant_tensor(&w.bench, 20, 3, i == 0 ? 0.0f : 1.0f);
		constant_tensor(&w.bench, 20, 2, 1.0f);
		config.eps = i == 0 ? 0.0f : 1e-8f;
		config.lr = i == 1 ? 1e6f : 0.01f;
		ward_compile_with(&w, config);
		if (i == 0)
			CHECK_OK(hg_param_set(hg_params_find(w.bench.params, "w"), zero));
		if (i == 2) {
			(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
		} else {
			const hg_finding *f = ward_expect(&w, HG_CAUSE_OPTIMISER, 0, "adam", "", 0, 0);
			CHECK_STR(f->tensor, "w");
			CHECK(f->row_is == HG_ROW_WEIGHT && f->node == -1);
			/* fp32 holds 1e6, and no NaN */
			const char *last = f->remedy[f->remedies - 1].call;
			CHECK((strcmp(last, "policy = hg_policy_fp32()") == 0) == (i == 1));
		}
		ward_close(&w);
	}
}

/* ---- what is stored x 2^-shift ---- */

/* A sum that does not fit even so: what is told is told of the sum. */
static void what_is_stored_rescaled_is_told_as_it_is(void)
{
	const float small[6] = {0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f};
	for (int x = 50; x <= 100; x += 50) {
		struct ward w;
		ward_open(&w, hg_policy_fp16(), sum_scene);
		w.bench.graph = star(w.bench.ctx, 2001);
		constant_tensor(&w.bench, 2001, 3, (float)x);
		constant_tensor(&w.bench, 2001, 2, 0.0f);
		ward_rescale(&w, "spmm", "conv1", 1);
		ward_compile(&w);
		CHECK_OK(hg_param_set(hg_params_find(w.bench.params, "w"), small));
		if (x == 50) {
			(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
			for (int i = 0; i < w.report->tensors; i++)
				if (strcmp(w.report->tensor[i].name, "conv1/spmm") == 0)
					CHECK_MSG(w.report->tensor[i].shift == 1 &&
					              w.report->tensor[i].amax == 99968.0 &&
					              w.report->tensor[i].headroom < 0.5,
					          "x 2^-%d, %g, %g bits", (int)w.report->tensor[i].shift,
					          w.report->tensor[i].amax, w.report->tensor[i].headroom);
		} else {
			const hg_finding *f = ward_expect(&w, HG_CAUSE_STORE, 0, "spmm", "conv1", 0, 0);
			CHECK(f->shift == 1 && f->wide == 200000.0 && f->limit == 131040.0 && f->terms == 2000);
			CHECK(f->tops > 0 && f->top[0].value == 100.0);
			CHECK_CONTAINS(f->sentence, "stored x 2^-1");
		}
		ward_close(&w);
	}
}

/* 64 X, stored x 2^-shift, and what reads it. */
static hg_var own_term_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_input(tape, b->tensor[0], "x", -1.0), z = hg_scale(tape, x, 64.0f);
	const hg_var y = hg_add(tape, z, hg_spmm(tape, b->graph, x, HG_NONE, HG_NORM_NONE, 1.0f));
	return hg_mse(tape, hg_linear(tape, y, hg_tape_param(tape, param(b, "w", 3, 2)), HG_NONE),
	              hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static hg_var normed_scene(struct bench *b, hg_tape *tape)
{
	hg_param *part[4];
	static const char *const name[] = {"gamma", "beta", "mean", "var"};
	for (int i = 0; i < 4; i++) {
		part[i] = hg_params_find(b->params, name[i]);
		if (!part[i])
			CHECK_OK(hg_params_add(b->params, name[i], 1, 3, i == 0 ? HG_INIT_ONES : HG_INIT_ZEROS,
			                       HG_PARAM_F32 | (i > 1 ? HG_PARAM_BUFFER : 0u), &part[i]));
	}
	const hg_var z = hg_scale(tape, hg_tape_input(tape, b->tensor[0], "x", -1.0), 64.0f);
	const hg_var n = hg_batch_norm(tape, z, hg_tape_param(tape, part[0]),
	                               hg_tape_param(tape, part[1]), part[2], part[3], 0.1f, 1e-5f);
	return hg_mse(tape, hg_linear(tape, n, hg_tape_param(tape, param(b, "w", 3, 2)), HG_NONE),
	              hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

/* 70,400 and 2200 fit apart where the one is stored x 2^-4, their sum does not: it, and not the sum
 * of neighbours, is to blame. */
static void a_rescaled_own_term_counts_in_full(void)
{
	struct ward w;
	ward_open(&w, hg_policy_fp16(), own_term_scene);
	w.bench.graph = star(w.bench.ctx, 3);
	constant_tensor(&w.bench, 3, 3, 1100.0f);
	constant_tensor(&w.bench, 3, 2, 0.0f);
	ward_rescale(&w, "scale", "", 4);
	ward_compile(&w);
	(void)ward_expect(&w, HG_CAUSE_STORE, 0, "add", "", 0, 0);
	ward_close(&w);
}

/* Columns of a healthy variance, however they are stored: a gain that is too large is no division
 * by zero. */
static void a_rescaled_variance_is_not_near_zero(void)
{
	for (int shift = 0; shift <= HG_SHIFT_MOST; shift += HG_SHIFT_MOST) {
		struct ward w;
		float x[8][3];
		const float gain[3] = {65000.0f, 65000.0f, 65000.0f};
		for (int i = 0; i < 24; i++)
			x[i / 3][i % 3] = (float)(i / 3 % 3) * 0.5f + (float)(i / 3 & 1);
		ward_open(&w, hg_policy_fp16(), normed_scene);
		tensor_of(&w.bench, HG_F16, 8, 3, x, HG_F32);
		constant_tensor(&w.bench, 8, 2, 0.0f);
		if (shift)
			ward_rescale(&w, "scale", "", shift);
		ward_compile(&w);
		CHECK_OK(hg_param_set(hg_params_find(w.bench.params, "gamma"), gain));
		const hg_finding *f = ward_examine(&w);
		CHECK(f && f->cause == HG_CAUSE_STORE && strcmp(f->op, "batch_norm") == 0);
		ward_close(&w);
	}
}

/* What vanishes for being stored x 2^-14 is below 2^-11, not below 2^-25. */
static void what_a_power_made_vanish_is_told_with_it(void)
{
	struct ward w;
	ward_open(&w, hg_policy_fp16(), own_term_scene);
	w.bench.graph = star(w.bench.ctx, 3);
	constant_tensor(&w.bench, 3, 3, 0x1p-20f);
	constant_tensor(&w.bench, 3, 2, 0.0f);
	ward_rescale(&w, "scale", "", HG_SHIFT_MOST);
	ward_compile(&w);
	const hg_finding *f = ward_examine(&w);
	CHECK(f && f->cause == HG_CAUSE_UNDERFLOW && strcmp(f->op, "scale") == 0 &&
	      f->shift == HG_SHIFT_MOST);
	CHECK(f->wide == 0x1p-14 && f->limit == 0x1p-10 && f->wide < f->limit);
	CHECK_CONTAINS(f->sentence,
	               "below half of the smallest number in fp16, 2^-10 (stored x 2^-14)");
	ward_close(&w);
}

/* ---- going back ---- */

static void the_last_step_can_be_examined_if_it_was_skipped(void)
{
	struct ward w;
	hg_step_info info = HG_STEP_INFO_INIT;
	hg_policy alone = hg_policy_fp16();
	alone.replan = 0; /* nobody looks at the sum: its gradients tell */
	sum_ward(&w, alone, 2001, 40.0f);
	CHECK_STATUS(hg_doctor_examine(w.doctor, 1, &w.report), HG_ERR_STATE); /* none has been taken */
	CHECK_OK(hg_tape_forward(w.bench.tape));
	CHECK_OK(hg_tape_backward(w.bench.tape));
	CHECK_OK(hg_optim_step(w.optim));
	CHECK_OK(hg_optim_info(w.optim, &info));
	CHECK(!info.applied && info.loss_scale == 32768.0f);
	CHECK_OK(hg_doctor_examine(w.doctor, 1, &w.report));
	CHECK(w.report->findings >= 1 && w.report->step == 0 && w.report->loss_scale == 65536.0);
	CHECK_EQ_I(w.report->finding[0].cause, HG_CAUSE_STORE);
	CHECK_OK(hg_doctor_examine(w.doctor, 0, &w.report));
	CHECK(w.report->step == 1 && w.report->loss_scale == 32768.0);
	CHECK_STATUS(hg_doctor_examine(w.doctor, 2, &w.report), HG_ERR_ARG);
	ward_close(&w);
	sum_ward(&w, hg_policy_fp16(), 2001, 40.0f);
	CHECK_OK(hg_tape_forward(w.bench.tape));
	CHECK_OK(hg_tape_backward(w.bench.tape));
	CHECK_OK(hg_optim_step(w.optim));
	CHECK_OK(hg_optim_info(w.optim, &info));
	CHECK(info.reason == HG_STEP_SKIPPED_FORWARD && info.loss_scale == 65536.0f &&
	      info.overflow_amax == 80000.0f);
	CHECK_OK(hg_doctor_examine(w.doctor, 1, &w.report));
	CHECK_EQ_I(w.report->finding[0].node, info.overflow_node);
	ward_close(&w);
	sum_ward(&w, hg_policy_fp16(), 21, 1.0f);
	CHECK_OK(hg_tape_forward(w.bench.tape));
	CHECK_OK(hg_tape_backward(w.bench.tape));
	CHECK_OK(hg_optim_step(w.optim));
	/* the last one was applied */
	CHECK_STATUS(hg_doctor_examine(w.doctor, 1, &w.report), HG_ERR_STATE);
	ward_close(&w);
}

/* ---- shapes with nothing in them, memory ---- */

static void nothing_to_examine_is_well(void)
{
	struct ward w;
	ward_open(&w, hg_policy_fp16_naive(), sum_scene);
	CHECK_OK(hg_graph_from_coo(w.bench.ctx, 0, 0, 0, NULL, NULL, NULL, NULL, &w.bench.graph));
	tensor_of(&w.bench, HG_F16, 0, 3, NULL, HG_F32);
	tensor_of(&w.bench, HG_F16, 0, 2, NULL, HG_F32);
	ward_compile(&w);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
	sum_ward(&w, hg_policy_fp16_naive(), 1, 1.0f);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

static void examining_gives_its_memory_back(void)
{
	hg_memory_info before = HG_MEMORY_INFO_INIT, after = HG_MEMORY_INFO_INIT;
	struct ward w;
	sum_ward(&w, hg_policy_fp16_naive(), 2001, 40.0f);
	(void)ward_examine(&w);
	CHECK_OK(hg_context_memory(w.bench.ctx, &before));
	for (int i = 0; i < 3; i++)
		(void)ward_examine(&w);
	CHECK_OK(hg_context_memory(w.bench.ctx, &after));
	CHECK_EQ_I(before.current_bytes, after.current_bytes);
	ward_close(&w);
}

/* Graph, tape, doctor and one examination on a context whose k-th allocation fails. */
static hg_status whole_visit(hg_context *ctx)
{
	struct ward w = {.record = sum_scene};
	const hg_policy policy = hg_policy_fp16_naive();
	const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	struct bench *b = &w.bench;
	int32_t dst[40], src[40];
	float x[41 * 3], target[41 * 2] = {0};
	hg_param *made = NULL;
	for (int i = 0; i < 40; i++) {
		dst[i] = 0;
		src[i] = i + 1;
	}
	for (int i = 0; i < 41 * 3; i++)
		x[i] = 2000.0f;
	b->ctx = ctx;
	hg_status status = hg_graph_from_coo(ctx, 41, 41, 40, dst, src, NULL, NULL, &b->graph);
	for (int i = 0; i < 2 && status >= 0; i++) {
		status = hg_tensor_create(ctx, HG_F16, 41, 3 - i, &b->tensor[i]);
		b->tensors += status >= 0;
		if (status >= 0)
			status = hg_tensor_upload(b->tensor[i], i ? target : x, HG_F32);
	}
	if (status >= 0)
		status = hg_params_create(ctx, &policy, &b->params);
	if (status >= 0)
		status = hg_params_add(b->params, "w", 3, 2, HG_INIT_GLOROT_UNIFORM, 0, &made);
	if (status >= 0)
		status = hg_optim_create(b->params, &config, &w.optim);
	if (status >= 0)
		status = hg_doctor_create(b->params, w.optim, record_scene, &w, NULL, &w.doctor);
	if (status >= 0)
		status = hg_doctor_examine(w.doctor, 0, &w.report);
	if (status >= 0 && w.report->findings < 1)
		status = HG_ERR_INTERNAL;
	hg_doctor_free(w.doctor);
	hg_optim_free(w.optim);
	hg_params_free(b->params);
	for (int i = 0; i < b->tensors; i++)
		hg_tensor_free(b->tensor[i]);
	hg_graph_free(b->graph);
	return status;
}

static void every_allocation_may_fail(void)
{
	const int64_t count = faulty_sweep(whole_visit);
	test_note("%lld allocations", (long long)count);
	CHECK(count > 50);
}

static void what_is_silent_need_not_be_asked(void)
{
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	struct ward w;
	sum_ward(&w, hg_policy_fp16_naive(), 4097, 1.0f);
	hg_doctor_free(w.doctor);
	config.silent = 0;
	CHECK_OK(hg_doctor_create(w.bench.params, w.optim, record_scene, &w, &config, &w.doctor));
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

static void wrong_arguments_are_refused(void)
{
	struct ward w;
	hg_doctor *doctor = NULL;
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	sum_ward(&w, hg_policy_fp16(), 5, 1.0f);
	CHECK_STATUS(hg_doctor_create(NULL, NULL, record_scene, &w, NULL, &doctor), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_create(w.bench.params, NULL, NULL, &w, NULL, &doctor), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_create(w.bench.params, NULL, record_scene, &w, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_create_train(NULL, NULL, &doctor), HG_ERR_ARG);
	config.most_findings = 0;
	CHECK_STATUS(hg_doctor_create(w.bench.params, NULL, record_scene, &w, &config, &doctor),
	             HG_ERR_ARG);
	config.size = 0;
	CHECK_STATUS(hg_doctor_create(w.bench.params, NULL, record_scene, &w, &config, &doctor),
	             HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_examine(NULL, 0, &w.report), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_examine(w.doctor, 0, NULL), HG_ERR_ARG);
	hg_doctor_free(NULL);
	ward_close(&w);
}

static void causes_have_names(void)
{
	for (int i = 0; i < HG_CAUSE_COUNT; i++)
		CHECK(*hg_cause_name((hg_cause)i) && *hg_cause_text((hg_cause)i));
	CHECK_STR(hg_cause_name(HG_CAUSE_LOSS_SCALE), "loss-scale");
	CHECK_STR(hg_cause_name(HG_CAUSE_COUNT), "unknown");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(star_sticks_at_2048),
	    TEST(sum_of_both_signs_sticks),
	    TEST(mean_of_ones_sticks_before_its_factor),
	    TEST(sentence_takes_a_name),
	    TEST(star_in_f32_sums_is_well),
	    TEST(sum_beyond_f16_is_no_fault_of_the_order),
	    TEST(partial_sum_overflows),
	    TEST(batch_overflows_before_its_factor),
	    TEST(bad_feature_is_named),
	    TEST(bad_weight_is_named),
	    TEST(weight_beyond_f16_is_told),
	    TEST(wrong_label_is_named),
	    TEST(elements_go_wrong),
	    TEST(the_guilty_one_of_a_chain_is_named),
	    TEST(gradients_go_wrong),
	    TEST(backward_sum_sticks),
	    TEST(vanishing_variance_is_a_division_by_zero),
	    TEST(findings_stand_in_the_order_of_the_step),
	    TEST(a_replay_can_be_stopped),
	    TEST(updates_go_wrong),
	    TEST(what_is_stored_rescaled_is_told_as_it_is),
	    TEST(a_rescaled_own_term_counts_in_full),
	    TEST(a_rescaled_variance_is_not_near_zero),
	    TEST(what_a_power_made_vanish_is_told_with_it),
	    TEST(the_last_step_can_be_examined_if_it_was_skipped),
	    TEST(nothing_to_examine_is_well),
	    TEST(examining_gives_its_memory_back),
	    TEST(every_allocation_may_fail),
	    TEST(what_is_silent_need_not_be_asked),
	    TEST(wrong_arguments_are_refused),
	    TEST(causes_have_names),
	};
	return RUN_TESTS(argc, argv, cases);
}
