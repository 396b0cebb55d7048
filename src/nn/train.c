/* Making a training run: uploads the data, makes model and optimiser, and records one tape for
 * training and one for evaluation. */
#include "nn/train.h"

#include <stdio.h>

#include "autograd/tape.h"
#include "core/context.h"
#include "core/fnv.h"
#include "core/texts.h"
#include "core/versioned.h"

/* Reads both structs of the caller, which may be of another version. A struct that is a member of
 * one of these must have the size that this version knows, because the members after it would be
 * read at wrong offsets. */
static hg_status arguments_read(hg_context *ctx, const hg_train_config *config,
                                const hg_train_data *data, hg_train_config *c, hg_train_data *d)
{
	if (!config || !data)
		return hg__fail(ctx, HG_ERR_ARG, "train: %s is NULL", config ? "data" : "config");
	if (!hg__struct_read(c, sizeof *c, config))
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: config.size is not set (start from hg_train_config_default), or a "
		                "field unknown to this version is used");
	if (!hg__struct_read(d, sizeof *d, data))
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: data.size is not set (start from HG_TRAIN_DATA_INIT), or a field "
		                "unknown to this version is used");
	const struct {
		const char *name;
		size_t found, expected;
	} parts[] = {{"config.model", c->model.size, sizeof c->model},
	             {"config.optim", c->optim.size, sizeof c->optim},
	             {"config.step", c->step.size, sizeof c->step},
	             {"config.schedule", c->schedule.size, sizeof c->schedule},
	             {"data.input", d->input.size, sizeof d->input}};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (parts[i].found != parts[i].expected)
			return hg__fail(ctx, HG_ERR_ARG, "train: %s.size is %zu, expected %zu", parts[i].name,
			                parts[i].found, parts[i].expected);
	return HG_OK;
}

static hg_status schedule_check(hg_context *ctx, const hg_train_config *c, const hg_train_data *d)
{
	const char *fault = hg_schedule_fault(&c->schedule);
	if (fault)
		return hg__fail(ctx, HG_ERR_ARG, "train: schedule: %s", fault);
	if (c->schedule.kind == HG_SCHEDULE_PLATEAU && !d->val_mask)
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: the schedule waits for a plateau of the validation metric, but "
		                "data.val_mask is NULL");
	if (hg__schedule_ends(&c->schedule) && !c->schedule.total && c->schedule.warmup >= c->epochs)
		return hg__fail(
		    ctx, HG_ERR_ARG,
		    "train: schedule.warmup is %lld, expected less than the %d epochs of the %s",
		    (long long)c->schedule.warmup, c->epochs, hg_schedule_name(c->schedule.kind));
	return HG_OK;
}

static hg_status config_check(hg_context *ctx, const hg_train_config *c, const hg_train_data *d)
{
	const int classes = c->loss == HG_LOSS_CROSS_ENTROPY;
	if (c->loss < HG_LOSS_CROSS_ENTROPY || c->loss > HG_LOSS_MAE)
		return hg__fail(ctx, HG_ERR_ARG, "train: loss is %d, expected an hg_loss", (int)c->loss);
	if (!d->input.graph || (classes ? !d->labels : !d->targets))
		return hg__fail(ctx, HG_ERR_ARG, "train: data.%s is NULL",
		                !d->input.graph ? "input.graph"
		                : classes       ? "labels"
		                                : "targets, from which this loss learns,");
	if (!classes && d->target_cols < 1)
		return hg__fail(ctx, HG_ERR_ARG, "train: data.target_cols is %lld, expected at least 1",
		                (long long)d->target_cols);
	if (!d->input.x && !d->input.x_sparse)
		return hg__fail(ctx, HG_ERR_ARG, "train: data.input has neither x nor x_sparse");
	if (hg_graph_context(d->input.graph) != ctx)
		return hg__fail(ctx, HG_ERR_ARG, "train: data.input.graph belongs to another context");
	if (c->batch_graphs < 0)
		return hg__fail(ctx, HG_ERR_ARG, "train: batch_graphs is %lld, expected at least 0",
		                (long long)c->batch_graphs);
	if (c->eval_graphs < 0 || (c->eval_graphs && !c->batch_graphs))
		return hg__fail(ctx, HG_ERR_ARG,
		                c->eval_graphs < 0 ? "train: eval_graphs is %lld, expected at least 0"
		                                   : "train: eval_graphs is %lld, expected 0, because "
		                                     "batch_graphs is 0",
		                (long long)c->eval_graphs);
	if (c->batch_graphs && c->model.readout < 0)
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: batch_graphs is %lld, but only a graph task (model.readout) has "
		                "batches of graphs",
		                (long long)c->batch_graphs);
	if (c->epochs < 1 || c->eval_every < 1 || c->patience < 0)
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: epochs %d, eval_every %d, patience %d, expected at least 1, 1, 0",
		                c->epochs, c->eval_every, c->patience);
	return schedule_check(ctx, c, d);
}

