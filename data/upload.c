/* Copy the graph and the features of a dataset to a device. upload_edges.c has those of edges. */
#include "halfgraph/upload.h"

#include <stdlib.h>
#include <string.h>

#include "core/versioned.h"
#include "internal.h"
#include "upload_edges.h"

/* Below this share of stored features the sparse product is faster. A training epoch of a GCN of
 * width 64 on one AVX-512 core costs 44 ns per stored entry with sparse features and 4.1 ns per
 * cell with dense ones (solved from the epochs of Cora, 1.3 % stored, and Amazon Computers, 34.8
 * %): they break even at 9 %. */
#define SPARSE_BELOW 0.09

hg_upload_config hg_upload_config_for(const hg_train_config *run)
{
	hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
	const hg_model_info *model = run ? hg_model_get_info(run->model.name) : NULL;
	if (run)
		config.state = run->policy.state;
	if (model)
		config.self_loops = model->self_loops;
	if (model && model->edge_features)
		config.edge_features = config.edge_labels = 2; /* if there are any */
	return config;
}

/* A core call's status, with the context's message of its failure. */
static hg_status core_status(hg_context *ctx, hg_status status, char *message)
{
	return status < 0 ? hg__data_fail(message, status, "%s", hg_context_error(ctx)) : status;
}

/* ---- graph ---- */

static hg_status add_self_loops(hg_context *ctx, hg_graph **graph, char *message)
{
	hg_graph *looped = NULL;
	HG__TRY(core_status(ctx, hg_graph_add_self_loops(*graph, &looped), message));
	hg_graph_free(*graph);
	*graph = looped;
	return HG_OK;
}

static hg_status upload_graph(const hg_dataset *d, hg_context *ctx, const hg_upload_config *config,
                              hg_graph **graph, char *message)
{
	HG__TRY(core_status(ctx,
	                    hg_graph_from_csr(ctx, d->nodes, d->nodes, d->edges, d->rowptr, d->col,
	                                      config->unweighted ? NULL : d->weight, graph),
	                    message));
	if (config->self_loops)
		HG__TRY(add_self_loops(ctx, graph, message));
	return d->graph_ptr
	           ? core_status(ctx, hg_graph_set_batch(*graph, d->graphs, d->graph_ptr), message)
	           : HG_OK;
}

hg_status hg__upload_tensor(hg_context *ctx, const hg_upload_config *config, int64_t rows,
                            int64_t cols, hg_tensor **tensor)
{
	return (config->on_host ? hg_tensor_create_on_host : hg_tensor_create)(ctx, config->state, rows,
	                                                                       cols, tensor);
}

/* ---- dense features ---- */

/* x [nodes, features], f32, from stored sparse entries. */
static hg_status densify(const hg_dataset *d, float **x, char *message)
{
	const int64_t cells = d->nodes * d->features;
	HG__TRY(hg__data_alloc(cells, sizeof **x, "dense features", (void **)x, message));
	memset(*x, 0, (size_t)cells * sizeof **x);
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++)
			(*x)[i * d->features + d->feat_col[e]] += d->feat_value ? d->feat_value[e] : 1.0f;
	return HG_OK;
}

/* The dataset knows the node of a value that does not fit, the tensor only its row. */
static hg_status fill_dense(const hg_dataset *d, hg_context *ctx, hg_tensor *x, const void *host,
                            hg_dtype dtype, char *message)
{
	const hg_status status = hg_tensor_upload(x, host, dtype);
	return status == HG_ERR_RANGE && hg_dataset_check_f16(d, message) == HG_ERR_RANGE
	           ? status
	           : core_status(ctx, status, message);
}

static hg_status upload_dense(const hg_dataset *d, hg_context *ctx, const hg_upload_config *config,
                              hg_tensor **x, char *message)
{
	float *host = NULL;
	HG__TRY(core_status(ctx, hg__upload_tensor(ctx, config, d->nodes, d->features, x), message));
	if (d->feat)
		return fill_dense(d, ctx, *x, d->feat, d->feat_dtype, message);
	HG__TRY(densify(d, &host, message));
	const hg_status status = fill_dense(d, ctx, *x, host, HG_F32, message);
	free(host);
	return status;
}

/* ---- sparse features ---- */

/* Features as CSR; the arrays are owned where dense features were converted. */
struct entries {
	int64_t count, *rowptr;
	int32_t *col;
	float *value;
};

static hg_status entries_new(const hg_dataset *d, struct entries *s, char *message)
{
	const int64_t cells = d->nodes * d->features;
	for (int64_t k = 0; k < cells; k++)
		s->count += hg__data_feature(d, k) != 0.0f;
	HG__TRY(hg__data_alloc(d->nodes + 1, sizeof *s->rowptr, "pointers of sparse features",
	                       (void **)&s->rowptr, message));
	HG__TRY(hg__data_alloc(s->count, sizeof *s->col, "columns of sparse features", (void **)&s->col,
	                       message));
	return hg__data_alloc(s->count, sizeof *s->value, "values of sparse features",
	                      (void **)&s->value, message);
}

static void entries_free(struct entries *s)
{
	free(s->rowptr);
	free(s->col);
	free(s->value);
}

