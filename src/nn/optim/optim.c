/* Optimisers on f32 masters. g: unscaled, clipped gradient; w: master; t: number of applied steps,
 * this one included.
 *
 *     SGD     g += wd w;  m = mu m + g (m = g at first);  w -= lr (nesterov ? g + mu m : m)
 *             (without momentum: w -= lr g)
 *     Adam    g += wd w;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w -= lr (m /
 *             (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 *     AdamW   w -= lr wd w, then Adam without wd
 *
 * The kernels (optim_update) do the arithmetic; this file makes the tables that they read. A step
 * is two kernels, and the host does not wait for either. */
#include "nn/optim/optim.h"

#include <math.h>

#include "core/versioned.h"

static int moments_per_tensor(const hg_optim_config *c)
{
	return c->kind == HG_SGD ? c->momentum > 0.0f : 2;
}

/* Moments of different tensors never share a cache line. */
static size_t moment_bytes(const struct hg__optim_tensor *t)
{
	return hg__aligned((size_t)(t->rows * t->ld) * sizeof(float));
}

/* One row of the table: the addresses of the parameter's master, working copy and gradient. */
static struct hg__optim_tensor table_row(const hg_param *p)
{
	const struct hg__mat *master = &p->master->mat;
	return (struct hg__optim_tensor){.master = master->data,
	                                 .grad = p->grad->mat.data,
	                                 .working =
	                                     p->working == p->master ? NULL : p->working->mat.data,
	                                 .rows = master->rows,
	                                 .cols = master->cols,
	                                 .ld = master->ld,
	                                 .working_dtype = p->working->mat.dtype,
	                                 .reach = (float)p->reach,
	                                 .group = 0};
}

static hg_status tensors_collect(hg_optim *o)
{
	hg_context *ctx = o->params->ctx;
	const size_t most = (size_t)o->params->count;
	void *memory = NULL;
	o->params_seen = o->params->count;
	HG__TRY(hg__host_alloc(ctx, most, sizeof *o->tensor, "optim: tensor table", &memory));
	o->tensor = memory;
	HG__TRY(hg__host_alloc(ctx, most, sizeof(hg_param *), "optim: parameters", &memory));
	o->param = memory;
	for (int64_t i = 0; i < o->params->count; i++) {
		hg_param *p = o->params->item[i];
		if (p->flags & HG_PARAM_BUFFER)
			continue;
		o->param[o->count] = p;
		o->tensor[o->count++] = table_row(p);
	}
	return HG_OK;
}

/* Makes one allocation for all moments and clears it. */
static hg_status moments_place(hg_optim *o)
{
	hg_context *ctx = o->params->ctx;
	const int each = moments_per_tensor(&o->config);
	for (int64_t i = 0; i < o->count; i++)
		o->moments_bytes += (size_t)each * moment_bytes(&o->tensor[i]);
	HG__TRY(hg__device_alloc(ctx, o->moments_bytes, "optim: moments", &o->moments));
	unsigned char *at = o->moments;
	for (int64_t i = 0; at && i < o->count; i++) {
		struct hg__optim_tensor *t = &o->tensor[i];
		t->m = (float *)(void *)at;
		at += moment_bytes(t);
		if (each < 2)
			continue;
		t->v = (float *)(void *)at;
		at += moment_bytes(t);
	}
	return o->moments ? ctx->backend->fill(ctx, o->moments, 0, o->moments_bytes) : HG_OK;
}

static hg_status tensors_upload(hg_optim *o)
{
	hg_context *ctx = o->params->ctx;
	return o->count ? ctx->backend->copy_in(ctx, o->tensor_device, o->tensor,
	                                        (size_t)o->count * sizeof *o->tensor)
	                : HG_OK;
}

hg_status hg__optim_groups_upload(hg_optim *o)
{
	hg_context *ctx = o->params->ctx;
	return ctx->backend->copy_in(ctx, o->group_device, o->group,
	                             (size_t)o->groups * sizeof *o->group);
}

/* Appends to the group tables. On failure the old tables stay. */
static hg_status group_append(hg_optim *o, struct hg__optim_group group)
{
	hg_context *ctx = o->params->ctx;
	const size_t before = (size_t)o->groups * sizeof group, after = before + sizeof group;
	void *host = NULL, *device = NULL;
	HG__TRY(hg__host_alloc(ctx, (size_t)o->groups + 1, sizeof group, "optim: groups", &host));
	const hg_status status = hg__device_alloc(ctx, after, "optim: groups", &device);
	if (status < 0) {
		hg__host_free(ctx, host, after);
		return status;
	}
	struct hg__optim_group *grown = host;
	for (int i = 0; i < o->groups; i++)
		grown[i] = o->group[i];
	grown[o->groups] = group;
	hg__host_free(ctx, o->group, before);
	hg__device_free(ctx, o->group_device, before);
	o->group = grown;
	o->group_device = device;
	o->groups++;
	return hg__optim_groups_upload(o);
}

