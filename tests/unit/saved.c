/* Copies of what training changes (nn/saved.h). Each use restores every bit of its parts, on the
 * device and on the host, and the weights of the best epoch are exchanged with the master
 * weights. */
#include "nn/saved.h"
#include "nn/train.h"
#include "unit/train_task.h"

/* The bytes of every piece of a use, one after the other. */
struct bytes {
	hg_context *ctx;
	unsigned char *data;
	size_t count, pieces;
};

static hg_status read_piece(void *user, struct hg__live_piece piece, size_t offset)
{
	struct bytes *b = user;
	(void)offset;
	b->data = realloc(b->data, b->count + piece.bytes);
	CHECK(b->data != NULL);
	CHECK_OK(b->ctx->backend->copy_out(b->ctx, b->data + b->count, piece.data, piece.bytes));
	b->count += piece.bytes;
	b->pieces++;
	return HG_OK;
}

static struct bytes read_live(const struct hg__live *live, enum hg__saved_use use)
{
	struct bytes b = {.ctx = live->params->ctx};
	CHECK_OK(hg__live_visit(live, use, read_piece, &b));
	return b;
}

static hg_status scramble_piece(void *user, struct hg__live_piece piece, size_t offset)
{
	hg_context *ctx = user;
	(void)offset;
	return ctx->backend->fill(ctx, piece.data, 0x5a, piece.bytes);
}

static void check_same_bytes(const struct bytes *a, const struct bytes *b, int same)
{
	CHECK_EQ_I(a->count, b->count);
	CHECK_EQ_I(a->pieces, b->pieces);
	CHECK((memcmp(a->data, b->data, a->count) == 0) == same);
}

/* A run that has trained, observed and evaluated, so that no part is empty. */
static struct hg__live live_open(struct planted_run *r, const char *model)
{
	hg_train_config c = config_of(model, "fp16");
	struct planted task = task_make();
	c.epochs = 4;
	planted_train(r, test_context(), &task, &c, 0);
	planted_free(&task);
	return (struct hg__live){.params = r->train->params,
	                         .optim = r->train->optim,
	                         .best = &r->train->best.weights,
	                         .board = r->train->board,
	                         .watch = r->train->step->watch};
}

static const struct {
	enum hg__saved_use use;
	int per_param, more; /* pieces of a trained weight in f16; pieces besides */
} uses[] = {{HG__SAVED_BEST, 1, 0},
            {HG__SAVED_FORWARD, 1, 0},
            {HG__SAVED_GROUP, 1, 5},
            {HG__SAVED_REPLAY, 3, 2}};

/* The parts of the use are overwritten and then restored with all their bits. After that,
 * everything that other uses copy, such as working copies, is as it was, too. */
static void use_restores_its_bits(const struct hg__live *live, enum hg__saved_use use, int on_host)
{
	hg_context *ctx = live->params->ctx;
	struct hg__saved saved;
	const struct bytes before = read_live(live, use),
	                   all = read_live(live, HG__SAVED_GROUP | HG__SAVED_REPLAY);
	CHECK_OK(hg__saved_init(&saved, live, use, on_host, "test"));
	CHECK(saved.block.bytes >= before.count && saved.block.device == !on_host);
	CHECK_OK(hg__saved_take(&saved));
	CHECK_OK(hg__live_visit(live, use, scramble_piece, ctx));
	const struct bytes scrambled = read_live(live, use);
	check_same_bytes(&before, &scrambled, 0);
	CHECK_OK(hg__saved_restore(&saved));
	const struct bytes after = read_live(live, use),
	                   all_after = read_live(live, HG__SAVED_GROUP | HG__SAVED_REPLAY);
	check_same_bytes(&before, &after, 1);
	check_same_bytes(&all, &all_after, 1);
	hg__saved_fini(&saved);
	hg__saved_fini(&saved);
	free(before.data), free(all.data), free(scrambled.data), free(after.data), free(all_after.data);
}

