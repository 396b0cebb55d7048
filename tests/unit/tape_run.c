/* Running a tape: values, gradients, and the order of calls. */
#include <math.h>

#include "graphs.h"
#include "unit/tape.h"

/* L = mean((relu(X W + b) - T)^2) in f64, from the equations. */
static double mlp_loss(const double *x, const double *w, const double *c, const double *t)
{
	double sum = 0.0;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 2; j++) {
			double y = c[j];
			for (int k = 0; k < 3; k++)
				y += x[i * 3 + k] * w[k * 2 + j];
			y = y > 0.0 ? y : 0.0;
			sum += (y - t[i * 2 + j]) * (y - t[i * 2 + j]);
		}
	return sum / 8.0;
}

static void gradients_are_central_differences(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	float value[12 + 6 + 2 + 8];
	double exact[28], step = 1e-5;
	for (int i = 0; i < 28; i++)
		exact[i] = (double)(value[i] = (float)test_normal());
	hg_param *w = param(&b, "w", 3, 2), *c = param(&b, "c", 1, 2);
	CHECK_OK(hg_param_set(w, value + 12));
	CHECK_OK(hg_param_set(c, value + 18));
	const hg_var x = hg_tape_variable(b.tape, tensor_of(&b, HG_F32, 4, 3, value, HG_F32), "x");
	const hg_var t =
	    hg_tape_input(b.tape, tensor_of(&b, HG_F32, 4, 2, value + 20, HG_F32), "t", -1.0);
	const hg_var y = hg_relu(b.tape, hg_linear(b.tape, x, hg_tape_param(b.tape, w),
	                                           hg_tape_param(b.tape, c))),
	             loss = hg_mse(b.tape, y, t, HG_NONE);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	double found = 0.0;
	CHECK_OK(hg_tape_scalar(b.tape, loss, &found));
	CHECK_WITHIN(found, mlp_loss(exact, exact + 12, exact + 18, exact + 20), 1e-5);
	float *dx = download(hg_tape_grad(b.tape, x)), *dw = download(hg_param_grad(w)),
	      *dc = download(hg_param_grad(c));
	for (int i = 0; i < 20; i++) {
		const double at = exact[i];
		exact[i] = at + step;
		const double above = mlp_loss(exact, exact + 12, exact + 18, exact + 20);
		exact[i] = at - step;
		const double below = mlp_loss(exact, exact + 12, exact + 18, exact + 20);
		exact[i] = at;
		const float grad = i < 12 ? dx[i] : i < 18 ? dw[i - 12] : dc[i - 18];
		/* The loss is quadratic, so the difference has no truncation error. What remains is f32
		 * sums of about 10 terms. */
		CHECK_WITHIN(grad, (above - below) / (2.0 * step), 1e-5);
	}
	free(dx);
	free(dw);
	free(dc);
	bench_close(&b);
}

/* y = x + 2 x + 4 x with small integers. Every number is exact, so the sum of the three gradients
 * must be exact, too. The same for a parameter that is used twice. */
static void gradients_of_several_uses_are_added(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	const float one[] = {1.0f, 2.0f, 3.0f, 4.0f}, zero[] = {0.0f, 0.0f, 0.0f, 0.0f};
	hg_param *p = param(&b, "p", 1, 4);
	CHECK_OK(hg_param_set(p, zero));
	hg_var x = hg_tape_variable(b.tape, tensor_of(&b, HG_F32, 1, 4, one, HG_F32), "x");
	const hg_var t = hg_tape_input(b.tape, tensor_of(&b, HG_F32, 1, 4, zero, HG_F32), "t", 0.0),
	             q = hg_tape_param(b.tape, p);
	const hg_var h = hg_scale(b.tape, x, 1.0f); /* an activation that three ops read */
	hg_var y =
	    hg_add(b.tape, h, hg_add(b.tape, hg_scale(b.tape, h, 2.0f), hg_scale(b.tape, h, 4.0f)));
	y = hg_bias_add(b.tape, hg_bias_add(b.tape, y, q), q);
	const hg_var loss = hg_mse(b.tape, hg_add(b.tape, y, hg_scale(b.tape, x, 0.0f)), t, HG_NONE);
	CHECK(hg_tape_param(b.tape, p).id == q.id);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	float *dx = download(hg_tape_grad(b.tape, x)), *dp = download(hg_param_grad(p));
	for (int i = 0; i < 4; i++) { /* dL/dy = 2 y / 4, y = 7 x */
		CHECK_WITHIN(dx[i], 7.0 * 3.5 * (double)one[i], 0.0);
		CHECK_WITHIN(dp[i], 2.0 * 3.5 * (double)one[i], 0.0);
	}
	free(dx);
	free(dp);
	bench_close(&b);
}

