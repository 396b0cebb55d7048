#include "autograd/param.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/fnv.h"
#include "core/rng.h"
#include "precision/policy.h"

/* Parameters: their storage, their initial values, and the list that holds them.
 *
 * Initial values are W[i, c] = a * (2 u - 1), with u in [0, 1) from the counter-based generator, or
 * a constant. They are computed on the host, so they do not depend on the device. */
static double glorot(int64_t rows, int64_t cols)
{
	return sqrt(6.0 / (double)(rows + cols));
}

static double kaiming(int64_t rows, int64_t cols)
{
	(void)cols;
	return sqrt(1.0 / (double)rows);
}

static const struct {
	double (*limit)(int64_t rows, int64_t cols); /* a; NULL: the constant */
	float constant;
} init_rules[] = {
    [HG_INIT_ZEROS] = {NULL, 0.0f},
    [HG_INIT_ONES] = {NULL, 1.0f},
    [HG_INIT_GLOROT_UNIFORM] = {glorot, 0.0f},
    [HG_INIT_KAIMING_UNIFORM] = {kaiming, 0.0f},
};
#define INIT_RULES ((int)(sizeof init_rules / sizeof init_rules[0]))

/* The random stream depends on the name of the parameter. */
static void initial_values(const hg_param *param, hg_init init, int64_t rows, int64_t cols,
                           float *values)
{
	const uint64_t key = hg__rng_key(
	    hg__rng_key(param->params->seed, hg__fnv(HG__FNV_BEGIN, param->name, strlen(param->name))),
	    (uint64_t)param->index);
	const float a = init_rules[init].limit ? (float)init_rules[init].limit(rows, cols) : 0.0f;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t c = 0; c < cols; c++) {
			const float u = hg__rng_uniform(hg__rng_quad(key, i, (uint32_t)(c / 4), 0).w[c % 4]);
			values[i * cols + c] =
			    init_rules[init].limit ? a * (2.0f * u - 1.0f) : init_rules[init].constant;
		}
}

/* Uploads the optimiser's state before the first step. */
static hg_status upload_step(hg_params *params)
{
	hg_context *ctx = params->ctx;
	struct hg__step step = {.first_nonfinite = -1,
	                        .outgrown = HG__NONE_OUTGROWN,
	                        .outgrown_before = HG__NONE_OUTGROWN,
	                        .config = params->policy.loss_scale,
	                        .rate = 1.0};
	HG__TRY(hg_loss_scale_init(&step.scale, &params->policy.loss_scale));
	void *memory = NULL;
	HG__TRY(hg__device_alloc(ctx, sizeof step, "the loss scale", &memory));
	params->step = memory;
	return ctx->backend->copy_in(ctx, params->step, &step, sizeof step);
}

hg_status hg_params_create(hg_context *context, const hg_policy *policy, hg_params **params)
{
	if (params)
		*params = NULL;
	if (!context || !params)
		return hg__fail(context, HG_ERR_ARG, "hg_params_create: %s is NULL",
		                context ? "params" : "context");
	const hg_policy fp16 = hg_policy_fp16();
	const char *fault = policy ? hg__policy_fault(policy) : NULL;
	if (fault)
		return hg__fail(context, HG_ERR_ARG, "hg_params_create: policy: %s", fault);
	void *memory = NULL;
	HG__TRY(hg__host_alloc(context, 1, sizeof(hg_params), "the parameter list", &memory));
	hg_params *made = memory;
	made->ctx = context;
	hg__context_hold(context);
	made->seed = context->seed;
	made->policy = policy ? *policy : fp16;
	(void)snprintf(made->policy_name, sizeof made->policy_name, "%s", made->policy.name);
	made->policy.name = made->policy_name;
	const hg_status status = upload_step(made);
	if (status < 0) {
		hg_params_free(made);
		return status;
	}
	*params = made;
	return HG_OK;
}

hg_status hg_params_set_seed(hg_params *params, uint64_t seed)
{
	if (!params)
		return HG_ERR_ARG;
	params->seed = seed;
	return HG_OK;
}

static void param_free(hg_param *param)
{
	hg_context *ctx = param->params->ctx;
	hg_tensor_free(param->grad);
	if (param->working != param->master)
		hg_tensor_free(param->working);
	hg_tensor_free(param->master);
	if (param->name)
		hg__host_free(ctx, param->name, strlen(param->name) + 1);
	hg__host_free(ctx, param, sizeof *param);
}

void hg__params_cut(hg_params *params, int64_t count)
{
	while (params->count > count)
		param_free(params->item[--params->count]);
}

void hg_params_free(hg_params *params)
{
	if (!params)
		return;
	hg_context *ctx = params->ctx;
	hg__params_cut(params, 0);
	hg__host_free(ctx, params->promotion,
	              (size_t)params->promotion_capacity * sizeof *params->promotion);
	hg__host_free(ctx, params->item, (size_t)params->capacity * sizeof *params->item);
	hg__device_free(ctx, params->step, sizeof *params->step);
	hg__host_free(ctx, params, sizeof *params);
	hg__context_release(ctx);
}

