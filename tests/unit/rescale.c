/* Rescaled results (stored x 2^-k). Where nothing underflows, rescaling changes no bit of what a
 * user sees, and numbers beyond the range of halves can be kept. */
#include <math.h>

#include "halfgraph/shadow.h"
#include "precision/half.h"
#include "unit/tape.h"

enum { N = 300, IN = 13, WIDE = 24, EDGES = 2400 };

/* A GIN layer: linear, an aggregation with the node's own term, batch norm with relu, linear. Its
 * input is scaled, and its edges have weights in some of the cases. */
struct scene {
	struct bench b;
	hg_var x, weight, output;
	hg_param *w[2], *eps, *gamma, *beta, *running[2];
};

/* From now on the nth entry of this op is stored x 2^-shift. */
static void rescale_op(hg_params *params, const struct hg__op *op, int64_t nth, int shift)
{
	void *memory = params->promotion;
	if (!params->promotion_capacity) {
		CHECK_OK(hg__host_alloc(params->ctx, 16, sizeof *params->promotion, "test", &memory));
		params->promotion = memory;
		params->promotion_capacity = 16;
	}
	params->promotion[params->promotions++] =
	    (struct hg__promotion){.op = op, .nth = nth, .shift = shift};
}

static void fill_param(hg_param *p, int64_t rows, int64_t cols, double scale, double shift)
{
	float *values = calloc((size_t)(rows * cols), sizeof *values);
	CHECK(values != NULL);
	for (int64_t i = 0; i < rows * cols; i++)
		values[i] = (float)(shift + scale * test_normal());
	CHECK_OK(hg_param_set(p, values));
	free(values);
}

/* Every scene of the program has the same random numbers. */
static void scene_open(struct scene *s, hg_mode mode, int separate)
{
	const double size = 40.0; /* standard deviation of the input */
	memset(s, 0, sizeof *s);
	test_reseed(77);
	hg_context *ctx = test_context();
	ctx->separate_ops = separate;
	bench_open(&s->b, ctx, hg_policy_fp16(), mode);
	hg_params *params = s->b.params;
	CHECK_OK(hg_params_add(params, "w0", IN, WIDE, HG_INIT_ZEROS, 0, &s->w[0]));
	CHECK_OK(hg_params_add(params, "w1", WIDE, WIDE, HG_INIT_ZEROS, 0, &s->w[1]));
	CHECK_OK(hg_params_add(params, "eps", 1, 1, HG_INIT_ZEROS, HG_PARAM_F32, &s->eps));
	CHECK_OK(hg_params_add(params, "gamma", 1, WIDE, HG_INIT_ONES, HG_PARAM_F32, &s->gamma));
	CHECK_OK(hg_params_add(params, "beta", 1, WIDE, HG_INIT_ZEROS, HG_PARAM_F32, &s->beta));
	CHECK_OK(
	    hg_params_add(params, "mean", 1, WIDE, HG_INIT_ZEROS, HG_PARAM_BUFFER, &s->running[0]));
	CHECK_OK(hg_params_add(params, "var", 1, WIDE, HG_INIT_ONES, HG_PARAM_BUFFER, &s->running[1]));
	fill_param(s->w[0], IN, WIDE, 0.5, 0.0);
	fill_param(s->w[1], WIDE, WIDE, 0.5, 0.0);
	fill_param(s->eps, 1, 1, 0.0, 0.25);
	fill_param(s->gamma, 1, WIDE, 0.3, 1.0);
	fill_param(s->beta, 1, WIDE, 0.3, 0.0);
	fill_param(s->running[0], 1, WIDE, size, 0.0);
	fill_param(s->running[1], 1, WIDE, 0.0, size * size);
	s->b.graph = coo_graph(ctx, coo_hubs(N, EDGES, 3, 4));
	random_tensor(&s->b, HG_F16, N, IN, size);
	random_tensor(&s->b, HG_F16, EDGES, 1, 1.0);
	random_tensor(&s->b, HG_F16, N, WIDE, 1.0);
}

