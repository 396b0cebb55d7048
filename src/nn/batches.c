/* Batches of a dataset: making and freeing them. */
#include "nn/batches.h"

#include <math.h>
#include <string.h>

#include "core/bins.h"
#include "core/convert.h"
#include "core/mat.h"
#include "core/versioned.h"

/* ---- what the caller gives ---- */

static hg_status check_edges(hg_context *ctx, const hg_model_input *in)
{
	const long long rows = (long long)hg_tensor_rows(in->edge_x),
	                edges = (long long)hg_graph_edges(in->graph);
	if (in->edge_x && hg_tensor_context(in->edge_x) != ctx)
		return hg__fail(ctx, HG_ERR_ARG, "batches: edge_x is of another context");
	if (in->edge_x && rows != edges)
		return hg__fail(ctx, HG_ERR_SHAPE,
		                "batches: edge_x has %lld rows, the graph has %lld edges", rows, edges);
	return HG_OK;
}

static hg_status check_input(hg_context *ctx, const hg_model_input *in)
{
	if (!in->graph || hg_graph_context(in->graph) != ctx)
		return hg__fail(ctx, HG_ERR_ARG, "batches: input.graph is %s",
		                in->graph ? "of another context" : "NULL");
	if (!in->x == !in->x_sparse)
		return hg__fail(ctx, HG_ERR_ARG,
		                "batches: input has %s of x and x_sparse, expected one of them",
		                in->x ? "both" : "neither");
	if ((in->x ? hg_tensor_context(in->x) : hg_graph_context(in->x_sparse)) != ctx)
		return hg__fail(ctx, HG_ERR_ARG, "batches: the features are of another context");
	const long long nodes = (long long)hg_graph_rows(in->graph),
	                cols = (long long)hg_graph_cols(in->graph),
	                rows = (long long)(in->x ? hg_tensor_rows(in->x) : hg_graph_rows(in->x_sparse));
	if (nodes != cols)
		return hg__fail(ctx, HG_ERR_SHAPE,
		                "batches: graph has %lld rows and %lld columns, expected a square one",
		                nodes, cols);
	if (rows != nodes)
		return hg__fail(ctx, HG_ERR_SHAPE,
		                "batches: features have %lld rows, the graph has %lld nodes", rows, nodes);
	return check_edges(ctx, in);
}

static hg_status check_rows(hg_context *ctx, const hg_batches_config *c)
{
	const long long graphs = (long long)hg_graph_batch(c->input.graph);
	for (int k = 0; k < HG_BATCH_ROWS; k++) {
		if (c->row[k] && hg_tensor_context(c->row[k]) != ctx)
			return hg__fail(ctx, HG_ERR_ARG, "batches: row[%d] is of another context", k);
		if (c->row[k] && (long long)hg_tensor_rows(c->row[k]) != graphs)
			return hg__fail(ctx, HG_ERR_SHAPE,
			                "batches: row[%d] has %lld rows, expected one for each of %lld graphs",
			                k, (long long)hg_tensor_rows(c->row[k]), graphs);
	}
	return HG_OK;
}

static hg_status config_read(hg_context *ctx, const hg_batches_config *config,
                             hg_batches_config *ours)
{
	if (!config || !hg__struct_read(ours, sizeof *ours, config))
		return hg__fail(ctx, HG_ERR_ARG, "batches: config%s",
		                config ? ".size is not set (start from HG_BATCHES_CONFIG_INIT), or a field "
		                         "unknown to this version is used"
		                       : " is NULL");
	if (ours->input.size != sizeof ours->input)
		return hg__fail(ctx, HG_ERR_ARG, "batches: config.input.size is %zu, expected %zu",
		                ours->input.size, sizeof ours->input);
	if (ours->graphs < 1)
		return hg__fail(ctx, HG_ERR_ARG, "batches: graphs is %lld, expected at least 1",
		                (long long)ours->graphs);
	HG__TRY(check_input(ctx, &ours->input));
	return check_rows(ctx, ours);
}

/* ---- the copy of the dataset ---- */

