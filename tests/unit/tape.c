#include "harness.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"

/* What every case needs: a context, parameters, a tape. */
struct bench {
	hg_context *ctx;
	hg_params *params;
	hg_tape *tape;
	hg_tensor *tensor[16];
	hg_graph *graph;
	int tensors;
};

static void bench_open(struct bench *b, hg_policy policy, hg_mode mode)
{
	memset(b, 0, sizeof *b);
	b->ctx = test_context();
	CHECK_OK(hg_params_create(b->ctx, &policy, &b->params));
	CHECK_OK(hg_tape_create(b->params, mode, &b->tape));
}

static void bench_close(struct bench *b)
{
	hg_tape_free(b->tape);
	for (int i = 0; i < b->tensors; i++)
		hg_tensor_free(b->tensor[i]);
	hg_graph_free(b->graph);
	hg_params_free(b->params);
	hg_context_free(b->ctx);
}

static hg_tensor *tensor_of(struct bench *b, hg_dtype dtype, int64_t rows, int64_t cols, const void *values, hg_dtype host)
{
	hg_tensor *tensor = NULL;
	CHECK_OK(hg_tensor_create(b->ctx, dtype, rows, cols, &tensor));
	b->tensor[b->tensors++] = tensor;
	if (values && rows * cols > 0)
		CHECK_OK(hg_tensor_upload(tensor, values, host));
	return tensor;
}

/* Normal numbers times scale. */
static hg_tensor *random_tensor(struct bench *b, hg_dtype dtype, int64_t rows, int64_t cols, double scale)
{
	float *values = calloc((size_t)(rows * cols) + 1, sizeof *values);
	CHECK(values != NULL);
	for (int64_t i = 0; i < rows * cols; i++)
		values[i] = (float)(scale * test_normal());
	hg_tensor *tensor = tensor_of(b, dtype, rows, cols, values, HG_F32);
	free(values);
	return tensor;
}

static float *download(const hg_tensor *tensor)
{
	CHECK(tensor != NULL);
	float *host = calloc((size_t)(hg_tensor_rows(tensor) * hg_tensor_cols(tensor)) + 1, sizeof *host);
	CHECK(host != NULL);
	CHECK_OK(hg_tensor_download(tensor, host, HG_F32));
	return host;
}

/* A ring of n nodes, each hearing its two neighbours and itself. */
static hg_graph *ring(hg_context *ctx, int32_t n)
{
	int32_t *dst = calloc((size_t)(3 * n), sizeof *dst), *src = calloc((size_t)(3 * n), sizeof *src);
	CHECK(dst && src);
	for (int32_t i = 0; i < 3 * n; i++) {
		dst[i] = i / 3;
		src[i] = (i / 3 + i % 3 + n - 1) % n;
	}
	hg_graph *graph = NULL;
	const hg_status status = hg_graph_from_coo(ctx, n, n, 3 * (int64_t)n, dst, src, NULL, NULL, &graph);
	free(dst);
	free(src);
	CHECK_OK(status);
	return graph;
}

static hg_param *param(struct bench *b, const char *name, int64_t rows, int64_t cols)
{
	hg_param *made = hg_params_find(b->params, name);
	if (!made)
		CHECK_OK(hg_params_add(b->params, name, rows, cols, HG_INIT_GLOROT_UNIFORM, 0, &made));
	return made;
}

/* Two GCN layers with dropout and a masked cross-entropy: the shape of real training. Returns the loss; *logits too. */
static hg_var gcn(struct bench *b, hg_tape *tape, const hg_tensor *x, const hg_tensor *labels, hg_var *logits)
{
	const int64_t d = hg_tensor_cols(x);
	hg_var h = hg_tape_input(tape, x, "x", -1.0);
	hg_tape_scope(tape, "conv1");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w1", d, 16)), hg_tape_param(tape, param(b, "b1", 1, 16)));
	h = hg_relu(tape, hg_spmm(tape, b->graph, h, HG_NONE, HG_NORM_BOTH, 1.0f));
	h = hg_dropout(tape, h, 0.5f);
	hg_tape_scope(tape, "conv2");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w2", 16, 7)), HG_NONE);
	h = hg_spmm(tape, b->graph, h, HG_NONE, HG_NORM_BOTH, 1.0f);
	hg_tape_scope(tape, NULL);
	if (logits)
		*logits = h;
	return labels ? hg_softmax_xent(tape, h, hg_tape_input(tape, labels, "labels", -1.0), HG_NONE) : h;
}

static const hg_tensor *label_tensor(struct bench *b, int64_t n, int32_t classes)
{
	int32_t label[256];
	CHECK(n <= 256);
	for (int64_t i = 0; i < n; i++)
		label[i] = (int32_t)(i % classes);
	return tensor_of(b, HG_I32, n, 1, label, HG_I32);
}

/* ------------------------------------------------------------ recording ------------------------------------------------------------ */

static void the_first_mistake_stays(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp32(), HG_TRAIN);
	hg_tensor *other = NULL;
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 4, 3, 1.0), "x", -1.0), w = hg_tape_param(b.tape, param(&b, "w", 5, 2));
	hg_tape_scope(b.tape, "conv2");
	const hg_var y = hg_linear(b.tape, x, w, HG_NONE);
	CHECK(y.id < 0);
	CHECK_STATUS(hg_tape_status(b.tape), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "linear: W has 5 rows, X has 3 columns (layer conv2)");
	CHECK(hg_relu(b.tape, x).id < 0);
	CHECK_STATUS(hg_tensor_create(b.ctx, HG_F32, -1, 1, &other), HG_ERR_ARG);
	CHECK_STATUS(hg_tape_compile(b.tape, y), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "linear: W has 5 rows");
	CHECK_STATUS(hg_tape_forward(b.tape), HG_ERR_SHAPE);
	CHECK_STATUS(hg_tape_backward(b.tape), HG_ERR_SHAPE);
	bench_close(&b);
}

