/* Read a dataset file and copy it to tensors on a device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "training.h"

/* Below this share of stored features the sparse product is faster. A training epoch of a GCN of
 * width 64 on one AVX-512 core costs 44 ns per stored entry with sparse features and 4.1 ns per
 * cell with dense ones (solved from the epochs of Cora, 1.3 % stored, and Amazon Computers, 34.8
 * %): they break even at 9 %. */
#define SPARSE_BELOW 0.09

double dataset_density(const hg_dataset *d)
{
	const double cells = (double)d->nodes * (double)d->features;
	return d->feat || cells <= 0 ? 1.0 : (double)d->feat_rowptr[d->nodes] / cells;
}

int dataset_is_sparse(const hg_dataset *d, const struct training *t)
{
	if (strcmp(t->sparse_features, "auto") == 0)
		return dataset_density(d) < SPARSE_BELOW;
	return strcmp(t->sparse_features, "on") == 0;
}

const char *dataset_features_text(const hg_dataset *d, int sparse)
{
	const int stored_sparse = d->feat_rowptr != NULL;
	return sparse          ? stored_sparse ? "sparse" : "stored dense, used sparse"
	       : stored_sparse ? "stored sparse, used dense"
	                       : "dense";
}

hg_status dataset_refuse(const struct training *t, const char *why, char *message)
{
	(void)snprintf(message, HG_DATA_MESSAGE, "%s: %s", t->data, why);
	return HG_ERR_FORMAT;
}

int dataset_has_validation(const hg_dataset *d)
{
	const int64_t rows = d->graph_ptr ? d->graphs : d->nodes;
	int64_t i = 0;
	while (d->val_mask && i < rows && (!d->val_mask[i] || d->label[i] < 0))
		i++;
	return d->val_mask && i < rows;
}

/* An option that does not apply to this dataset is refused, because it would silently have no
 * effect. NULL: all options apply. */
static const char *misfit(const hg_dataset *d, const struct training *t)
{
	if (t->readout && !d->graph_ptr)
		return "is one graph, but --readout is for datasets of many graphs";
	if (t->out_heads >= 0 && d->graph_ptr)
		return "holds many graphs, but --out-heads is for the last layer on one graph";
	return NULL;
}

hg_status dataset_load(const struct training *t, hg_dataset **dataset, struct feature_rows *rows,
                       char *message)
{
	hg_status status = hg_dataset_read(t->data, dataset, message);
	if (status < 0)
		return status;
	hg_dataset *d = *dataset;
	if ((!d->feat && !d->feat_rowptr) || !d->features)
		return dataset_refuse(
		    t,
		    "has no features to train on: make it from a source that has some (npz: attr_*, tu: "
		    "labels or attributes of nodes), or write nodes/feat, as data/FORMAT.md shows",
		    message);
	if (!d->label)
		return dataset_refuse(t,
		                      "has no labels to train on: write nodes/label (graphs/label of a "
		                      "batch), as data/FORMAT.md shows",
		                      message);
	if (d->classes < 1)
		return dataset_refuse(t, "num_classes is 0, expected at least 1 to train on", message);
	if (!d->train_mask)
		return dataset_refuse(t,
		                      "has no training split: h5convert FILE --fold 0/10 -o OUT.h5 makes "
		                      "one, or write nodes/train_mask, as data/FORMAT.md shows",
		                      message);
	const char *why = misfit(d, t);
	if (why)
		return dataset_refuse(t, why, message);
	status = rows_decide(d, t->row_normalize, rows);
	if (status < 0)
		(void)snprintf(message, HG_DATA_MESSAGE, "%s: %s", t->data, hg_status_text(status));
	return status >= 0 && rows->normalize ? hg_dataset_row_normalize(d, message) : status;
}

static float dense_at(const hg_dataset *d, int64_t i)
{
	return d->feat_dtype == HG_F16 ? hg_half_to_float(((const hg_half *)d->feat)[i])
	                               : ((const float *)d->feat)[i];
}

/* x [nodes, features], f32 on the host, from stored sparse entries */
static float *densify(const hg_dataset *d)
{
	float *x = calloc((size_t)d->nodes * (size_t)d->features + 1, sizeof *x);
	for (int64_t i = 0; x && i < d->nodes; i++)
		for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++)
			x[i * d->features + d->feat_col[e]] += d->feat_value ? d->feat_value[e] : 1.0f;
	return x;
}