static void scene_record(struct scene *s, int weighted)
{
	hg_tape *t = s->b.tape;
	hg_graph *graph = s->b.graph;
	s->x = hg_tape_variable(t, s->b.tensor[0], "x");
	s->weight = weighted ? hg_tape_variable(t, s->b.tensor[1], "weight") : hg_none();
	const hg_var h = hg_linear(t, hg_scale(t, s->x, -1.5f), hg_tape_param(t, s->w[0]), hg_none());
	const hg_var sum = hg_spmm(t, graph, h, s->weight, HG_NORM_NONE, 0.75f),
	             twice = hg_add(t, sum, hg_spmm(t, graph, h, hg_none(), HG_NORM_BOTH, 1.0f));
	const hg_var other = hg_combine(t, h, twice, hg_tape_param(t, s->eps));
	/* The aggregation of a node and its own term read the same operand, as in a GIN. */
	const hg_var own =
	    hg_combine(t, other, hg_spmm(t, graph, other, hg_none(), HG_NORM_RIGHT, 1.0f),
	               hg_tape_param(t, s->eps));
	const hg_var normed =
	    hg_relu(t, hg_batch_norm(t, own, hg_tape_param(t, s->gamma), hg_tape_param(t, s->beta),
	                             s->running[0], s->running[1], 0.25f, 1e-5f));
	const hg_var y = hg_add(t, hg_linear(t, own, hg_tape_param(t, s->w[1]), hg_none()),
	                        hg_linear(t, normed, hg_tape_param(t, s->w[1]), hg_none()));
	s->output = hg_cast(t, y, HG_F32);
	hg_tape_keep(t, s->output);
	hg_tape_keep(t, normed);
	const hg_var target = hg_tape_input(t, s->b.tensor[2], "target", 8.0);
	CHECK_OK(hg_tape_compile(t, t->mode == HG_TRAIN ? hg_mse(t, s->output, target, hg_none())
	                                                : s->output));
}

static void scene_run(struct scene *s)
{
	CHECK_OK(hg_tape_forward(s->b.tape));
	if (s->b.tape->mode == HG_TRAIN)
		CHECK_OK(hg_tape_backward(s->b.tape));
}

static void scene_close(struct scene *s)
{
	bench_close(&s->b);
}

static void same_bits(const hg_tensor *a, const hg_tensor *b, const char *what)
{
	CHECK_MSG(a && b, "%s is missing", what);
	const int64_t count = hg_tensor_rows(a) * hg_tensor_cols(a);
	float *x = calloc((size_t)count, sizeof *x), *y = calloc((size_t)count, sizeof *y);
	CHECK(x && y);
	CHECK_OK(hg_tensor_download(a, x, HG_F32));
	CHECK_OK(hg_tensor_download(b, y, HG_F32));
	int64_t zeros = 0;
	for (int64_t i = 0; i < count; i++) {
		zeros += x[i] == 0.0f;
		CHECK_MSG(memcmp(&x[i], &y[i], sizeof *x) == 0, "%s, element %lld: %.9g, rescaled %.9g",
		          what, (long long)i, (double)x[i], (double)y[i]);
	}
	CHECK_MSG(zeros < count, "%s is 0", what);
	free(x);
	free(y);
}

static void rescale_all(hg_params *params)
{
	rescale_op(params, &hg__op_scale, 0, 2);
	rescale_op(params, &hg__op_linear, 0, 5);
	rescale_op(params, &hg__op_spmm, 0, 3);
	rescale_op(params, &hg__op_spmm, 1, 1);
	rescale_op(params, &hg__op_add, 0, 4);
	rescale_op(params, &hg__op_combine, 0, 6);
	rescale_op(params, &hg__op_spmm, 2, 7);
	rescale_op(params, &hg__op_combine, 1, 7);
	rescale_op(params, &hg__op_linear, 1, 2);
	rescale_op(params, &hg__op_linear, 2, 1);
	rescale_op(params, &hg__op_add, 1, 3);
}

/* Every op that can store its result rescaled does so, each with another power of two, and every op
 * that can read rescaled operands does that. Output, gradients and running statistics keep every
 * bit. */