static void what_does_not_belong_is_refused(void)
{
	struct bench b, c;
	bench_open(&b, hg_policy_fp32(), HG_TRAIN);
	bench_open(&c, hg_policy_fp32(), HG_TRAIN);
	hg_tape *second = NULL, *third = NULL, *fourth = NULL, *fifth = NULL;
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &second));
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &third));
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &fourth));
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &fifth));
	hg_tensor *x = random_tensor(&b, HG_F32, 4, 3, 1.0);
	const hg_var v = hg_tape_input(b.tape, x, "x", -1.0);
	CHECK(v.id >= 0);
	CHECK(hg_relu(second, v).id < 0);
	CHECK_STATUS(hg_tape_status(second), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b.ctx), "relu: operand 0 is not a variable of this tape");
	CHECK(hg_tape_input(c.tape, x, "x", -1.0).id < 0);
	CHECK_CONTAINS(hg_context_error(c.ctx), "belongs to another context");
	CHECK(hg_tape_param(third, param(&c, "w", 1, 1)).id < 0);
	CHECK_CONTAINS(hg_context_error(b.ctx), "belongs to other parameters");
	CHECK(hg_linear(fourth, hg_tape_input(fourth, x, "x", 1.0), HG_NONE, HG_NONE).id < 0);
	CHECK_CONTAINS(hg_context_error(b.ctx), "linear: ");
	CHECK_CONTAINS(hg_context_error(b.ctx), "is missing");
	CHECK(hg_tape_variable(fifth, label_tensor(&b, 3, 2), "labels").id < 0);
	CHECK_STATUS(hg_tape_status(fifth), HG_ERR_DTYPE);
	hg_tape_free(second);
	CHECK_STATUS(hg_tape_create(NULL, HG_TRAIN, &second), HG_ERR_ARG);
	hg_tape_free(third);
	hg_tape_free(fourth);
	hg_tape_free(fifth);
	CHECK(second == NULL);
	bench_close(&c);
	hg_tape_free(NULL);
	bench_close(&b);
}

/* Promote: what is not proved runs in f32, parameters by their masters; a proved f32 operand returns to f16. */
static void policies_decide_the_types(void)
{
	static const struct {
		hg_unproved unproved;
		hg_status status;
		hg_verdict linear;
		hg_dtype out;
	} rows[] = {{HG_UNPROVED_GUARD, HG_OK, HG_GUARDED, HG_F16},
	            {HG_UNPROVED_PROMOTE, HG_OK, HG_PROMOTED, HG_F32},
	            {HG_UNPROVED_REFUSE, HG_ERR_RANGE, HG_REFUSED, HG_F16}};
	for (int i = 0; i < 3; i++) {
		struct bench b;
		hg_policy policy = hg_policy_fp16();
		policy.unproved = rows[i].unproved;
		bench_open(&b, policy, HG_TRAIN);
		b.graph = ring(b.ctx, 8);
		const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 8, 5, 1.0), "x", -1.0);
		const hg_var mean = hg_spmm_mean(b.tape, b.graph, x);
		CHECK(mean.id >= 0);
		hg_tape_scope(b.tape, "fc");
		const hg_var y = hg_linear(b.tape, mean, hg_tape_param(b.tape, param(&b, "w", 5, 4)), HG_NONE);
		CHECK_STATUS(hg_tape_status(b.tape), rows[i].status);
		if (rows[i].status < 0) {
			CHECK_CONTAINS(hg_context_error(b.ctx), "linear: |out| may reach");
			CHECK_CONTAINS(hg_context_error(b.ctx), "(layer fc)");
			bench_close(&b);
			continue;
		}
		const hg_var p = hg_spmm_mean(b.tape, b.graph, hg_log_softmax(b.tape, y));
		hg_tape_keep(b.tape, y);
		hg_tape_keep(b.tape, mean);
		CHECK_OK(hg_tape_compile(b.tape, p));
		CHECK_OK(hg_tape_forward(b.tape));
		CHECK_EQ_I(hg_tensor_dtype(hg_tape_value(b.tape, mean)), HG_F16);
		CHECK_EQ_I(hg_tensor_dtype(hg_tape_value(b.tape, y)), rows[i].out);
		CHECK_EQ_I(b.tape->line[0].node.verdict, HG_PROVED); /* the input's cast */
		CHECK_EQ_I(b.tape->line[b.tape->value[hg__tape_index(b.tape, y)].node].node.verdict, rows[i].linear);
		bench_close(&b);
	}
}

static hg_dtype type_of(const struct bench *b, hg_var var)
{
	CHECK(var.id >= 0);
	return b->tape->value[hg__tape_index(b->tape, var)].dtype;
}