static void entries_fill(const hg_dataset *d, struct entries *s)
{
	int64_t m = 0;
	s->rowptr[0] = 0;
	for (int64_t i = 0; i < d->nodes; i++) {
		for (int64_t c = 0; c < d->features; c++) {
			const float v = hg__data_feature(d, i * d->features + c);
			if (v == 0.0f)
				continue;
			s->col[m] = (int32_t)c;
			s->value[m++] = v;
		}
		s->rowptr[i + 1] = m;
	}
}

static hg_status upload_sparse(const hg_dataset *d, hg_context *ctx, hg_graph **x, char *message)
{
	if (d->feat_rowptr)
		return core_status(ctx,
		                   hg_graph_from_csr(ctx, d->nodes, d->features, d->feat_rowptr[d->nodes],
		                                     d->feat_rowptr, d->feat_col, d->feat_value, x),
		                   message);
	struct entries s = {.count = 0};
	hg_status status = entries_new(d, &s, message);
	if (status >= 0) {
		entries_fill(d, &s);
		status = core_status(
		    ctx,
		    hg_graph_from_csr(ctx, d->nodes, d->features, s.count, s.rowptr, s.col, s.value, x),
		    message);
	}
	entries_free(&s);
	return status;
}

/* ---- both ---- */

static int is_sparse(const hg_dataset *d, hg_upload_features features)
{
	const double cells = (double)d->nodes * (double)d->features;
	if (features != HG_UPLOAD_AUTO)
		return features == HG_UPLOAD_SPARSE;
	return d->feat_rowptr && cells > 0 && (double)d->feat_rowptr[d->nodes] / cells < SPARSE_BELOW;
}

static hg_status upload_features(const hg_dataset *d, hg_context *ctx,
                                 const hg_upload_config *config, hg_device_data *data,
                                 char *message)
{
	if (config->features == HG_UPLOAD_NONE)
		return HG_OK;
	return is_sparse(d, config->features) ? upload_sparse(d, ctx, &data->x_sparse, message)
	                                      : upload_dense(d, ctx, config, &data->x, message);
}

static hg_status config_check(const hg_upload_config *config, char *message)
{
	if (config->state != HG_F16 && config->state != HG_F32)
		return hg__data_fail(message, HG_ERR_DTYPE, "upload: state is %d, neither f16 nor f32",
		                     (int)config->state);
	if (config->features < HG_UPLOAD_AUTO || config->features > HG_UPLOAD_NONE)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "upload: features is %d, expected one of hg_upload_features (0 to 3)",
		                     (int)config->features);
	return HG_OK;
}

static hg_status arguments_check(const hg_dataset *d, const hg_upload_config *config, char *message)
{
	HG__TRY(config_check(config, message));
	if (config->features != HG_UPLOAD_NONE && !d->feat && !d->feat_rowptr)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "upload: the dataset has no features, expected some, or features "
		                     "HG_UPLOAD_NONE");
	if (d->graph_ptr && d->graphs < 1)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "upload: the batch has no graphs, expected at least one");
	if ((config->edge_features == 1 && !d->edge_feat) ||
	    (config->edge_labels == 1 && !d->edge_label))
		return hg__data_fail(
		    message, HG_ERR_FORMAT, "upload: %s is set, but the edges of the dataset have none",
		    config->edge_features == 1 && !d->edge_feat ? "edge_features" : "edge_labels");
	return HG_OK;
}

hg_status hg_dataset_upload(const hg_dataset *d, hg_context *ctx, const hg_upload_config *config,
                            hg_device_data **out, char *message)
{
	hg_upload_config ours = HG_UPLOAD_CONFIG_INIT;
	hg_device_data *data = NULL;
	if (!out)
		return hg__data_fail(message, HG_ERR_ARG, "upload: data is NULL");
	*out = NULL;
	if (!d || !ctx)
		return hg__data_fail(message, HG_ERR_ARG, "upload: %s is NULL", d ? "context" : "dataset");
	if (config && !hg__struct_read(&ours, sizeof ours, config))
		return hg__data_fail(message, HG_ERR_ARG,
		                     "upload: config.size is not set (start from HG_UPLOAD_CONFIG_INIT), "
		                     "or a field unknown to this version is used");
	HG__TRY(arguments_check(d, &ours, message));
	ours.edge_features = ours.edge_features && d->edge_feat;
	ours.edge_labels = ours.edge_labels && d->edge_label;
	HG__TRY(hg__data_alloc(1, sizeof *data, "device data", (void **)&data, message));
	*data = (hg_device_data){.self_loops = ours.self_loops, .unweighted = ours.unweighted};
	hg_status status = upload_graph(d, ctx, &ours, &data->graph, message);
	if (status >= 0)
		status = upload_features(d, ctx, &ours, data, message);
	if (status >= 0 && (ours.edge_features || ours.edge_labels))
		status = hg__upload_edges(d, ctx, &ours, &data->edge_x, message);
	if (status < 0) {
		hg_device_data_free(data);
		return status;
	}
	*out = data;
	return HG_OK;
}

void hg_device_data_free(hg_device_data *data)
{
	if (!data)
		return;
	hg_tensor_free(data->x);
	hg_tensor_free(data->edge_x);
	hg_graph_free(data->x_sparse);
	hg_graph_free(data->graph);
	free(data);
}
