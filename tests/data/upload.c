/* Datasets on a device and in training runs: every form of the features, self loops, batches, and
 * what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mat.h"
#include "support.h"
#include "unit/faulty.h"

/* Two graphs of three nodes each, with dense features. */
static hg_dataset *featured_batch(void)
{
	hg_dataset *d = small_batch();
	float *x = calloc(12, sizeof *x);
	CHECK(x != NULL);
	for (int i = 0; i < 12; i++)
		x[i] = (float)(i % 4);
	d->features = 2;
	d->feat = x;
	d->feat_amax = 3;
	return d;
}

/* Functions that make the small datasets, by the form in which these store features. */
enum { DENSE, SPARSE, BATCH, FORMS };
static hg_dataset *(*const makers[FORMS])(void) = {small_dataset, small_sparse, featured_batch};

static float feature_of(const hg_dataset *d, int64_t i, int64_t c)
{
	if (d->feat)
		return ((const float *)d->feat)[i * d->features + c];
	for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++)
		if (d->feat_col[e] == c)
			return d->feat_value ? d->feat_value[e] : 1.0f;
	return 0.0f;
}

/* Downloads x [n, F] from device data in any form. */
static float *features_back(const hg_dataset *d, const hg_device_data *data)
{
	float *x = calloc((size_t)(d->nodes * d->features) + 1, sizeof *x);
	CHECK(x && !data->x == (data->x_sparse != NULL));
	if (data->x) {
		CHECK_OK(hg_tensor_download(data->x, x, HG_F32));
		return x;
	}
	const int64_t m = hg_graph_edges(data->x_sparse);
	int64_t *rowptr = calloc((size_t)d->nodes + 1, sizeof *rowptr);
	int32_t *col = calloc((size_t)m + 1, sizeof *col);
	float *value = calloc((size_t)m + 1, sizeof *value);
	CHECK(rowptr && col && value && hg_graph_cols(data->x_sparse) == d->features);
	CHECK_OK(hg_graph_download(data->x_sparse, rowptr, col, value));
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++)
			x[i * d->features + col[e]] = value[e];
	free(rowptr);
	free(col);
	free(value);
	return x;
}

static void check_features(const hg_dataset *d, const hg_device_data *data)
{
	float *x = features_back(d, data);
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t c = 0; c < d->features; c++) {
			const float stored = feature_of(d, i, c);
			const int half = data->x && hg_tensor_dtype(data->x) == HG_F16;
			CHECK(x[i * d->features + c] ==
			      (half ? hg_half_to_float(hg_half_from_float(stored)) : stored));
		}
	free(x);
}

static void features_are_uploaded_in_every_form(void)
{
	static const hg_upload_features how[] = {HG_UPLOAD_AUTO, HG_UPLOAD_DENSE, HG_UPLOAD_SPARSE};
	hg_context *ctx = test_context();
	for (int form = 0; form < FORMS; form++)
		for (int k = 0; k < 3; k++)
			for (hg_dtype state = HG_F16; state <= HG_F32; state++) {
				hg_dataset *d = makers[form]();
				hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
				hg_device_data *data = NULL;
				config.features = how[k];
				config.state = state;
				config.on_host = (form + k + (int)state) % 2;
				CHECK_OK(hg_dataset_upload(d, ctx, &config, &data, NULL));
				CHECK(!data->x || data->x->on_host == config.on_host);
				CHECK(how[k] != HG_UPLOAD_DENSE || data->x);
				CHECK(how[k] != HG_UPLOAD_SPARSE || data->x_sparse);
				CHECK(!data->x || hg_tensor_dtype(data->x) == state);
				check_features(d, data);
				hg_device_data_free(data);
				hg_dataset_free(d);
			}
	hg_context_free(ctx);
}

/* One entry in twelve rows of one column is less than 9 %, one in eleven is more. */
static void few_entries_are_uploaded_as_sparse(void)
{
	hg_context *ctx = test_context();
	for (int columns = 11; columns <= 12; columns++) {
		hg_dataset *d = small_sparse();
		hg_device_data *data = NULL;
		d->features = columns; /* six entries in six rows */
		CHECK_OK(hg_dataset_upload(d, ctx, NULL, &data, NULL));
		CHECK((data->x_sparse != NULL) == (columns == 12));
		check_features(d, data);
		hg_device_data_free(data);
		hg_dataset_free(d);
	}
	hg_context_free(ctx);
}