static void rescaled_results_change_no_bit(void)
{
	for (int k = 0; k < 8; k++) {
		const hg_mode mode = k & 1 ? HG_EVAL : HG_TRAIN;
		const int separate = k >> 1 & 1, weighted = k >> 2 & 1;
		struct scene plain, rescaled;
		hg_plan_info info = HG_PLAN_INFO_INIT;
		scene_open(&plain, mode, separate);
		scene_record(&plain, weighted);
		scene_open(&rescaled, mode, separate);
		rescale_all(rescaled.b.params);
		scene_record(&rescaled, weighted);
		CHECK_OK(hg_tape_plan(rescaled.b.tape, &info));
		CHECK_MSG(info.rescaled == (separate ? 11 : 9) && info.promoted == 0 && info.casts == 1,
		          "%d rescaled, %d promoted, %d casts", info.rescaled, info.promoted, info.casts);
		scene_run(&plain);
		scene_run(&rescaled);
		same_bits(hg_tape_value(plain.b.tape, plain.output),
		          hg_tape_value(rescaled.b.tape, rescaled.output), "the output");
		same_bits(plain.running[0]->master, rescaled.running[0]->master, "the running mean");
		same_bits(plain.running[1]->master, rescaled.running[1]->master, "the running variance");
		for (int i = 0; i < 2 && mode == HG_TRAIN; i++) {
			same_bits(plain.w[i]->grad, rescaled.w[i]->grad, i ? "dW1" : "dW0");
			same_bits(i ? plain.eps->grad : plain.gamma->grad,
			          i ? rescaled.eps->grad : rescaled.gamma->grad, i ? "d eps" : "d gamma");
		}
		if (mode == HG_TRAIN) {
			same_bits(hg_tape_grad(plain.b.tape, plain.x),
			          hg_tape_grad(rescaled.b.tape, rescaled.x), "dX");
			if (weighted)
				same_bits(hg_tape_grad(plain.b.tape, plain.weight),
				          hg_tape_grad(rescaled.b.tape, rescaled.weight), "dw");
		}
		scene_close(&plain);
		scene_close(&rescaled);
	}
}

/* Bounds, verdicts and headroom are those of the value, not of the rescaled number that is
 * stored. */
static void bounds_are_those_of_the_value_not_of_the_stored_number(void)
{
	struct bench b;
	hg_policy policy = hg_policy_fp16();
	const float values[4] = {30000.0f, -30000.0f, 1.0f, 0.0f};
	hg_narrowing row = HG_NARROWING_INIT;
	for (int shift = 0; shift < 3; shift++) {
		bench_open(&b, test_context(), policy, HG_TRAIN);
		if (shift)
			rescale_op(b.params, &hg__op_scale, 0, shift);
		const hg_var x = hg_tape_input(b.tape, tensor_of(&b, HG_F16, 2, 2, values, HG_F32), "x",
		                               30000.0),
		             y = hg_scale(b.tape, x, 4.0f);
		const hg_var out = hg_cast(b.tape, y, HG_F32);
		hg_tape_keep(b.tape, out);
		CHECK_OK(hg_tape_compile(b.tape, out));
		CHECK_OK(hg_tape_narrowing(b.tape, 1, &row));
		CHECK_STR(row.op, "scale");
		CHECK_EQ_I(row.verdict, shift ? HG_PROVED : HG_GUARDED);
		CHECK_EQ_I(row.shift, shift);
		CHECK(row.bound >= 120000.0 && row.bound < 120300.0);
		CHECK_WITHIN(row.headroom, shift + log2(65520.0 / 120000.0), 0.01);
		CHECK(!shift || strstr(row.because, shift == 1 ? "stored x 2^-1" : "stored x 2^-2"));
		CHECK_OK(hg_tape_forward(b.tape));
		float got[4];
		CHECK_OK(hg_tensor_download(hg_tape_value(b.tape, out), got, HG_F32));
		CHECK(shift ? got[0] == 120000.0f && got[1] == -120000.0f && got[2] == 4.0f
		            : isinf(got[0]));
		bench_close(&b);
	}
}

/* A rescaled number may have underflowed. The least |x| that the tape assumes, from which it bounds
 * 1/x, takes this into account. */
