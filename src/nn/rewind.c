#include "nn/rewind.h"

#include "nn/optim/optim.h"

hg_status hg__rewind_init(struct hg__rewind *r, hg_optim *optim, const struct hg__watch *watch,
                          const struct hg__snapshot *best, struct hg__board *board)
{
	hg_context *ctx = optim->params->ctx;
	const struct hg__rewind_piece pieces[] = {
	    {optim->moments, NULL, optim->moments_bytes},
	    {optim->params->step, NULL, sizeof *optim->params->step},
	    {best->memory, NULL, best->bytes},
	    {board, NULL, sizeof *board},
	    {watch ? watch->state.data : NULL, NULL, watch ? watch->state.bytes : 0}};
	r->optim = optim;
	HG__TRY(hg__snapshot_init(&r->weights, optim->params));
	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		if (!pieces[i].bytes)
			continue;
		r->piece[r->pieces] = pieces[i];
		HG__TRY(hg__device_alloc(ctx, pieces[i].bytes, "train: a state to return to",
		                         &r->piece[r->pieces].kept));
		r->pieces++;
	}
	return HG_OK;
}

void hg__rewind_fini(struct hg__rewind *r)
{
	if (!r->optim)
		return;
	for (int i = 0; i < r->pieces; i++)
		hg__device_free(r->optim->params->ctx, r->piece[i].kept, r->piece[i].bytes);
	hg__snapshot_fini(&r->weights);
	*r = (struct hg__rewind){0};
}

hg_status hg__rewind_save(struct hg__rewind *r)
{
	hg_context *ctx = r->optim->params->ctx;
	HG__TRY(hg__snapshot_save(&r->weights));
	for (int i = 0; i < r->pieces; i++)
		HG__TRY(ctx->backend->copy(ctx, r->piece[i].kept, r->piece[i].live, r->piece[i].bytes));
	return HG_OK;
}

hg_status hg__rewind_restore(const struct hg__rewind *r)
{
	hg_context *ctx = r->optim->params->ctx;
	HG__TRY(hg__snapshot_restore(&r->weights));
	for (int i = 0; i < r->pieces; i++)
		HG__TRY(ctx->backend->copy(ctx, r->piece[i].live, r->piece[i].kept, r->piece[i].bytes));
	return HG_OK;
}