/* y = h A + 2 h in small integers, where A has the columns a and b. In the backward pass the op
 * that runs last adds its part to the gradient that is there already. By the equations dh = (A +
 * 2)' dy. */
static void last_op_adds_to_the_gradient(void)
{
	for (int half = 0; half < 2; half++) {
		struct bench b;
		hg_policy policy = half ? hg_policy_fp16() : hg_policy_fp32();
		policy.loss_scale.init_scale = 1.0f;
		bench_open(&b, test_context(), policy, HG_TRAIN);
		const float v[] = {1.0f, -2.0f, 3.0f, 4.0f}, zero[] = {0.0f, 0.0f, 0.0f, 0.0f},
		            one[] = {2.0f, -1.0f}, two[] = {4.0f, 3.0f};
		hg_param *left = param(&b, "left", 1, 2), *right = param(&b, "right", 1, 2);
		CHECK_OK(hg_param_set(left, one));
		CHECK_OK(hg_param_set(right, two));
		const hg_var x = hg_tape_variable(
		                 b.tape, tensor_of(&b, half ? HG_F16 : HG_F32, 2, 2, v, HG_F32), "x"),
		             h = hg_scale(b.tape, x, 1.0f);
		const hg_var s = hg_head_dot_pair(b.tape, h, hg_tape_param(b.tape, left),
		                                  hg_tape_param(b.tape, right), 1);
		const hg_var y = hg_add(b.tape, s, hg_scale(b.tape, h, 2.0f));
		const hg_var loss = hg_mse(
		    b.tape, y, hg_tape_input(b.tape, tensor_of(&b, HG_F32, 2, 2, zero, HG_F32), "t", 0.0),
		    HG_NONE);
		CHECK_OK(hg_tape_compile(b.tape, loss));
		CHECK_OK(hg_tape_forward(b.tape));
		CHECK_OK(hg_tape_backward(b.tape));
		float *dx = download(hg_tape_grad(b.tape, x)), *da = download(hg_param_grad(left));
		double sum[2] = {0.0, 0.0};
		for (int i = 0; i < 2; i++) {
			const double p = (double)v[2 * i], q = (double)v[2 * i + 1];
			const double dy0 = (2.0 * p - q + 2.0 * p) / 2.0,
			             dy1 = (4.0 * p + 3.0 * q + 2.0 * q) / 2.0;
			CHECK_WITHIN(dx[2 * i], 2.0 * dy0 + 4.0 * dy1 + 2.0 * dy0, 0.0);
			CHECK_WITHIN(dx[2 * i + 1], -dy0 + 3.0 * dy1 + 2.0 * dy1, 0.0);
			sum[0] += dy0 * p;
			sum[1] += dy0 * q;
		}
		CHECK_WITHIN(da[0], sum[0], 0.0);
		CHECK_WITHIN(da[1], sum[1], 0.0);
		for (int64_t k = 0; k < b.tape->plan.spans; k++)
			CHECK(b.tape->plan.span[k].use != HG__USE_PART);
		free(dx);
		free(da);
		bench_close(&b);
	}
}

/* A parameter in the place of features (a learnt embedding), used twice. Its gradient is f32,
 * whatever type the ops compute in. */
static void parameter_may_be_the_features(void)
{
	for (int half = 0; half < 2; half++) {
		struct bench b;
		hg_policy policy = half ? hg_policy_fp16() : hg_policy_fp32();
		policy.loss_scale.init_scale = 8.0f;
		bench_open(&b, test_context(), policy, HG_TRAIN);
		const float v[] = {1.0f, -2.0f, 3.0f, 0.5f}, zero[] = {0.0f, 0.0f, 0.0f, 0.0f};
		hg_param *p = param(&b, "embedding", 2, 2);
		CHECK_OK(hg_param_set(p, v));
		const hg_var x = hg_tape_param(b.tape, p),
		             y = hg_add(b.tape, hg_relu(b.tape, x), hg_scale(b.tape, x, 2.0f));
		const hg_var loss = hg_mse(
		    b.tape, y, hg_tape_input(b.tape, tensor_of(&b, HG_F32, 2, 2, zero, HG_F32), "t", 0.0),
		    HG_NONE);
		CHECK_OK(hg_tape_compile(b.tape, loss));
		for (int run = 0; run < 2; run++) {
			CHECK_OK(hg_tape_forward(b.tape));
			CHECK_OK(hg_tape_backward(b.tape));
		}
		float *dp = download(hg_param_grad(p));
		/* y = k x, so dL/dx = k 2 y / 4, which is exact in either type */
		for (int i = 0; i < 4; i++) {
			const double k = v[i] > 0.0f ? 3.0 : 2.0;
			CHECK_WITHIN(dp[i], (half ? 8.0 : 1.0) * k * k * (double)v[i] / 2.0, 0.0);
		}
		free(dp);
		bench_close(&b);
	}
}

