/* One batch: the blocks of its graphs, put together in host memory and copied to the device. */
#include <string.h>

#include "core/mat.h"
#include "core/versioned.h"
#include "nn/batches.h"

void hg__batches_drop(hg_batches *b)
{
	hg_graph_free(b->batch_graph);
	hg_graph_free(b->batch_sparse);
	hg_tensor_free(b->batch_dense);
	hg_tensor_free(b->batch_edge);
	b->batch_graph = b->batch_sparse = NULL;
	b->batch_dense = b->batch_edge = NULL;
	for (int k = 0; k < HG_BATCH_ROWS; k++) {
		hg_tensor_free(b->batch_row[k]);
		b->batch_row[k] = NULL;
	}
}

/* ---- sizes ---- */

struct sizes {
	int64_t nodes, edges, stored; /* stored: entries of sparse features */
};

static struct sizes sizes_of(const hg_batches *b, const int64_t *graph, int64_t graphs)
{
	const int64_t *ptr = b->ptr.data;
	struct sizes s = {0, 0, 0};
	for (int64_t k = 0; k < graphs; k++) {
		const int64_t first = ptr[graph[k]], end = ptr[graph[k] + 1];
		s.nodes += end - first;
		s.edges += b->graph.rowptr[end] - b->graph.rowptr[first];
		if (b->is_sparse)
			s.stored += b->sparse.rowptr[end] - b->sparse.rowptr[first];
	}
	return s;
}

/* Batches differ a little in size. With a quarter to spare few of them need new memory. */
static hg_status grow(hg_context *ctx, int64_t count, size_t size, struct hg__buffer *buffer)
{
	if (buffer->data && (size_t)count * size <= buffer->bytes)
		return HG_OK;
	hg__buffer_free(ctx, buffer);
	return hg__buffer_host(ctx, count + count / 4 + 1, size, "batches: a batch", buffer);
}

static hg_status stage_grow(hg_context *ctx, int64_t rows, int64_t m, int weighted,
                            struct hg__csr_stage *stage)
{
	HG__TRY(grow(ctx, rows + 1, sizeof(int64_t), &stage->rowptr));
	HG__TRY(grow(ctx, m, sizeof(int32_t), &stage->col));
	return weighted ? grow(ctx, m, sizeof(float), &stage->weight) : HG_OK;
}

/* ---- graph and sparse features ---- */

/* Appends rows first .. end - 1 of a matrix as rows row .., and adds `shift` to their columns.
 * Returns the number of entries so far. */
static int64_t rows_append(const struct hg__host_csr *from, int64_t first, int64_t end, int64_t row,
                           int64_t m, int32_t shift, const struct hg__csr_stage *to)
{
	const int64_t begin = from->rowptr[first], count = from->rowptr[end] - begin;
	int64_t *rowptr = (int64_t *)to->rowptr.data + row;
	int32_t *col = (int32_t *)to->col.data + m;
	const int32_t *source = from->col + begin;
	for (int64_t i = 0; i < end - first; i++)
		rowptr[i + 1] = from->rowptr[first + i + 1] - begin + m;
	for (int64_t e = 0; e < count; e++)
		col[e] = source[e] + shift;
	if (from->weight && count)
		memcpy((float *)to->weight.data + m, from->weight + begin, (size_t)count * sizeof(float));
	return m + count;
}

/* Puts the rows of the batch's nodes together. blocks 1: the columns are nodes, too. */
static void rows_stage(const hg_batches *b, const struct hg__host_csr *from, int blocks,
                       const struct hg__csr_stage *to)
{
	const int64_t *ptr = b->ptr.data;
	int64_t row = 0, m = 0;
	((int64_t *)to->rowptr.data)[0] = 0;
	for (int64_t k = 0; k < b->batch.graphs; k++) {
		const int64_t first = ptr[b->batch.graph[k]], end = ptr[b->batch.graph[k] + 1];
		m = rows_append(from, first, end, row, m, blocks ? (int32_t)row : 0, to);
		row += end - first;
	}
}

static void nodes_stage(const hg_batches *b)
{
	const int64_t *ptr = b->ptr.data;
	int64_t *at = b->stage_ptr.data;
	int32_t *id = b->stage_id.data;
	at[0] = 0;
	for (int64_t k = 0; k < b->batch.graphs; k++) {
		const int64_t g = b->batch.graph[k];
		at[k + 1] = at[k] + ptr[g + 1] - ptr[g];
		for (int64_t i = at[k]; i < at[k + 1]; i++)
			id[i] = (int32_t)k;
	}
}

static hg_status graph_load(hg_batches *b, const struct sizes *s)
{
	hg_context *ctx = b->ctx;
	HG__TRY(grow(ctx, b->batch.graphs + 1, sizeof(int64_t), &b->stage_ptr));
	HG__TRY(grow(ctx, s->nodes, sizeof(int32_t), &b->stage_id));
	HG__TRY(stage_grow(ctx, s->nodes, s->edges, b->graph.weight != NULL, &b->stage));
	nodes_stage(b);
	rows_stage(b, &b->graph, 1, &b->stage);
	const struct hg__part part = {.rows = s->nodes,
	                              .cols = s->nodes,
	                              .m = s->edges,
	                              .rowptr = b->stage.rowptr.data,
	                              .col = b->stage.col.data,
	                              .weight = b->graph.weight ? b->stage.weight.data : NULL,
	                              .count = b->batch.graphs,
	                              .ptr = b->stage_ptr.data,
	                              .id = b->stage_id.data};
	return hg__graph_of_part(ctx, &part, &b->graph_facts, &b->batch_graph);
}