/* The graph on the device: the number of its self loops, and the sum of its weights. */
static void graph_facts(hg_graph *graph, int64_t *loops, double *sum)
{
	const int64_t n = hg_graph_rows(graph), m = hg_graph_edges(graph);
	int64_t *rowptr = calloc((size_t)n + 1, sizeof *rowptr);
	int32_t *col = calloc((size_t)m + 1, sizeof *col);
	float *weight = calloc((size_t)m + 1, sizeof *weight);
	CHECK(rowptr && col && weight);
	CHECK_OK(hg_graph_download(graph, rowptr, col, weight));
	*loops = 0;
	*sum = 0;
	for (int64_t i = 0; i < n; i++)
		for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++) {
			*loops += col[e] == i;
			*sum += (double)weight[e];
		}
	free(rowptr);
	free(col);
	free(weight);
}

static void graphs_are_uploaded(void)
{
	hg_context *ctx = test_context();
	for (int form = 0; form < FORMS; form++)
		for (int loops = 0; loops < 2; loops++)
			for (int unweighted = 0; unweighted < 2; unweighted++) {
				hg_dataset *d = makers[form]();
				hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
				hg_device_data *data = NULL;
				int64_t had = 0, has;
				double sum = 0, found;
				for (int64_t i = 0; i < d->nodes; i++)
					for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
						had += d->col[e] == i;
						sum += d->weight && !unweighted ? (double)d->weight[e] : 1.0;
					}
				config.self_loops = loops;
				config.unweighted = unweighted;
				config.features = HG_UPLOAD_NONE;
				CHECK_OK(hg_dataset_upload(d, ctx, &config, &data, NULL));
				CHECK(!data->x && !data->x_sparse);
				graph_facts(data->graph, &has, &found);
				CHECK_EQ_I(has, loops ? d->nodes : had);
				CHECK(found == (loops ? sum + (double)(d->nodes - had) : sum));
				CHECK_EQ_I(hg_graph_edges(data->graph), d->edges + (loops ? d->nodes - had : 0));
				CHECK_EQ_I(hg_graph_batch(data->graph), d->graphs);
				hg_device_data_free(data);
				hg_dataset_free(d);
			}
	hg_context_free(ctx);
}

/* What an edge of the dataset has in column c of [attributes | labels]; 0 where there is no such
 * edge, which is a loop that was added. */
static float edge_value(const hg_dataset *d, const hg_upload_config *config, int64_t i, int64_t j,
                        int64_t c)
{
	int64_t e = d->rowptr[i];
	while (e < d->rowptr[i + 1] && d->col[e] != j)
		e++;
	if (e == d->rowptr[i + 1])
		return 0;
	if (config->edge_features && c < d->edge_features)
		return d->edge_feat[e * d->edge_features + c];
	return d->edge_label[e] == c - (config->edge_features ? d->edge_features : 0);
}

static void check_edges(const hg_dataset *d, const hg_upload_config *config,
                        const hg_device_data *data)
{
	const int64_t m = hg_graph_edges(data->graph),
	              columns = (config->edge_features ? d->edge_features : 0) +
	                        (config->edge_labels ? d->edge_classes : 0);
	int64_t *rowptr = calloc((size_t)d->nodes + 1, sizeof *rowptr);
	int32_t *col = calloc((size_t)m + 1, sizeof *col);
	float *x = calloc((size_t)(m * columns) + 1, sizeof *x);
	CHECK(rowptr && col && x && hg_tensor_dtype(data->edge_x) == config->state);
	CHECK(hg_tensor_rows(data->edge_x) == m && hg_tensor_cols(data->edge_x) == columns);
	CHECK_OK(hg_graph_download(data->graph, rowptr, col, NULL));
	CHECK_OK(hg_tensor_download(data->edge_x, x, HG_F32));
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++)
			for (int64_t c = 0; c < columns; c++) {
				const float stored = edge_value(d, config, i, col[e], c);
				CHECK(x[e * columns + c] == (config->state == HG_F16
				                                 ? hg_half_to_float(hg_half_from_float(stored))
				                                 : stored));
			}
	free(rowptr);
	free(col);
	free(x);
}