static void every_use_restores_its_bits(void)
{
	for (const char *const *model = hg_model_names(); *model; model++) {
		struct planted_run r;
		const struct hg__live live = live_open(&r, *model);
		for (size_t k = 0; k < sizeof uses / sizeof *uses; k++)
			for (int on_host = 0; on_host < 2; on_host++)
				use_restores_its_bits(&live, uses[k].use, on_host);
		planted_close(&r);
	}
}

/* A GCN has four weights and biases, all trained and in f16. */
static void uses_have_their_parts(void)
{
	struct planted_run r;
	const struct hg__live live = live_open(&r, "gcn");
	for (size_t k = 0; k < sizeof uses / sizeof *uses; k++) {
		const struct bytes b = read_live(&live, uses[k].use);
		CHECK_EQ_I(b.pieces, uses[k].per_param * 4 + uses[k].more);
		free(b.data);
	}
	const struct hg__live bare = {.params = live.params}; /* without optimiser and run */
	const struct bytes b = read_live(&bare, HG__SAVED_GROUP);
	CHECK_EQ_I(b.pieces, 4 + 1);
	free(b.data);
	planted_close(&r);
}

static hg_status check_offset(void *user, struct hg__live_piece piece, size_t offset)
{
	size_t *end = user;
	CHECK(offset == *end && offset % HG__ALIGN == 0 && piece.bytes > 0);
	*end = offset + hg__aligned(piece.bytes);
	return HG_OK;
}

static void pieces_are_adjacent(void)
{
	struct planted_run r;
	const struct hg__live live = live_open(&r, "gin");
	for (size_t k = 0; k < sizeof uses / sizeof *uses; k++) {
		struct hg__saved saved;
		size_t end = 0;
		CHECK_OK(hg__live_visit(&live, uses[k].use, check_offset, &end));
		CHECK_OK(hg__saved_init(&saved, &live, uses[k].use, 0, "test"));
		CHECK_EQ_I(saved.block.bytes, end);
		hg__saved_fini(&saved);
	}
	planted_close(&r);
}

/* The master weights and the best weights are exchanged, and exchanged again. With a flag that is 0
 * nothing is copied. */
static void best_weights_are_exchanged(void)
{
	struct planted_run r;
	const struct hg__live live = live_open(&r, "gin");
	const struct hg__best *best = &r.train->best;
	hg_context *ctx = r.ctx;
	void *flag = NULL;
	int32_t keep = 0;
	/* the best weights stay */
	CHECK_OK(hg__live_visit(&live, HG__SAVED_BEST, scramble_piece, ctx));
	const struct bytes masters = read_live(&live, HG__SAVED_BEST);
	CHECK_OK(hg__best_swap(best));
	const struct bytes others = read_live(&live, HG__SAVED_BEST);
	check_same_bytes(&masters, &others, 0);
	CHECK_OK(hg__best_swap(best));
	struct bytes again = read_live(&live, HG__SAVED_BEST);
	check_same_bytes(&masters, &again, 1);
	free(again.data);

	CHECK_OK(hg__device_alloc(ctx, sizeof keep, "test: a flag", &flag));
	for (keep = 0; keep < 2; keep++) {
		CHECK_OK(ctx->backend->copy_in(ctx, flag, &keep, sizeof keep));
		CHECK_OK(hg__best_save_if(best, flag));
		CHECK_OK(hg__best_swap(best)); /* the saved weights are in the masters */
		again = read_live(&live, HG__SAVED_BEST);
		check_same_bytes(keep ? &masters : &others, &again, 1);
		CHECK_OK(hg__best_swap(best));
		free(again.data);
	}
	hg__device_free(ctx, flag, sizeof keep);
	free(masters.data), free(others.data);
	planted_close(&r);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(every_use_restores_its_bits),
	                                         TEST(uses_have_their_parts), TEST(pieces_are_adjacent),
	                                         TEST(best_weights_are_exchanged)};
	return RUN_TESTS(argc, argv, cases);
}