/* An element whose gradients have all been 0 is updated by 0 / 0; in f16 small gradients become
 * 0. */
static void warn_of_eps(const hg_optim *o)
{
	if (o->config.kind != HG_SGD && !(o->config.eps > 0.0f) && o->params->policy.state == HG_F16)
		hg__log(
		    o->params->ctx, HG_LOG_WARN,
		    "optim: eps is 0: a weight whose gradients have all been 0 in f16 becomes NaN (0 / 0); "
		    "PyTorch's eps is 1e-8");
}

static struct hg__optim_args args_of(const hg_optim *optim)
{
	const struct hg__optim_args args = {.config = optim->config,
	                                    .tensors = optim->tensor_device,
	                                    .host = optim->tensor,
	                                    .count = optim->count,
	                                    .groups = optim->group_device,
	                                    .step = optim->params->step};
	return args;
}

static hg_status build_optim(hg_optim *o)
{
	hg_context *ctx = o->params->ctx;
	HG__TRY(tensors_collect(o));
	HG__TRY(moments_place(o));
	HG__TRY(hg__device_alloc(ctx, (size_t)o->count * sizeof *o->tensor, "optim: tensor table",
	                         &o->tensor_device));
	HG__TRY(tensors_upload(o));
	/* allocated now, so that no step allocates */
	void *workspace = NULL;
	const struct hg__optim_args args = args_of(o);
	HG__TRY(
	    hg__workspace(ctx, ctx->backend->kernels->grad_check.workspace(ctx, &args), &workspace));
	return group_append(o, (struct hg__optim_group){o->config.lr, o->config.weight_decay});
}

hg_status hg_optim_create(hg_params *params, const hg_optim_config *config, hg_optim **out)
{
	if (!params)
		return HG_ERR_ARG;
	hg_context *ctx = params->ctx;
	if (!config || !out)
		return hg__fail(ctx, HG_ERR_ARG, "optim: %s is NULL", config ? "optim" : "config");
	*out = NULL;
	hg_optim_config ours = HG_OPTIM_CONFIG_INIT;
	if (!hg__struct_read(&ours, sizeof ours, config))
		return hg__fail(ctx, HG_ERR_ARG,
		                "optim: config.size is not set (start from HG_OPTIM_CONFIG_INIT), or a "
		                "field unknown to this version is used");
	HG__TRY(hg__optim_check(ctx, &ours));
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_optim), "optim", &memory));
	hg_optim *optim = memory;
	optim->params = params;
	optim->config = ours;
	optim->schedule = (hg_schedule_config)HG_SCHEDULE_CONFIG_INIT;
	const hg_status status = build_optim(optim);
	if (status < 0) {
		hg_optim_free(optim);
		return status;
	}
	warn_of_eps(optim);
	*out = optim;
	return HG_OK;
}

void hg_optim_free(hg_optim *optim)
{
	if (!optim)
		return;
	hg_context *ctx = optim->params->ctx;
	const size_t groups = (size_t)optim->groups * sizeof *optim->group,
	             seen = (size_t)optim->params_seen;
	hg__device_free(ctx, optim->group_device, groups);
	hg__device_free(ctx, optim->tensor_device, (size_t)optim->count * sizeof *optim->tensor);
	hg__device_free(ctx, optim->moments, optim->moments_bytes);
	hg__host_free(ctx, optim->group, groups);
	hg__host_free(ctx, optim->param, seen * sizeof *optim->param);
	hg__host_free(ctx, optim->tensor, seen * sizeof *optim->tensor);
	hg__host_free(ctx, optim, sizeof *optim);
}

hg_status hg_optim_add_group(hg_optim *optim, float lr, float weight_decay, int *group)
{
	if (!optim)
		return HG_ERR_ARG;
	hg_context *ctx = optim->params->ctx;
	hg_optim_config like = optim->config;
	like.lr = lr;
	like.weight_decay = weight_decay;
	if (!group)
		return hg__fail(ctx, HG_ERR_ARG, "optim_add_group: group is NULL");
	HG__TRY(hg__optim_check(ctx, &like));
	HG__TRY(group_append(optim, (struct hg__optim_group){lr, weight_decay}));
	*group = optim->groups - 1;
	return HG_OK;
}

static hg_status group_check(const hg_optim *optim, const char *who, int group)
{
	if (group < 0 || group >= optim->groups)
		return hg__fail(optim->params->ctx, HG_ERR_ARG, "%s: group is %d, there are %d", who, group,
		                optim->groups);
	return HG_OK;
}