/* An input that f16 cannot hold makes its node f32; the result goes back to f16 behind a guard. What the user casts to f32 stays f32. */
static void f32_stays_where_it_must_and_no_longer(void)
{
	struct bench b;
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = 64.0f;
	bench_open(&b, policy, HG_TRAIN);
	hg_tensor *x = random_tensor(&b, HG_F32, 6, 5, 1.0);
	const hg_var large = hg_tape_input(b.tape, x, "large", 1e6), w = hg_tape_param(b.tape, param(&b, "w", 5, 3));
	const hg_var y = hg_linear(b.tape, large, w, HG_NONE), z = hg_relu(b.tape, y);
	CHECK_EQ_I(type_of(&b, y), HG_F32);
	CHECK_EQ_I(type_of(&b, z), HG_F16);
	const hg_var wide = hg_cast(b.tape, z, HG_F32), sum = hg_add(b.tape, hg_relu(b.tape, wide), z);
	CHECK_EQ_I(type_of(&b, sum), HG_F32);
	CHECK_EQ_I(type_of(&b, hg_relu(b.tape, hg_cast(b.tape, sum, HG_F16))), HG_F16);
	CHECK_OK(hg_tape_compile(b.tape, hg_mse(b.tape, sum, hg_tape_input(b.tape, random_tensor(&b, HG_F32, 6, 3, 1.0), "t", -1.0), HG_NONE)));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	float *dw = download(hg_param_grad(hg_params_find(b.params, "w")));
	for (int i = 0; i < 15; i++)
		CHECK(isfinite(dw[i]));
	free(dw);
	bench_close(&b);
}

/* Sums over neighbours run in the policy's arithmetic, all others in f32. */
static void accumulation_is_the_policys(void)
{
	const hg_policy policies[] = {hg_policy_fp32(), hg_policy_fp16(), hg_policy_fp16_discretized(), hg_policy_fp16_naive()};
	for (int i = 0; i < 4; i++) {
		struct bench b;
		bench_open(&b, policies[i], HG_TRAIN);
		b.graph = ring(b.ctx, 8);
		const hg_var x = hg_tape_input(b.tape, random_tensor(&b, policies[i].state, 8, 5, 1.0), "x", -1.0);
		const hg_var y = hg_spmm(b.tape, b.graph, hg_linear(b.tape, x, hg_tape_param(b.tape, param(&b, "w", 5, 4)), HG_NONE), HG_NONE, HG_NORM_NONE, 1.0f);
		CHECK(y.id >= 0);
		CHECK_EQ_I(b.tape->line[0].node.accumulate, HG_ACC_F32);
		CHECK_EQ_I(b.tape->line[1].node.accumulate, policies[i].accumulate);
		CHECK_EQ_I(b.tape->line[1].node.verdict, i ? HG_GUARDED : HG_EXACT); /* three times 65504 */
		bench_close(&b);
	}
}

/* Two uses of one f32 input share one cast; a scalar is not narrowed. */
static void casts_are_made_once(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp16(), HG_TRAIN);
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 6, 5, 1.0), "x", -1.0);
	const hg_var y = hg_add(b.tape, hg_relu(b.tape, x), hg_scale(b.tape, x, 2.0f));
	const hg_var t = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 6, 5, 1.0), "t", -1.0);
	const hg_var one = hg_mse(b.tape, y, t, HG_NONE), two = hg_mse(b.tape, hg_relu(b.tape, y), t, HG_NONE);
	const hg_var sum = hg_add(b.tape, one, hg_scale(b.tape, two, 0.5f));
	CHECK_OK(hg_tape_compile(b.tape, sum));
	int casts = 0;
	for (int64_t k = 0; k < b.tape->lines; k++)
		casts += strcmp(b.tape->line[k].node.op->name, "cast") == 0;
	CHECK_EQ_I(casts, 1);
	CHECK_EQ_I(hg_tensor_dtype(hg_tape_value(b.tape, sum)), HG_F32);
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	bench_close(&b);
}

/* What a readout has read of its batch stays as it was. */
static void a_recorded_batch_is_fixed(void)
{
	const int64_t ptr[] = {0, 2, 4, 6, 8}, whole[] = {0, 8};
	struct bench b;
	bench_open(&b, hg_policy_fp32(), HG_EVAL);
	b.graph = ring(b.ctx, 8);
	const hg_var y = hg_readout(b.tape, b.graph, hg_tape_input(b.tape, random_tensor(&b, HG_F32, 8, 3, 1.0), "x", -1.0), HG_REDUCE_SUM);
	CHECK_STATUS(hg_graph_set_batch(b.graph, 1, whole), HG_ERR_STATE);
	CHECK_STATUS(hg_graph_set_batch(b.graph, 4, ptr), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "set it once, before the graph is used");
	CHECK_OK(hg_tape_compile(b.tape, y));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_EQ_I(hg_tensor_rows(hg_tape_value(b.tape, y)), 1);
	bench_close(&b);
}

