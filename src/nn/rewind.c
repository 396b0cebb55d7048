#include "nn/rewind.h"

#include "nn/optim/optim.h"

hg_status hg__rewind_init(struct hg__rewind *r, hg_optim *optim, struct hg__watch *watch)
{
	hg_context *ctx = optim->params->ctx;
	r->optim = optim;
	r->watch = watch;
	if (watch)
		HG__TRY(hg__device_alloc(ctx, watch->state.bytes, "train: observations to return to", &r->seen));
	HG__TRY(hg__snapshot_init(&r->weights, optim->params));
	HG__TRY(hg__device_alloc(ctx, optim->moments_bytes, "train: moments to return to", &r->moments));
	return hg__device_alloc(ctx, sizeof *optim->params->step, "train: loss scale to return to", &r->step);
}

void hg__rewind_fini(struct hg__rewind *r)
{
	if (!r->optim)
		return;
	hg_context *ctx = r->optim->params->ctx;
	if (r->watch)
		hg__device_free(ctx, r->seen, r->watch->state.bytes);
	hg__device_free(ctx, r->step, sizeof *r->optim->params->step);
	hg__device_free(ctx, r->moments, r->optim->moments_bytes);
	hg__snapshot_fini(&r->weights);
	*r = (struct hg__rewind){0};
}

hg_status hg__rewind_save(struct hg__rewind *r)
{
	hg_context *ctx = r->optim->params->ctx;
	HG__TRY(hg__snapshot_save(&r->weights));
	if (r->watch)
		HG__TRY(ctx->backend->copy(ctx, r->seen, r->watch->state.data, r->watch->state.bytes));
	HG__TRY(ctx->backend->copy(ctx, r->moments, r->optim->moments, r->optim->moments_bytes));
	return ctx->backend->copy(ctx, r->step, r->optim->params->step, sizeof *r->optim->params->step);
}

hg_status hg__rewind_restore(const struct hg__rewind *r)
{
	hg_context *ctx = r->optim->params->ctx;
	HG__TRY(hg__snapshot_restore(&r->weights));
	if (r->watch)
		HG__TRY(ctx->backend->copy(ctx, r->watch->state.data, r->seen, r->watch->state.bytes));
	HG__TRY(ctx->backend->copy(ctx, r->optim->moments, r->moments, r->optim->moments_bytes));
	return ctx->backend->copy(ctx, r->optim->params->step, r->step, sizeof *r->optim->params->step);
}