hg_status hg_optim_assign(hg_optim *optim, const hg_param *param, int group)
{
	if (!optim)
		return HG_ERR_ARG;
	HG__TRY(group_check(optim, "optim_assign", group));
	for (int64_t i = 0; i < optim->count; i++) {
		if (optim->param[i] != param)
			continue;
		optim->tensor[i].group = group;
		return tensors_upload(optim);
	}
	return hg__fail(optim->params->ctx, HG_ERR_ARG,
	                "optim_assign: parameter %s is not one that this optimiser updates",
	                param ? param->name : "(null)");
}

hg_status hg_optim_set_lr(hg_optim *optim, int group, float lr)
{
	if (!optim)
		return HG_ERR_ARG;
	hg_optim_config like = optim->config;
	like.lr = lr;
	HG__TRY(group_check(optim, "optim_set_lr", group));
	HG__TRY(hg__optim_check(optim->params->ctx, &like));
	optim->group[group].lr = lr;
	return hg__optim_groups_upload(optim);
}

/* Uploads the reaches again if a tape was recorded with new ones. Then no tensor is known to have
 * outgrown its reach. */
static hg_status reaches_renew(hg_optim *o)
{
	static const int32_t none = HG__NONE_OUTGROWN;
	hg_context *ctx = o->params->ctx;
	if (o->reaches_seen == o->params->reaches)
		return HG_OK;
	for (int64_t i = 0; i < o->count; i++)
		o->tensor[i].reach = (float)o->param[i]->reach;
	HG__TRY(tensors_upload(o));
	HG__TRY(ctx->backend->copy_in(ctx, &o->params->step->outgrown, &none, sizeof none));
	o->reaches_seen = o->params->reaches;
	return HG_OK;
}

hg_status hg__optim_ready(hg_optim *optim)
{
	if (optim->params->count == optim->params_seen)
		return reaches_renew(optim);
	return hg__fail(optim->params->ctx, HG_ERR_STATE,
	                "optim_step: params has %lld entries, %lld when the optimiser was made",
	                (long long)optim->params->count, (long long)optim->params_seen);
}

hg_status hg__optim_check_grads(hg_optim *optim)
{
	hg_context *ctx = optim->params->ctx;
	const struct hg__optim_args args = args_of(optim);
	HG__TRY(hg__optim_ready(optim));
	optim->params->overflow_pending = 0; /* the check consumes the overflow flag */
	return ctx->backend->kernels->grad_check.run(ctx, &args);
}

hg_status hg__optim_apply(hg_optim *optim, const float *loss, struct hg__step_notes *notes,
                          unsigned stops)
{
	hg_context *ctx = optim->params->ctx;
	struct hg__optim_args args = args_of(optim);
	args.loss = loss;
	args.notes = notes;
	args.stops = stops;
	return ctx->backend->kernels->optim_update.run(ctx, &args);
}

hg_status hg_optim_step(hg_optim *optim)
{
	if (!optim)
		return HG_ERR_ARG;
	HG__TRY(hg__optim_check_grads(optim));
	return hg__optim_apply(optim, NULL, NULL, 0);
}

hg_status hg__optim_report(const hg_optim *optim, const struct hg__step_note *note, const char *who,
                           hg_step_info *info)
{
	hg_context *ctx = optim->params->ctx;
	hg_step_info ours = HG_STEP_INFO_INIT;
	if (!info)
		return hg__fail(ctx, HG_ERR_ARG, "%s: info is NULL", who);
	const hg_step_reason reason = (hg_step_reason)note->reason;
	ours.applied = note->steps > 0 && (reason == HG_STEP_APPLIED || reason == HG_STEP_APPLIED_GREW);
	ours.reason = reason;
	ours.loss_scale = note->scale;
	ours.grad_norm = sqrt(note->grad_sq);
	ours.nonfinite = note->nonfinite;
	ours.steps = note->steps;
	ours.skipped = note->skipped;
	ours.outgrown = note->outgrown < optim->count ? optim->param[note->outgrown]->name : NULL;
	ours.overflow_node = hg__overflow_node(note->overflow_found);
	ours.overflow_amax = hg__overflow_amax(note->overflow_found);
	ours.lr_factor = note->rate;
	ours.first_nonfinite = note->first_nonfinite >= 0 && note->first_nonfinite < optim->count
	                           ? optim->param[note->first_nonfinite]->name
	                           : NULL;
	return hg__struct_write(info, &ours, sizeof ours)
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_ARG,
	                      "%s: info->size is not set: start from HG_STEP_INFO_INIT", who);
}

hg_status hg_optim_info(hg_optim *optim, hg_step_info *info)
{
	if (!optim)
		return HG_ERR_ARG;
	hg_context *ctx = optim->params->ctx;
	struct hg__step step;
	HG__TRY(ctx->backend->copy_out(ctx, &step, optim->params->step, sizeof step));
	const struct hg__step_note note = hg__step_note_of(&step, 0.0f);
	return hg__optim_report(optim, &note, "optim_info", info);
}