/* ------------------------------------------------------------ running ------------------------------------------------------------ */

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
	bench_open(&b, hg_policy_fp32(), HG_TRAIN);
	float value[12 + 6 + 2 + 8];
	double exact[28], step = 1e-5;
	for (int i = 0; i < 28; i++)
		exact[i] = (double)(value[i] = (float)test_normal());
	hg_param *w = param(&b, "w", 3, 2), *c = param(&b, "c", 1, 2);
	CHECK_OK(hg_param_set(w, value + 12));
	CHECK_OK(hg_param_set(c, value + 18));
	const hg_var x = hg_tape_variable(b.tape, tensor_of(&b, HG_F32, 4, 3, value, HG_F32), "x");
	const hg_var t = hg_tape_input(b.tape, tensor_of(&b, HG_F32, 4, 2, value + 20, HG_F32), "t", -1.0);
	const hg_var y = hg_relu(b.tape, hg_linear(b.tape, x, hg_tape_param(b.tape, w), hg_tape_param(b.tape, c))), loss = hg_mse(b.tape, y, t, HG_NONE);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	double found = 0.0;
	CHECK_OK(hg_tape_scalar(b.tape, loss, &found));
	CHECK_WITHIN(found, mlp_loss(exact, exact + 12, exact + 18, exact + 20), 1e-5);
	float *dx = download(hg_tape_grad(b.tape, x)), *dw = download(hg_param_grad(w)), *dc = download(hg_param_grad(c));
	for (int i = 0; i < 20; i++) {
		const double at = exact[i];
		exact[i] = at + step;
		const double above = mlp_loss(exact, exact + 12, exact + 18, exact + 20);
		exact[i] = at - step;
		const double below = mlp_loss(exact, exact + 12, exact + 18, exact + 20);
		exact[i] = at;
		const float grad = i < 12 ? dx[i] : i < 18 ? dw[i - 12] : dc[i - 18];
		CHECK_WITHIN(grad, (above - below) / (2.0 * step), 1e-5); /* truncation 0 (quadratic), f32 sums of about 10 terms */
	}
	free(dx);
	free(dw);
	free(dc);
	bench_close(&b);
}

/* y = x + 2 x + 4 x with small integers: every number is exact, so the sum of three contributions must be too. One parameter used twice likewise. */
static void contributions_are_added_up(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp32(), HG_TRAIN);
	const float one[] = {1.0f, 2.0f, 3.0f, 4.0f}, zero[] = {0.0f, 0.0f, 0.0f, 0.0f};
	hg_param *p = param(&b, "p", 1, 4);
	CHECK_OK(hg_param_set(p, zero));
	hg_var x = hg_tape_variable(b.tape, tensor_of(&b, HG_F32, 1, 4, one, HG_F32), "x");
	const hg_var t = hg_tape_input(b.tape, tensor_of(&b, HG_F32, 1, 4, zero, HG_F32), "t", 0.0), q = hg_tape_param(b.tape, p);
	const hg_var h = hg_scale(b.tape, x, 1.0f); /* an activation with three consumers, too */
	hg_var y = hg_add(b.tape, h, hg_add(b.tape, hg_scale(b.tape, h, 2.0f), hg_scale(b.tape, h, 4.0f)));
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

/* A parameter as the features themselves (a learnt embedding), used twice: its gradient is f32 whatever the ops before it run in. */
static void parameters_may_be_features(void)
{
	for (int half = 0; half < 2; half++) {
		struct bench b;
		hg_policy policy = half ? hg_policy_fp16() : hg_policy_fp32();
		policy.loss_scale.init_scale = 8.0f;
		bench_open(&b, policy, HG_TRAIN);
		const float v[] = {1.0f, -2.0f, 3.0f, 0.5f}, zero[] = {0.0f, 0.0f, 0.0f, 0.0f};
		hg_param *p = param(&b, "embedding", 2, 2);
		CHECK_OK(hg_param_set(p, v));
		const hg_var x = hg_tape_param(b.tape, p), y = hg_add(b.tape, hg_relu(b.tape, x), hg_scale(b.tape, x, 2.0f));
		const hg_var loss = hg_mse(b.tape, y, hg_tape_input(b.tape, tensor_of(&b, HG_F32, 2, 2, zero, HG_F32), "t", 0.0), HG_NONE);
		CHECK_OK(hg_tape_compile(b.tape, loss));
		for (int run = 0; run < 2; run++) {
			CHECK_OK(hg_tape_forward(b.tape));
			CHECK_OK(hg_tape_backward(b.tape));
		}
		float *dp = download(hg_param_grad(p));
		for (int i = 0; i < 4; i++) { /* y = k x, dL/dx = k 2 y / 4: exact in either type */
			const double k = v[i] > 0.0f ? 3.0 : 2.0;
			CHECK_WITHIN(dp[i], (half ? 8.0 : 1.0) * k * k * (double)v[i] / 2.0, 0.0);
		}
		free(dp);
		bench_close(&b);
	}
}

/* The same operand twice: d(x + x) = 2. */
static void one_value_in_both_places(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp32(), HG_TRAIN);
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