/* One variable as both operands of an op: d(x + x) = 2 dx. */
static void one_variable_may_be_both_operands(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	const float v[] = {3.0f}, zero[] = {0.0f};
	const hg_var x = hg_tape_variable(b.tape, tensor_of(&b, HG_F32, 1, 1, v, HG_F32), "x");
	const hg_var t = hg_tape_input(b.tape, tensor_of(&b, HG_F32, 1, 1, zero, HG_F32), "t", 0.0);
	const hg_var loss = hg_mse(b.tape, hg_add(b.tape, x, x), t, HG_NONE);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	float *dx = download(hg_tape_grad(b.tape, x));
	CHECK_WITHIN(dx[0], 24.0, 0.0);
	free(dx);
	bench_close(&b);
}

/* Gradients in fp16 are multiplied by the loss scale: they are 1024 times those of fp32, within a
 * few roundings. */
static void gradients_carry_the_loss_scale(void)
{
	double grad[2] = {0.0, 0.0};
	for (int half = 0; half < 2; half++) {
		struct bench b;
		hg_policy policy = half ? hg_policy_fp16() : hg_policy_fp32();
		policy.loss_scale.init_scale = 1024.0f;
		bench_open(&b, test_context(), policy, HG_TRAIN);
		const float x[] = {1.0f, 2.0f}, w[] = {0.25f, 0.5f}, t[] = {1.0f};
		hg_param *p = param(&b, "w", 2, 1);
		CHECK_OK(hg_param_set(p, w));
		const hg_var y = hg_linear(
		    b.tape,
		    hg_tape_input(b.tape, tensor_of(&b, half ? HG_F16 : HG_F32, 1, 2, x, HG_F32), "x", 2.0),
		    hg_tape_param(b.tape, p), HG_NONE);
		const hg_var loss = hg_mse(
		    b.tape, hg_scale(b.tape, y, 0.125f),
		    hg_tape_input(b.tape, tensor_of(&b, HG_F32, 1, 1, t, HG_F32), "t", 1.0), HG_NONE);
		CHECK_OK(hg_tape_compile(b.tape, loss));
		CHECK_OK(hg_tape_forward(b.tape));
		CHECK_OK(hg_tape_backward(b.tape));
		float *dw = download(hg_param_grad(p));
		grad[half] = (double)dw[1];
		free(dw);
		bench_close(&b);
	}
	CHECK(grad[0] < 0.0);
	CHECK_WITHIN(grad[1] / 1024.0, grad[0], 4.0 * 0x1p-11 * fabs(grad[0]));
}

/* An op whose result is not needed does not run. A kept one does, and its value is still there
 * after the backward pass. */
static hg_status count_runs(void *user, const hg_tape *tape, int32_t line, int backward,
                            const struct hg__call *call)
{
	(void)tape;
	(void)line;
	(void)call;
	((int *)user)[backward]++;
	return HG_OK;
}