/* Rows that have a label: nodes, or the graphs of the batch. */
static int64_t target_rows(const hg_train_config *c, const hg_train_data *d)
{
	return c->model.readout >= 0 ? hg_graph_batch(d->input.graph) : hg_graph_rows(d->input.graph);
}

/* Group 0 has weight decay. If only the first layer shall have it, all later parameters move to a
 * group without. */
static hg_status groups_assign(hg_train *t)
{
	int group = 0;
	if (!t->config.first_layer_decay_only)
		return HG_OK;
	HG__TRY(hg_optim_add_group(t->optim, t->config.optim.lr, 0.0f, &group));
	for (int64_t i = 0; i < t->params->count; i++) {
		const hg_param *p = t->params->item[i];
		if (hg_model_param_layer(t->model, p) > 0 && !(p->flags & HG_PARAM_BUFFER))
			HG__TRY(hg_optim_assign(t->optim, p, group));
	}
	return HG_OK;
}

hg_status hg__train_schedule(hg_train *t, int64_t first_step)
{
	const int64_t steps = hg__train_steps(t); /* of an epoch */
	hg_schedule_config schedule = t->config.schedule;
	schedule.warmup *= steps;
	schedule.every *= steps;
	schedule.total *= steps;
	if (hg__schedule_ends(&schedule) && !schedule.total)
		schedule.total = first_step + steps * t->config.epochs;
	return hg__optim_schedule(t->optim, &schedule);
}

/* Scores of runs with other labels, targets or splits are not comparable. What is absent counts as
 * well. */
static uint64_t hash_targets(const hg_train_data *d, int64_t rows)
{
	const uint8_t *const masks[] = {d->train_mask, d->val_mask, d->test_mask};
	uint64_t hash = HG__FNV_BEGIN;
	if (d->labels)
		hash = hg__fnv(hash, d->labels, (size_t)rows * sizeof *d->labels);
	if (d->targets)
		hash = hg__fnv(hash, d->targets, (size_t)(rows * d->target_cols) * sizeof *d->targets);
	for (size_t k = 0; k < sizeof masks / sizeof *masks; k++) {
		hash = hg__fnv(hash, &(uint8_t){masks[k] != NULL}, 1);
		if (masks[k])
			hash = hg__fnv(hash, masks[k], (size_t)rows);
	}
	return hash;
}

static uint64_t hash_class_weights(const hg_train_config *c)
{
	return c->class_weights ? hg__fnv(HG__FNV_BEGIN, c->class_weights,
	                                  (size_t)c->class_weight_count * sizeof *c->class_weights)
	                        : 0;
}

static hg_status copy_numbers(hg_train *t, const double *from, const char *what,
                              struct hg__buffer *to)
{
	const int64_t columns = t->config.model.in_features;
	for (int64_t j = 0; j < columns; j++)
		if (!isfinite(from[j]) || (to == &t->column_deviation && from[j] < 0.0))
			return hg__fail(t->ctx, HG_ERR_ARG,
			                "train: data.%s of column %lld is %g, expected a finite number, of "
			                "deviations none below 0",
			                what, (long long)j, from[j]);
	HG__TRY(hg__buffer_host(t->ctx, columns, sizeof *from, "train: columns", to));
	memcpy(to->data, from, (size_t)columns * sizeof *from);
	return HG_OK;
}

