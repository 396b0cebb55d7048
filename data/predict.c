/* Predictions for a dataset: prepares it as the data of the training was, and runs the model. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/texts.h"
#include "core/versioned.h"
#include "node_names.h"

/* A 0 or 1 of the run; `otherwise` where its state does not tell. */
static int flag_of(const hg_predictor *p, const char *name, int otherwise)
{
	const hg_setting *s = hg_state_find_setting(hg_predictor_state(p), name);
	return s && s->kind == HG_SETTING_INTEGER ? s->integer != 0 : otherwise;
}

static const hg_model_config *model_of(const hg_predictor *p)
{
	return hg_model_get_config(hg_predictor_model(p));
}

static hg_status check_fit(const hg_predictor *p, const hg_dataset *d, char *message)
{
	const hg_model_config *model = model_of(p);
	if (!d->feat && !d->feat_rowptr)
		return hg__data_fail(message, HG_ERR_FORMAT, "%s has no features, the model reads %" PRId64,
		                     hg__data_name(d), model->in_features);
	if (d->features != model->in_features)
		return hg__data_fail(message, HG_ERR_SHAPE,
		                     "%s has %" PRId64 " features, the model reads %" PRId64,
		                     hg__data_name(d), d->features, model->in_features);
	const int64_t edges = d->edge_features + (d->edge_label ? d->edge_classes : 0);
	if (model->edge_features && edges != model->edge_features)
		return hg__data_fail(message, HG_ERR_SHAPE,
		                     "%s has %" PRId64 " attributes and labels of edges, the model reads "
		                     "%" PRId64,
		                     hg__data_name(d), edges, model->edge_features);
	if ((model->readout >= 0) != (d->graph_ptr != NULL))
		return hg__data_fail(message, HG_ERR_SHAPE, "%s is %s, the model predicts %s",
		                     hg__data_name(d), d->graph_ptr ? "a batch of graphs" : "one graph",
		                     d->graph_ptr ? "nodes" : "graphs");
	return HG_OK;
}

/* Which column of the dataset was standardised with other numbers than those of the training? -1:
 * none. */
static int64_t other_column(const hg_state *s, const hg_dataset *d)
{
	for (int64_t j = 0; j < d->features; j++) {
		const double ours[] = {d->feat_mean[j], d->feat_deviation[j]},
		             theirs[] = {s->column_mean[j], s->column_deviation[j]};
		if (memcmp(ours, theirs, sizeof ours) != 0)
			return j;
	}
	return -1;
}

/* Data that was standardised with other numbers cannot be made into that of the training without a
 * loss, so it is refused. A state of version 0.1.0 does not tell. */
static hg_status check_standardization(const hg_predictor *p, const hg_dataset *d, char *message)
{
	const hg_state *s = hg_predictor_state(p);
	if (!d->feat_mean || (!s->columns && !hg_state_find_setting(s, "data.standardized")))
		return HG_OK;
	if (!s->columns)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s was standardised, the data of the training was not: give it as it "
		                     "was before h5convert --standardize",
		                     hg__data_name(d));
	const int64_t j = other_column(s, d);
	return j < 0 ? HG_OK
	             : hg__data_fail(message, HG_ERR_FORMAT,
	                             "%s was standardised with other numbers than the data of the "
	                             "training (column %" PRId64 ": mean %g and deviation %g, not %g "
	                             "and %g): give it as it was before h5convert --standardize",
	                             hg__data_name(d), j, d->feat_mean[j], d->feat_deviation[j],
	                             s->column_mean[j], s->column_deviation[j]);
}

/* As the training's data was made: first what h5convert did, then what the run did. */
static hg_status prepare(const hg_predictor *p, hg_dataset *d, char *message)
{
	const hg_state *s = hg_predictor_state(p);
	HG__TRY(check_standardization(p, d, message));
	if (s->columns && !d->feat_mean)
		HG__TRY(hg__standardize_as(d, s->column_mean, s->column_deviation, message));
	return flag_of(p, "data.rows_normalized", 0) ? hg_dataset_row_normalize(d, message) : HG_OK;
}

hg_status hg_predictor_prepare(const hg_predictor *predictor, hg_dataset *dataset, char *message)
{
	if (!predictor || !dataset)
		return hg__data_fail(message, HG_ERR_ARG, "predictor_prepare: %s is NULL",
		                     predictor ? "dataset" : "predictor");
	HG__TRY(check_fit(predictor, dataset, message));
	return prepare(predictor, dataset, message);
}

/* ---- predicting ---- */