/* fp16 gradients arrive multiplied by the loss scale: 1024 times those of fp32, within a few roundings. */
static void gradients_carry_the_loss_scale(void)
{
	double grad[2] = {0.0, 0.0};
	for (int half = 0; half < 2; half++) {
		struct bench b;
		hg_policy policy = half ? hg_policy_fp16() : hg_policy_fp32();
		policy.loss_scale.init_scale = 1024.0f;
		bench_open(&b, policy, HG_TRAIN);
		const float x[] = {1.0f, 2.0f}, w[] = {0.25f, 0.5f}, t[] = {1.0f};
		hg_param *p = param(&b, "w", 2, 1);
		CHECK_OK(hg_param_set(p, w));
		const hg_var y =
		    hg_linear(b.tape, hg_tape_input(b.tape, tensor_of(&b, half ? HG_F16 : HG_F32, 1, 2, x, HG_F32), "x", 2.0), hg_tape_param(b.tape, p), HG_NONE);
		const hg_var loss = hg_mse(b.tape, hg_scale(b.tape, y, 0.125f), hg_tape_input(b.tape, tensor_of(&b, HG_F32, 1, 1, t, HG_F32), "t", 1.0), HG_NONE);
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

/* Dead nodes do not run; a kept one does, and its value survives the backward. */
static hg_status count_runs(void *user, const hg_tape *tape, int32_t line, int backward, const struct hg__call *call)
{
	(void)tape;
	(void)line;
	(void)call;
	((int *)user)[backward]++;
	return HG_OK;
}

static void only_what_is_needed_runs(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp32(), HG_TRAIN);
	int runs[2] = {0, 0};
	const struct hg__observer observer = {count_runs, runs};
	hg_param *unused = param(&b, "unused", 3, 3), *w = param(&b, "w", 3, 2);
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 5, 3, 1.0), "x", -1.0);
	const hg_var t = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 5, 2, 1.0), "t", -1.0);
	const hg_var scaled = hg_scale(b.tape, x, 3.0f);                                  /* forward only: nothing to learn before it */
	const hg_var dead = hg_linear(b.tape, x, hg_tape_param(b.tape, unused), HG_NONE); /* nobody asks */
	const hg_var kept = hg_relu(b.tape, x);
	const hg_var loss = hg_mse(b.tape, hg_linear(b.tape, scaled, hg_tape_param(b.tape, w), HG_NONE), t, HG_NONE);
	hg_tape_keep(b.tape, kept);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	hg__tape_observe(b.tape, &observer);
	CHECK_OK(hg_tape_forward(b.tape));
	float *before = download(hg_tape_value(b.tape, kept));
	CHECK_OK(hg_tape_backward(b.tape));
	CHECK_EQ_I(runs[0], 4); /* scale, relu, linear, mse */
	CHECK_EQ_I(runs[1], 2); /* mse, linear */
	CHECK(hg_tape_value(b.tape, dead) == NULL && hg_tape_value(b.tape, scaled) == NULL && hg_tape_grad(b.tape, x) == NULL);
	float *after = download(hg_tape_value(b.tape, kept)), *none = download(hg_param_grad(unused));
	CHECK(memcmp(before, after, 15 * sizeof *before) == 0);
	for (int i = 0; i < 9; i++)
		CHECK(none[i] == 0.0f);
	hg__tape_observe(b.tape, NULL);
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
	bench_open(&b, hg_policy_fp32(), HG_TRAIN);
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
	CHECK(hg_relu(b.tape, y).id < 0); /* compiled: recording on it is a mistake, but not the tape's */
	CHECK_CONTAINS(hg_context_error(b.ctx), "relu: the tape is compiled");
	hg_tape_scope(b.tape, NULL);
	hg_tape_keep(b.tape, y);
	CHECK_CONTAINS(hg_context_error(b.ctx), "hg_tape_keep: the tape is compiled");
	CHECK(hg_tape_value(b.tape, y) == NULL);
	CHECK_OK(hg_tape_status(b.tape));
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

/* A training and an evaluation tape on the same parameters: one learns, the other sees it. */
static void two_tapes_share_parameters(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp16(), HG_TRAIN);
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
	CHECK(eval_plan.arena_bytes < train_plan.arena_bytes && eval_plan.state_bytes < train_plan.state_bytes);
	free(before);
	free(same);
	free(after);
	hg_tape_free(eval);
	bench_close(&b);
}

static void labels_beyond_the_classes_are_found(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp32(), HG_TRAIN);
	const int32_t label[] = {0, 1, -1, 7, 2};
	const hg_var x = hg_tape_variable(b.tape, random_tensor(&b, HG_F32, 5, 7, 1.0), "x");
	const hg_var y = hg_tape_input(b.tape, tensor_of(&b, HG_I32, 5, 1, label, HG_I32), "y", -1.0);
	hg_tape_scope(b.tape, "head");
	const hg_var loss = hg_softmax_xent(b.tape, x, y, HG_NONE);
	CHECK_STATUS(hg_tape_compile(b.tape, loss), HG_ERR_RANGE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "softmax_xent: label 7 in row 3 of y, the logits have 7 columns (layer head)");
	bench_close(&b);
}

/* ------------------------------------------------------------ memory ------------------------------------------------------------ */

static void check_plan(const struct hg__span *span, int64_t count, size_t bytes)
{
	size_t most = 0;
	for (int64_t i = 0; i < count; i++) {
		size_t alive = 0;
		CHECK(span[i].offset % HG__ALIGN == 0 && span[i].bytes > 0 && span[i].offset + span[i].bytes <= bytes && span[i].first <= span[i].last);
		for (int64_t j = 0; j < count; j++) {
			if (span[j].first <= span[i].first && span[i].first <= span[j].last)
				alive += span[j].bytes;
			if (i == j || span[i].last < span[j].first || span[j].last < span[i].first)
				continue;
			CHECK_MSG(span[i].offset + span[i].bytes <= span[j].offset || span[j].offset + span[j].bytes <= span[i].offset,
			          "buffers %lld and %lld are alive together and overlap", (long long)i, (long long)j);
		}
		most = alive > most ? alive : most;
	}
	CHECK(bytes >= most); /* no plan can do with less than what is alive at once */
}

static void random_lifetimes_never_overlap(void)
{
	hg_context *ctx = test_context();
	for (int round = 0; round < 200; round++) {
		struct hg__span span[64];
		const int64_t count = test_below(65);
		size_t bytes = 0, sum = 0;
		for (int64_t i = 0; i < count; i++) {
			const int32_t first = (int32_t)test_below(40);
			span[i] = (struct hg__span){.first = first, .last = first + (int32_t)test_below(12), .bytes = (size_t)(1 + test_below(20)) * HG__ALIGN};
			sum += span[i].bytes;
		}
		CHECK_OK(hg__arena_place(ctx, span, count, &bytes));
		check_plan(span, count, bytes);
		CHECK(bytes <= sum);
	}
	hg_context_free(ctx);
}

