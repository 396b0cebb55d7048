/* Unusual numbers that a run must allow for: a factor that is no half, a batch that has overflowed,
 * a label that is no class. */
#include <math.h>
#include <stdlib.h>

#include "unit/tape.h"

/* A sum in halves is multiplied by a half. A factor of 65,520 or more is infinite as a half,
 * however small the result is. */
static void factor_beyond_half_is_not_proved(void)
{
	static const struct {
		const char *policy;
		float alpha;
		int proved;
	} rows[] = {
	    {"fp16", 65536.0f, 1},
	    {"fp16-discretized", 32768.0f, 1},
	    {"fp16-discretized", -65536.0f, 0},
	    {"fp16-naive", 65536.0f, 0},
	};
	const float x[] = {0x1p-14f, 0x1p-14f};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b;
		bench_open(&b, test_context(), policy_named(rows[i].policy), HG_EVAL);
		b.graph = coo_graph(b.ctx, coo_cycle(2));
		const hg_var in =
		    hg_tape_input(b.tape, tensor_of(&b, HG_F16, 2, 1, x, HG_F32), "x", 0x1p-14);
		CHECK_OK(hg_tape_compile(
		    b.tape, hg_spmm(b.tape, b.graph, in, HG_NONE, HG_NORM_RIGHT, rows[i].alpha)));
		hg_plan_info info = HG_PLAN_INFO_INIT;
		CHECK_OK(hg_tape_plan(b.tape, &info));
		CHECK_MSG(info.proved == rows[i].proved, "%s, alpha %g: %d proved", rows[i].policy,
		          (double)rows[i].alpha, (int)info.proved);
		bench_close(&b);
	}
}

/* Columns 0 and 2 have overflowed, column 1 has not: only the running mean and variance of column 1
 * change. n is even. */
static void check_overflowed_columns(int64_t n)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	static const float start[] = {0.5f, 0.5f, 0.5f};
	float *x = calloc((size_t)n * 3, sizeof *x), *y = calloc((size_t)n * 3, sizeof *y);
	CHECK(x != NULL && y != NULL);
	for (int64_t i = 0; i < n; i++)
		x[3 * i + 1] = i % 2 ? 3 : 1;
	x[0] = INFINITY;
	x[3 * n - 1] = NAN;
	hg_param *p[4] = {0};
	static const char *const names[] = {"gamma", "beta", "mean", "var"};
	for (int i = 0; i < 4; i++)
		CHECK_OK(hg_params_add(b.params, names[i], 1, 3, HG_INIT_ONES,
		                       HG_PARAM_F32 | (i < 2 ? 0 : HG_PARAM_BUFFER), &p[i]));
	CHECK_OK(hg_param_set(p[2], start));
	CHECK_OK(hg_param_set(p[3], start));
	const hg_var in = hg_tape_input(b.tape, tensor_of(&b, HG_F32, n, 3, x, HG_F32), "x", INFINITY);
	const hg_var out = hg_batch_norm(b.tape, in, hg_tape_param(b.tape, p[0]),
	                                 hg_tape_param(b.tape, p[1]), p[2], p[3], 0.5f, 1e-5f);
	CHECK_OK(hg_tape_compile(b.tape, out));
	CHECK_OK(hg_tape_forward(b.tape));
	float mean[3], var[3];
	CHECK_OK(hg_tensor_download(hg_param_master(p[2]), mean, HG_F32));
	CHECK_OK(hg_tensor_download(hg_param_master(p[3]), var, HG_F32));
	CHECK_OK(hg_tensor_download(hg_tape_value(b.tape, out), y, HG_F32));
	for (int c = 0; c < 3; c += 2)
		CHECK_MSG(mean[c] == 0.5f && var[c] == 0.5f,
		          "%d rows, column %d: running mean %g, variance %g", (int)n, c, (double)mean[c],
		          (double)var[c]);
	/* The mean is 2, the sum of squared distances is n; each has an error of gamma_n(u32). */
	const double expect = 0.25 + 0.5 * (double)n / (double)(n - 1), u = ((double)n + 8) * 0x1p-24;
	CHECK_MSG(fabs((double)mean[1] - 1.25) <= 2 * u && fabs((double)var[1] - expect) <= 2 * u,
	          "%d rows: running mean %.9g, variance %.9g", (int)n, (double)mean[1], (double)var[1]);
	for (int64_t i = 0; i < n; i++)
		CHECK(isnan(y[3 * i + 2]) && fabs((double)y[3 * i + 1] - (i % 2 ? 2 : 0)) <= 1e-5 + 8 * u);
	free(x);
	free(y);
	bench_close(&b);
}

/* As many rows as one block treats, as several blocks treat with few and with many steps of a
 * thread, and more than fit in registers. */
static void overflow_leaves_running_statistics_alone(void)
{
	static const int64_t rows[] = {2, 200, 700, 2708, 5000, 33000};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		check_overflowed_columns(rows[i]);
}

/* Labels are checked when the tape compiles. If they are changed later to a number that is no
 * class, the loss is infinite, and nothing beyond the row is read or written. */
static void label_beyond_the_classes_gives_an_infinite_loss(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	const float x[] = {1, 2, 3, 4, 5, 6};
	const int32_t label[] = {0, 1}, wrong[] = {0, 1 << 30};
	hg_tensor *labels = tensor_of(&b, HG_I32, 2, 1, label, HG_I32);
	const hg_var in = hg_tape_variable(b.tape, tensor_of(&b, HG_F32, 2, 3, x, HG_F32), "x");
	const hg_var loss =
	    hg_softmax_xent(b.tape, in, hg_tape_input(b.tape, labels, "labels", -1.0), HG_NONE);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tensor_upload(labels, wrong, HG_I32));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	double value = 0;
	CHECK_OK(hg_tape_scalar(b.tape, loss, &value));
	CHECK(value == (double)INFINITY);
	float grad[6];
	CHECK_OK(hg_tensor_download(hg_tape_grad(b.tape, in), grad, HG_F32));
	for (int c = 0; c < 6; c++)
		CHECK(isfinite(grad[c]));
	bench_close(&b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(factor_beyond_half_is_not_proved),
	    TEST(overflow_leaves_running_statistics_alone),
	    TEST(label_beyond_the_classes_gives_an_infinite_loss),
	};
	return RUN_TESTS(argc, argv, cases);
}