static void only_needed_ops_run(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	int runs[2] = {0, 0};
	const struct hg__hook hook = {count_runs, runs};
	hg_param *unused = param(&b, "unused", 3, 3), *w = param(&b, "w", 3, 2);
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 5, 3, 1.0), "x", -1.0);
	const hg_var t = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 5, 2, 1.0), "t", -1.0);
	/* runs forward only: there is no parameter before it */
	const hg_var scaled = hg_scale(b.tape, x, 3.0f);
	/* its result is not used */
	const hg_var dead = hg_linear(b.tape, x, hg_tape_param(b.tape, unused), HG_NONE);
	const hg_var kept = hg_relu(b.tape, x);
	const hg_var loss =
	    hg_mse(b.tape, hg_linear(b.tape, scaled, hg_tape_param(b.tape, w), HG_NONE), t, HG_NONE);
	hg_tape_keep(b.tape, kept);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	hg__tape_hook(b.tape, &hook);
	CHECK_OK(hg_tape_forward(b.tape));
	float *before = download(hg_tape_value(b.tape, kept));
	CHECK_OK(hg_tape_backward(b.tape));
	CHECK_EQ_I(runs[0], 4); /* scale, relu, linear, mse */
	CHECK_EQ_I(runs[1], 2); /* mse, linear */
	CHECK(hg_tape_value(b.tape, dead) == NULL && hg_tape_value(b.tape, scaled) == NULL &&
	      hg_tape_grad(b.tape, x) == NULL);
	float *after = download(hg_tape_value(b.tape, kept)), *none = download(hg_param_grad(unused));
	CHECK(memcmp(before, after, 15 * sizeof *before) == 0);
	for (int i = 0; i < 9; i++)
		CHECK(none[i] == 0.0f);
	hg__tape_hook(b.tape, NULL);
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_EQ_I(runs[0], 4);
	free(before);
	free(after);
	free(none);
	bench_close(&b);
}

static void order_of_calls_is_enforced(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	double value = 0.0;
	const hg_var x = hg_tape_variable(b.tape, random_tensor(&b, HG_F32, 5, 2, 1.0), "x");
	const hg_var y = hg_scale(b.tape, x, 2.0f), loss = hg_mse(b.tape, y, x, HG_NONE);
	CHECK_STATUS(hg_tape_forward(b.tape), HG_ERR_STATE);
	CHECK_STATUS(hg_tape_backward(b.tape), HG_ERR_STATE);
	CHECK(hg_tape_value(b.tape, loss) == NULL);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_STATUS(hg_tape_compile(b.tape, loss), HG_ERR_STATE);
	CHECK_STATUS(hg_tape_backward(b.tape), HG_ERR_STATE);
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	CHECK_STATUS(hg_tape_backward(b.tape), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "run hg_tape_forward first");
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	CHECK_OK(hg_tape_scalar(b.tape, loss, &value));
	CHECK_STATUS(hg_tape_scalar(b.tape, y, &value), HG_ERR_STATE);
	CHECK_STATUS(hg_tape_scalar(b.tape, x, &value), HG_ERR_SHAPE);
	/* Recording on a compiled tape is a mistake of the call, and the tape stays valid. */
	CHECK(hg_relu(b.tape, y).id < 0);
	CHECK_CONTAINS(hg_context_error(b.ctx), "relu: the tape is compiled");
	hg_tape_scope(b.tape, NULL);
	hg_tape_keep(b.tape, y);
	CHECK_CONTAINS(hg_context_error(b.ctx), "hg_tape_keep: the tape is compiled");
	CHECK(hg_tape_value(b.tape, y) == NULL);
	CHECK_STATUS(hg_tape_scalar(b.tape, hg_relu(b.tape, loss), &value), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b.ctx), "hg_tape_scalar: not a variable of this tape");
	CHECK_OK(hg_tape_status(b.tape)); /* the recorded ops are valid */
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	hg_tape *eval = NULL, *plain = NULL;
	CHECK_OK(hg_tape_create(b.params, HG_EVAL, &eval));
	const hg_var e = hg_tape_input(eval, b.tensor[0], "x", 10.0);
	CHECK_OK(hg_tape_compile(eval, hg_mse(eval, e, e, HG_NONE)));
	CHECK_OK(hg_tape_forward(eval));
	CHECK_STATUS(hg_tape_backward(eval), HG_ERR_STATE);
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &plain));
	CHECK_OK(hg_tape_compile(plain, hg_relu(plain, hg_tape_variable(plain, b.tensor[0], "x"))));
	CHECK_OK(hg_tape_forward(plain));
	CHECK_STATUS(hg_tape_backward(plain), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "the output is f32 [5, 2], expected a loss");
	hg_tape_free(eval);
	hg_tape_free(plain);
	bench_close(&b);
}

/* A training and an evaluation tape have the same parameters: the one changes them, and the other
 * uses the new ones. */
