#include "nn/snapshot.h"

/* Each tensor starts where an allocation of its own could. */
static size_t place(const hg_param *p)
{
	return hg__aligned(p->master->bytes);
}

hg_status hg__snapshot_init(struct hg__snapshot *s, hg_params *params)
{
	s->params = params;
	s->bytes = 0;
	for (int64_t i = 0; i < params->count; i++)
		s->bytes += place(params->item[i]);
	return hg__device_alloc(params->ctx, s->bytes, "train: best weights", &s->memory);
}

void hg__snapshot_fini(struct hg__snapshot *s)
{
	if (s->params)
		hg__device_free(s->params->ctx, s->memory, s->bytes);
	*s = (struct hg__snapshot){0};
}

hg_status hg__snapshot_save(struct hg__snapshot *s)
{
	hg_context *ctx = s->params->ctx;
	unsigned char *at = s->memory;
	for (int64_t i = 0; i < s->params->count; i++) {
		const hg_param *p = s->params->item[i];
		HG__TRY(ctx->backend->copy(ctx, at, p->master->mat.data, p->master->bytes));
		at += place(p);
	}
	return HG_OK;
}

hg_status hg__snapshot_restore(const struct hg__snapshot *s)
{
	hg_context *ctx = s->params->ctx;
	const unsigned char *at = s->memory;
	for (int64_t i = 0; i < s->params->count; i++) {
		const hg_param *p = s->params->item[i];
		HG__TRY(ctx->backend->copy(ctx, p->master->mat.data, at, p->master->bytes));
		at += place(p);
		if (p->working == p->master)
			continue;
		const struct hg__axpby_args narrow = {.x = p->master->mat, .y = p->working->mat, .alpha = 1.0f};
		HG__TRY(ctx->backend->kernels->axpby(ctx, &narrow));
	}
	return HG_OK;
}