static void least_magnitude_allows_for_underflow(void)
{
	struct bench b;
	const float x[4] = {-16.3f, 10.9f, 0.0f, 0.0f}, ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};
	for (int shift = 0; shift <= HG_SHIFT_MOST; shift += HG_SHIFT_MOST) {
		float got[4];
		bench_open(&b, test_context(), hg_policy_fp16(), HG_EVAL);
		if (shift)
			rescale_op(b.params, &hg__op_scale, 0, shift);
		hg_tape *t = b.tape;
		const hg_var e = hg_exp(
		                 t, hg_tape_input(t, tensor_of(&b, HG_F16, 4, 1, x, HG_F32), "x", 16.3)),
		             s = hg_scale(t, e, 1.0f), f = hg_cast(t, s, HG_F32);
		const hg_var d =
		    hg_div(t, hg_tape_input(t, tensor_of(&b, HG_F32, 4, 1, ones, HG_F32), "ones", 1.0), f);
		CHECK_OK(hg_tape_compile(t, d));
		CHECK_OK(hg_tape_forward(t));
		CHECK_OK(hg_tensor_download(hg_tape_value(t, d), got, HG_F32));
		for (int i = 0; i < 4; i++)
			CHECK_MSG(fabs((double)got[i]) <=
			              t->recording.value[hg__tape_index(t, d)].known[HG__UNCONDITIONAL].largest,
			          "x 2^-%d: 1 / %g, at most %g", shift, 1.0 / (double)got[i],
			          t->recording.value[hg__tape_index(t, d)].known[HG__UNCONDITIONAL].largest);
		bench_close(&b);
	}
}

/* An op that cannot read a rescaled operand gets it in f32. Where that is not allowed (the output
 * of the tape, a kept value, an operand of a shadow op) there is an error. */
static void ops_that_read_no_rescaled_operand_get_f32(void)
{
	struct bench b;
	const float values[4] = {30000.0f, -30000.0f, 1.0f, 0.0f};
	const int32_t labels[2] = {0, 1};
	hg_plan_info info = HG_PLAN_INFO_INIT;
	for (int how = 0; how < 5; how++) {
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		rescale_op(b.params, &hg__op_scale, 0, 3);
		hg_tape *t = b.tape;
		const hg_var x = hg_tape_input(t, tensor_of(&b, HG_F16, 2, 2, values, HG_F32), "x",
		                               30000.0),
		             y = hg_scale(t, x, 4.0f);
		const hg_var label =
		    hg_tape_input(t, tensor_of(&b, HG_I32, 2, 1, labels, HG_I32), "labels", 0.0);
		/* Neither elu nor a loss reads rescaled numbers. elu's operand has to be of the state type,
		 * the logits of a loss need not be. */
		if (how == 0) {
			CHECK_OK(hg_tape_compile(t, hg_softmax_xent(t, hg_elu(t, y, 1.0f), label, hg_none())));
			CHECK_OK(hg_tape_plan(t, &info));
			CHECK_MSG(info.rescaled == 1 && info.casts > 0, "%d rescaled, %d casts", info.rescaled,
			          info.casts);
			CHECK_OK(hg_tape_forward(t));
		} else if (how == 1) {
			CHECK_OK(hg_tape_compile(t, hg_softmax_xent(t, y, label, hg_none())));
			CHECK_OK(hg_tape_plan(t, &info));
			CHECK(info.rescaled == 1 && info.casts == 1);
			CHECK_OK(hg_tape_forward(t));
		} else if (how == 2) {
			CHECK_STATUS(hg_tape_compile(t, y), HG_ERR_STATE);
			CHECK_CONTAINS(hg_context_error(b.ctx), "stored x 2^-3");
		} else if (how == 3) {
			hg_tape_keep(t, y);
			CHECK_STATUS(hg_tape_status(t), HG_ERR_STATE);
		} else {
			CHECK(hg_shadow_row_sum(t, y).id < 0);
			CHECK_STATUS(hg_tape_status(t), HG_ERR_DTYPE);
		}
		bench_close(&b);
	}
}

/* Of a result that overflowed, hg__tape_promote chooses the least power of two with which its bound
 * fits, or one with a guard where the bound is too large or there is none. It chooses f32 (shift 0)
 * where an op that reads the result cannot read it rescaled. */
