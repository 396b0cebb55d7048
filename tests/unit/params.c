#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/param.h"

static hg_params *make(hg_context *ctx, hg_policy policy)
{
	hg_params *params = NULL;
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	return params;
}

static float *download(const hg_tensor *tensor)
{
	float *host = calloc((size_t)(hg_tensor_rows(tensor) * hg_tensor_cols(tensor)), sizeof *host);
	CHECK(host != NULL);
	CHECK_OK(hg_tensor_download(tensor, host, HG_F32));
	return host;
}

static void storage_follows_the_policy(void)
{
	hg_context *ctx = test_context();
	hg_params *half = make(ctx, hg_policy_fp16()), *full = make(ctx, hg_policy_fp32());
	hg_param *w = NULL, *eps = NULL, *mean = NULL, *v = NULL;
	CHECK_OK(hg_params_add(half, "w", 5, 3, HG_INIT_GLOROT_UNIFORM, 0, &w));
	CHECK_OK(hg_params_add(half, "eps", 1, 1, HG_INIT_ZEROS, HG_PARAM_F32, &eps));
	CHECK_OK(
	    hg_params_add(half, "mean", 1, 7, HG_INIT_ONES, HG_PARAM_F32 | HG_PARAM_BUFFER, &mean));
	CHECK_OK(hg_params_add(full, "w", 5, 3, HG_INIT_GLOROT_UNIFORM, 0, &v));
	CHECK_EQ_I(hg_tensor_dtype(hg_param_master(w)), HG_F32);
	CHECK_EQ_I(hg_tensor_dtype(hg_param_working(w)), HG_F16);
	CHECK_EQ_I(hg_tensor_dtype(hg_param_grad(w)), HG_F32);
	CHECK_EQ_I(hg_tensor_ld(hg_param_working(w)), hg_tensor_ld(hg_param_master(w)));
	CHECK(hg_param_working(eps) == hg_param_master(eps) && hg_param_grad(eps));
	CHECK(hg_param_working(mean) == hg_param_master(mean) && !hg_param_grad(mean));
	CHECK(hg_param_working(v) == hg_param_master(v));
	CHECK_EQ_I(hg_params_count(half), 3);
	CHECK(hg_params_at(half, 1) == eps && hg_params_at(half, 3) == NULL &&
	      hg_params_at(half, -1) == NULL);
	CHECK(hg_params_find(half, "mean") == mean && hg_params_find(half, "nothing") == NULL);
	CHECK_STR(hg_param_name(eps), "eps");
	hg_params_free(half);
	hg_params_free(full);
	hg_context_free(ctx);
}

/* Glorot: |w| < sqrt(6 / (rows + cols)); Kaiming: |w| < sqrt(1 / rows). The mean is 0 within 5
 * standard errors a / sqrt(3 n). Master weights are the same under every policy. */
static void initial_values_are_a_function_of_seed_name_and_place(void)
{
	hg_context *ctx = test_context();
	hg_params *half = make(ctx, hg_policy_fp16()), *full = make(ctx, hg_policy_fp32());
	static const struct {
		const char *name;
		hg_init init;
		double limit;
	} rows[] = {{"glorot", HG_INIT_GLOROT_UNIFORM, 0.2}, {"kaiming", HG_INIT_KAIMING_UNIFORM, 0.1}};
	for (int i = 0; i < 2; i++) {
		hg_param *a = NULL, *b = NULL;
		CHECK_OK(hg_params_add(half, rows[i].name, 100, 50, rows[i].init, 0, &a));
		CHECK_OK(hg_params_add(full, rows[i].name, 100, 50, rows[i].init, 0, &b));
		float *x = download(hg_param_master(a)), *y = download(hg_param_master(b)),
		      *half_x = download(hg_param_working(a));
		double sum = 0.0;
		for (int k = 0; k < 5000; k++) {
			CHECK(fabs((double)x[k]) <= rows[i].limit * (1.0 + 1e-6));
			CHECK(half_x[k] == hg_half_to_float(hg_half_from_float(x[k])));
			sum += (double)x[k];
		}
		CHECK_WITHIN(sum / 5000.0, 0.0, 5.0 * rows[i].limit / sqrt(3.0 * 5000.0));
		CHECK(memcmp(x, y, 5000 * sizeof *x) == 0);
		free(x);
		free(y);
		free(half_x);
	}
	hg_param *other = NULL;
	CHECK_OK(hg_params_add(half, "another", 100, 50, HG_INIT_GLOROT_UNIFORM, 0, &other));
	float *x = download(hg_param_master(hg_params_at(half, 0))),
	      *y = download(hg_param_master(other));
	CHECK(memcmp(x, y, 5000 * sizeof *x) != 0);
	free(x);
	free(y);
	hg_params_free(half);
	hg_params_free(full);
	hg_context_free(ctx);
}