static hg_upload_config upload_config(const hg_predictor *p)
{
	hg_upload_config config = HG_UPLOAD_CONFIG_INIT;
	config.state = hg_params_policy(hg_predictor_params(p))->state;
	if (model_of(p)->edge_features)
		config.edge_features = config.edge_labels = 2; /* what there is of them */
	config.self_loops =
	    flag_of(p, "data.self_loops", hg_model_get_info(model_of(p)->name)->self_loops);
	config.unweighted = flag_of(p, "data.unweighted", 0);
	config.features = flag_of(p, "data.features_sparse", 0) ? HG_UPLOAD_SPARSE : HG_UPLOAD_DENSE;
	return config;
}

static float sigmoid(float logit)
{
	return (float)(1.0 / (1.0 + exp(-(double)logit)));
}

/* softmax in f64, from logits minus the largest one. */
static void softmax(const float *logits, int64_t count, float *p)
{
	double largest = -INFINITY, sum = 0.0;
	for (int64_t c = 0; c < count; c++)
		largest = (double)logits[c] > largest ? (double)logits[c] : largest;
	for (int64_t c = 0; c < count; c++)
		sum += exp((double)logits[c] - largest);
	for (int64_t c = 0; c < count; c++)
		p[c] = (float)(exp((double)logits[c] - largest) / sum);
}

static hg_status prediction_new(const hg_dataset *d, const hg_predictor *predictor,
                                hg_prediction **out, char *message)
{
	const int64_t rows = d->graph_ptr ? d->graphs : d->nodes,
	              cols = model_of(predictor)->out_features;
	HG__TRY(hg__data_alloc(1, sizeof **out, "a prediction", (void **)out, message));
	hg_prediction *p = *out;
	*p = (hg_prediction){.loss = hg_predictor_loss(predictor),
	                     .rows = rows,
	                     .cols = cols,
	                     .of_graphs = d->graph_ptr != NULL};
	if (cols > INT64_MAX / 8 / (rows ? rows : 1))
		return hg__data_fail(message, HG_ERR_NOMEM, "out of memory: a prediction");
	HG__TRY(hg__data_alloc(rows, sizeof *p->id, "ids", (void **)&p->id, message));
	HG__TRY(hg__data_alloc(rows * cols, sizeof *p->logits, "logits", (void **)&p->logits, message));
	if (p->loss == HG_LOSS_CROSS_ENTROPY)
		HG__TRY(hg__data_alloc(rows, sizeof *p->label, "classes", (void **)&p->label, message));
	if (p->loss == HG_LOSS_CROSS_ENTROPY || p->loss == HG_LOSS_BCE)
		HG__TRY(hg__data_alloc(rows * cols, sizeof *p->probability, "probabilities",
		                       (void **)&p->probability, message));
	return HG_OK;
}

static hg_status embedding_new(const hg_dataset *d, const hg_predictor *predictor,
                               const hg_predict_config *config, hg_prediction *p, char *message)
{
	const int64_t cols = hg_predictor_embedding_cols(predictor, config->layer);
	const int own_rows = p->of_graphs && config->of_nodes;
	p->embedding_rows = own_rows ? d->nodes : p->rows;
	p->embedding_cols = cols;
	if (cols > INT64_MAX / 8 / (p->embedding_rows ? p->embedding_rows : 1))
		return hg__data_fail(message, HG_ERR_NOMEM, "out of memory: embeddings");
	/* without columns the predictor refuses the layer */
	HG__TRY(hg__data_alloc(p->embedding_rows * cols, sizeof *p->embedding, "embeddings",
	                       (void **)&p->embedding, message));
	if (!own_rows)
		return HG_OK;
	HG__TRY(hg__data_alloc(d->nodes, sizeof *p->embedding_id, "ids of embeddings",
	                       (void **)&p->embedding_id, message));
	for (int64_t i = 0; i < d->nodes; i++)
		p->embedding_id[i] = hg_dataset_node(d, i);
	return HG_OK;
}

static hg_status names_new(const hg_predictor *predictor, hg_prediction *p, char *message)
{
	const hg_state *s = hg_predictor_state(predictor);
	if (!p->label || !s->class_name_bytes)
		return HG_OK;
	HG__TRY(hg__data_alloc(s->class_name_bytes, 1, "names of classes", (void **)&p->class_name,
	                       message));
	memcpy(p->class_name, s->class_name, (size_t)s->class_name_bytes);
	p->class_name_bytes = s->class_name_bytes;
	return HG_OK;
}

/* Nodes are the rows of the prediction, or of its embedding. */
static hg_status node_names_new(const hg_dataset *d, hg_prediction *p, char *message)
{
	return !p->of_graphs || p->embedding_id
	           ? hg__node_names_copy(d, &p->node_name, &p->node_name_bytes, message)
	           : HG_OK;
}