static void real_plan_never_overlaps(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, 40);
	hg_var logits;
	const hg_var loss = gcn(&b, b.tape, random_tensor(&b, HG_F16, 40, 33, 1.0), label_tensor(&b, 40, 7), &logits);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	check_plan(b.tape->span, b.tape->spans, b.tape->arena_bytes);
	size_t sum = 0;
	for (int64_t i = 0; i < b.tape->spans; i++)
		sum += b.tape->span[i].bytes;
	CHECK(b.tape->arena_bytes < sum); /* something is shared */
	bench_close(&b);
}

/* A random expression over a few values; with every value kept nothing shares memory, so the plan must not change a single bit of any gradient. */
static hg_var random_net(struct bench *b, hg_tape *tape, const hg_tensor *x, const hg_tensor *t, uint64_t salt, int keep)
{
	hg_var v[24];
	test_reseed(salt);
	v[0] = hg_tape_variable(tape, x, "x");
	v[1] = hg_linear(tape, v[0], hg_tape_param(tape, param(b, "w", 9, 9)), hg_tape_param(tape, param(b, "c", 1, 9)));
	for (int i = 2; i < 24; i++) {
		const hg_var one = v[i - 1 - (int)test_below(i < 4 ? i : 4)], two = v[test_below(i)];
		const int64_t kind = test_below(6);
		v[i] = kind == 0   ? hg_add(tape, one, two)
		       : kind == 1 ? hg_relu(tape, one)
		       : kind == 2 ? hg_scale(tape, one, 0.5f)
		       : kind == 3 ? hg_linear(tape, one, hg_tape_param(tape, param(b, "w", 9, 9)), HG_NONE)
		       : kind == 4 ? hg_spmm_mean(tape, b->graph, one)
		                   : hg_dropout(tape, hg_elu(tape, one, 1.0f), 0.25f);
	}
	for (int i = 1; i < 24 && keep; i++)
		hg_tape_keep(tape, v[i]);
	return hg_mse(tape, hg_add(tape, v[23], v[22]), hg_tape_input(tape, t, "t", -1.0), HG_NONE);
}

static void sharing_memory_changes_no_bit(void)
{
	for (uint64_t salt = 1; salt <= 20; salt++) {
		struct bench b;
		bench_open(&b, salt % 2 ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
		b.graph = ring(b.ctx, 11);
		const hg_dtype state = b.params->policy.state;
		const hg_tensor *x = random_tensor(&b, state, 11, 9, 0.5), *t = random_tensor(&b, state, 11, 9, 0.5);
		hg_tape *roomy = NULL;
		CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &roomy));
		hg_tape *const tapes[] = {b.tape, roomy, b.tape};
		float *dw[3], *dx[3];
		const hg_var loss[] = {random_net(&b, b.tape, x, t, salt, 0), random_net(&b, roomy, x, t, salt, 1)};
		CHECK_OK(hg_tape_compile(b.tape, loss[0]));
		CHECK_OK(hg_tape_compile(roomy, loss[1]));
		CHECK(b.tape->arena_bytes < roomy->arena_bytes);
		check_plan(b.tape->span, b.tape->spans, b.tape->arena_bytes);
		for (int i = 0; i < 3; i++) { /* the last one: run to run */
			CHECK_OK(hg_tape_forward(tapes[i]));
			CHECK_OK(hg_tape_backward(tapes[i]));
			dw[i] = download(hg_param_grad(param(&b, "w", 9, 9)));
			dx[i] = download(hg_tape_grad(tapes[i], hg__tape_var(tapes[i], 0)));
		}
		for (int i = 1; i < 3; i++) {
			CHECK(memcmp(dw[0], dw[i], 81 * sizeof(float)) == 0);
			CHECK(memcmp(dx[0], dx[i], 99 * sizeof(float)) == 0);
		}
		for (int i = 0; i < 3; i++) {
			free(dw[i]);
			free(dx[i]);
		}
		hg_tape_free(roomy);
		bench_close(&b);
	}
}

