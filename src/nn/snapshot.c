#include "nn/snapshot.h"

/* Each tensor is aligned like an allocation of its own. */
static size_t aligned_bytes(const hg_param *p)
{
	return hg__aligned(p->master->bytes);
}

static hg_status make_pieces(struct hg__snapshot *s)
{
	hg_context *ctx = s->params->ctx;
	unsigned char *at = s->memory;
	HG__TRY(hg__buffer_host(ctx, s->params->count, sizeof(struct hg__piece),
	                        "train: a table of weights", &s->host_pieces));
	struct hg__piece *piece = s->host_pieces.data;
	for (int64_t i = 0; i < s->params->count; i++) {
		const hg_param *p = s->params->item[i];
		piece[i] = (struct hg__piece){(float *)(void *)at, p->master->mat.data,
		                              (int64_t)(p->master->bytes / sizeof(float))};
		at += aligned_bytes(p);
	}
	return hg__buffer_upload(ctx, s->params->count, sizeof *piece, piece,
	                         "train: a table of weights", &s->pieces);
}

hg_status hg__snapshot_init(struct hg__snapshot *s, hg_params *params)
{
	s->params = params;
	s->bytes = 0;
	for (int64_t i = 0; i < params->count; i++)
		s->bytes += aligned_bytes(params->item[i]);
	HG__TRY(hg__device_alloc(params->ctx, s->bytes, "train: best weights", &s->memory));
	return make_pieces(s);
}

void hg__snapshot_fini(struct hg__snapshot *s)
{
	if (s->params) {
		hg__device_free(s->params->ctx, s->memory, s->bytes);
		hg__buffer_free(s->params->ctx, &s->host_pieces);
		hg__buffer_free(s->params->ctx, &s->pieces);
	}
	*s = (struct hg__snapshot){0};
}

hg_status hg__snapshot_save_if(struct hg__snapshot *s, const int32_t *flag)
{
	const struct hg__copy_if_args args = {flag, s->pieces.data, s->host_pieces.data,
	                                      s->params->count};
	return s->params->ctx->backend->kernels->copy_if(s->params->ctx, &args);
}

hg_status hg__snapshot_save(struct hg__snapshot *s)
{
	hg_context *ctx = s->params->ctx;
	unsigned char *at = s->memory;
	for (int64_t i = 0; i < s->params->count; i++) {
		const hg_param *p = s->params->item[i];
		HG__TRY(ctx->backend->copy(ctx, at, p->master->mat.data, p->master->bytes));
		at += aligned_bytes(p);
	}
	return HG_OK;
}

hg_status hg__param_narrow(const hg_param *p)
{
	hg_context *ctx = p->params->ctx;
	const struct hg__axpby_args narrow = {.x = p->master->mat, .y = p->working->mat, .alpha = 1.0f};
	return p->working == p->master ? HG_OK : ctx->backend->kernels->axpby(ctx, &narrow);
}

hg_status hg__snapshot_restore(const struct hg__snapshot *s)
{
	hg_context *ctx = s->params->ctx;
	const unsigned char *at = s->memory;
	for (int64_t i = 0; i < s->params->count; i++) {
		const hg_param *p = s->params->item[i];
		HG__TRY(ctx->backend->copy(ctx, p->master->mat.data, at, p->master->bytes));
		HG__TRY(hg__param_narrow(p));
		at += aligned_bytes(p);
	}
	return HG_OK;
}

struct hg__mat hg__snapshot_mat(const struct hg__snapshot *s, int64_t index)
{
	struct hg__mat mat = s->params->item[index]->master->mat;
	unsigned char *at = s->memory;
	for (int64_t i = 0; i < index; i++)
		at += aligned_bytes(s->params->item[i]);
	mat.data = at;
	return mat;
}

/* Goes through host memory as large as the largest tensor, so it takes no more device memory. */
hg_status hg__snapshot_swap(struct hg__snapshot *s)
{
	hg_context *ctx = s->params->ctx;
	size_t largest = 0;
	void *aside = NULL;
	for (int64_t i = 0; i < s->params->count; i++)
		largest = s->params->item[i]->master->bytes > largest ? s->params->item[i]->master->bytes
		                                                      : largest;
	HG__TRY(hg__host_alloc(ctx, largest, 1, "train: last weights", &aside));
	hg_status status = HG_OK;
	for (int64_t i = 0; status >= 0 && i < s->params->count; i++) {
		const hg_param *p = s->params->item[i];
		const struct hg__mat kept = hg__snapshot_mat(s, i);
		status = ctx->backend->copy_out(ctx, aside, p->master->mat.data, p->master->bytes);
		if (status >= 0)
			status = ctx->backend->copy(ctx, p->master->mat.data, kept.data, p->master->bytes);
		if (status >= 0)
			status = ctx->backend->copy_in(ctx, kept.data, aside, p->master->bytes);
		if (status >= 0)
			status = hg__param_narrow(p);
	}
	hg__host_free(ctx, aside, largest);
	return status;
}
