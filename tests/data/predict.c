/* Trained models in files: they predict, in another context, with the same bits as the run that
 * wrote them. Predictions are scored and written in three formats. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "support.h"

enum { NODES = 300, CLASSES = 4, FEATURES = 12, EPOCHS = 20 };

/* A planted dataset, with row sums that differ. */
static hg_dataset *planted(void)
{
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	hg_dataset *d = NULL;
	config.nodes = NODES;
	config.features = FEATURES;
	config.classes = CLASSES;
	config.hubs = 1;
	config.hub_degree = 60;
	config.seed = 5;
	CHECK_OK(hg_dataset_planted(&config, &d, NULL));
	CHECK_OK(hg_dataset_features_to(d, HG_F32, 0, NULL));
	/* labels of edges, which one model reads */
	d->edge_label = malloc((size_t)d->edges * sizeof *d->edge_label);
	CHECK(d->edge_label != NULL);
	d->edge_classes = 3;
	for (int64_t e = 0; e < d->edges; e++)
		d->edge_label[e] = (int32_t)(e % 3);
	return d;
}

struct trained {
	hg_context *ctx;
	hg_dataset *dataset;
	hg_device_data *data;
	hg_train *train;
	hg_train_report report;
	int32_t row[NODES];
	float logits[NODES * CLASSES];
};

/* As many columns of targets as there are classes, some of them missing: 0 and 1, or numbers in
 * thousands. */
static void add_targets(hg_dataset *d, int numbers)
{
	d->targets = CLASSES;
	d->target = malloc(sizeof(float) * NODES * CLASSES);
	CHECK(d->target != NULL);
	for (int64_t k = 0; k < NODES * CLASSES; k++) {
		const int is = d->label[k / CLASSES] == k % CLASSES;
		d->target[k] = numbers ? (float)(1000 * (k % CLASSES) + 50 * is) : (float)is;
		if (k % 17 == 3)
			d->target[k] = NAN;
	}
}

/* Trains on the dataset; normalized: with rows divided by their sums. */
static void train_for(struct trained *t, const char *model, const char *policy, int normalized,
                      hg_loss loss)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_train_config c = hg_train_config_default(model);
	hg_train_data in = HG_TRAIN_DATA_INIT;
	const hg_train_report none = HG_TRAIN_REPORT_INIT;
	*t = (struct trained){.ctx = test_context(), .dataset = planted(), .report = none};
	CHECK_OK(hg_policy_parse(policy, &c.policy));
	CHECK_OK(hg_dataset_configure(t->dataset, &c.model, NULL));
	if (loss != HG_LOSS_CROSS_ENTROPY)
		add_targets(t->dataset, loss != HG_LOSS_BCE);
	c.loss = loss;
	c.epochs = EPOCHS;
	c.optim.lr = 0.05f;
	c.model.hidden = 8;
	if (normalized)
		CHECK_OK(hg_dataset_row_normalize(t->dataset, NULL));
	hg_upload_config upload = hg_upload_config_for(&c);
	upload.features = normalized ? HG_UPLOAD_SPARSE : HG_UPLOAD_DENSE;
	CHECK_OK(hg_dataset_upload(t->dataset, t->ctx, &upload, &t->data, message));
	in.rows_normalized = normalized;
	CHECK_OK(hg_dataset_train_data(t->dataset, t->data, &in, message));
	CHECK_MSG(hg_train_create(t->ctx, &c, &in, &t->train) == HG_OK, "%s", hg_context_error(t->ctx));
	CHECK_OK(hg_train_run(t->train, &t->report));
	CHECK_OK(hg_train_predict(t->train, t->row, t->logits));
}

static void train(struct trained *t, const char *model, const char *policy, int normalized)
{
	train_for(t, model, policy, normalized, HG_LOSS_CROSS_ENTROPY);
}

static void trained_close(struct trained *t)
{
	hg_train_free(t->train);
	hg_device_data_free(t->data);
	hg_dataset_free(t->dataset);
	hg_context_free(t->ctx);
}

static hg_prediction *must_predict(const char *path, hg_dataset *d)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_context *ctx = test_context();
	hg_predictor *p = NULL;
	hg_prediction *prediction = NULL;
	CHECK_MSG(hg_model_load(ctx, path, &p, message) == HG_OK, "load: %s", message);
	CHECK_MSG(hg_predictor_prepare(p, d, message) == HG_OK, "prepare: %s", message);
	CHECK_MSG(hg_dataset_predict(d, p, &prediction, message) == HG_OK, "predict: %s", message);
	hg_predictor_free(p);
	hg_context_free(ctx);
	return prediction;
}