static hg_status table_fetch(hg_context *ctx, const hg_tensor *tensor, struct hg__table *table)
{
	const struct hg__mat *mat = &tensor->mat;
	const size_t size = hg_dtype_size(mat->dtype);
	*table = (struct hg__table){.dtype = mat->dtype, .rows = mat->rows, .cols = mat->cols};
	if (tensor->on_host && tensor->owned) {
		table->at = mat->data;
		table->pitch = (size_t)mat->ld * size;
		table->held = (hg_tensor *)(uintptr_t)tensor; /* only the number of its owners changes */
		table->held->refs++;
		return HG_OK;
	}
	HG__TRY(hg__buffer_host(ctx, mat->rows * mat->cols, size, "batches: a copy of a tensor",
	                        &table->copy));
	table->at = table->copy.data;
	table->pitch = (size_t)mat->cols * size;
	return table->copy.bytes ? hg_tensor_download(tensor, table->copy.data, mat->dtype) : HG_OK;
}

static void table_free(hg_context *ctx, struct hg__table *table)
{
	hg_tensor_free(table->held);
	hg__buffer_free(ctx, &table->copy);
}

/* max |x|; INFINITY where an element is not finite. */
static double table_amax(const struct hg__table *t)
{
	const size_t size = hg_dtype_size(t->dtype);
	double amax = 0.0;
	for (int64_t i = 0; i < t->rows && !isinf(amax); i++)
		for (int64_t c = 0; c < t->cols; c++) {
			float x;
			hg__convert(HG_F32, &x, t->dtype, t->at + (size_t)i * t->pitch + (size_t)c * size, 1);
			amax = isfinite(x) ? fmax(amax, fabs((double)x)) : (double)INFINITY;
		}
	return amax;
}

static hg_status ptr_fetch(hg_batches *b, const hg_graph *graph)
{
	b->graphs = graph->batch;
	if (graph->batch_set)
		return hg__buffer_download(b->ctx, &graph->batch_ptr, "batches: graphs", &b->ptr);
	HG__TRY(hg__buffer_host(b->ctx, 2, sizeof(int64_t), "batches: graphs", &b->ptr));
	((int64_t *)b->ptr.data)[1] = graph->rows;
	return HG_OK;
}

/* Columns count from the first node of their graph from now on. */
static void columns_localise(hg_batches *b)
{
	const int64_t *ptr = b->ptr.data;
	int32_t *col = b->graph.col_memory.data;
	for (int64_t g = 0; g < b->graphs; g++)
		for (int64_t e = b->graph.rowptr[ptr[g]]; e < b->graph.rowptr[ptr[g + 1]]; e++)
			col[e] -= (int32_t)ptr[g];
}

static hg_status dataset_fetch(hg_batches *b, const hg_batches_config *c)
{
	const hg_model_input *in = &c->input;
	HG__TRY(ptr_fetch(b, in->graph));
	HG__TRY(hg__graph_fetch(in->graph, 1, 1, &b->graph));
	HG__TRY(hg__part_facts_get(in->graph, 1, &b->graph_facts));
	columns_localise(b);
	b->is_sparse = in->x_sparse != NULL;
	b->features = in->x ? hg_tensor_cols(in->x) : hg_graph_cols(in->x_sparse);
	if (in->x_sparse) {
		HG__TRY(hg__graph_fetch(in->x_sparse, 1, 1, &b->sparse));
		HG__TRY(hg__part_facts_get(in->x_sparse, 0, &b->sparse_facts));
	} else {
		HG__TRY(table_fetch(b->ctx, in->x, &b->dense));
	}
	b->x_amax = in->x_amax >= 0.0 || in->x_sparse ? in->x_amax : table_amax(&b->dense);
	b->has_edges = in->edge_x != NULL;
	if (in->edge_x)
		HG__TRY(table_fetch(b->ctx, in->edge_x, &b->edge));
	b->edge_amax = in->edge_amax >= 0.0 || !in->edge_x ? in->edge_amax : table_amax(&b->edge);
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		if (c->row[k])
			HG__TRY(table_fetch(b->ctx, c->row[k], &b->row[k]));
	return HG_OK;
}

/* Prepares packing. A graph that fits in no bin keeps its batch from being packed, whatever its
 * size. */