static void set_refuses_what_f16_cannot_hold_and_changes_nothing(void)
{
	hg_context *ctx = test_context();
	hg_params *params = make(ctx, hg_policy_fp16());
	hg_param *w = NULL;
	const float good[] = {1.5f, -2.0f, 65504.0f, 0.1f}, bad[] = {0.0f, 0.0f, 1e6f, 0.0f};
	CHECK_OK(hg_params_add(params, "w", 2, 2, HG_INIT_ZEROS, 0, &w));
	CHECK_OK(hg_param_set(w, good));
	CHECK_STATUS(hg_param_set(w, bad), HG_ERR_RANGE);
	float *master = download(hg_param_master(w)), *working = download(hg_param_working(w));
	CHECK(memcmp(master, good, sizeof good) == 0);
	CHECK(working[0] == 1.5f && working[2] == 65504.0f &&
	      working[3] == hg_half_to_float(hg_half_from_float(0.1f)));
	CHECK_STATUS(hg_param_set(w, NULL), HG_ERR_ARG);
	free(master);
	free(working);
	hg_params_free(params);
	hg_context_free(ctx);
}

/* The policy's name is copied, so that the text of the caller need not live on. */
static void name_of_the_policy_is_copied(void)
{
	char name[] = "mine";
	hg_context *ctx = test_context();
	hg_policy policy = hg_policy_fp16();
	policy.name = name;
	hg_params *params = make(ctx, policy);
	memset(name, 'x', sizeof name - 1);
	CHECK_STR(hg_params_policy(params)->name, "mine");
	hg_params_free(params);
	hg_context_free(ctx);
}

static void step_state_starts_from_the_policy(void)
{
	hg_context *ctx = test_context();
	hg_policy policies[] = {hg_policy_fp16(), hg_policy_fp32()};
	const float expected[] = {65536.0f, 1.0f};
	for (int i = 0; i < 2; i++) {
		hg_params *params = make(ctx, policies[i]);
		struct hg__step step;
		CHECK_OK(ctx->backend->copy_out(ctx, &step, params->step, sizeof step));
		CHECK(step.scale.scale == expected[i]);
		CHECK_EQ_I(step.step, 0);
		CHECK_EQ_I(step.first_nonfinite, -1);
		CHECK_EQ_I(step.config.enabled, policies[i].loss_scale.enabled);
		hg_params_free(params);
	}
	hg_context_free(ctx);
}

static void bad_arguments_are_refused_by_name(void)
{
	hg_context *ctx = test_context();
	hg_params *params = make(ctx, hg_policy_fp16()), *none = NULL;
	hg_param *w = NULL;
	CHECK_OK(hg_params_add(params, "w", 2, 2, HG_INIT_ZEROS, 0, &w));
	CHECK_STATUS(hg_params_add(params, "w", 2, 2, HG_INIT_ZEROS, 0, &w), HG_ERR_ARG);
	CHECK(w == NULL);
	CHECK_CONTAINS(hg_context_error(ctx), "already a parameter \"w\"");
	CHECK_STATUS(hg_params_add(params, "", 2, 2, HG_INIT_ZEROS, 0, &w), HG_ERR_ARG);
	CHECK_STATUS(hg_params_add(params, "v", 0, 2, HG_INIT_ZEROS, 0, &w), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(ctx), "\"v\" has shape [0, 2]");
	CHECK_STATUS(hg_params_add(params, "v", 2, 2, (hg_init)9, 0, &w), HG_ERR_ARG);
	CHECK_STATUS(hg_params_add(params, "v", 2, 2, HG_INIT_ZEROS, 64u, &w), HG_ERR_ARG);
	CHECK_STATUS(hg_params_add(NULL, "v", 2, 2, HG_INIT_ZEROS, 0, &w), HG_ERR_ARG);
	CHECK_EQ_I(hg_params_count(params), 1);
	hg_policy broken = hg_policy_fp16();
	broken.state = HG_I32;
	CHECK_STATUS(hg_params_create(ctx, &broken, &none), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "policy: state must be HG_F16 or HG_F32");
	broken.size = sizeof broken.size; /* no other field may be read */
	CHECK_STATUS(hg_params_create(ctx, &broken, &none), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "policy: size is not that of hg_policy");
	CHECK_STATUS(hg_params_create(NULL, NULL, &none), HG_ERR_ARG);
	hg_params_free(NULL);
	hg_params_free(params);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(storage_follows_the_policy),
	    TEST(initial_values_are_a_function_of_seed_name_and_place),
	    TEST(set_refuses_what_f16_cannot_hold_and_changes_nothing),
	    TEST(name_of_the_policy_is_copied),
	    TEST(step_state_starts_from_the_policy),
	    TEST(bad_arguments_are_refused_by_name),
	};
	return RUN_TESTS(argc, argv, cases);
}