static hg_status sparse_load(hg_batches *b, const struct sizes *s)
{
	struct hg__csr_stage *stage = &b->sparse_stage;
	HG__TRY(stage_grow(b->ctx, s->nodes, s->stored, b->sparse.weight != NULL, stage));
	rows_stage(b, &b->sparse, 0, stage);
	const struct hg__part part = {.rows = s->nodes,
	                              .cols = b->features,
	                              .m = s->stored,
	                              .rowptr = stage->rowptr.data,
	                              .col = stage->col.data,
	                              .weight = b->sparse.weight ? stage->weight.data : NULL};
	return hg__graph_of_part(b->ctx, &part, &b->sparse_facts, &b->batch_sparse);
}

/* ---- tensors ---- */

/* What the rows of a table are. */
enum rows_of { ROWS_OF_NODES, ROWS_OF_EDGES, ROWS_OF_GRAPHS };

/* The rows of graph g in a table: *first to the one before the result. */
static int64_t rows_of(const hg_batches *b, enum rows_of what, int64_t g, int64_t *first)
{
	const int64_t *ptr = b->ptr.data, *rowptr = b->graph.rowptr;
	*first = what == ROWS_OF_NODES ? ptr[g] : what == ROWS_OF_EDGES ? rowptr[ptr[g]] : g;
	return what == ROWS_OF_NODES ? ptr[g + 1] : what == ROWS_OF_EDGES ? rowptr[ptr[g + 1]] : g + 1;
}

static hg_status table_load(hg_batches *b, const struct hg__table *from, enum rows_of what,
                            int64_t rows, hg_tensor **tensor)
{
	const size_t row_bytes = (size_t)from->cols * hg_dtype_size(from->dtype);
	if (row_bytes)
		HG__TRY(grow(b->ctx, rows, row_bytes, &b->stage_table));
	char *at = b->stage_table.data;
	for (int64_t k = 0; k < b->batch.graphs; k++) {
		int64_t first;
		const int64_t end = rows_of(b, what, b->batch.graph[k], &first);
		for (int64_t i = first; i < end && row_bytes; i++, at += row_bytes)
			memcpy(at, from->at + (size_t)i * from->pitch, row_bytes);
	}
	HG__TRY(hg_tensor_create(b->ctx, from->dtype, rows, from->cols, tensor));
	return rows && row_bytes ? hg_tensor_upload(*tensor, b->stage_table.data, from->dtype) : HG_OK;
}

/* ---- a batch ---- */

static hg_status batch_make(hg_batches *b)
{
	const struct sizes s = sizes_of(b, b->batch.graph, b->batch.graphs);
	if (s.nodes > INT32_MAX)
		return hg__fail(b->ctx, HG_ERR_ARG,
		                "batches_load: %lld graphs have %lld nodes together, more than 32-bit node "
		                "ids reach",
		                (long long)b->batch.graphs, (long long)s.nodes);
	HG__TRY(graph_load(b, &s));
	HG__TRY(b->is_sparse ? sparse_load(b, &s)
	                     : table_load(b, &b->dense, ROWS_OF_NODES, s.nodes, &b->batch_dense));
	if (b->has_edges)
		HG__TRY(table_load(b, &b->edge, ROWS_OF_EDGES, s.edges, &b->batch_edge));
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		if (b->row[k].rows)
			HG__TRY(table_load(b, &b->row[k], ROWS_OF_GRAPHS, b->batch.graphs, &b->batch_row[k]));
	return HG_OK;
}

static hg_status arguments_check(const hg_batches *b, int64_t epoch, int64_t k,
                                 const hg_batch *batch)
{
	if (!batch || batch->size < sizeof batch->size)
		return hg__fail(b->ctx, HG_ERR_ARG,
		                "batches_load: batch is NULL or its size is not set: start from "
		                "HG_BATCH_INIT");
	if (epoch < HG_BATCHES_IN_ORDER)
		return hg__fail(b->ctx, HG_ERR_ARG,
		                "batches_load: epoch is %lld, expected at least 0, or HG_BATCHES_IN_ORDER",
		                (long long)epoch);
	if (k < 0 || k >= hg_batches_count(b))
		return hg__fail(b->ctx, HG_ERR_ARG, "batches_load: batch %lld, expected 0 to %lld",
		                (long long)k, (long long)hg_batches_count(b) - 1);
	return HG_OK;
}

hg_status hg_batches_load(hg_batches *b, int64_t epoch, int64_t k, hg_batch *batch)
{
	if (!b)
		return HG_ERR_ARG;
	HG__TRY(arguments_check(b, epoch, k, batch));
	hg__batches_drop(b);
	b->batch = (hg_batch){.size = sizeof b->batch};
	b->batch.graph = hg__batches_of_epoch(b, epoch, k, &b->batch.graphs);
	const hg_status status = batch_make(b);
	if (status < 0) {
		hg__batches_drop(b);
		return status;
	}
	b->batch.input = (hg_model_input){.size = sizeof b->batch.input,
	                                  .graph = b->batch_graph,
	                                  .x = b->batch_dense,
	                                  .x_sparse = b->batch_sparse,
	                                  .x_amax = b->x_amax,
	                                  .edge_x = b->batch_edge,
	                                  .edge_amax = b->edge_amax};
	for (int i = 0; i < HG_BATCH_ROWS; i++)
		b->batch.row[i] = b->batch_row[i];
	return hg__struct_write(batch, &b->batch, sizeof b->batch) ? HG_OK : HG_ERR_ARG;
}
