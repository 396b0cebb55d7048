#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph.h"
#include "graphs.h"
#include "halfgraph/data.h"

/* Make the graph of a run, on the device, from its name. */

/* Sort the edges of a named graph into its CSR matrix. Everything stays on the device, so that 100
 * M edges take a second on a GPU. */
static hg_status sort_edges(struct bench *b, const struct edge_rule *rule, hg_graph *g,
                            struct hg__buffer *dst, struct hg__buffer *src)
{
	HG__TRY(hg__buffer_device(b->ctx, g->m, sizeof(int32_t), "graph: dst", dst));
	HG__TRY(hg__buffer_device(b->ctx, g->m, sizeof(int32_t), "graph: src", src));
	HG__TRY(hg__buffer_device(b->ctx, g->rows + 1, sizeof(int64_t), "graph: rowptr", &g->rowptr));
	HG__TRY(hg__buffer_device(b->ctx, g->m, sizeof(int32_t), "graph: col", &g->col));
	HG__TRY(b->device->edges(b->ctx, rule, (uint64_t)b->options.seed, dst->data, src->data));
	HG__TRY(b->ctx->backend->csr_from_coo(b->ctx, g->rows, g->cols, g->m, dst->data, src->data,
	                                      g->rowptr.data, g->col.data, NULL));
	return hg_context_synchronize(b->ctx);
}

static hg_status graph_make(struct bench *b, const struct edge_rule *rule)
{
	struct hg__buffer dst = {0}, src = {0};
	HG__TRY(hg__graph_new(b->ctx, rule->nodes, rule->nodes, rule->edges, &b->graph));
	const hg_status status = sort_edges(b, rule, b->graph, &dst, &src);
	hg__buffer_free(b->ctx, &src);
	hg__buffer_free(b->ctx, &dst);
	return status;
}

/* Multiples of 1/1024 in (0, 1], which are the same numbers in f16 and f32. */
static hg_status weights_make(struct bench *b)
{
	static const struct fill_rule rule = {0.0, 1.0, 1024};
	hg_graph *g = b->graph;
	if (!g->weight.data)
		HG__TRY(hg__buffer_device(b->ctx, g->m, sizeof(float), "graph: weight", &g->weight));
	const struct hg__mat w = {g->weight.data, g->m, 1, 1, HG_F32};
	return b->device->fill(b->ctx, w, (uint64_t)b->options.seed + 1, &rule);
}

static hg_status named_make(struct bench *b, const struct named_graph *named)
{
	b->features = named->features;
	b->classes = named->classes;
	b->stored = named->stored;
	HG__TRY(graph_make(b, &named->rule));
	if (!named->rule.block || named->rule.kind == EDGE_PLANTED)
		return HG_OK;
	const int in_block = edge_graphs_of(named->rule.kind);
	const int64_t graphs = named->rule.nodes / named->rule.block * in_block;
	int64_t *ptr = calloc((size_t)graphs + 1, sizeof *ptr);
	for (int64_t k = 0; ptr && k <= graphs; k++)
		ptr[k] = k / in_block * named->rule.block +
		         edge_graph_begin(named->rule.kind, (int)(k % in_block));
	const hg_status status =
	    ptr ? hg_graph_set_batch(b->graph, graphs, ptr)
	        : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld graphs", (long long)graphs);
	free(ptr);
	return status;
}

static hg_status file_make(struct bench *b, const char *path)
{
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = NULL;
	hg_device_data *data = NULL;
	hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
	hg_status status = hg_dataset_read(path, &d, message);
	if (status < 0)
		return hg__fail(b->ctx, status, "%s", message);
	b->features = d->features;
	b->classes = d->classes;
	b->stored = d->feat_rowptr && d->nodes ? d->feat_rowptr[d->nodes] / d->nodes : 0;
	config.features = HG_UPLOAD_NONE; /* only their shape is used */
	config.unweighted = 1;
	status = hg_dataset_upload(d, b->ctx, &config, &data, message);
	hg_dataset_free(d);
	if (status < 0)
		return hg__fail(b->ctx, status, "%s: %s", path, message);
	b->graph = data->graph;
	data->graph = NULL;
	hg_device_data_free(data);
	return HG_OK;
}

hg_status workload_make(struct bench *b, const char *graph, int weights)
{
	const struct named_graph *named = graph_is_file(graph) ? NULL : graph_named(graph);
	const char *slash = strrchr(graph, '/');
	snprintf(b->graph_name, sizeof b->graph_name, "%s",
	         named   ? named->name
	         : slash ? slash + 1
	                 : graph);
	HG__TRY(named ? named_make(b, named) : file_make(b, graph));
	if (weights)
		HG__TRY(weights_make(b));
	if (b->options.reorder)
		HG__TRY(reorder_make(b, b->options.reorder));
	HG__TRY(hg__graph_csr(b->graph, &b->csr));
	b->rowptr = calloc((size_t)b->csr.rows + 1, sizeof *b->rowptr);
	if (!b->rowptr)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld row pointers",
		                (long long)b->csr.rows + 1);
	HG__TRY(hg_graph_download(b->graph, b->rowptr, NULL, NULL));
	for (int64_t i = 0; i < b->csr.rows; i++)
		if (b->rowptr[i + 1] - b->rowptr[i] > b->rowptr[b->longest + 1] - b->rowptr[b->longest])
			b->longest = i;
	return b->csr.rows ? HG_OK
	                   : hg__fail(b->ctx, HG_ERR_ARG,
	                              "--graph %s has no nodes: there is nothing to measure", graph);
}

void workload_free(struct bench *b)
{
	free(b->rowptr);
	reorder_free(b);
	hg_graph_free(b->graph);
	b->rowptr = NULL;
	b->graph = NULL;
}

hg_status mat_new(struct bench *b, struct mats *mats, hg_dtype dtype, int64_t rows, int64_t cols,
                  struct hg__mat *mat)
{
	if (mats->count == (int)(sizeof mats->tensor / sizeof mats->tensor[0]))
		return hg__fail(b->ctx, HG_ERR_INTERNAL, "more matrices than a case may have");
	HG__TRY(hg_tensor_create(b->ctx, dtype, rows, cols, &mats->tensor[mats->count]));
	*mat = mats->tensor[mats->count++]->mat;
	return HG_OK;
}

hg_status mat_random(struct bench *b, struct mats *mats, hg_dtype dtype, int64_t rows, int64_t cols,
                     uint64_t stream, double low, double high, struct hg__mat *mat)
{
	const struct fill_rule rule = {low, high, 0};
	HG__TRY(mat_new(b, mats, dtype, rows, cols, mat));
	return b->device->fill(b->ctx, *mat, (uint64_t)b->options.seed + 1 + stream, &rule);
}

void mats_free(struct mats *mats)
{
	while (mats->count > 0)
		hg_tensor_free(mats->tensor[--mats->count]);
}