static hg_status packing_make(hg_batches *b)
{
	const int64_t *ptr = b->ptr.data, *chosen = b->chosen.data;
	HG__TRY(hg__buffer_host(b->ctx, b->graphs, sizeof(uint16_t), "batches: nodes", &b->nodes));
	for (int64_t k = 0; k < b->count; k++) {
		const int64_t nodes = ptr[chosen[k] + 1] - ptr[chosen[k]];
		((uint16_t *)b->nodes.data)[chosen[k]] =
		    (uint16_t)(nodes < UINT16_MAX ? nodes : UINT16_MAX);
	}
	return hg__buffer_host(b->ctx, b->per_batch < b->count ? b->per_batch : b->count,
	                       sizeof(int64_t), "batches: packing", &b->packing);
}

static hg_status choose(hg_batches *b, const uint8_t *chosen)
{
	for (int64_t g = 0; g < b->graphs; g++)
		b->count += !chosen || chosen[g];
	if (!b->count)
		return hg__fail(b->ctx, HG_ERR_ARG, "batches: none of %lld graphs is chosen",
		                (long long)b->graphs);
	HG__TRY(hg__buffer_host(b->ctx, b->count, sizeof(int64_t), "batches: graphs", &b->chosen));
	HG__TRY(hg__buffer_host(b->ctx, b->count, sizeof(int64_t), "batches: an order", &b->order));
	int64_t *at = b->chosen.data;
	for (int64_t g = 0; g < b->graphs; g++)
		if (!chosen || chosen[g])
			*at++ = g;
	memcpy(b->order.data, b->chosen.data, b->order.bytes);
	b->ordered = HG_BATCHES_IN_ORDER;
	return packing_make(b);
}

static hg_status batches_fill(hg_batches *b, const hg_batches_config *c)
{
	HG__TRY(dataset_fetch(b, c));
	return choose(b, c->chosen);
}

hg_status hg_batches_create(hg_context *ctx, const hg_batches_config *config, hg_batches **out)
{
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	void *memory = NULL;
	if (out)
		*out = NULL;
	if (!ctx)
		return HG_ERR_ARG;
	if (!out)
		return hg__fail(ctx, HG_ERR_ARG, "batches: batches is NULL");
	HG__TRY(config_read(ctx, config, &c));
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_batches), "batches", &memory));
	hg_batches *b = memory;
	b->ctx = ctx;
	hg__context_hold(ctx);
	b->per_batch = c.graphs;
	b->seed = c.seed;
	const hg_status status = batches_fill(b, &c);
	if (status < 0) {
		hg_batches_free(b);
		return status;
	}
	*out = b;
	return HG_OK;
}

void hg_batches_free(hg_batches *b)
{
	if (!b)
		return;
	hg_context *ctx = b->ctx;
	hg__batches_drop(b);
	struct hg__buffer *const buffers[] = {&b->ptr,
	                                      &b->chosen,
	                                      &b->order,
	                                      &b->nodes,
	                                      &b->packing,
	                                      &b->stage.rowptr,
	                                      &b->stage.col,
	                                      &b->stage.weight,
	                                      &b->sparse_stage.rowptr,
	                                      &b->stage_ptr,
	                                      &b->stage_id,
	                                      &b->stage_table,
	                                      &b->sparse_stage.col,
	                                      &b->sparse_stage.weight};
	for (size_t k = 0; k < sizeof buffers / sizeof *buffers; k++)
		hg__buffer_free(ctx, buffers[k]);
	struct hg__host_csr *const csr[] = {&b->graph, &b->sparse};
	for (size_t k = 0; k < sizeof csr / sizeof *csr; k++) {
		hg__buffer_free(ctx, &csr[k]->rowptr_memory);
		hg__buffer_free(ctx, &csr[k]->col_memory);
		hg__buffer_free(ctx, &csr[k]->weight_memory);
	}
	table_free(ctx, &b->dense);
	table_free(ctx, &b->edge);
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		table_free(ctx, &b->row[k]);
	hg__host_free(ctx, b, sizeof *b);
	hg__context_release(ctx);
}
