/* The batches of a training run: what is learnt of them, and which one is in place. */
#include <string.h>

#include "nn/model.h"
#include "nn/train.h"

static hg_status batches_make(hg_train *t, const hg_train_data *d, uint8_t *chosen)
{
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	hg__truth_choose(&t->truth, d, chosen);
	c.input = t->input;
	if (!hg__model_reads_edges(t->model))
		c.input.edge_x = NULL;
	c.row[HG__BATCH_TRUTH] = t->truth.label ? t->truth.label : t->truth.target;
	c.row[HG__BATCH_MASK] = t->truth.mask[HG__SPLIT_TRAIN];
	c.chosen = chosen;
	c.graphs = t->config.batch_graphs;
	c.seed = t->ctx->seed;
	t->batches.from = c;
	t->batches.from.chosen = NULL; /* it is gone after this call */
	return hg_batches_create(t->ctx, &c, &t->batches.all);
}

hg_status hg__train_batches_init(hg_train *t, const hg_train_data *d)
{
	struct hg__buffer chosen = {0};
	if (!t->config.batch_graphs)
		return HG_OK;
	HG__TRY(hg__buffer_host(t->ctx, t->truth.rows, 1, "train: graphs that are learnt", &chosen));
	const hg_status status = batches_make(t, d, chosen.data);
	hg__buffer_free(t->ctx, &chosen);
	return status < 0 ? status : hg__train_batches_load(t, 0, 0);
}

void hg__train_batches_fini(hg_train *t)
{
	struct hg__train_batches *b = &t->batches;
	hg_batches_free(b->all);
	hg__buffer_free(t->ctx, &b->arena);
	hg__watch_past_fini(t->ctx, &b->past);
	*b = (struct hg__train_batches){.all = NULL};
}

/* `hg_batch` has const rows, `hg__truth` does not but only reads them; copying the pointer drops
 * the const. */
static hg_tensor *row_of(const struct hg__train_batches *b, int row)
{
	hg_tensor *tensor;
	memcpy(&tensor, &b->batch.row[row], sizeof tensor);
	return tensor;
}

void hg__train_batch_place(hg_train *t, const hg_batch *batch)
{
	struct hg__train_batches *b = &t->batches;
	b->batch = *batch;
	b->truth = t->truth;
	b->truth.rows = b->batch.graphs;
	*(t->truth.label ? &b->truth.label : &b->truth.target) = row_of(b, HG__BATCH_TRUTH);
	b->truth.mask[HG__SPLIT_TRAIN] = row_of(b, HG__BATCH_MASK);
}

hg_status hg__train_batches_load(hg_train *t, int64_t epoch, int64_t k)
{
	hg_batch batch = HG_BATCH_INIT;
	HG__TRY(hg_batches_load(t->batches.all, epoch, k, &batch));
	hg__train_batch_place(t, &batch);
	return HG_OK;
}

int64_t hg__train_steps(const hg_train *t)
{
	return t->batches.all ? hg_batches_count(t->batches.all) : 1;
}

int64_t hg__train_steps_after(const hg_train *t, int64_t epoch)
{
	return t->first_step + epoch * hg__train_steps(t);
}