static void edges_are_uploaded(void)
{
	hg_context *ctx = test_context();
	for (int what = 0; what < 4; what++)
		for (int loops = 0; loops < 2; loops++)
			for (hg_dtype state = HG_F16; state <= HG_F32; state++) {
				hg_dataset *d = small_dataset();
				hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
				hg_device_data *data = NULL;
				config.edge_features = what & 1;
				config.edge_labels = what >> 1;
				config.self_loops = loops;
				config.state = state;
				config.on_host = loops;
				d->edge_feat[12] = 6e4f; /* f16 does not hold the 1e5 of the dataset */
				CHECK_OK(hg_dataset_upload(d, ctx, &config, &data, NULL));
				CHECK((data->edge_x != NULL) == (what != 0));
				CHECK(!data->edge_x || data->edge_x->on_host == loops);
				if (what)
					check_edges(d, &config, data);
				hg_device_data_free(data);
				hg_dataset_free(d);
			}
	hg_context_free(ctx);
}

static void edges_that_cannot_be_uploaded_are_refused_by_name(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_context *ctx = test_context();
	hg_dataset *d = small_dataset(), *batch = featured_batch();
	hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
	hg_device_data *data = NULL;
	config.edge_features = 1;
	CHECK_STATUS(hg_dataset_upload(d, ctx, &config, &data, message), HG_ERR_RANGE);
	CHECK_CONTAINS(message, "edge features: the edge from node 20 to node 30 has 100000 in column "
	                        "0, beyond f16's 65504");
	CHECK(!data);
	CHECK_STATUS(hg_dataset_upload(batch, ctx, &config, &data, message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "upload: edge_features is set, but the edges of the dataset have none");
	config.edge_features = 0;
	config.edge_labels = 1;
	CHECK_STATUS(hg_dataset_upload(batch, ctx, &config, &data, message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "upload: edge_labels is set, but");
	hg_dataset_free(d);
	hg_dataset_free(batch);
	hg_context_free(ctx);
}

/* A member of the device data may be taken over by the caller, and the dataset may be freed
 * before. */
static void members_may_be_taken_over(void)
{
	hg_context *ctx = test_context();
	hg_dataset *d = small_dataset();
	hg_device_data *data = NULL;
	CHECK_OK(hg_dataset_upload(d, ctx, NULL, &data, NULL));
	hg_dataset_free(d);
	hg_graph *graph = data->graph;
	data->graph = NULL;
	hg_device_data_free(data);
	CHECK_EQ_I(hg_graph_rows(graph), 6);
	hg_graph_free(graph);
	hg_device_data_free(NULL);
	hg_context_free(ctx);
}

static void models_decide_about_self_loops(void)
{
	static const struct {
		const char *model;
		int self_loops;
	} wants[] = {{"gcn", 1}, {"gin", 0}, {"gat", 1}, {"mlp", 0}};
	for (size_t k = 0; k < sizeof wants / sizeof *wants; k++) {
		hg_train_config config = hg_train_config_default(wants[k].model);
		config.policy = k % 2 ? hg_policy_fp32() : hg_policy_fp16();
		const hg_upload_config upload = hg_upload_config_for(&config);
		CHECK_EQ_I(upload.self_loops, wants[k].self_loops);
		CHECK(upload.state == (k % 2 ? HG_F32 : HG_F16) && upload.features == HG_UPLOAD_AUTO);
		CHECK(upload.size == sizeof upload && !upload.unweighted);
	}
	CHECK(hg_upload_config_for(NULL).state == HG_F16 && !hg_upload_config_for(NULL).self_loops);
}

/* ---- what is refused ---- */

static void refuse_upload(const hg_dataset *d, hg_context *ctx, const hg_upload_config *config,
                          hg_status status, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_device_data *data = (hg_device_data *)(void *)message; /* not NULL, but must become it */
	CHECK_STATUS(hg_dataset_upload(d, ctx, config, &data, message), status);
	CHECK(!data);
	CHECK_CONTAINS(message, part);
	CHECK_STATUS(hg_dataset_upload(d, ctx, config, &data, NULL), status);
}

static void bad_arguments_are_refused_by_name(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_context *ctx = test_context();
	hg_dataset *d = small_dataset();
	hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
	refuse_upload(NULL, ctx, NULL, HG_ERR_ARG, "dataset is NULL");
	refuse_upload(d, NULL, NULL, HG_ERR_ARG, "context is NULL");
	CHECK_STATUS(hg_dataset_upload(d, ctx, NULL, NULL, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "data is NULL");
	config.size = 0;
	refuse_upload(d, ctx, &config, HG_ERR_ARG, "config.size is not set");
	config.size = sizeof config;
	config.state = HG_I32;
	refuse_upload(d, ctx, &config, HG_ERR_DTYPE, "neither f16 nor f32");
	config.state = HG_F16;
	config.features = (hg_upload_features)4;
	refuse_upload(d, ctx, &config, HG_ERR_ARG, "features is 4, expected one of");
	hg_dataset_free(d);
	hg_context_free(ctx);
}

static void bad_datasets_are_refused_by_name(void)
{
	hg_context *ctx = test_context();
	hg_dataset *d = small_dataset();
	((float *)d->feat)[3 * 3 + 1] = 1e30f;
	refuse_upload(d, ctx, NULL, HG_ERR_RANGE, "row 3 (node 40), column 1 is 1e+30");
	free(d->feat);
	d->feat = NULL;
	refuse_upload(d, ctx, NULL, HG_ERR_FORMAT, "has no features");
	hg_dataset_free(d);
	d = small_sparse();
	d->feat_value[4] = 1e30f;
	refuse_upload(d, ctx, NULL, HG_ERR_RANGE, "row 3 (node 40), column 2 is 1e+30");
	hg_dataset_free(d);
	d = small_dataset(); /* shapes that do not match, which no file can have */
	d->edges = 10;
	refuse_upload(d, ctx, NULL, HG_ERR_ARG, "rowptr");
	hg_dataset_free(d);
	d = featured_batch();
	d->graph_ptr[2] = 5;
	refuse_upload(d, ctx, NULL, HG_ERR_ARG, "batch");
	d->graphs = 0;
	refuse_upload(d, ctx, NULL, HG_ERR_FORMAT, "no graphs");
	hg_dataset_free(d);
	hg_context_free(ctx);
}

/* ---- training ---- */

/* Frees *array and sets it to NULL. */
static void drop(void *array)
{
	void *memory;
	memcpy(&memory, array, sizeof memory);
	free(memory);
	memset(array, 0, sizeof memory);
}

static void refuse_training(hg_dataset *d, hg_status status, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_STATUS(hg_dataset_check_training(d, "file.h5", message), status);
	CHECK_MSG(strncmp(message, "file.h5: ", 9) == 0, "\"%s\"", message);
	CHECK_CONTAINS(message, part);
	CHECK_STATUS(hg_dataset_check_training(d, NULL, NULL), status);
	hg_dataset_free(d);
}

/* The small dataset with two columns of targets instead of its labels. */
static hg_dataset *aimed_dataset(void)
{
	hg_dataset *d = small_dataset();
	drop(&d->label);
	d->classes = 0;
	d->targets = 2;
	free(d->target);
	d->target = malloc((size_t)(2 * d->nodes) * sizeof *d->target);
	CHECK(d->target);
	for (int64_t i = 0; i < 2 * d->nodes; i++)
		d->target[i] = (float)i;
	return d;
}

static void untrainable_datasets_are_refused_by_name(void)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_STATUS(hg_dataset_check_training(NULL, "file.h5", message), HG_ERR_ARG);
	for (int form = 0; form < FORMS; form++) {
		const char *who = form == BATCH ? "graphs" : "nodes";
		char part[80];
		hg_dataset *d = makers[form]();
		drop(&d->feat);
		drop(&d->feat_rowptr);
		refuse_training(d, HG_ERR_FORMAT, "no features to train on");
		d = makers[form]();
		drop(&d->label);
		drop(&d->target);
		d->targets = 0;
		snprintf(part, sizeof part, "no labels to train on: write %s/label", who);
		refuse_training(d, HG_ERR_FORMAT, part);
		d = makers[form]();
		d->classes = 0;
		refuse_training(d, HG_ERR_FORMAT, "num_classes is 0");
		d = makers[form]();
		drop(&d->train_mask);
		snprintf(part, sizeof part, "or write %s/train_mask", who);
		refuse_training(d, HG_ERR_FORMAT, part);
	}
	hg_dataset *d = small_dataset();
	d->features = 0;
	refuse_training(d, HG_ERR_FORMAT, "no features to train on");
	d = small_dataset();
	d->label[0] = d->label[1] = -1; /* the nodes of the training split */
	CHECK(d->target);               /* a regression learns those */
	CHECK_OK(hg_dataset_check_training(d, "file.h5", message));
	for (int64_t i = 0; i < 2 * d->targets; i++)
		d->target[i] = NAN;
	refuse_training(d, HG_ERR_FORMAT,
	                "none of 6 nodes is labelled or has a target and is in nodes/train_mask");
	d = small_dataset();
	drop(&d->target);
	d->targets = 0;
	d->label[0] = d->label[1] = -1;
	refuse_training(d, HG_ERR_FORMAT, "none of 6 nodes is labelled and in nodes/train_mask");
	d = aimed_dataset();
	d->target[0] = d->target[1] = d->target[2] = d->target[3] = NAN;
	refuse_training(d, HG_ERR_FORMAT, "none of 6 nodes has a target and is in nodes/train_mask");
}

/* Without labels the targets say what is learnt. */
static void targets_are_trained_on(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_context *ctx = test_context();
	hg_dataset *d = aimed_dataset();
	hg_model_config model = hg_model_config_default("gcn");
	hg_device_data *device = NULL;
	hg_train_data data = HG_TRAIN_DATA_INIT;
	CHECK_OK(hg_dataset_check_training(d, NULL, message));
	CHECK_OK(hg_dataset_configure(d, &model, message));
	CHECK_EQ_I(model.out_features, 2);
	CHECK_OK(hg_dataset_upload(d, ctx, NULL, &device, message));
	CHECK_OK(hg_dataset_train_data(d, device, &data, message));
	CHECK(data.targets == d->target && data.target_cols == 2 && !data.labels);
	hg_device_data_free(device);
	hg_dataset_free(d);
	hg_context_free(ctx);
}

/* A dataset with more classes than labelled rows can be trained on, but the message warns of it. */
static void many_classes_give_a_warning(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset(); /* it has five labelled nodes */
	d->classes = 5;
	CHECK_OK(hg_dataset_check_training(d, NULL, message));
	CHECK_STR(message, "");
	d->classes = INT32_MAX;
	refuse_training(d, HG_INFO_SUSPECT,
	                "num_classes is 2147483647, more than the 5 labelled nodes");
}

static void models_are_configured(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset(), *batch = featured_batch();
	hg_model_config model = hg_model_config_default("gin");
	model.readout = HG_REDUCE_MAX;
	CHECK_OK(hg_dataset_configure(d, &model, message));
	CHECK(model.in_features == 3 && model.out_features == 3 && model.readout == -1);
	CHECK_OK(hg_dataset_configure(batch, &model, message));
	CHECK(model.in_features == batch->features && model.out_features == batch->classes &&
	      model.readout == HG_REDUCE_SUM);
	model.readout = HG_REDUCE_MAX;
	CHECK_OK(hg_dataset_configure(batch, &model, message));
	CHECK(model.readout == HG_REDUCE_MAX);
	CHECK_STATUS(hg_dataset_configure(NULL, &model, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "dataset is NULL");
	CHECK_STATUS(hg_dataset_configure(d, NULL, message), HG_ERR_ARG);
	model.size--;
	CHECK_STATUS(hg_dataset_configure(d, &model, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "model.size");
	hg_dataset_free(d);
	hg_dataset_free(batch);
}

static void refuse_data(const hg_dataset *d, const hg_device_data *data, hg_train_data *train,
                        hg_status status, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_STATUS(hg_dataset_train_data(d, data, train, message), status);
	CHECK_CONTAINS(message, part);
}

static void data_that_does_not_fit_is_refused_by_name(void)
{
	hg_context *ctx = test_context();
	hg_dataset *d = small_dataset(), *batch = featured_batch();
	hg_device_data *data = NULL, empty = {.graph = NULL};
	hg_train_data train = HG_TRAIN_DATA_INIT;
	CHECK_OK(hg_dataset_upload(d, ctx, NULL, &data, NULL));
	refuse_data(NULL, data, &train, HG_ERR_ARG, "dataset is NULL");
	refuse_data(d, NULL, &train, HG_ERR_ARG, "data is NULL");
	refuse_data(d, data, NULL, HG_ERR_ARG, "train is NULL");
	refuse_data(d, &empty, &train, HG_ERR_ARG, "has no graph");
	empty.graph = data->graph;
	refuse_data(d, &empty, &train, HG_ERR_ARG, "has no features");
	train.size = 0;
	refuse_data(d, data, &train, HG_ERR_ARG, "HG_TRAIN_DATA_INIT");
	train.size = sizeof train;
	d->nodes = 5;
	refuse_data(d, data, &train, HG_ERR_SHAPE, "data has 6 nodes, the dataset has 5");
	d->nodes = 6;
	d->features = 4;
	refuse_data(d, data, &train, HG_ERR_SHAPE, "data has 3 features, the dataset has 4");
	d->features = 3;
	batch->features = 3;
	refuse_data(batch, data, &train, HG_ERR_SHAPE, "data has 1 graphs, the dataset has 2");
	drop(&d->train_mask);
	refuse_data(d, data, &train, HG_ERR_FORMAT, "small: has no training split");
	CHECK(!train.labels && !train.input.graph);
	hg_device_data_free(data);
	hg_dataset_free(d);
	hg_dataset_free(batch);
	hg_context_free(ctx);
}

/* Trains a model on a dataset, as tools/examples/train_file.c does it. */
static hg_status train(const hg_dataset *d, hg_context *ctx, const char *model, double *loss)
{
	hg_train_config config = hg_train_config_default(model);
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	hg_device_data *device = NULL;
	hg_train *run = NULL;
	config.epochs = 3;
	config.policy = hg_policy_fp32();
	const hg_upload_config wanted = hg_upload_config_for(&config);
	config.optim.lr = 0.01f; /* sgc's own rate fits these labels until the loss is 0 */
	hg_status status = hg_dataset_configure(d, &config.model, NULL);
	if (status >= 0)
		status = hg_dataset_upload(d, ctx, &wanted, &device, NULL);
	if (status >= 0)
		status = hg_dataset_train_data(d, device, &data, NULL);
	if (status >= 0)
		status = hg_train_create(ctx, &config, &data, &run);
	if (status >= 0)
		status = hg_train_run(run, &report);
	*loss = report.final_loss;
	hg_train_free(run);
	hg_device_data_free(device);
	return status;
}

static void every_model_trains_on_every_dataset(void)
{
	hg_context *ctx = test_context();
	for (const char *const *model = hg_model_names(); *model; model++)
		for (int form = 0; form < FORMS; form++) {
			hg_dataset *d = makers[form]();
			char message[HG_DATA_MESSAGE] = "";
			hg_model_config config = hg_model_config_default(*model);
			double loss = 0;
			if (hg_model_get_info(*model)->edge_features && !d->edge_feat && !d->edge_label) {
				CHECK_STATUS(hg_dataset_configure(d, &config, message), HG_ERR_FORMAT);
				CHECK_CONTAINS(message, "have neither attributes nor labels, which a gine");
				hg_dataset_free(d);
				continue;
			}
			CHECK_OK(hg_dataset_row_normalize(d, NULL));
			/* models with attention take a weight for how often an edge counts */
			for (int64_t e = 0; d->weight && e < d->edges; e++)
				d->weight[e] = fabsf(d->weight[e]);
			CHECK_MSG(train(d, ctx, *model, &loss) == HG_OK, "%s: %s", *model,
			          hg_context_error(ctx));
			CHECK_MSG(loss > 0 && loss < 100, "%s, form %d: loss %g", *model, form, loss);
			hg_dataset_free(d);
		}
	hg_context_free(ctx);
}

/* Uploads every form of dataset. faulty_sweep makes the allocations of the context fail; those of
 * the dataset library are tested in nomem.c. */
static hg_status upload_every_form(hg_context *ctx)
{
	hg_status status = HG_OK;
	for (int form = 0; form < FORMS && status == HG_OK; form++)
		for (int how = HG_UPLOAD_DENSE; how <= HG_UPLOAD_SPARSE && status == HG_OK; how++) {
			hg_dataset *d = makers[form]();
			hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
			hg_device_data *data = NULL;
			config.self_loops = 1;
			config.features = (hg_upload_features)how;
			config.edge_labels = d->edge_label != NULL;
			status = hg_dataset_upload(d, ctx, &config, &data, NULL);
			CHECK((status == HG_OK) == (data != NULL));
			hg_device_data_free(data);
			hg_dataset_free(d);
		}
	return status;
}

static void failed_allocations_are_reported(void)
{
	const int64_t count = faulty_sweep(upload_every_form);
	test_note("%lld allocations made to fail", (long long)count);
	CHECK(count > 50);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(features_are_uploaded_in_every_form),
	    TEST(few_entries_are_uploaded_as_sparse),
	    TEST(graphs_are_uploaded),
	    TEST(edges_are_uploaded),
	    TEST(edges_that_cannot_be_uploaded_are_refused_by_name),
	    TEST(members_may_be_taken_over),
	    TEST(models_decide_about_self_loops),
	    TEST(bad_arguments_are_refused_by_name),
	    TEST(bad_datasets_are_refused_by_name),
	    TEST(untrainable_datasets_are_refused_by_name),
	    TEST(many_classes_give_a_warning),
	    TEST(targets_are_trained_on),
	    TEST(models_are_configured),
	    TEST(data_that_does_not_fit_is_refused_by_name),
	    TEST(every_model_trains_on_every_dataset),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