static void check_as_trained(const struct trained *t, const char *path)
{
	hg_evaluation score = HG_EVALUATION_INIT;
	hg_dataset *d = planted();
	hg_prediction *p = must_predict(path, d);
	CHECK(p->rows == NODES && p->cols == CLASSES && !p->of_graphs);
	CHECK(memcmp(p->label, t->row, sizeof t->row) == 0);
	CHECK_MSG(memcmp(p->logits, t->logits, sizeof t->logits) == 0, "%s: other bits", path);
	CHECK_OK(hg_prediction_evaluate(p, d, HG_METRIC_NONE, &score, NULL));
	CHECK(memcmp(&score.value[1], &t->report.best_val_accuracy, sizeof(double)) == 0);
	CHECK(memcmp(&score.value[2], &t->report.test_accuracy, sizeof(double)) == 0);
	for (int64_t i = 0; i < NODES; i++) {
		double sum = 0;
		for (int c = 0; c < CLASSES; c++)
			sum += (double)p->probability[i * CLASSES + c];
		CHECK(fabs(sum - 1) < 1e-6 && p->id[i] == i);
		CHECK(p->probability[i * CLASSES + p->label[i]] >= p->probability[i * CLASSES]);
	}
	hg_prediction_free(p);
	hg_dataset_free(d);
}

static void models_predict_as_their_runs(void)
{
	static const char *const policies[] = {"fp32", "fp16"};
	static struct trained t;
	for (const char *const *model = hg_model_names(); *model; model++)
		for (int k = 0; k < 2; k++)
			for (int normalized = 0; normalized < 2; normalized++) {
				char message[HG_DATA_MESSAGE] = "";
				train(&t, *model, policies[k], normalized);
				CHECK_MSG(hg_model_save(t.train, scratch(0, "model.h5"), message) == HG_OK, "%s",
				          message);
				CHECK_OK(hg_checkpoint_save(t.train, scratch(0, "run.h5"), NULL));
				check_as_trained(&t, scratch(0, "model.h5"));
				check_as_trained(&t, scratch(0, "run.h5"));
				trained_close(&t);
			}
}

/* What was reported comes from a new context, with the bits of the run. */
static void targets_are_predicted_in_their_units(void)
{
	static const struct {
		hg_loss loss;
		hg_metric metric, other, wrong;
	} rows[] = {{HG_LOSS_BCE, HG_METRIC_ROC_AUC, HG_METRIC_MACRO_F1, HG_METRIC_MAE},
	            {HG_LOSS_MSE, HG_METRIC_RMSE, HG_METRIC_MAE, HG_METRIC_ACCURACY},
	            {HG_LOSS_MAE, HG_METRIC_MAE, HG_METRIC_RMSE, HG_METRIC_ROC_AUC}};
	static struct trained t;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		hg_evaluation found = HG_EVALUATION_INIT;
		train_for(&t, "gcn", k ? "fp16" : "fp32", 0, rows[k].loss);
		CHECK_OK(hg_model_save(t.train, scratch(0, "model.h5"), NULL));
		hg_dataset *d = planted();
		add_targets(d, rows[k].loss != HG_LOSS_BCE);
		hg_prediction *p = must_predict(scratch(0, "model.h5"), d);
		CHECK(p->loss == rows[k].loss && p->cols == CLASSES && !p->label);
		CHECK(!p->probability == (rows[k].loss != HG_LOSS_BCE));
		CHECK(memcmp(p->logits, t.logits, sizeof t.logits) == 0);
		CHECK_OK(hg_prediction_evaluate(p, d, HG_METRIC_NONE, &found, NULL));
		CHECK(found.metric == rows[k].metric && t.report.metric == rows[k].metric);
		CHECK(memcmp(&found.value[1], &t.report.best_val_metric, sizeof(double)) == 0);
		CHECK(memcmp(&found.value[2], &t.report.test_metric, sizeof(double)) == 0);
		CHECK_OK(hg_prediction_evaluate(p, d, rows[k].other, &found, NULL));
		CHECK(found.metric == rows[k].other && isfinite(found.value[2]) && found.counted[2] > 0);
		CHECK_STATUS(hg_prediction_evaluate(p, d, rows[k].wrong, &found, NULL), HG_ERR_ARG);
		d->targets = CLASSES - 1;
		CHECK_STATUS(hg_prediction_evaluate(p, d, HG_METRIC_NONE, &found, NULL), HG_ERR_SHAPE);
		d->targets = CLASSES;
		d->target[7] = 0.5f;
		CHECK_STATUS(hg_prediction_evaluate(p, d, HG_METRIC_NONE, &found, NULL),
		             rows[k].loss == HG_LOSS_BCE ? HG_ERR_RANGE : HG_OK);
		hg_prediction_free(p);
		hg_dataset_free(d);
		trained_close(&t);
	}
}