static hg_status check_add(const hg_params *params, const char *name, int64_t rows, int64_t cols,
                           hg_init init, unsigned flags)
{
	hg_context *ctx = params->ctx;
	if (!name || !*name)
		return hg__fail(ctx, HG_ERR_ARG, "hg_params_add: a parameter needs a name");
	if (hg_params_find(params, name))
		return hg__fail(ctx, HG_ERR_ARG, "hg_params_add: there is already a parameter \"%s\"",
		                name);
	if (rows < 1 || cols < 1)
		return hg__fail(
		    ctx, HG_ERR_SHAPE,
		    "hg_params_add: parameter \"%s\" has shape [%lld, %lld], expected at least [1, 1]",
		    name, (long long)rows, (long long)cols);
	if ((int)init < 0 || (int)init >= INIT_RULES)
		return hg__fail(ctx, HG_ERR_ARG,
		                "hg_params_add: parameter \"%s\" has initialisation %d, expected 0 to %d",
		                name, (int)init, INIT_RULES - 1);
	if (flags & ~(HG_PARAM_F32 | HG_PARAM_BUFFER))
		return hg__fail(ctx, HG_ERR_ARG, "hg_params_add: parameter \"%s\" has unknown flags 0x%x",
		                name, flags);
	return HG_OK;
}

/* Storage of a parameter: the master, a working copy if its type differs, and a gradient unless it
 * is a buffer. */
static hg_status build_param(hg_param *param, const char *name, int64_t rows, int64_t cols,
                             unsigned flags)
{
	hg_context *ctx = param->params->ctx;
	const hg_dtype working = flags & HG_PARAM_F32 ? HG_F32 : param->params->policy.state;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, strlen(name) + 1, 1, "a parameter's name", &memory));
	param->name = memcpy(memory, name, strlen(name) + 1);
	param->flags = flags;
	HG__TRY(hg_tensor_create(ctx, HG_F32, rows, cols, &param->master));
	if (working == HG_F32)
		param->working = param->master;
	else
		HG__TRY(hg_tensor_create(ctx, working, rows, cols, &param->working));
	return flags & HG_PARAM_BUFFER ? HG_OK
	                               : hg_tensor_create(ctx, HG_F32, rows, cols, &param->grad);
}

static hg_status fill_initial(hg_param *param, hg_init init)
{
	hg_context *ctx = param->params->ctx;
	const int64_t rows = param->master->mat.rows, cols = param->master->mat.cols;
	void *values = NULL;
	HG__TRY(hg__host_alloc(ctx, (size_t)(rows * cols), sizeof(float), param->name, &values));
	initial_values(param, init, rows, cols, values);
	const hg_status status = hg_param_set(param, values);
	hg__host_free(ctx, values, (size_t)(rows * cols) * sizeof(float));
	return status;
}

hg_status hg_params_add(hg_params *params, const char *name, int64_t rows, int64_t cols,
                        hg_init init, unsigned flags, hg_param **param)
{
	if (param)
		*param = NULL;
	if (!params)
		return HG_ERR_ARG;
	HG__TRY(check_add(params, name, rows, cols, init, flags));
	void *list = params->item, *memory = NULL;
	const hg_status grown = hg__host_grow(params->ctx, &list, sizeof *params->item, params->count,
	                                      &params->capacity, "the parameter list");
	params->item = list;
	HG__TRY(grown);
	HG__TRY(hg__host_alloc(params->ctx, 1, sizeof(hg_param), name, &memory));
	hg_param *made = memory;
	made->params = params;
	made->index = params->count;
	made->reach = INFINITY;
	hg_status status = build_param(made, name, rows, cols, flags);
	if (status >= 0)
		status = fill_initial(made, init);
	if (status < 0) {
		param_free(made);
		return status;
	}
	params->item[params->count++] = made;
	if (param)
		*param = made;
	return HG_OK;
}

hg_context *hg_params_context(const hg_params *params)
{
	return params ? params->ctx : NULL;
}

const hg_policy *hg_params_policy(const hg_params *params)
{
	return params ? &params->policy : NULL;
}

int64_t hg_params_count(const hg_params *params)
{
	return params ? params->count : 0;
}

hg_param *hg_params_at(const hg_params *params, int64_t index)
{
	return params && index >= 0 && index < params->count ? params->item[index] : NULL;
}

hg_param *hg_params_find(const hg_params *params, const char *name)
{
	for (int64_t i = 0; params && name && i < params->count; i++)
		if (strcmp(params->item[i]->name, name) == 0)
			return params->item[i];
	return NULL;
}

const char *hg_param_name(const hg_param *param)
{
	return param ? param->name : "";
}

unsigned hg_param_flags(const hg_param *param)
{
	return param ? param->flags : 0;
}

hg_tensor *hg_param_master(hg_param *param)
{
	return param ? param->master : NULL;
}

hg_tensor *hg_param_working(hg_param *param)
{
	return param ? param->working : NULL;
}

hg_tensor *hg_param_grad(hg_param *param)
{
	return param ? param->grad : NULL;
}

/* The working copy is set first: its upload fails if a value does not fit into f16, and then
 * nothing has changed. */
hg_status hg_param_set(hg_param *param, const float *values)
{
	if (!param)
		return HG_ERR_ARG;
	if (!values)
		return hg__fail(param->params->ctx, HG_ERR_ARG, "hg_param_set: values of \"%s\" is NULL",
		                param->name);
	if (param->working != param->master)
		HG__TRY(hg_tensor_upload(param->working, values, HG_F32));
	return hg_tensor_upload(param->master, values, HG_F32);
}