static hg_status copy_standardization(hg_train *t, const hg_train_data *d)
{
	if (!d->column_mean != !d->column_deviation)
		return hg__fail(t->ctx, HG_ERR_ARG, "train: data.%s is NULL, expected both or none",
		                d->column_mean ? "column_deviation" : "column_mean");
	if (!d->column_mean)
		return HG_OK;
	HG__TRY(copy_numbers(t, d->column_mean, "column_mean", &t->column_mean));
	return copy_numbers(t, d->column_deviation, "column_deviation", &t->column_deviation);
}

uint64_t hg__train_columns_hash(const hg_train *t)
{
	const size_t bytes = (size_t)t->config.model.in_features * sizeof(double);
	return t->column_mean.data ? hg__fnv(hg__fnv(HG__FNV_BEGIN, t->column_mean.data, bytes),
	                                     t->column_deviation.data, bytes)
	                           : 0;
}

static hg_status copy_class_names(hg_train *t, const hg_train_data *d)
{
	if (!d->class_name || t->config.loss != HG_LOSS_CROSS_ENTROPY)
		return HG_OK;
	const int64_t count = hg__texts_count(d->class_name, d->class_name_bytes),
	              classes = t->config.model.out_features;
	if (d->class_name_bytes < 1 || count != classes)
		return hg__fail(t->ctx, HG_ERR_ARG,
		                "train: data.class_name names %lld classes, the model has %lld",
		                count > 0 ? (long long)count : 0LL, (long long)classes);
	HG__TRY(hg__buffer_host(t->ctx, d->class_name_bytes, 1, "train: names", &t->class_name));
	memcpy(t->class_name.data, d->class_name, (size_t)d->class_name_bytes);
	t->class_name_bytes = d->class_name_bytes;
	return HG_OK;
}

/* Padded batches have what the tapes on the first batch ask for: that of a step, and of an
 * evaluation. */
static hg_status buckets_init(hg_train *t)
{
	if (hg__train_evaluation_graphs(t)) {
		hg_tape *tape = NULL;
		HG__TRY(hg_tape_create(t->params, HG_EVAL, &tape));
		const hg_var logits = hg_model_record(t->model, tape, &t->batches.batch.input);
		const hg_status status = hg_tape_compile(tape, logits);
		hg_tape_free(tape);
		HG__TRY(status);
	}
	return hg__train_buckets_init(t);
}

static hg_status build_train(hg_train *t, const hg_train_data *d)
{
	const int64_t rows = target_rows(&t->config, d);
	hg_model_config *model = &t->config.model;
	void *board = NULL;
	if (!model->in_features)
		model->in_features =
		    d->input.x ? hg_tensor_cols(d->input.x) : hg_graph_cols(d->input.x_sparse);
	HG__TRY(copy_standardization(t, d));
	HG__TRY(hg__truth_init(&t->truth, t->ctx, &t->config, d, rows));
	HG__TRY(copy_class_names(t, d));
	t->targets_hash = hash_targets(d, rows);
	t->class_weights_hash = hash_class_weights(&t->config);
	t->config.class_weights = NULL; /* the caller may free them now */
	HG__TRY(hg_params_create(t->ctx, &t->config.policy, &t->params));
	HG__TRY(hg_model_create(t->params, &t->config.model, &t->model));
	t->config.policy = *hg_params_policy(t->params); /* these names outlive the caller's */
	t->config.model = *hg_model_get_config(t->model);
	HG__TRY(hg_optim_create(t->params, &t->config.optim, &t->optim));
	HG__TRY(groups_assign(t));
	t->input = d->input;
	HG__TRY(hg__best_init(&t->best, t->params));
	HG__TRY(hg__device_alloc(t->ctx, sizeof *t->board, "train: scores", &board));
	t->board = board;
	HG__TRY(hg__train_batches_init(t, d));
	HG__TRY(hg__train_schedule(t, 0));
	HG__TRY(hg__train_record_tape(t));
	HG__TRY(buckets_init(t));
	return hg__train_record_rest(t);
}

