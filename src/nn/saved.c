#include "nn/saved.h"

/* ---- the parts ---- */

static struct hg__live_piece piece_of(const hg_tensor *tensor)
{
	return tensor ? (struct hg__live_piece){tensor->mat.data, tensor->bytes}
	              : (struct hg__live_piece){NULL, 0};
}

static struct hg__live_piece find_master(const struct hg__live *live, int64_t i)
{
	return piece_of(live->params->item[i]->master);
}

static struct hg__live_piece find_working(const struct hg__live *live, int64_t i)
{
	const hg_param *p = live->params->item[i];
	return piece_of(p->working == p->master ? NULL : p->working);
}

static struct hg__live_piece find_grad(const struct hg__live *live, int64_t i)
{
	return piece_of(live->params->item[i]->grad);
}

static struct hg__live_piece find_moments(const struct hg__live *live, int64_t i)
{
	const hg_optim *o = live->optim;
	(void)i;
	return o ? (struct hg__live_piece){o->moments, o->moments_bytes}
	         : (struct hg__live_piece){NULL, 0};
}

static struct hg__live_piece find_step(const struct hg__live *live, int64_t i)
{
	(void)i;
	return (struct hg__live_piece){live->params->step, sizeof *live->params->step};
}

static struct hg__live_piece find_best(const struct hg__live *live, int64_t i)
{
	const struct hg__saved *best = live->best;
	(void)i;
	return best ? (struct hg__live_piece){best->block.data, best->block.bytes}
	            : (struct hg__live_piece){NULL, 0};
}

static struct hg__live_piece find_board(const struct hg__live *live, int64_t i)
{
	(void)i;
	return (struct hg__live_piece){live->board, live->board ? sizeof *live->board : 0};
}

static struct hg__live_piece find_watch(const struct hg__live *live, int64_t i)
{
	const struct hg__watch *w = live->watch;
	(void)i;
	return w ? (struct hg__live_piece){w->state.data, w->state.bytes}
	         : (struct hg__live_piece){NULL, 0};
}

enum { EVERY = HG__SAVED_BEST | HG__SAVED_FORWARD | HG__SAVED_GROUP | HG__SAVED_REPLAY };

/* Every part, with the uses that copy it. A use leaves out a part that it does not change, or that
 * it makes again from another part. */
static const struct part {
	unsigned uses;
	int per_param; /* 1: a piece of each parameter; 0: one piece */
	struct hg__live_piece (*find)(const struct hg__live *live, int64_t i);
} parts[] = {
    /* masters; running statistics, which a forward pass moves, are among them. They come first:
     * hg__saved_master */
    {EVERY, 1, find_master},
    /* working copies: a replay may change them alone, other uses narrow the masters again */
    {HG__SAVED_REPLAY, 1, find_working},
    /* gradients: a step makes its own */
    {HG__SAVED_REPLAY, 1, find_grad},
    /* moments of the optimiser */
    {HG__SAVED_GROUP | HG__SAVED_REPLAY, 0, find_moments},
    /* what goes from step to step: loss scale, counters, overflow flag, stop */
    {HG__SAVED_GROUP | HG__SAVED_REPLAY, 0, find_step},
    /* weights of the best epoch and scores of the evaluations: a replay evaluates nothing */
    {HG__SAVED_GROUP, 0, find_best},
    {HG__SAVED_GROUP, 0, find_board},
    /* counts of the observer: a replay has none */
    {HG__SAVED_GROUP, 0, find_watch},
};

hg_status hg__live_visit(const struct hg__live *live, enum hg__saved_use use, hg__piece_fn visit,
                         void *user)
{
	size_t offset = 0;
	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
		if (!(parts[k].uses & use))
			continue;
		const int64_t count = parts[k].per_param ? live->params->count : 1;
		for (int64_t i = 0; i < count; i++) {
			const struct hg__live_piece piece = parts[k].find(live, i);
			if (!piece.data || !piece.bytes)
				continue;
			HG__TRY(visit(user, piece, offset));
			offset += hg__aligned(piece.bytes);
		}
	}
	return HG_OK;
}

/* ---- the copy ---- */

static hg_status add_bytes(void *user, struct hg__live_piece piece, size_t offset)
{
	*(size_t *)user = offset + hg__aligned(piece.bytes);
	return HG_OK;
}

hg_status hg__saved_init(struct hg__saved *s, const struct hg__live *live, enum hg__saved_use use,
                         int on_host, const char *what)
{
	size_t bytes = 0;
	hg_context *ctx = live->params->ctx;
	*s = (struct hg__saved){0};
	HG__TRY(hg__live_visit(live, use, add_bytes, &bytes));
	HG__TRY(on_host ? hg__buffer_host(ctx, (int64_t)bytes, 1, what, &s->block)
	                : hg__buffer_device(ctx, (int64_t)bytes, 1, what, &s->block));
	s->use = use;
	s->live = *live;
	return HG_OK;
}

void hg__saved_fini(struct hg__saved *s)
{
	if (s->live.params)
		hg__buffer_free(s->live.params->ctx, &s->block);
	*s = (struct hg__saved){0};
}

static hg_status take_piece(void *user, struct hg__live_piece piece, size_t offset)
{
	const struct hg__saved *s = user;
	hg_context *ctx = s->live.params->ctx;
	void *kept = (unsigned char *)s->block.data + offset;
	return s->block.device ? ctx->backend->copy(ctx, kept, piece.data, piece.bytes)
	                       : ctx->backend->copy_out(ctx, kept, piece.data, piece.bytes);
}

static hg_status restore_piece(void *user, struct hg__live_piece piece, size_t offset)
{
	const struct hg__saved *s = user;
	hg_context *ctx = s->live.params->ctx;
	const void *kept = (const unsigned char *)s->block.data + offset;
	return s->block.device ? ctx->backend->copy(ctx, piece.data, kept, piece.bytes)
	                       : ctx->backend->copy_in(ctx, piece.data, kept, piece.bytes);
}

/* The visitor takes its user as void *, and changes nothing of it. */
static void *as_user(const struct hg__saved *s)
{
	return (void *)(uintptr_t)s;
}

hg_status hg__saved_take(const struct hg__saved *s)
{
	return hg__live_visit(&s->live, s->use, take_piece, as_user(s));
}

static int has_working_copies(enum hg__saved_use use)
{
	int has = 0;
	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
		has |= parts[k].find == find_working && parts[k].uses & use;
	return has;
}

hg_status hg__saved_restore(const struct hg__saved *s)
{
	const hg_params *params = s->live.params;
	HG__TRY(hg__live_visit(&s->live, s->use, restore_piece, as_user(s)));
	for (int64_t i = 0; !has_working_copies(s->use) && i < params->count; i++)
		HG__TRY(hg__param_narrow(params->item[i]));
	return HG_OK;
}

void *hg__saved_master(const struct hg__saved *s, int64_t index)
{
	unsigned char *at = s->block.data;
	for (int64_t i = 0; i < index; i++)
		at += hg__aligned(s->live.params->item[i]->master->bytes);
	return at;
}

hg_status hg__param_narrow(const hg_param *p)
{
	hg_context *ctx = p->params->ctx;
	const struct hg__axpby_args narrow = {.x = p->master->mat, .y = p->working->mat, .alpha = 1.0f};
	return p->working == p->master ? HG_OK : ctx->backend->kernels->axpby.run(ctx, &narrow);
}
