#include "nn/best.h"

static hg_status make_pieces(struct hg__best *b, const hg_params *params)
{
	static const char what[] = "train: a table of weights";
	HG__TRY(hg__buffer_host(params->ctx, params->count, sizeof(struct hg__piece), what,
	                        &b->host_pieces));
	struct hg__piece *piece = b->host_pieces.data;
	for (int64_t i = 0; i < params->count; i++) {
		const hg_tensor *master = params->item[i]->master;
		piece[i] = (struct hg__piece){hg__saved_master(&b->weights, i), master->mat.data,
		                              (int64_t)(master->bytes / sizeof(float))};
	}
	return hg__buffer_upload(params->ctx, params->count, sizeof *piece, piece, what, &b->pieces);
}

/* A group of epochs copies the best weights even before there is a best epoch, so they need a
 * value. */
hg_status hg__best_init(struct hg__best *b, hg_params *params)
{
	const struct hg__live live = {.params = params};
	const struct hg__buffer *block = &b->weights.block;
	HG__TRY(hg__saved_init(&b->weights, &live, HG__SAVED_BEST, 0, "train: best weights"));
	HG__TRY(make_pieces(b, params));
	return params->ctx->backend->fill(params->ctx, block->data, 0, block->bytes);
}

void hg__best_fini(struct hg__best *b)
{
	const hg_params *params = b->weights.live.params;
	if (params) {
		hg__buffer_free(params->ctx, &b->host_pieces);
		hg__buffer_free(params->ctx, &b->pieces);
	}
	hg__saved_fini(&b->weights);
}

hg_status hg__best_save_if(const struct hg__best *b, const int32_t *flag)
{
	const hg_params *params = b->weights.live.params;
	const struct hg__copy_if_args args = {flag, b->pieces.data, b->host_pieces.data, params->count};
	return params->ctx->backend->kernels->copy_if.run(params->ctx, &args);
}

static hg_status swap_all(const struct hg__best *b, void *aside)
{
	const hg_params *params = b->weights.live.params;
	hg_context *ctx = params->ctx;
	for (int64_t i = 0; i < params->count; i++) {
		const hg_param *p = params->item[i];
		void *kept = hg__saved_master(&b->weights, i), *live = p->master->mat.data;
		const size_t bytes = p->master->bytes;
		HG__TRY(ctx->backend->copy_out(ctx, aside, live, bytes));
		HG__TRY(ctx->backend->copy(ctx, live, kept, bytes));
		HG__TRY(ctx->backend->copy_in(ctx, kept, aside, bytes));
		HG__TRY(hg__param_narrow(p));
	}
	return HG_OK;
}

/* Goes through host memory as large as the largest tensor, so it takes no more device memory. */
hg_status hg__best_swap(const struct hg__best *b)
{
	const hg_params *params = b->weights.live.params;
	struct hg__buffer aside = {0};
	size_t largest = 0;
	for (int64_t i = 0; i < params->count; i++)
		largest =
		    params->item[i]->master->bytes > largest ? params->item[i]->master->bytes : largest;
	HG__TRY(hg__buffer_host(params->ctx, (int64_t)largest, 1, "train: last weights", &aside));
	const hg_status status = swap_all(b, aside.data);
	hg__buffer_free(params->ctx, &aside);
	return status;
}
