/* The batches of an epoch and their lists. */
#include "nn/batches_schedule.h"

#include "core/bins.h"

/* Where the arrays of a list begin, and its bytes. */
struct list_layout {
	size_t row, edge, graph, bin, bytes;
};

/* The same for all batches, also for a smaller one. */
static struct list_layout layout_of(int64_t graphs)
{
	const size_t wide = (size_t)(graphs + 1) * sizeof(int64_t),
	             narrow = (size_t)graphs * sizeof(int32_t);
	return (struct list_layout){.edge = wide,
	                            .graph = 2 * wide,
	                            .bin = 2 * wide + narrow,
	                            .bytes = hg__aligned(2 * wide + 2 * narrow)};
}

static int64_t graphs_of(const struct hg__schedule *s, int64_t k)
{
	const int64_t left = s->count - k * s->most;
	return left < s->most ? left : s->most;
}

struct hg__batch_list hg__schedule_list(const struct hg__schedule *s, int64_t k, const void *lists)
{
	const struct list_layout l = layout_of(s->most);
	const char *at = (const char *)lists + (size_t)k * l.bytes;
	return (struct hg__batch_list){.graphs = graphs_of(s, k),
	                               .bins = hg__scheduled(s, k)->bins,
	                               .graph = (const int32_t *)(const void *)(at + l.graph),
	                               .row = (const int64_t *)(const void *)(at + l.row),
	                               .edge = (const int64_t *)(const void *)(at + l.edge),
	                               .bin = (const int32_t *)(const void *)(at + l.bin)};
}

static hg_status init(struct hg__schedule *s, const struct hg__padded *padded, int64_t count,
                      int64_t most)
{
	hg_context *ctx = padded->all->ctx;
	const int64_t batches = (count - 1) / most + 1;
	*s = (struct hg__schedule){.padded = padded,
	                           .epoch = HG_BATCHES_IN_ORDER - 1,
	                           .count = count,
	                           .batches = batches,
	                           .most = most};
	HG__TRY(hg__buffer_host(ctx, batches, sizeof(struct hg__scheduled), "batches: a schedule",
	                        &s->batch));
	HG__TRY(hg__buffer_host(ctx, count, sizeof(int64_t), "batches: an order", &s->order));
	return hg__buffer_pinned(ctx, (size_t)batches * layout_of(most).bytes, "batches: lists",
	                         &s->lists);
}

hg_status hg__schedule_init(struct hg__schedule *s, const struct hg__padded *padded)
{
	const hg_batches *all = padded->all;
	const int64_t most = all->per_batch < all->count ? all->per_batch : all->count;
	HG__TRY(init(s, padded, all->count, most));
	return all->packing.data
	           ? hg__buffer_host(all->ctx, most, sizeof(int64_t), "batches: packing", &s->scratch)
	           : HG_OK;
}

void hg__schedule_fini(struct hg__schedule *s)
{
	struct hg__buffer *const buffers[] = {&s->batch, &s->lists, &s->order, &s->scratch};
	for (size_t k = 0; s->padded && k < sizeof buffers / sizeof *buffers; k++)
		hg__buffer_free(s->padded->all->ctx, buffers[k]);
	*s = (struct hg__schedule){.padded = NULL};
}

/* Writes the list of batch k and what is known of the batch. */
static void batch_schedule(struct hg__schedule *s, int64_t k)
{
	const struct hg__padded *p = s->padded;
	const struct hg__graph_size *size = p->size.data;
	const struct list_layout l = layout_of(s->most);
	const int64_t *order = (const int64_t *)s->order.data + k * s->most, graphs = graphs_of(s, k);
	char *at = (char *)s->lists.data + (size_t)k * l.bytes;
	int32_t *graph = (int32_t *)(void *)(at + l.graph);
	int64_t *row = (int64_t *)(void *)(at + l.row), *edge = (int64_t *)(void *)(at + l.edge);
	struct hg__scheduled *batch = (struct hg__scheduled *)s->batch.data + k;
	batch->counted = row[0] = edge[0] = 0;
	for (int64_t i = 0; i < graphs; i++) {
		const struct hg__graph_size *of = &size[order[i]];
		graph[i] = (int32_t)order[i];
		row[i + 1] = row[i] + of->nodes;
		edge[i + 1] = edge[i] + of->edges;
		batch->counted += of->counted;
	}
	batch->bins = 0;
	batch->shape = hg__padded_shape(p, row[graphs], edge[graphs], graphs);
	if (p->needs >> HG__PADDED_BIN & 1u)
		batch->shape.bin_rows = hg__bins_rows_of(graphs, row);
	if (hg__bin_is_large(batch->shape.bin_rows) && batch->shape.nodes < p->large_bins_rows)
		batch->shape.bin_rows = 0;
	if (batch->shape.bin_rows)
		batch->bins = hg__bins_begin(graphs, row, (int32_t *)(void *)(at + l.bin));
}

void hg__schedule_make(struct hg__schedule *s, int64_t epoch)
{
	hg__batches_shuffle(s->padded->all, epoch, s->order.data, s->scratch.data);
	for (int64_t k = 0; k < s->batches; k++)
		batch_schedule(s, k);
	s->epoch = epoch;
}

hg_status hg__schedule_init_all(struct hg__schedule *s, const struct hg__padded *padded,
                                int64_t most)
{
	HG__TRY(init(s, padded, padded->all->graphs, most));
	for (int64_t k = 0; k < s->count; k++)
		((int64_t *)s->order.data)[k] = k;
	for (int64_t k = 0; k < s->batches; k++)
		batch_schedule(s, k);
	s->epoch = HG_BATCHES_IN_ORDER;
	return HG_OK;
}

struct hg__shape_of_batch hg__schedule_shape(const struct hg__schedule *s, int64_t first,
                                             int64_t end)
{
	const int64_t graphs = graphs_of(s, first);
	struct hg__shape_of_batch shape = {.graphs = graphs};
	for (int64_t k = first; k < end; k++) {
		const struct hg__batch_list list = hg__schedule_list(s, k, s->lists.data);
		const int64_t edges = hg__padded_edges(list.edge[graphs]);
		shape.edges = edges > shape.edges ? edges : shape.edges;
	}
	for (int64_t k = first; k < end; k++) {
		const struct hg__batch_list list = hg__schedule_list(s, k, s->lists.data);
		const int64_t nodes =
		    hg__padded_nodes(s->padded, list.row[graphs], list.edge[graphs], graphs, shape.edges);
		shape.nodes = nodes > shape.nodes ? nodes : shape.nodes;
	}
	return shape;
}
