#include "doctor/saved_state.h"

/* The copy is one block on the device. Each piece in it is aligned as an allocation would be. */

struct piece {
	void *data;
	size_t bytes;
};
enum { PIECES_OF_PARAM = 3 };

static struct piece of_tensor(const hg_tensor *tensor)
{
	const struct piece piece = {tensor ? tensor->mat.data : NULL, tensor ? tensor->bytes : 0};
	return piece;
}

/* Piece i: three pieces of each parameter, then the moments, then the step counters. Returns 0 if i
 * is past the last piece. */
static int piece_at(const struct hg__saved_state *saved, int64_t i, struct piece *piece)
{
	const int64_t n = PIECES_OF_PARAM * saved->params->count;
	if (i < n) {
		const hg_param *p = saved->params->item[i / PIECES_OF_PARAM];
		const hg_tensor *const of[PIECES_OF_PARAM] = {
		    p->master, p->working == p->master ? NULL : p->working, p->grad};
		*piece = of_tensor(of[i % PIECES_OF_PARAM]);
		return 1;
	}
	if (i == n)
		*piece = saved->optim ? (struct piece){saved->optim->moments, saved->optim->moments_bytes}
		                      : (struct piece){NULL, 0};
	else
		*piece = (struct piece){saved->params->step, sizeof *saved->params->step};
	return i <= n + 1;
}

static hg_status copy_all(const struct hg__saved_state *saved, int restore)
{
	hg_context *ctx = saved->params->ctx;
	struct piece piece;
	char *at = saved->memory;
	for (int64_t i = 0; piece_at(saved, i, &piece); i++) {
		if (!piece.bytes || !piece.data)
			continue;
		HG__TRY(restore ? ctx->backend->copy(ctx, piece.data, at, piece.bytes)
		                : ctx->backend->copy(ctx, at, piece.data, piece.bytes));
		at += hg__aligned(piece.bytes);
	}
	return HG_OK;
}

hg_status hg__saved_state_open(struct hg__saved_state *saved, hg_params *params, hg_optim *optim)
{
	struct piece piece;
	*saved = (struct hg__saved_state){params, optim, NULL, 0};
	for (int64_t i = 0; piece_at(saved, i, &piece); i++)
		saved->bytes += piece.data ? hg__aligned(piece.bytes) : 0;
	hg_status status = hg__device_alloc(params->ctx, saved->bytes, "doctor: the state to return to",
	                                    &saved->memory);
	if (status >= 0)
		status = copy_all(saved, 0);
	if (status < 0) {
		hg__device_free(params->ctx, saved->memory, saved->bytes);
		*saved = (struct hg__saved_state){0};
	}
	return status;
}

hg_status hg__saved_state_close(struct hg__saved_state *saved)
{
	if (!saved->params)
		return HG_OK;
	const hg_status status = copy_all(saved, 1);
	hg__device_free(saved->params->ctx, saved->memory, saved->bytes);
	*saved = (struct hg__saved_state){0};
	return status;
}