static void two_tapes_share_parameters(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, 12);
	const hg_tensor *x = random_tensor(&b, HG_F16, 12, 5, 1.0);
	hg_tape *eval = NULL;
	hg_var logits, seen;
	CHECK_OK(hg_tape_create(b.params, HG_EVAL, &eval));
	const hg_var loss = gcn(&b, b.tape, x, label_tensor(&b, 12, 7), &logits);
	(void)gcn(&b, eval, x, NULL, &seen);
	CHECK_EQ_I(hg_params_count(b.params), 3);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tape_compile(eval, seen));
	CHECK_OK(hg_tape_forward(eval));
	float *before = download(hg_tape_value(eval, seen)), zero[112] = {0.0f};
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	CHECK_OK(hg_tape_forward(eval));
	float *same = download(hg_tape_value(eval, seen));
	CHECK(memcmp(before, same, 84 * sizeof *before) == 0);
	CHECK_OK(hg_param_set(hg_params_find(b.params, "w2"), zero));
	CHECK_OK(hg_tape_forward(eval));
	float *after = download(hg_tape_value(eval, seen));
	for (int i = 0; i < 84; i++)
		CHECK(after[i] == 0.0f);
	hg_plan_info train_plan = HG_PLAN_INFO_INIT, eval_plan = HG_PLAN_INFO_INIT;
	CHECK_OK(hg_tape_plan(b.tape, &train_plan));
	CHECK_OK(hg_tape_plan(eval, &eval_plan));
	CHECK(eval_plan.arena_bytes < train_plan.arena_bytes &&
	      eval_plan.state_bytes < train_plan.state_bytes);
	free(before);
	free(same);
	free(after);
	hg_tape_free(eval);
	bench_close(&b);
}

static void labels_beyond_the_classes_are_found(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	const int32_t label[] = {0, 1, -1, 7, 2};
	const hg_var x = hg_tape_variable(b.tape, random_tensor(&b, HG_F32, 5, 7, 1.0), "x");
	const hg_var y = hg_tape_input(b.tape, tensor_of(&b, HG_I32, 5, 1, label, HG_I32), "y", -1.0);
	hg_tape_scope(b.tape, "head");
	const hg_var loss = hg_softmax_xent(b.tape, x, y, HG_NONE);
	CHECK_STATUS(hg_tape_compile(b.tape, loss), HG_ERR_RANGE);
	CHECK_CONTAINS(hg_context_error(b.ctx),
	               "softmax_xent: label 7 in row 3 of y, the logits have 7 columns (layer head)");
	bench_close(&b);
}

static void empty_and_single_shapes_run(void)
{
	static const int64_t extents[][2] = {{0, 3}, {1, 1}, {1, 3}, {5, 1}, {0, 1}};
	for (int half = 0; half < 2; half++)
		for (int i = 0; i < 5; i++) {
			struct bench b;
			const int64_t n = extents[i][0], d = extents[i][1];
			bench_open(&b, test_context(), half ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
			b.graph = coo_graph(b.ctx, coo_empty(n, n));
			const hg_dtype state = half ? HG_F16 : HG_F32;
			const hg_var x = hg_tape_variable(b.tape, random_tensor(&b, state, n, d, 1.0), "x");
			const hg_var y = hg_relu(
			    b.tape, hg_linear(b.tape, x, hg_tape_param(b.tape, param(&b, "w", d, 2)), HG_NONE));
			const hg_var z =
			    hg_add(b.tape, y, hg_spmm(b.tape, b.graph, y, HG_NONE, HG_NORM_BOTH, 1.0f));
			const hg_var loss = hg_mse(
			    b.tape, z, hg_tape_input(b.tape, random_tensor(&b, state, n, 2, 1.0), "t", -1.0),
			    HG_NONE);
			double value = -1.0;
			CHECK_OK(hg_tape_compile(b.tape, loss));
			CHECK_OK(hg_tape_forward(b.tape));
			CHECK_OK(hg_tape_backward(b.tape));
			CHECK_OK(hg_tape_scalar(b.tape, loss, &value));
			CHECK(isfinite(value) && (n > 0 || value == 0.0));
			bench_close(&b);
		}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(gradients_are_central_differences),
	    TEST(gradients_of_several_uses_are_added),
	    TEST(last_op_adds_to_the_gradient),
	    TEST(parameter_may_be_the_features),
	    TEST(one_variable_may_be_both_operands),
	    TEST(gradients_carry_the_loss_scale),
	    TEST(only_needed_ops_run),
	    TEST(order_of_calls_is_enforced),
	    TEST(two_tapes_share_parameters),
	    TEST(labels_beyond_the_classes_are_found),
	    TEST(empty_and_single_shapes_run),
	};
	return RUN_TESTS(argc, argv, cases);
}
