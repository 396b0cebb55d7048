/* Evaluations of a few graphs at a time, so that their memory does not grow with the dataset. */
#include "nn/evaluate_batches.h"

#include <math.h>

#include "autograd/program.h"
#include "autograd/tape.h"

#define NUMBERS_AT_ONCE 0x1p26 /* 128 MiB in fp16 */
#define LEAST_COLUMNS 64       /* hidden layers mostly have at least so many */

int64_t hg__evaluation_graphs(const hg_batches *all)
{
	const int64_t nodes = ((const int64_t *)all->ptr.data)[all->graphs];
	const double columns = (double)(all->features > LEAST_COLUMNS ? all->features : LEAST_COLUMNS),
	             numbers = (double)nodes * columns + (double)all->graph.rowptr[nodes],
	             most = NUMBERS_AT_ONCE / fmax(numbers, 1.0) * (double)all->graphs;
	const int64_t graphs = most < (double)all->graphs ? (int64_t)most : all->graphs;
	return graphs > all->per_batch ? graphs : all->per_batch;
}

/* ---- making ---- */

static hg_status schedule_make(struct hg__evaluation_batches *b, hg_context *ctx, int64_t graphs)
{
	HG__TRY(hg__schedule_init_all(&b->schedule, b->padded, graphs));
	const struct hg__buffer *host = &b->schedule.lists;
	HG__TRY(hg__buffer_device(ctx, (int64_t)host->bytes, 1, "evaluation: lists", &b->lists));
	return ctx->backend->copy_in(ctx, b->lists.data, host->data, host->bytes);
}

/* The shapes of both parts, and memory for either. */
static hg_status block_make(struct hg__evaluation_batches *b, hg_context *ctx,
                            struct hg__shape_of_batch *shape)
{
	const int64_t last = b->schedule.batches - 1;
	size_t bytes = 0;
	shape[0] = hg__schedule_shape(&b->schedule, 0, last);
	shape[1] = hg__schedule_shape(&b->schedule, last, last + 1);
	for (int i = 0; i < 2; i++) {
		const size_t own = hg__padded_bytes(b->padded, &shape[i]);
		bytes = own > bytes ? own : bytes;
	}
	return hg__buffer_device(ctx, (int64_t)bytes, 1, "evaluation: a batch", &b->block);
}

static hg_status record(struct hg__evaluation_batches *b, hg_params *params, hg_model *model,
                        struct hg__evaluation_part *part)
{
	hg_tape_free(part->tape);
	part->tape = NULL;
	HG__TRY(hg_tape_create(params, HG_EVAL, &part->tape));
	hg__tape_lend(part->tape, &b->arena);
	part->logits = hg_model_record(model, part->tape, &part->batch.batch.input);
	return hg_tape_compile(part->tape, part->logits);
}

/* A tape that needs more memory moves the arena of both: the first one is recorded again. */
static hg_status record_both(struct hg__evaluation_batches *b, hg_params *params, hg_model *model)
{
	const void *arena;
	do {
		HG__TRY(record(b, params, model, &b->part[0]));
		arena = b->arena.data;
		HG__TRY(record(b, params, model, &b->part[1]));
	} while (b->arena.data != arena);
	return HG_OK;
}

static const hg_tensor *value_of(const struct hg__evaluation_part *part)
{
	return hg_tape_value(part->tape, part->logits);
}

hg_status hg__evaluation_batches_init(struct hg__evaluation_batches *b, hg_params *params,
                                      hg_model *model, const struct hg__padded *padded,
                                      int64_t graphs)
{
	hg_context *ctx = params->ctx;
	struct hg__shape_of_batch shape[2];
	*b = (struct hg__evaluation_batches){.padded = padded};
	HG__TRY(schedule_make(b, ctx, graphs));
	HG__TRY(block_make(b, ctx, shape));
	hg__buffer_free(ctx, &b->schedule.lists); /* the device has them now */
	hg__buffer_free(ctx, &b->schedule.order);
	for (int i = 0; i < 2; i++)
		HG__TRY(hg__padded_open(padded, &shape[i], b->block.data, &b->part[i].batch));
	HG__TRY(record_both(b, params, model));
	const hg_tensor *value = value_of(&b->part[0]);
	return hg_tensor_create(ctx, hg_tensor_dtype(value), padded->all->graphs, hg_tensor_cols(value),
	                        &b->logits);
}

void hg__evaluation_batches_fini(struct hg__evaluation_batches *b)
{
	if (!b->padded)
		return;
	hg_context *ctx = b->padded->all->ctx;
	struct hg__buffer *const buffers[] = {&b->lists, &b->block, &b->arena};
	for (int i = 0; i < 2; i++) {
		hg_tape_free(b->part[i].tape);
		hg__padded_close(&b->part[i].batch);
	}
	for (size_t k = 0; k < sizeof buffers / sizeof *buffers; k++)
		hg__buffer_free(ctx, buffers[k]);
	hg__schedule_fini(&b->schedule);
	hg_tensor_free(b->logits);
	*b = (struct hg__evaluation_batches){.padded = NULL};
}

/* ---- running ---- */

/* Copies the logits of `graphs` graphs to those of the dataset, where graph `first` is the first of
 * them. */
static hg_status keep(const struct hg__evaluation_batches *b, const struct hg__mat *value,
                      int64_t first, int64_t graphs)
{
	hg_context *ctx = b->padded->all->ctx;
	const struct hg__mat *to = &b->logits->mat;
	const size_t row = (size_t)to->ld * hg_dtype_size(to->dtype);
	if (value->ld != to->ld || value->dtype != to->dtype)
		return hg__fail(ctx, HG_ERR_INTERNAL, "evaluation: logits of batches differ in type");
	return ctx->backend->copy(ctx, (char *)to->data + (size_t)first * row, value->data,
	                          (size_t)graphs * row);
}

hg_status hg__evaluation_batches_forward(const struct hg__evaluation_batches *b)
{
	const struct hg__schedule *s = &b->schedule;
	for (int64_t k = 0; k < s->batches; k++) {
		const struct hg__evaluation_part *part = &b->part[k == s->batches - 1];
		const struct hg__batch_list list = hg__schedule_list(s, k, b->lists.data);
		HG__TRY(hg__padded_assemble(b->padded, &list, &part->batch));
		HG__TRY(hg_tape_forward(part->tape));
		HG__TRY(keep(b, &value_of(part)->mat, k * s->most, list.graphs));
	}
	return HG_OK;
}