static void prediction_finish(const hg_dataset *d, hg_prediction *p)
{
	for (int64_t i = 0; i < p->rows; i++)
		p->id[i] = p->of_graphs ? i : hg_dataset_node(d, i);
	for (int64_t i = 0; p->label && i < p->rows; i++)
		softmax(p->logits + i * p->cols, p->cols, p->probability + i * p->cols);
	for (int64_t k = 0; !p->label && p->probability && k < p->rows * p->cols; k++)
		p->probability[k] = sigmoid(p->logits[k]);
}

static hg_status run(const hg_device_data *data, hg_predictor *predictor,
                     const hg_predict_config *config, hg_prediction *p, char *message)
{
	hg_model_input input = HG_MODEL_INPUT_INIT;
	input.graph = data->graph;
	input.x = data->x;
	input.x_sparse = data->x_sparse;
	input.edge_x = data->edge_x;
	const hg_status status =
	    config->embed ? hg_predictor_embed(predictor, &input, config->layer, config->of_nodes,
	                                       p->embedding, p->label, p->logits)
	                  : hg_predictor_run(predictor, &input, p->label, p->logits);
	return status < 0
	           ? hg__data_fail(message, status, "%s",
	                           hg_context_error(hg_params_context(hg_predictor_params(predictor))))
	           : HG_OK;
}

static hg_status predict(const hg_dataset *d, hg_predictor *predictor,
                         const hg_predict_config *config, hg_prediction *p, char *message)
{
	hg_device_data *data = NULL;
	const hg_upload_config upload = upload_config(predictor);
	HG__TRY(names_new(predictor, p, message));
	if (config->embed)
		HG__TRY(embedding_new(d, predictor, config, p, message));
	HG__TRY(node_names_new(d, p, message));
	HG__TRY(hg_dataset_upload(d, hg_params_context(hg_predictor_params(predictor)), &upload, &data,
	                          message));
	const hg_status status = run(data, predictor, config, p, message);
	hg_device_data_free(data);
	if (status == HG_OK)
		prediction_finish(d, p);
	return status;
}

hg_status hg_dataset_predict(const hg_dataset *dataset, hg_predictor *predictor,
                             hg_prediction **prediction, char *message)
{
	return hg_dataset_predict_with(dataset, predictor, NULL, prediction, message);
}

static hg_status predict_prepared(const hg_dataset *d, hg_predictor *predictor,
                                  const hg_predict_config *config, hg_prediction **prediction,
                                  char *message)
{
	HG__TRY(check_fit(predictor, d, message));
	HG__TRY(prediction_new(d, predictor, prediction, message));
	return predict(d, predictor, config, *prediction, message);
}

static hg_status prepare_and_predict(const hg_dataset *d, hg_predictor *predictor,
                                     const hg_predict_config *config, hg_prediction **prediction,
                                     char *message)
{
	hg_dataset own;
	HG__TRY(check_fit(predictor, d, message)); /* before the copy */
	HG__TRY(hg__features_own(d, &own, message));
	hg_status status = hg_predictor_prepare(predictor, &own, message);
	if (status >= 0)
		status = predict_prepared(&own, predictor, config, prediction, message);
	hg__features_drop(&own);
	return status;
}

hg_status hg_dataset_predict_with(const hg_dataset *dataset, hg_predictor *predictor,
                                  const hg_predict_config *config, hg_prediction **prediction,
                                  char *message)
{
	hg_predict_config ours = HG_PREDICT_CONFIG_INIT;
	if (prediction)
		*prediction = NULL;
	if (!dataset || !predictor || !prediction)
		return hg__data_fail(message, HG_ERR_ARG, "predict: %s is NULL",
		                     !dataset     ? "dataset"
		                     : !predictor ? "predictor"
		                                  : "prediction");
	if (config && !hg__struct_read(&ours, sizeof ours, config))
		return hg__data_fail(message, HG_ERR_ARG,
		                     "predict: config.size is not set (start from HG_PREDICT_CONFIG_INIT), "
		                     "or a field unknown to this version is used");
	const hg_status status =
	    ours.prepare ? prepare_and_predict(dataset, predictor, &ours, prediction, message)
	                 : predict_prepared(dataset, predictor, &ours, prediction, message);
	if (status < 0) {
		hg_prediction_free(*prediction);
		*prediction = NULL;
	}
	return status;
}

void hg_prediction_free(hg_prediction *p)
{
	if (!p)
		return;
	free(p->id);
	free(p->label);
	free(p->logits);
	free(p->probability);
	free(p->embedding);
	free(p->embedding_id);
	free(p->class_name);
	free(p->node_name);
	free(p);
}

const char *hg_prediction_class_name(const hg_prediction *p, int64_t c)
{
	return p && c >= 0 ? hg__texts_at(p->class_name, p->class_name_bytes, c) : NULL;
}
