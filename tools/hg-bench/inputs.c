#include "inputs.h"

#include <stdlib.h>
#include <string.h>

#include "edges.h"

int64_t input_width(const struct bench *b)
{
	return b->options.widths ? b->options.features[0] : b->features;
}

void inputs_free(struct inputs *in)
{
	hg_tensor_free(in->x);
	hg_graph_free(in->x_sparse);
	free(in->label);
	free(in->mask);
}

static uint64_t stream_of_seed(const struct bench *b, uint64_t k)
{
	return (uint64_t)b->options.seed + k;
}

/* `stored` features of each node, all with the same value, so that rows sum up to 1. */
static hg_status sparse_make(struct bench *b, int64_t width, hg_graph **graph)
{
	const int64_t n = b->csr.rows, m = n * b->stored;
	int64_t *ptr = calloc((size_t)n + 1, sizeof *ptr);
	int32_t *col = calloc((size_t)m, sizeof *col);
	float *value = calloc((size_t)m, sizeof *value);
	hg_status status = ptr && col && value ? HG_OK
	                                       : hg__fail(b->ctx, HG_ERR_NOMEM,
	                                                  "no memory for %lld features", (long long)m);
	for (int64_t i = 0; status == HG_OK && i <= n; i++)
		ptr[i] = i * b->stored;
	for (int64_t e = 0; status == HG_OK && e < m; e++) {
		col[e] =
		    (int32_t)edge_below((uint64_t)width, edge_uniform(stream_of_seed(b, 4), (uint64_t)e));
		value[e] = 1.0f / (float)b->stored;
	}
	if (status == HG_OK)
		status = hg_graph_from_csr(b->ctx, n, width, m, ptr, col, value, graph);
	free(ptr);
	free(col);
	free(value);
	return status;
}

static hg_status dense_make(struct bench *b, int64_t width, hg_tensor **x)
{
	static const struct fill_rule rule = {-1.0, 1.0, 0};
	HG__TRY((b->options.on_host ? hg_tensor_create_on_host : hg_tensor_create)(
	    b->ctx, b->policy->state, b->csr.rows, width, x));
	return b->device->fill(b->ctx, (*x)->mat, stream_of_seed(b, 2), &rule);
}

hg_status inputs_make(struct bench *b, int64_t width, struct inputs *in)
{
	const int64_t targets = b->options.readout ? hg_graph_batch(b->graph) : b->csr.rows;
	in->label = calloc((size_t)targets, sizeof *in->label);
	in->mask = malloc((size_t)targets);
	if (!in->label || !in->mask)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld labels", (long long)targets);
	memset(in->mask, 1, (size_t)targets);
	for (int64_t i = 0; i < targets; i++)
		in->label[i] = (int32_t)edge_below((uint64_t)b->classes,
		                                   edge_uniform(stream_of_seed(b, 3), (uint64_t)i));
	return b->stored && !b->options.dense && !b->options.widths && !b->options.on_host
	           ? sparse_make(b, width, &in->x_sparse)
	           : dense_make(b, width, &in->x);
}

hg_status models_run(struct bench *b, hg_status (*run)(struct bench *b, const char *model))
{
	if (b->classes < 2 || b->features < 1)
		return hg__fail(b->ctx, HG_ERR_ARG, "%s has %lld features and %d classes: nothing to train",
		                b->graph_name, (long long)b->features, b->classes);
	for (const char *const *name = hg_model_names(); *name; name++)
		for (int p = 0; p < b->options.policies && options_have_model(&b->options, *name); p++) {
			b->policy = &b->options.policy[p];
			HG__TRY(run(b, *name));
		}
	return HG_OK;
}

hg_train_config train_config_of(const struct bench *b, const char *model, int64_t width)
{
	const int heads = b->options.head_counts ? (int)b->options.heads[0] : 1;
	hg_train_config c = hg_train_config_default(model);
	c.model.in_features = width;
	c.model.out_features = b->classes;
	c.model.layers = (int)b->options.layers;
	c.model.heads = heads;
	c.model.hidden = (int)b->options.hidden / (hg_model_get_info(model)->heads ? heads : 1);
	c.model.dropout = c.model.attention_dropout = (float)b->options.dropout;
	c.model.readout = b->options.readout - 1;
	if (b->options.readout)
		c.model.readout_layers = HG_READOUT_LAST;
	c.model.aggregate = b->options.aggregate ? HG_NORM_RIGHT : HG_NORM_NONE;
	c.model.lambda = (float)b->options.lambda;
	c.policy = *b->policy;
	c.patience = 0;
	c.step.observe_every = (const int[]){0, -1, 1}[b->options.observe];
	return c;
}

hg_train_data train_data_of(const struct bench *b, const struct inputs *in)
{
	hg_train_data data = HG_TRAIN_DATA_INIT;
	data.input.graph = b->graph;
	data.input.x = in->x;
	data.input.x_sparse = in->x_sparse;
	data.input.x_amax = 1.0;
	data.labels = in->label;
	data.train_mask = in->mask;
	return data;
}