/* Embeddings come with the rows that were asked for, and change nothing else. */
static void embeddings_come_beside_predictions(void)
{
	static struct trained t;
	char message[HG_DATA_MESSAGE] = "";
	hg_predict_config config = HG_PREDICT_CONFIG_INIT;
	hg_predictor *p = NULL;
	hg_prediction *plain = NULL, *found = NULL;
	train(&t, "gcn", "fp16", 0);
	CHECK_OK(hg_model_save(t.train, scratch(0, "model.h5"), NULL));
	CHECK_OK(hg_model_load(t.ctx, scratch(0, "model.h5"), &p, NULL));
	hg_dataset *d = planted();
	CHECK_OK(hg_dataset_predict(d, p, &plain, message));
	CHECK(!plain->embedding && !plain->embedding_id && plain->embedding_rows == 0);
	config.embed = 1;
	CHECK_OK(hg_dataset_predict_with(d, p, &config, &found, message));
	CHECK(found->embedding_rows == NODES && found->embedding_cols == 8 && !found->embedding_id);
	CHECK(memcmp(found->logits, plain->logits, sizeof t.logits) == 0);
	CHECK(memcmp(found->logits, t.logits, sizeof t.logits) == 0);
	/* W and A~ of the last layer are linear: rows of zeros mean that nothing was written */
	double sum = 0;
	for (int64_t k = 0; k < NODES * 8; k++)
		sum += fabs((double)found->embedding[k]);
	CHECK(isfinite(sum) && sum > 0);
	hg_prediction_free(found);
	config.layer = 2; /* its result is the logits */
	CHECK_OK(hg_dataset_predict_with(d, p, &config, &found, message));
	CHECK(found->embedding_cols == CLASSES);
	CHECK(memcmp(found->embedding, t.logits, sizeof t.logits) == 0);
	hg_prediction_free(found);
	config.layer = 0;
	CHECK_STATUS(hg_dataset_predict_with(d, p, &config, &found, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "gcn: embedding of layer 0, expected 1 to 2");
	CHECK(!found);
	config.size = 0;
	CHECK_STATUS(hg_dataset_predict_with(d, p, &config, &found, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "config.size is not set");
	hg_prediction_free(plain);
	hg_predictor_free(p);
	hg_dataset_free(d);
	trained_close(&t);
}

/* A dataset as it was read is prepared on the way, and stays as it is. */
static void datasets_are_prepared_on_a_copy(void)
{
	static struct trained t;
	char message[HG_DATA_MESSAGE] = "";
	hg_predict_config config = HG_PREDICT_CONFIG_INIT;
	hg_predictor *p = NULL;
	hg_prediction *found = NULL;
	train(&t, "gcn", "fp32", 1);
	CHECK_OK(hg_model_save(t.train, scratch(0, "model.h5"), NULL));
	CHECK_OK(hg_model_load(t.ctx, scratch(0, "model.h5"), &p, NULL));
	hg_dataset *d = planted(), *before = planted();
	config.prepare = 1;
	for (int k = 0; k < 2; k++) {
		CHECK_MSG(hg_dataset_predict_with(d, p, &config, &found, message) == HG_OK, "%s", message);
		CHECK(memcmp(found->logits, t.logits, sizeof t.logits) == 0);
		CHECK(memcmp(d->feat, before->feat, sizeof(float) * NODES * FEATURES) == 0);
		hg_prediction_free(found);
	}
	config.prepare = 0;
	CHECK_OK(hg_dataset_predict_with(d, p, &config, &found, message));
	CHECK(memcmp(found->logits, t.logits, sizeof t.logits) != 0);
	hg_prediction_free(found);
	config.prepare = 1;
	d->features = 7;
	CHECK_STATUS(hg_dataset_predict_with(d, p, &config, &found, message), HG_ERR_SHAPE);
	CHECK_CONTAINS(message, "planted has 7 features, the model reads 12");
	CHECK(!found);
	d->features = FEATURES;
	hg_predictor_free(p);
	hg_dataset_free(d);
	hg_dataset_free(before);
	trained_close(&t);
}

/* A run on standardised features, and what its file makes of four datasets: that one, the same as
 * it was before, one that was standardised by itself, and a changed one. */
static void columns_are_standardised_as_in_the_training(void)
{
	static struct trained t;
	char message[HG_DATA_MESSAGE] = "";
	hg_predict_config config = HG_PREDICT_CONFIG_INIT;
	hg_train_config c = hg_train_config_default("gcn");
	hg_train_data in = HG_TRAIN_DATA_INIT;
	hg_predictor *p = NULL;
	hg_prediction *found = NULL;
	config.prepare = 1;
	t = (struct trained){.ctx = test_context(), .dataset = planted()};
	hg_dataset *raw = planted(), *other = planted();
	for (int i = 0; i < NODES; i++) /* a column of equal values */
		((float *)raw->feat)[i * FEATURES + 3] = ((float *)t.dataset->feat)[i * FEATURES + 3] = 7;
	CHECK_OK(hg_dataset_standardize(t.dataset, message));
	CHECK_OK(hg_policy_parse("fp32", &c.policy));
	c.epochs = EPOCHS;
	c.model.hidden = 8;
	const hg_upload_config upload = hg_upload_config_for(&c);
	CHECK_OK(hg_dataset_configure(t.dataset, &c.model, NULL));
	CHECK_OK(hg_dataset_upload(t.dataset, t.ctx, &upload, &t.data, message));
	CHECK_OK(hg_dataset_train_data(t.dataset, t.data, &in, message));
	CHECK(in.column_mean == t.dataset->feat_mean);
	in.column_deviation = NULL;
	CHECK_STATUS(hg_train_create(t.ctx, &c, &in, &t.train), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(t.ctx), "data.column_deviation is NULL, expected both or none");
	const double nan[FEATURES] = {0, NAN};
	in.column_deviation = nan;
	CHECK_STATUS(hg_train_create(t.ctx, &c, &in, &t.train), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(t.ctx), "data.column_deviation of column 1 is ");
	in.column_deviation = t.dataset->feat_deviation;
	CHECK_MSG(hg_train_create(t.ctx, &c, &in, &t.train) == HG_OK, "%s", hg_context_error(t.ctx));
	t.report.size = sizeof t.report;
	CHECK_OK(hg_train_run(t.train, &t.report));
	CHECK_OK(hg_train_predict(t.train, t.row, t.logits));
	CHECK_OK(hg_checkpoint_save(t.train, scratch(1, "run.h5"), message));
	CHECK_OK(hg_model_save(t.train, scratch(2, "model.h5"), message));
	for (int k = 1; k < 3; k++) {
		CHECK_OK(hg_model_load(t.ctx, k == 1 ? scratch(1, "run.h5") : scratch(2, "model.h5"), &p,
		                       message));
		hg_dataset *const same[] = {t.dataset, raw};
		for (int i = 0; i < 2; i++) {
			CHECK_MSG(hg_dataset_predict_with(same[i], p, &config, &found, message) == HG_OK, "%s",
			          message);
			CHECK_MSG(memcmp(found->logits, t.logits, sizeof t.logits) == 0, "dataset %d", i);
			CHECK(!raw->feat_mean);
			hg_prediction_free(found);
		}
		hg_predictor_free(p);
	}
	CHECK_OK(hg_model_load(t.ctx, scratch(2, "model.h5"), &p, message));
	CHECK_OK(hg_dataset_standardize(other, message));
	CHECK_STATUS(hg_predictor_prepare(p, other, message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "planted was standardised with other numbers than the data of the "
	                        "training (column 3: mean ");
	CHECK_OK(hg_predictor_prepare(p, raw, message)); /* for good, and not twice */
	CHECK_OK(hg_predictor_prepare(p, raw, message));
	config.prepare = 0;
	CHECK_OK(hg_dataset_predict_with(raw, p, &config, &found, message));
	CHECK(memcmp(found->logits, t.logits, sizeof t.logits) == 0);
	hg_prediction_free(found);
	hg_predictor_free(p);
	/* a run on features as they were differs, and its model refuses standardised ones */
	static struct trained plain;
	train(&plain, "gcn", "fp32", 0);
	CHECK_STATUS(hg_checkpoint_load(scratch(1, "run.h5"), plain.train, message), HG_INFO_DIFFERS);
	CHECK_CONTAINS(message,
	               "the columns of the features were standardised otherwise than those of");
	CHECK_OK(hg_model_save(plain.train, scratch(2, "model.h5"), message));
	CHECK_OK(hg_model_load(plain.ctx, scratch(2, "model.h5"), &p, message));
	CHECK_STATUS(hg_predictor_prepare(p, other, message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "planted was standardised, the data of the training was not");
	hg_predictor_free(p);
	trained_close(&plain);
	hg_dataset_free(other);
	hg_dataset_free(raw);
	trained_close(&t);
}

/* The names of the classes go from the dataset through the run to predictions for another dataset,
 * which has none. */
static void predictions_name_classes(void)
{
	static const char *const names[CLASSES] = {"a", "b b", "c", ""};
	static struct trained t;
	char message[HG_DATA_MESSAGE] = "";
	hg_train_config c = hg_train_config_default("gcn");
	hg_train_data in = HG_TRAIN_DATA_INIT;
	t = (struct trained){.ctx = test_context(), .dataset = planted()};
	CHECK_OK(hg_dataset_name_classes(t.dataset, names, CLASSES, message));
	c.epochs = 2;
	const hg_upload_config upload = hg_upload_config_for(&c);
	CHECK_OK(hg_dataset_configure(t.dataset, &c.model, NULL));
	CHECK_OK(hg_dataset_upload(t.dataset, t.ctx, &upload, &t.data, message));
	CHECK_OK(hg_dataset_train_data(t.dataset, t.data, &in, message));
	c.model.out_features = CLASSES + 1;
	CHECK_STATUS(hg_train_create(t.ctx, &c, &in, &t.train), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(t.ctx), "class_name names 4 classes, the model has 5");
	c.model.out_features = CLASSES;
	CHECK_MSG(hg_train_create(t.ctx, &c, &in, &t.train) == HG_OK, "%s", hg_context_error(t.ctx));
	t.report.size = sizeof t.report;
	CHECK_OK(hg_train_run(t.train, &t.report));
	CHECK_OK(hg_model_save(t.train, scratch(0, "model.h5"), message));
	hg_dataset *d = planted();
	hg_prediction *p = must_predict(scratch(0, "model.h5"), d);
	for (int k = 0; k < CLASSES; k++)
		CHECK_STR(hg_prediction_class_name(p, k), names[k]);
	hg_prediction_free(p);
	hg_state *state = NULL;
	hg_predictor *predictor = NULL;
	CHECK_OK(hg_train_get_state(t.train, &state));
	CHECK_OK(hg_state_set_class_names(state, "a\0b", 4));
	CHECK_STATUS(hg_predictor_create(t.ctx, state, &predictor), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(t.ctx), "2 classes have names, the model has 4");
	hg_state_free(state);
	hg_dataset_free(d);
	trained_close(&t);
}

/* Files of 0.1.0 do not tell whether their features were standardised. */
static void models_that_do_not_tell_take_any_columns(void)
{
	static struct trained t;
	char message[HG_DATA_MESSAGE] = "";
	hg_state *state = NULL;
	hg_predictor *p = NULL;
	train(&t, "gcn", "fp32", 0);
	CHECK_OK(hg_train_get_state(t.train, &state));
	for (int64_t i = 0; i < state->settings; i++)
		if (strcmp(state->setting[i].name, "data.standardized") == 0)
			state->setting[i--] = state->setting[--state->settings];
	CHECK_OK(hg_predictor_create(t.ctx, state, &p));
	hg_dataset *d = planted();
	CHECK_OK(hg_dataset_standardize(d, message));
	CHECK_OK(hg_predictor_prepare(p, d, message));
	hg_predictor_free(p);
	CHECK_OK(hg_state_set_columns(state, 2, (const double[]){0, 0}, (const double[]){1, 1}));
	CHECK_STATUS(hg_predictor_create(t.ctx, state, &p), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(t.ctx), "2 columns were standardised, the model reads 12 feat");
	hg_state_free(state);
	hg_dataset_free(d);
	trained_close(&t);
}

/* What is left of a run is its model: no moments, and no other weights. */
static void models_hold_no_optimiser(void)
{
	static struct trained t;
	hg_state *state = NULL;
	char message[HG_DATA_MESSAGE] = "";
	train(&t, "gin", "fp16", 0);
	CHECK_OK(hg_model_save(t.train, scratch(0, "model.h5"), message));
	CHECK_OK(hg_checkpoint_read(scratch(0, "model.h5"), &state, message));
	CHECK(state->best.step > 0 && state->epochs == EPOCHS);
	for (int64_t i = 0; i < state->tensors; i++) {
		float *shown = malloc((size_t)(state->tensor[i].rows * state->tensor[i].cols) * 4);
		hg_param *p = hg_params_find(hg_train_params(t.train), state->tensor[i].name);
		CHECK(shown && state->tensor[i].moments == 0 && !state->tensor[i].best);
		CHECK_OK(hg_tensor_download(hg_param_master(p), shown, HG_F32));
		CHECK(memcmp(shown, state->tensor[i].master,
		             (size_t)(state->tensor[i].rows * state->tensor[i].cols) * 4) == 0);
		free(shown);
	}
	CHECK_STATUS(hg_checkpoint_load(scratch(0, "model.h5"), t.train, message), HG_ERR_SHAPE);
	CHECK_CONTAINS(message, "it is a model to predict with, no run goes on from it");
	hg_state_free(state);
	trained_close(&t);
}

/* ---- refusals ---- */

static void refuse(hg_predictor *p, hg_dataset *d, hg_status status, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_prediction *prediction = NULL;
	CHECK_STATUS(hg_predictor_prepare(p, d, message), status);
	CHECK_CONTAINS(message, part);
	*message = 0;
	CHECK_STATUS(hg_dataset_predict(d, p, &prediction, message), status);
	CHECK_CONTAINS(message, part);
	CHECK(!prediction);
}

static void misfits_are_refused_by_name(void)
{
	static struct trained t;
	static int64_t graph_ptr[] = {0, 100, NODES};
	char message[HG_DATA_MESSAGE] = "";
	hg_predictor *p = NULL;
	hg_prediction *prediction = NULL;
	train(&t, "gcn", "fp16", 0);
	CHECK_OK(hg_model_save(t.train, scratch(0, "model.h5"), message));
	CHECK_OK(hg_model_load(t.ctx, scratch(0, "model.h5"), &p, message));
	hg_dataset *d = planted();
	d->features = 7;
	refuse(p, d, HG_ERR_SHAPE, "planted has 7 features, the model reads 12");
	d->features = FEATURES;
	d->graph_ptr = graph_ptr;
	d->graphs = 2;
	refuse(p, d, HG_ERR_SHAPE, "planted is a batch of graphs, the model predicts nodes");
	d->graph_ptr = NULL;
	d->graphs = 1;
	void *feat = d->feat;
	d->feat = NULL;
	refuse(p, d, HG_ERR_FORMAT, "planted has no features, the model reads 12");
	d->feat = feat;
	((float *)feat)[5] = 1e30f;
	CHECK_STATUS(hg_dataset_predict(d, p, &prediction, message), HG_ERR_RANGE);
	CHECK_CONTAINS(message, "beyond f16");
	hg_predictor_free(p);
	p = (hg_predictor *)message;
	CHECK_STATUS(hg_model_load(t.ctx, scratch(0, "absent.h5"), &p, message), HG_ERR_IO);
	CHECK(!p);
	CHECK_STATUS(hg_model_load(NULL, "x", &p, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "model_load: context is NULL");
	CHECK_STATUS(hg_model_load(t.ctx, NULL, &p, message), HG_ERR_ARG);
	CHECK_STATUS(hg_model_load(t.ctx, "x", NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_model_save(NULL, "x", message), HG_ERR_ARG);
	CHECK_STATUS(hg_model_save(t.train, NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_predictor_prepare(NULL, d, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_predict(d, NULL, &prediction, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "predict: predictor is NULL");
	hg_dataset_free(d);
	trained_close(&t);
}

/* A state that a program built is a checkpoint, but not the model of a run. */
static void other_checkpoints_are_no_models(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_context *ctx = test_context();
	hg_predictor *p = NULL;
	hg_state *state = NULL;
	CHECK_OK(hg_state_create(&state));
	state->loss_scale.scale = 1;
	CHECK_OK(hg_state_add_tensor(state, "w", 2, 2, 0, NULL));
	CHECK_OK(hg_checkpoint_write(state, scratch(0, "own.h5"), message));
	CHECK_STATUS(hg_model_load(ctx, scratch(0, "own.h5"), &p, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "own.h5: the setting policy.name is missing: not the state of a run");
	hg_state_free(state);
	hg_context_free(ctx);
}

/* ---- scores and files ---- */

/* Two rows: the second has a NaN, so it is never right. */
static void scores_count_as_the_training_does(void)
{
	int64_t id[] = {0, 1, 2};
	int32_t label[] = {1, 0, 2}, truth[] = {1, 0, 2};
	float logits[] = {0, 1, -1, 3, NAN, 0, 0, 0, INFINITY};
	uint8_t all[] = {1, 1, 0}, test[] = {0, 0, 1};
	char message[HG_DATA_MESSAGE] = "";
	hg_evaluation score = HG_EVALUATION_INIT;
	const hg_prediction p = {
	    .rows = 3, .cols = 3, .id = id, .label = label, .logits = logits, .probability = logits};
	hg_dataset d = {.nodes = 3, .graphs = 1, .label = truth, .train_mask = all, .test_mask = test};
	CHECK_OK(hg_prediction_evaluate(&p, &d, HG_METRIC_NONE, &score, message));
	CHECK(score.right[0] == 1 && score.counted[0] == 2 && score.right[2] == 1 &&
	      score.counted[1] == 0 && isnan(score.value[1]) && score.nonfinite_logits == 2);
	truth[0] = -1; /* unlabelled */
	CHECK_OK(hg_prediction_evaluate(&p, &d, HG_METRIC_NONE, &score, message));
	CHECK(score.right[0] == 0 && score.counted[0] == 1);
	truth[0] = 3;
	CHECK_STATUS(hg_prediction_evaluate(&p, &d, HG_METRIC_NONE, &score, message), HG_ERR_RANGE);
	CHECK_CONTAINS(message, "label of row 0 is 3, the model knows classes 0 to 2");
	truth[0] = -1;
	d.label = NULL;
	CHECK_STATUS(hg_prediction_evaluate(&p, &d, HG_METRIC_NONE, &score, message), HG_ERR_STATE);
	CHECK_CONTAINS(message, "the dataset has no labels to compare with");
	d.nodes = 4;
	CHECK_STATUS(hg_prediction_evaluate(&p, &d, HG_METRIC_NONE, &score, message), HG_ERR_SHAPE);
	CHECK_CONTAINS(message, "3 rows are predicted, the dataset has 4");
	d = (hg_dataset){.nodes = 3, .graphs = 1, .label = truth};
	score.size = 0;
	CHECK_STATUS(hg_prediction_evaluate(&p, &d, HG_METRIC_NONE, &score, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "evaluation.size is not set");
	CHECK_STATUS(hg_prediction_evaluate(NULL, &d, HG_METRIC_NONE, &score, message), HG_ERR_ARG);
}

static int64_t ids[] = {7, -1, INT64_MAX};
static int32_t labels[] = {1, 0, -1};
static float shares[] = {0.25f, 0.75f, 1, 1e-9f, NAN, NAN};
static const hg_prediction written = {.rows = 3,
                                      .cols = 2,
                                      .id = ids,
                                      .label = labels,
                                      .logits = shares,
                                      .probability = shares},
                           numbers = {.loss = HG_LOSS_MAE,
                                      .rows = 3,
                                      .cols = 2,
                                      .id = ids,
                                      .logits = shares};

/* `written` with an embedding of the same rows, and of five nodes. */
static float inner[] = {1, -2, 0.5f, 0, 1e-9f, 3, 4, 5, 6, 7};
static int64_t inner_id[] = {10, 11, 12, 13, 14};
static hg_prediction with_embedding(int of_nodes)
{
	hg_prediction p = written;
	p.embedding = inner;
	p.embedding_rows = of_nodes ? 5 : 3;
	p.embedding_cols = 2;
	p.embedding_id = of_nodes ? inner_id : NULL;
	return p;
}

static void must_write_prediction(const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_MSG(hg_prediction_write(&written, path, message) == HG_OK, "%s", message);
}

static void check_text(const hg_prediction *p, const char *expected)
{
	char message[HG_DATA_MESSAGE] = "";
	size_t count = 0;
	CHECK_MSG(hg_prediction_write(p, scratch(0, "p.csv"), message) == HG_OK, "%s", message);
	unsigned char *bytes = read_bytes(scratch(0, "p.csv"), &count);
	CHECK_MSG(count == strlen(expected) && memcmp(bytes, expected, count) == 0, "%.*s", (int)count,
	          (char *)bytes);
	free(bytes);
}

static void text_is_exact(void)
{
	hg_prediction several = numbers;
	several.loss = HG_LOSS_BCE;
	several.probability = shares;
	check_text(&written, "id,class,p0,p1\n7,1,0.25,0.75\n-1,0,1,9.99999972e-10\n"
	                     "9223372036854775807,-1,nan,nan\n");
	hg_prediction called = written;
	called.class_name = (char[]){"no, \"none\"\0yes"};
	called.class_name_bytes = sizeof "no, \"none\"\0yes";
	CHECK_STR(hg_prediction_class_name(&called, 1), "yes");
	CHECK(!hg_prediction_class_name(&called, 2) && !hg_prediction_class_name(&called, -1) &&
	      !hg_prediction_class_name(&written, 0) && !hg_prediction_class_name(NULL, 0));
	check_text(&called, "id,class,p0,p1\n7,yes,0.25,0.75\n"
	                    "-1,\"no, \"\"none\"\"\",1,9.99999972e-10\n"
	                    "9223372036854775807,,nan,nan\n");
	hg_prediction embedded = with_embedding(0);
	check_text(&embedded, "id,class,p0,p1,e0,e1\n7,1,0.25,0.75,1,-2\n-1,0,1,9.99999972e-10,0.5,0\n"
	                      "9223372036854775807,-1,nan,nan,9.99999972e-10,3\n");
	check_text(&numbers, "id,t0,t1\n7,0.25,0.75\n-1,1,9.99999972e-10\n"
	                     "9223372036854775807,nan,nan\n");
	check_text(&several, "id,p0,p1\n7,0.25,0.75\n-1,1,9.99999972e-10\n"
	                     "9223372036854775807,nan,nan\n");
}

/* A member of an archive, behind its 128 bytes of header. */
static void check_member(zip_t *zip, const char *name, const char *head, const void *values,
                         size_t bytes)
{
	unsigned char found[512];
	zip_file_t *file = zip_fopen(zip, name, 0);
	CHECK_MSG(file != NULL, "%s: %s", name, zip_strerror(zip));
	CHECK_EQ_I(zip_fread(file, found, sizeof found), 128 + (int64_t)bytes);
	CHECK(memcmp(found, "\x93NUMPY\x01\x00\x76\x00", 10) == 0 && found[127] == '\n');
	CHECK_MSG(memcmp(found + 10, head, strlen(head)) == 0, "%.100s", (char *)found + 10);
	CHECK(memcmp(found + 128, values, bytes) == 0);
	CHECK(zip_fclose(file) == 0); /* it has compared the checksum */
}

static void archives_are_those_of_numpy(void)
{
	int code = 0;
	must_write_prediction(scratch(0, "p.NPZ"));
	zip_t *zip = zip_open(scratch(0, "p.NPZ"), ZIP_RDONLY | ZIP_CHECKCONS, &code);
	CHECK_MSG(zip != NULL, "libzip says %d", code);
	CHECK_EQ_I(zip_get_num_entries(zip, 0), 3);
	check_member(zip, "id.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", ids,
	             sizeof ids);
	check_member(zip, "class.npy", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }",
	             labels, sizeof labels);
	check_member(zip, "probability.npy",
	             "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", shares,
	             sizeof shares);
	CHECK(zip_close(zip) == 0);
	hg_prediction called = written;
	called.class_name = (char[]){"ab\0c"};
	called.class_name_bytes = 5;
	CHECK_OK(hg_prediction_write(&called, scratch(0, "c.npz"), NULL));
	zip = zip_open(scratch(0, "c.npz"), ZIP_RDONLY | ZIP_CHECKCONS, &code);
	CHECK_MSG(zip != NULL, "libzip says %d", code);
	check_member(zip, "class_names.npy",
	             "{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
	             "a\0\0\0b\0\0\0c\0\0\0\0\0\0", 16);
	CHECK(zip_close(zip) == 0);
	for (int of_nodes = 0; of_nodes < 2; of_nodes++) {
		const hg_prediction p = with_embedding(of_nodes);
		CHECK_OK(hg_prediction_write(&p, scratch(0, "e.npz"), NULL));
		zip = zip_open(scratch(0, "e.npz"), ZIP_RDONLY | ZIP_CHECKCONS, &code);
		CHECK_MSG(zip != NULL, "libzip says %d", code);
		CHECK_EQ_I(zip_get_num_entries(zip, 0), 4 + of_nodes);
		check_member(zip, "embedding.npy",
		             of_nodes ? "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 2), }"
		                      : "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
		             inner, (of_nodes ? 10 : 6) * sizeof *inner);
		if (of_nodes)
			check_member(zip, "embedding_id.npy",
			             "{'descr': '<i8', 'fortran_order': False, 'shape': (5,), }", inner_id,
			             sizeof inner_id);
		CHECK(zip_close(zip) == 0);
	}
}

static void check_array(hid_t file, const char *name, hid_t type, const void *values, size_t bytes)
{
	unsigned char found[128];
	const hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
	CHECK(data >= 0 && H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
	CHECK(memcmp(found, values, bytes) == 0);
	H5Dclose(data);
}

static void hdf5_has_the_same_arrays(void)
{
	must_write_prediction(scratch(0, "p.h5"));
	const hid_t file = H5Fopen(scratch(0, "p.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
	CHECK(file >= 0);
	check_array(file, "id", H5T_NATIVE_INT64, ids, sizeof ids);
	check_array(file, "class", H5T_NATIVE_INT32, labels, sizeof labels);
	check_array(file, "probability", H5T_NATIVE_FLOAT, shares, sizeof shares);
	CHECK(H5Lexists(file, "embedding", H5P_DEFAULT) == 0);
	H5Fclose(file);
	hg_prediction p = with_embedding(1);
	p.class_name = (char[]){"ab\0c"};
	p.class_name_bytes = 5;
	CHECK_OK(hg_prediction_write(&p, scratch(0, "e.h5"), NULL));
	const hid_t more = H5Fopen(scratch(0, "e.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
	check_array(more, "id", H5T_NATIVE_INT64, ids, sizeof ids);
	check_array(more, "embedding", H5T_NATIVE_FLOAT, inner, sizeof inner);
	check_array(more, "class_names", H5T_NATIVE_UINT8, "ab\0c", 5);
	check_array(more, "embedding_id", H5T_NATIVE_INT64, inner_id, sizeof inner_id);
	H5Fclose(more);
}

static void bad_places_are_errors(void)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_STATUS(hg_prediction_write(&written, scratch(0, "p.txt"), message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "p.txt: ends with none of .csv, .npz and .h5");
	CHECK_STATUS(hg_prediction_write(&written, ".csv", message), HG_ERR_ARG);
	CHECK_STATUS(hg_prediction_write(&written, scratch(0, "no/p.csv"), message), HG_ERR_IO);
	CHECK_CONTAINS(message, "No such file or directory");
	CHECK_STATUS(hg_prediction_write(NULL, "x.csv", message), HG_ERR_ARG);
	CHECK_STATUS(hg_prediction_write(&written, NULL, message), HG_ERR_ARG);
	const hg_prediction embedded = with_embedding(1);
	CHECK_STATUS(hg_prediction_write(&embedded, scratch(0, "e.csv"), message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "e.csv: a table has no room for embeddings of nodes");
	CHECK(!file_exists(scratch(0, "e.csv")));
	hg_prediction huge = written;
	huge.rows = INT64_C(1) << 32;
	CHECK_STATUS(hg_prediction_write(&huge, scratch(0, "huge.npz"), message), HG_ERR_RANGE);
	CHECK_CONTAINS(message, "an .npz holds less than 4 GiB: expected .h5");
	CHECK(!file_exists(scratch(0, "huge.npz")) && count_scratch(".tmp") == 0);
	CHECK_STR(hg_prediction_format("a.H5"), ".h5");
	CHECK(!hg_prediction_format("a.h5x") && !hg_prediction_format(NULL));
	hg_prediction_free(NULL);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(models_predict_as_their_runs),
	    TEST(targets_are_predicted_in_their_units),
	    TEST(embeddings_come_beside_predictions),
	    TEST(datasets_are_prepared_on_a_copy),
	    TEST(columns_are_standardised_as_in_the_training),
	    TEST(predictions_name_classes),
	    TEST(models_that_do_not_tell_take_any_columns),
	    TEST(models_hold_no_optimiser),
	    TEST(misfits_are_refused_by_name),
	    TEST(other_checkpoints_are_no_models),
	    TEST(scores_count_as_the_training_does),
	    TEST(text_is_exact),
	    TEST(archives_are_those_of_numpy),
	    TEST(hdf5_has_the_same_arrays),
	    TEST(bad_places_are_errors),
	};
	return RUN_TESTS(argc, argv, cases);
}
