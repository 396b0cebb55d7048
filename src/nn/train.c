/* Making a training run: uploads the data, makes model and optimiser, and records one tape for
 * training and one for evaluation. */
#include "nn/train.h"

#include <stdio.h>

#include "core/context.h"
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
	             {"data.input", d->input.size, sizeof d->input}};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (parts[i].found != parts[i].expected)
			return hg__fail(ctx, HG_ERR_ARG, "train: %s.size is %zu, expected %zu", parts[i].name,
			                parts[i].found, parts[i].expected);
	return HG_OK;
}

static hg_status config_check(hg_context *ctx, const hg_train_config *c, const hg_train_data *d)
{
	if (!d->input.graph || !d->labels)
		return hg__fail(ctx, HG_ERR_ARG, "train: data.%s is NULL",
		                d->labels ? "input.graph" : "labels");
	if (!d->input.x && !d->input.x_sparse)
		return hg__fail(ctx, HG_ERR_ARG, "train: data.input has neither x nor x_sparse");
	if (hg_graph_context(d->input.graph) != ctx)
		return hg__fail(ctx, HG_ERR_ARG, "train: data.input.graph belongs to another context");
	if (c->epochs < 1 || c->eval_every < 1 || c->patience < 0)
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: epochs %d, eval_every %d, patience %d, expected at least 1, 1, 0",
		                c->epochs, c->eval_every, c->patience);
	return HG_OK;
}

/* Rows that have a label: nodes, or the graphs of the batch. */
static int64_t target_rows(const hg_train_config *c, const hg_train_data *d)
{
	return c->model.readout >= 0 ? hg_graph_batch(d->input.graph) : hg_graph_rows(d->input.graph);
}

/* Refuses a run that has nothing to learn from. If the caller does not set the number of classes,
 * it is the largest label + 1. More classes than labelled rows would mean that this label is a
 * mistake. */
static hg_status labels_check(hg_context *ctx, const hg_train_data *d, int64_t rows,
                              int64_t *classes)
{
	int64_t learnable = 0, labelled = 0, widest = 0;
	for (int64_t i = 0; i < rows; i++) {
		if (d->labels[i] > d->labels[widest])
			widest = i;
		labelled += d->labels[i] >= 0;
		learnable += d->labels[i] >= 0 && (!d->train_mask || d->train_mask[i]);
	}
	if (!learnable)
		return hg__fail(ctx, HG_ERR_ARG, "train: none of %lld rows is labelled and in train_mask",
		                (long long)rows);
	if (*classes)
		return HG_OK;
	*classes = (int64_t)d->labels[widest] + 1;
	if (*classes > labelled)
		return hg__fail(ctx, HG_ERR_ARG,
		                "train: label %d of row %lld means %lld classes, but only %lld rows are "
		                "labelled; if this is intended, set model.out_features",
		                (int)d->labels[widest], (long long)widest, (long long)*classes,
		                (long long)labelled);
	return HG_OK;
}

static hg_status column_upload(hg_context *ctx, hg_dtype dtype, int64_t rows, const void *host,
                               hg_tensor **tensor)
{
	if (!host)
		return HG_OK;
	HG__TRY(hg_tensor_create(ctx, dtype, rows, 1, tensor));
	return hg_tensor_upload(*tensor, host, dtype);
}

/* Does the split have a row with a label? */
static int split_exists(const uint8_t *mask, const int32_t *labels, int64_t rows)
{
	for (int64_t i = 0; mask && i < rows; i++)
		if (mask[i] && labels[i] >= 0)
			return 1;
	return 0;
}

static hg_status targets_upload(hg_train *t, const hg_train_data *d, int64_t rows)
{
	const uint8_t *const masks[HG__SPLITS] = {d->train_mask, d->val_mask, d->test_mask};
	HG__TRY(column_upload(t->ctx, HG_I32, rows, d->labels, &t->targets.label));
	for (int i = 0; i < HG__SPLITS; i++)
		if (split_exists(masks[i], d->labels, rows))
			HG__TRY(column_upload(t->ctx, HG_U8, rows, masks[i], &t->targets.mask[i]));
	return HG_OK;
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

hg_status hg__train_begin_init(hg_train *t)
{
	const struct hg__live live = {.params = t->params,
	                              .optim = t->optim,
	                              .best = &t->best.weights,
	                              .board = t->board,
	                              .watch = t->step->watch};
	return hg__saved_init(&t->begin, &live, HG__SAVED_GROUP, 0, "train: a state to return to");
}

/* Allocates the state to which a run returns if the caller stops it in the middle of a group
 * (train_run.c). It is made before the first group, so that the plan of the tape counts its
 * memory. */
static hg_status begin_init(hg_train *t)
{
	const hg_step_config *c = &t->config.step;
	const int groups =
	    c->per_launch ? c->per_launch > 1 : !c->eager && t->ctx->backend->capture_begin;
	if (!groups || !t->config.progress)
		return HG_OK;
	return hg__train_begin_init(t);
}

hg_status hg__train_record(hg_train *t)
{
	HG__TRY(hg_tape_create(t->params, HG_TRAIN, &t->tape));
	if (t->config.step.observe_every < 0)
		hg_tape_observe(t->tape, 0);
	t->loss = hg__targets_loss(&t->targets, HG__SPLIT_TRAIN, t->tape,
	                           hg_model_record(t->model, t->tape, &t->input));
	HG__TRY(hg_tape_compile(t->tape, t->loss));
	HG__TRY(hg__evaluator_init(&t->evaluator, t->tape, t->model, &t->input, &t->targets));
	t->evaluator.eager = t->config.step.eager;
	t->evaluator.board = t->board;
	t->evaluator.best = &t->best;
	HG__TRY(hg_step_create(t->tape, t->optim, &t->config.step, &t->step));
	return begin_init(t);
}

static hg_status build_train(hg_train *t, const hg_train_data *d)
{
	const int64_t rows = target_rows(&t->config, d);
	hg_model_config *model = &t->config.model;
	void *board = NULL;
	if (!model->in_features)
		model->in_features =
		    d->input.x ? hg_tensor_cols(d->input.x) : hg_graph_cols(d->input.x_sparse);
	HG__TRY(labels_check(t->ctx, d, rows, &model->out_features));
	HG__TRY(targets_upload(t, d, rows));
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
	return hg__train_record(t);
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
	hg_optim_free(train->optim);
	hg_model_free(train->model);
	hg_params_free(train->params);
	hg_tensor_free(train->targets.label);
	for (int i = 0; i < HG__SPLITS; i++)
		hg_tensor_free(train->targets.mask[i]);
	hg__host_free(ctx, train->epoch_ms, (size_t)train->epoch_room * sizeof *train->epoch_ms);
	hg__host_free(ctx, train, sizeof *train);
	hg__context_release(ctx);
}

hg_params *hg_train_params(hg_train *train)
{
	return train ? train->params : NULL;
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