hg_status hg_train_create(hg_context *ctx, const hg_train_config *config, const hg_train_data *data,
                          hg_train **out)
{
	if (!ctx)
		return HG_ERR_ARG;
	if (!out)
		return hg__fail(ctx, HG_ERR_ARG, "train: train is NULL");
	*out = NULL;
	hg_train_config c = hg_train_config_default(NULL);
	hg_train_data d = HG_TRAIN_DATA_INIT;
	HG__TRY(arguments_read(ctx, config, data, &c, &d));
	HG__TRY(config_check(ctx, &c, &d));
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_train), "train", &memory));
	hg_train *train = memory;
	train->ctx = ctx;
	hg__context_hold(ctx);
	train->config = c;
	train->nodes = hg_graph_rows(d.input.graph);
	train->edges = hg_graph_edges(d.input.graph);
	(void)snprintf(train->features_note, sizeof train->features_note, "%s",
	               d.features_note ? d.features_note : "");
	train->rows_normalized = d.rows_normalized;
	train->self_loops = d.self_loops;
	train->unweighted = d.unweighted;
	const hg_status status = build_train(train, &d);
	if (status < 0) {
		hg_train_free(train);
		return status;
	}
	*out = train;
	return HG_OK;
}

void hg_train_free(hg_train *train)
{
	if (!train)
		return;
	hg_context *ctx = train->ctx;
	hg__saved_fini(&train->begin);
	hg__best_fini(&train->best);
	hg__device_free(ctx, train->board, sizeof *train->board);
	hg_step_free(train->step);
	hg__evaluator_fini(&train->evaluator);
	hg_tape_free(train->tape);
	hg__train_buckets_fini(train);
	hg__train_batches_fini(train);
	hg_optim_free(train->optim);
	hg_model_free(train->model);
	hg_params_free(train->params);
	hg__truth_fini(&train->truth, ctx);
	hg__buffer_free(ctx, &train->column_mean);
	hg__buffer_free(ctx, &train->column_deviation);
	hg__buffer_free(ctx, &train->class_name);
	hg__host_free(ctx, train->epoch_ms, (size_t)train->epoch_room * sizeof *train->epoch_ms);
	hg__host_free(ctx, train->history, (size_t)train->history_room * sizeof *train->history);
	hg__host_free(ctx, train, sizeof *train);
	hg__context_release(ctx);
}

hg_status hg_train_target_scale(const hg_train *train, int64_t column, double *mean,
                                double *deviation)
{
	if (!train)
		return HG_ERR_ARG;
	const struct hg__truth *t = &train->truth;
	if (!mean || !deviation)
		return hg__fail(train->ctx, HG_ERR_ARG, "train_target_scale: %s is NULL",
		                mean ? "deviation" : "mean");
	if (!t->target || column < 0 || column >= t->cols)
		return hg__fail(train->ctx, HG_ERR_ARG,
		                "train_target_scale: column is %lld, but the run learns %lld of targets",
		                (long long)column, t->target ? (long long)t->cols : 0LL);
	*mean = t->mean.data ? ((const double *)t->mean.data)[column] : 0.0;
	*deviation = t->deviation.data ? ((const double *)t->deviation.data)[column] : 1.0;
	return HG_OK;
}

hg_params *hg_train_params(hg_train *train)
{
	return train ? train->params : NULL;
}

hg_optim *hg_train_optim(hg_train *train)
{
	return train ? train->optim : NULL;
}

hg_model *hg_train_model(hg_train *train)
{
	return train ? train->model : NULL;
}

hg_step *hg_train_step(hg_train *train)
{
	return train ? train->step : NULL;
}

const hg_tape *hg_train_tape(const hg_train *train)
{
	return train ? train->tape : NULL;
}