static void promotion_chooses_the_least_power_that_fits(void)
{
	static const struct {
		const char *what;
		float factor; /* the result is factor * x, |x| <= 1024 */
		int relu, keep, unknown, shift;
	} rows[] = {
	    {"just beyond", 64.0f, 0, 0, 0, 1},     {"4 x 65536", 256.0f, 0, 0, 0, 3},
	    {"largest", 65536.0f * 8, 0, 0, 0, 14}, {"beyond", 65536.0f * 32, 0, 0, 0, 14},
	    {"read by relu", 64.0f, 1, 0, 0, 0},    {"kept", 64.0f, 0, 1, 0, 0},
	    {"no bound", 64.0f, 0, 0, 1, 7},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		int shift = -1, news = -1;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		const hg_tensor *of = tensor_of(&b, HG_F16, 3, 2, NULL, HG_F32);
		const hg_var x = rows[i].unknown ? hg_tape_variable(b.tape, of, "x")
		                                 : hg_tape_input(b.tape, of, "x", 1024.0);
		const hg_var y = hg_scale(b.tape, x, rows[i].factor),
		             z = rows[i].relu ? hg_relu(b.tape, y) : hg_scale(b.tape, y, 0.0f);
		if (rows[i].keep)
			hg_tape_keep(b.tape, y);
		CHECK_OK(hg_tape_compile(
		    b.tape, hg_mse(b.tape, z, hg_tape_input(b.tape, of, "target", 1.0), hg_none())));
		CHECK_OK(hg__tape_promote(b.tape, 0, &shift, &news));
		CHECK_MSG(shift == rows[i].shift && news == 1, "%s: 2^-%d", rows[i].what, shift);
		CHECK_OK(hg__tape_promote(b.tape, 0, &shift, &news));
		CHECK_EQ_I(news, 0);
		CHECK_EQ_I(b.params->promotions, 1);
		bench_close(&b);
	}
}

/* The entry of the tape whose guard trips in a forward pass; -1: none. */
static int32_t tripped_by_forward(const struct bench *b, hg_tape *tape)
{
	struct hg__step step;
	CHECK_OK(b->ctx->backend->copy_out(b->ctx, &step, b->params->step, sizeof step));
	step.overflow = 0;
	CHECK_OK(b->ctx->backend->copy_in(b->ctx, b->params->step, &step, sizeof step));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(b->ctx->backend->copy_out(b->ctx, &step, b->params->step, sizeof step));
	return hg__overflow_node(step.overflow);
}

/* A bound that asks for more than the largest power: 65504 x 30000 needs 2^-15. In the first row
 * the numbers themselves fit with 2^-14. In the second they do not, and then the result is kept in
 * f32. */
static void largest_power_is_tried_before_f32(void)
{
	static const struct {
		float x;
		int32_t overflow_node[3];
		int shift[3];
	} rows[] = {{60.0f, {0, -1, -1}, {0, HG_SHIFT_MOST, 0}},
	            {40000.0f, {0, 0, -1}, {0, HG_SHIFT_MOST, 0}}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		hg_tensor *x = tensor_of(&b, HG_F16, 2, 1, NULL, HG_F32),
		          *target = tensor_of(&b, HG_F16, 2, 1, NULL, HG_F32);
		const float data[2] = {rows[i].x, -1.0f};
		CHECK_OK(hg_tensor_upload(x, data, HG_F32));
		for (int again = 0; again < 3; again++) {
			hg_tape *tape = NULL;
			int chosen = -1;
			CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &tape));
			const hg_var y = hg_scale(tape, hg_tape_variable(tape, x, "x"), 3e4f);
			const hg_var z = hg_scale(tape, y, 1e-9f),
			             t = hg_tape_input(tape, target, "target", 1.0);
			CHECK_OK(hg_tape_compile(tape, hg_mse(tape, z, t, hg_none())));
			const hg_dtype dtype = tape->recording.value[tape->recording.entry[0].node.out].dtype;
			CHECK_EQ_I(tape->recording.entry[0].node.shift, rows[i].shift[again]);
			CHECK_EQ_I(dtype, again < 2 ? HG_F16 : HG_F32);
			CHECK_EQ_I(tripped_by_forward(&b, tape), rows[i].overflow_node[again]);
			if (dtype == HG_F16) {
				CHECK_OK(hg_tape_replan(tape, 0, &chosen));
				CHECK_EQ_I(chosen, again ? 0 : HG_SHIFT_MOST);
			}
			hg_tape_free(tape);
		}
		bench_close(&b);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(rescaled_results_change_no_bit),
	    TEST(bounds_are_those_of_the_value_not_of_the_stored_number),
	    TEST(least_magnitude_allows_for_underflow),
	    TEST(ops_that_read_no_rescaled_operand_get_f32),
	    TEST(promotion_chooses_the_least_power_that_fits),
	    TEST(largest_power_is_tried_before_f32),
	};
	return RUN_TESTS(argc, argv, cases);
}