static hg_status upload_dense(const hg_dataset *d, hg_context *ctx, hg_dtype state, hg_tensor **x)
{
	hg_status status = hg_tensor_create(ctx, state, d->nodes, d->features, x);
	if (status < 0)
		return status;
	if (d->feat)
		return hg_tensor_upload(*x, d->feat, d->feat_dtype);
	float *host = densify(d);
	status = host ? hg_tensor_upload(*x, host, HG_F32) : HG_ERR_NOMEM;
	free(host);
	return status;
}

/* The non-zero entries of dense features as CSR, into arrays whose sizes were counted before. */
static void sparsify(const hg_dataset *d, int64_t *rowptr, int32_t *col, float *value)
{
	int64_t m = 0;
	rowptr[0] = 0;
	for (int64_t i = 0; i < d->nodes; i++) {
		for (int64_t c = 0; c < d->features; c++) {
			const float v = dense_at(d, i * d->features + c);
			if (v == 0.0f)
				continue;
			col[m] = (int32_t)c;
			value[m++] = v;
		}
		rowptr[i + 1] = m;
	}
}

static hg_status upload_sparsified(const hg_dataset *d, hg_context *ctx, hg_graph **x)
{
	int64_t m = 0;
	for (int64_t i = 0; i < d->nodes * d->features; i++)
		m += dense_at(d, i) != 0.0f;
	int64_t *rowptr = malloc((size_t)(d->nodes + 1) * sizeof *rowptr);
	int32_t *col = malloc((size_t)(m + 1) * sizeof *col);
	float *value = malloc((size_t)(m + 1) * sizeof *value);
	hg_status status = HG_ERR_NOMEM;
	if (rowptr && col && value) {
		sparsify(d, rowptr, col, value);
		status = hg_graph_from_csr(ctx, d->nodes, d->features, m, rowptr, col, value, x);
	}
	free(rowptr);
	free(col);
	free(value);
	return status;
}

static hg_status upload_features(const hg_dataset *d, const struct training *t, hg_context *ctx,
                                 hg_dtype state, struct device_data *out)
{
	if (!dataset_is_sparse(d, t))
		return upload_dense(d, ctx, state, &out->x);
	if (d->feat)
		return upload_sparsified(d, ctx, &out->x_sparse);
	return hg_graph_from_csr(ctx, d->nodes, d->features, d->feat_rowptr[d->nodes], d->feat_rowptr,
	                         d->feat_col, d->feat_value, &out->x_sparse);
}

static hg_status upload_graph(const hg_dataset *d, const struct training *t, hg_context *ctx,
                              hg_graph **graph)
{
	hg_status status =
	    hg_graph_from_csr(ctx, d->nodes, d->nodes, d->edges, d->rowptr, d->col, d->weight, graph);
	if (status >= 0 && !t->no_self_loops && strcmp(t->model, "gin") != 0) {
		hg_graph *looped = NULL;
		status = hg_graph_add_self_loops(*graph, &looped);
		if (status < 0)
			return status;
		hg_graph_free(*graph);
		*graph = looped;
	}
	return status >= 0 && d->graph_ptr ? hg_graph_set_batch(*graph, d->graphs, d->graph_ptr)
	                                   : status;
}

hg_status dataset_upload(const hg_dataset *d, const struct training *t, hg_context *ctx,
                         hg_dtype state, struct device_data *out)
{
	*out = (struct device_data){NULL, NULL, NULL};
	const hg_status status = upload_graph(d, t, ctx, &out->graph);
	return status < 0 ? status : upload_features(d, t, ctx, state, out);
}

hg_train_data dataset_to_train(const hg_dataset *d, const struct device_data *data,
                               const struct feature_rows *rows)
{
	hg_train_data train = HG_TRAIN_DATA_INIT;
	train.input.graph = data->graph;
	train.input.x = data->x;
	train.input.x_sparse = data->x_sparse;
	train.labels = d->label;
	train.features_note = rows_note(rows);
	train.train_mask = d->train_mask;
	train.val_mask = d->val_mask;
	train.test_mask = d->test_mask;
	return train;
}

void dataset_release(struct device_data *data)
{
	hg_tensor_free(data->x);
	hg_graph_free(data->x_sparse);
	hg_graph_free(data->graph);
	*data = (struct device_data){NULL, NULL, NULL};
}