static void empty_and_single_shapes_run(void)
{
	static const int64_t extents[][2] = {{0, 3}, {1, 1}, {1, 3}, {5, 1}, {0, 1}};
	for (int half = 0; half < 2; half++)
		for (int i = 0; i < 5; i++) {
			struct bench b;
			const int64_t n = extents[i][0], d = extents[i][1];
			bench_open(&b, half ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
			CHECK_OK(hg_graph_from_coo(b.ctx, n, n, 0, NULL, NULL, NULL, NULL, &b.graph));
			const hg_dtype state = half ? HG_F16 : HG_F32;
			const hg_var x = hg_tape_variable(b.tape, random_tensor(&b, state, n, d, 1.0), "x");
			const hg_var y = hg_relu(b.tape, hg_linear(b.tape, x, hg_tape_param(b.tape, param(&b, "w", d, 2)), HG_NONE));
			const hg_var z = hg_add(b.tape, y, hg_spmm(b.tape, b.graph, y, HG_NONE, HG_NORM_BOTH, 1.0f));
			const hg_var loss = hg_mse(b.tape, z, hg_tape_input(b.tape, random_tensor(&b, state, n, 2, 1.0), "t", -1.0), HG_NONE);
			double value = -1.0;
			CHECK_OK(hg_tape_compile(b.tape, loss));
			CHECK_OK(hg_tape_forward(b.tape));
			CHECK_OK(hg_tape_backward(b.tape));
			CHECK_OK(hg_tape_scalar(b.tape, loss, &value));
			CHECK(isfinite(value) && (n > 0 || value == 0.0));
			bench_close(&b);
		}
}

/* Memory hooks that fail once at a chosen call, and count what is held. */
struct failing {
	int64_t call, fail_at;
	int64_t held, bytes;
};

static void *failing_alloc(void *user, size_t bytes, int device)
{
	struct failing *f = user;
	(void)device;
	if (++f->call == f->fail_at)
		return NULL;
	f->held++;
	f->bytes += (int64_t)bytes;
	return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void failing_free(void *user, void *memory, size_t bytes, int device)
{
	struct failing *f = user;
	(void)device;
	f->held--;
	f->bytes -= (int64_t)bytes; /* free is told what alloc was asked for */
	free(memory);
}

/* Everything from context to backward; the first bad status ends it. */
static hg_status life(hg_context *ctx)
{
	struct bench b = {.ctx = ctx};
	const int32_t dst[] = {0, 1, 2, 0}, src[] = {1, 2, 0, 2}, label[] = {0, 1, 2};
	const float x[] = {1, 2, 3, 4, 5, 6};
	hg_param *w = NULL;
	hg_tensor *tx = NULL, *ty = NULL;
	hg_status s = hg_params_create(ctx, NULL, &b.params);
	if (s >= 0)
		s = hg_tensor_create(ctx, HG_F32, 3, 2, &tx);
	if (s >= 0)
		s = hg_tensor_upload(tx, x, HG_F32);
	if (s >= 0)
		s = hg_tensor_create(ctx, HG_I32, 3, 1, &ty);
	if (s >= 0)
		s = hg_tensor_upload(ty, label, HG_I32);
	if (s >= 0)
		s = hg_graph_from_coo(ctx, 3, 3, 4, dst, src, NULL, NULL, &b.graph);
	if (s >= 0)
		s = hg_params_add(b.params, "w", 2, 3, HG_INIT_GLOROT_UNIFORM, 0, &w);
	if (s >= 0)
		s = hg_tape_create(b.params, HG_TRAIN, &b.tape);
	if (s >= 0) {
		hg_tape_scope(b.tape, "conv");
		const hg_var h = hg_linear(b.tape, hg_tape_input(b.tape, tx, "x", -1.0), hg_tape_param(b.tape, w), HG_NONE);
		const hg_var loss = hg_softmax_xent(b.tape, hg_spmm(b.tape, b.graph, h, HG_NONE, HG_NORM_BOTH, 1.0f), hg_tape_input(b.tape, ty, "y", -1.0), HG_NONE);
		s = hg_tape_compile(b.tape, loss);
	}
	if (s >= 0)
		s = hg_tape_forward(b.tape);
	if (s >= 0)
		s = hg_tape_backward(b.tape);
	hg_tape_free(b.tape);
	hg_graph_free(b.graph);
	hg_tensor_free(tx);
	hg_tensor_free(ty);
	hg_params_free(b.params);
	return s;
}

static void every_allocation_may_fail(void)
{
	const char *device = getenv("HG_TEST_DEVICE");
	if (device && strcmp(device, "cuda") == 0)
		SKIP("the memory hooks of this test are host memory");
	int64_t failures = 0;
	for (int64_t k = 1;; k++) {
		struct failing f = {.fail_at = k};
		hg_context_config config = HG_CONTEXT_CONFIG_INIT;
		config.device = HG_DEVICE_CPU;
		config.allocator = (hg_allocator){failing_alloc, failing_free, &f};
		hg_context *ctx = NULL;
		hg_status status = hg_context_create(&config, &ctx);
		if (status == HG_OK)
			status = life(ctx);
		if (status != HG_OK) {
			CHECK_STATUS(status, HG_ERR_NOMEM);
			CHECK_MSG(!ctx || *hg_context_error(ctx), "allocation %lld failed without a sentence", (long long)k);
			failures++;
		}
		hg_context_free(ctx);
		CHECK_MSG(f.held == 0 && f.bytes == 0, "allocation %lld failed: %lld pieces, %lld bytes of memory are lost", (long long)k, (long long)f.held,
		          (long long)f.bytes);
		if (f.call < k)
			break;
		CHECK_MSG(status != HG_OK, "allocation %lld failed and nobody noticed", (long long)k);
	}
	test_note("%lld allocations", (long long)failures);
	CHECK(failures > 20);
}

/* Memory hooks that refuse large pieces: the sentence names the largest tensors. */
static void *small_alloc(void *user, size_t bytes, int device)
{
	(void)user;
	return device && bytes > 100000 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void small_free(void *user, void *memory, size_t bytes, int device)
{
	(void)user;
	(void)bytes;
	(void)device;
	free(memory);
}

static void no_memory_names_the_largest(void)
{
	struct bench b;
	memset(&b, 0, sizeof b);
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = HG_DEVICE_CPU;
	config.allocator = (hg_allocator){small_alloc, small_free, NULL};
	const hg_policy policy = hg_policy_fp32();
	CHECK_OK(hg_context_create(&config, &b.ctx));
	CHECK_OK(hg_params_create(b.ctx, &policy, &b.params));
	CHECK_OK(hg_tape_create(b.params, HG_EVAL, &b.tape));
	const hg_var x = hg_tape_input(b.tape, random_tensor(&b, HG_F32, 100, 8, 1.0), "x", -1.0);
	hg_tape_scope(b.tape, "wide");
	const hg_var y = hg_linear(b.tape, x, hg_tape_param(b.tape, param(&b, "w", 8, 512)), HG_NONE);
	CHECK_STATUS(hg_tape_compile(b.tape, y), HG_ERR_NOMEM);
	CHECK_CONTAINS(hg_context_error(b.ctx), "no memory for an arena of 204800 bytes; largest: wide/linear 204800");
	bench_close(&b);
}

/* ------------------------------------------------------------ reports ------------------------------------------------------------ */

static void append_line(void *user, const char *line)
{
	char *text = user;
	strncat(text, line, 16000 - strlen(text) - 2);
	strcat(text, "\n");
}

static void print_shows_nodes_verdicts_and_memory(void)
{
	struct bench b;
	char text[16000] = "";
	bench_open(&b, hg_policy_fp16(), HG_TRAIN);
	b.graph = ring(b.ctx, 20);
	hg_var logits;
	const hg_var loss = gcn(&b, b.tape, random_tensor(&b, HG_F16, 20, 9, 1.0), label_tensor(&b, 20, 7), &logits);
	CHECK_OK(hg_tape_print(b.tape, append_line, text)); /* before compile: no plan yet */
	CHECK_CONTAINS(text, "policy fp16");
	text[0] = 0;
	(void)hg_relu(b.tape, logits);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tape_print(b.tape, append_line, text));
	if (getenv("HG_TEST_SHOW"))
		fputs(text, stdout);
	static const char *const wanted[] = {"conv1",   "conv2",  "linear", "x, w1, b1",    "A[20x20], #0", "f16 [20, 16]",
	                                     "guarded", "proved", "saved",  "gradient",     "softmax_xent", "f32 [1, 1]",
	                                     "labels",  "exact",  "arena",  "0..6 forward", "largest"};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		CHECK_CONTAINS(text, wanted[i]);
	CHECK_STATUS(hg_tape_print(b.tape, NULL, NULL), HG_ERR_ARG);
	bench_close(&b);
}

/* fp16 state tensors take at most 0.55 of fp32's bytes: half, and padding. */
/* A caller with older headers gets the fields that it knows. */
static void the_plan_fills_what_the_caller_has(void)
{
	struct bench b;
	bench_open(&b, hg_policy_fp32(), HG_EVAL);
	CHECK_OK(hg_tape_compile(b.tape, hg_relu(b.tape, hg_tape_input(b.tape, random_tensor(&b, HG_F32, 4, 8, 1.0), "x", -1.0))));
	hg_plan_info info = HG_PLAN_INFO_INIT;
	info.size = offsetof(hg_plan_info, input_bytes);
	info.input_bytes = 77;
	CHECK_OK(hg_tape_plan(b.tape, &info));
	CHECK(info.size == offsetof(hg_plan_info, input_bytes) && info.input_bytes == 77 && info.state_bytes == 4 * 8 * 4);
	info.size = 0;
	CHECK_STATUS(hg_tape_plan(b.tape, &info), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b.ctx), "HG_PLAN_INFO_INIT");
	bench_close(&b);
}

static void half_state_is_half_the_bytes(void)
{
	size_t bytes[2] = {0, 0};
	for (int half = 0; half < 2; half++) {
		struct bench b;
		hg_plan_info info = HG_PLAN_INFO_INIT;
		bench_open(&b, half ? hg_policy_fp16() : hg_policy_fp32(), HG_TRAIN);
		b.graph = ring(b.ctx, 100);
		hg_var logits;
		const hg_var loss = gcn(&b, b.tape, random_tensor(&b, half ? HG_F16 : HG_F32, 100, 33, 1.0), label_tensor(&b, 100, 7), &logits);
		CHECK_STATUS(hg_tape_plan(b.tape, &info), HG_ERR_STATE);
		CHECK_OK(hg_tape_compile(b.tape, loss));
		CHECK_OK(hg_tape_plan(b.tape, &info));
		bytes[half] = info.state_bytes;
		CHECK_EQ_I(info.nodes, 7);
		CHECK_EQ_I(info.proved + info.guarded + info.promoted + info.exact, info.nodes);
		CHECK(half ? info.guarded > 0 : info.exact == info.nodes);
		CHECK(info.largest_bytes > 0 && *info.largest_name);
		bench_close(&b);
	}
	CHECK((double)bytes[1] <= 0.55 * (double)bytes[0]);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(the_first_mistake_stays),
	    TEST(what_does_not_belong_is_refused),
	    TEST(policies_decide_the_types),
	    TEST(f32_stays_where_it_must_and_no_longer),
	    TEST(accumulation_is_the_policys),
	    TEST(casts_are_made_once),
	    TEST(a_recorded_batch_is_fixed),
	    TEST(gradients_are_central_differences),
	    TEST(contributions_are_added_up),
	    TEST(parameters_may_be_features),
	    TEST(one_value_in_both_places),
	    TEST(gradients_carry_the_loss_scale),
	    TEST(only_what_is_needed_runs),
	    TEST(order_of_calls_is_enforced),
	    TEST(two_tapes_share_parameters),
	    TEST(labels_beyond_the_classes_are_found),
	    TEST(random_lifetimes_never_overlap),
	    TEST(real_plan_never_overlaps),
	    TEST(sharing_memory_changes_no_bit),
	    TEST(empty_and_single_shapes_run),
	    TEST(every_allocation_may_fail),
	    TEST(no_memory_names_the_largest),
	    TEST(print_shows_nodes_verdicts_and_memory),
	    TEST(the_plan_fills_what_the_caller_has),
	    TEST(half_state_is_half_the_bytes),
	};
	return RUN_TESTS(argc, argv, cases);
}
