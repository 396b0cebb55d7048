/* A model with the weights of a state, and what its tapes assumed. */
#include "halfgraph/predictor.h"

#include <stdio.h>
#include <string.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/texts.h"
#include "nn/model.h"
#include "nn/predict.h"
#include "nn/state.h"

struct hg_predictor {
	hg_context *ctx;
	hg_params *params;
	hg_model *model;
	hg_state *state; /* settings and best epoch of the run */
	hg_loss loss;
	struct hg__buffer mean, deviation; /* double [out_features]; empty: not standardised */
};

/* ---- making ---- */

static hg_status nomem(hg_context *ctx)
{
	return hg__fail(ctx, HG_ERR_NOMEM, "predictor: %s", hg_status_text(HG_ERR_NOMEM));
}

/* What is told of the run outlives the state. */
static hg_status copy_facts(hg_context *ctx, const hg_state *state, hg_state **copy)
{
	if (hg_state_create(copy) < 0)
		return nomem(ctx);
	(*copy)->best = state->best;
	(*copy)->step = state->step;
	(*copy)->loss_scale = state->loss_scale;
	for (int64_t i = 0; i < state->settings; i++)
		if (hg_state_add_setting(*copy, &state->setting[i]) < 0)
			return nomem(ctx);
	return hg_state_set_columns(*copy, state->columns, state->column_mean,
	                            state->column_deviation) < 0 ||
	               hg_state_set_class_names(*copy, state->class_name, state->class_name_bytes) < 0
	           ? nomem(ctx)
	           : HG_OK;
}

/* A state of version 0.1.0 does not tell its loss. */
static hg_status take_task(hg_predictor *p, const hg_state *state)
{
	const hg_setting *loss = hg_state_find_setting(state, "train.loss");
	if (loss && (loss->kind != HG_SETTING_INTEGER || loss->integer < HG_LOSS_CROSS_ENTROPY ||
	             loss->integer > HG_LOSS_MAE))
		return hg__fail(p->ctx, HG_ERR_ARG, "%s: the setting train.loss is not an hg_loss",
		                hg__state_origin(state));
	p->loss = loss ? (hg_loss)loss->integer : HG_LOSS_CROSS_ENTROPY;
	return HG_OK;
}

static hg_status take_number(const hg_predictor *p, const hg_state *state, const char *what,
                             int64_t column, double *value)
{
	char name[48];
	(void)snprintf(name, sizeof name, "target.%s %lld", what, (long long)column);
	const hg_setting *s = hg_state_find_setting(state, name);
	if (!s || s->kind != HG_SETTING_REAL)
		return hg__fail(p->ctx, HG_ERR_ARG, "%s: the setting %s is %s: not the state of a run",
		                hg__state_origin(state), name, s ? "of another type" : "missing");
	*value = s->real;
	return HG_OK;
}

/* How real targets were standardised. A run on targets as they are notes nothing. */
static hg_status take_scale(hg_predictor *p, const hg_state *state)
{
	const int64_t cols = hg_model_get_config(p->model)->out_features;
	if (!hg_state_find_setting(state, "target.mean 0"))
		return HG_OK;
	HG__TRY(hg__buffer_host(p->ctx, cols, sizeof(double), "predictor: mean", &p->mean));
	HG__TRY(hg__buffer_host(p->ctx, cols, sizeof(double), "predictor: deviation", &p->deviation));
	double *mean = p->mean.data, *deviation = p->deviation.data;
	for (int64_t c = 0; c < cols; c++) {
		HG__TRY(take_number(p, state, "mean", c, &mean[c]));
		HG__TRY(take_number(p, state, "deviation", c, &deviation[c]));
	}
	return HG_OK;
}

/* The features that the model reads are those that were standardised. */
static hg_status check_columns(const hg_predictor *p, const hg_state *state)
{
	const int64_t features = hg_model_get_config(p->model)->in_features;
	return !state->columns || state->columns == features
	           ? HG_OK
	           : hg__fail(p->ctx, HG_ERR_SHAPE,
	                      "%s: %lld columns were standardised, the model reads %lld features",
	                      hg__state_origin(state), (long long)state->columns, (long long)features);
}

static hg_status check_classes(const hg_predictor *p, const hg_state *state)
{
	const int64_t classes = hg_model_get_config(p->model)->out_features,
	              names = hg__texts_count(state->class_name, state->class_name_bytes);
	return !names || names == classes
	           ? HG_OK
	           : hg__fail(p->ctx, HG_ERR_SHAPE, "%s: %lld classes have names, the model has %lld",
	                      hg__state_origin(state), (long long)names, (long long)classes);
}

static hg_status make_model(hg_predictor *p, const hg_state *state)
{
	hg_policy policy = hg_policy_fp16();
	hg_model_config config;
	HG__TRY(hg__state_read_policy(state, p->ctx, &policy));
	HG__TRY(hg__state_read_model(state, p->ctx, &config));
	HG__TRY(hg_params_create(p->ctx, &policy, &p->params));
	HG__TRY(hg_model_create(p->params, &config, &p->model));
	HG__TRY(hg__state_check_shapes(p->params, state));
	return hg__state_check_names(p->params, p->state, state);
}

/* The weights of the best epoch, or the last ones. */
static hg_status take_weights(const hg_params *params, const hg_state *state)
{
	const size_t largest = hg__state_largest(params);
	void *staging = NULL;
	hg_status status = HG_OK;
	HG__TRY(hg__host_alloc(params->ctx, largest, 1, "predictor: staging", &staging));
	for (int64_t i = 0; status >= 0 && i < params->count; i++) {
		const hg_param *p = params->item[i];
		const hg_state_tensor *t = hg_state_find_tensor(state, p->name);
		const struct hg__mat *mat = &p->master->mat;
		status =
		    hg__state_upload(params->ctx, mat, mat->data, t->best ? t->best : t->master, staging);
		if (status >= 0)
			status = hg__param_narrow(p);
	}
	hg__host_free(params->ctx, staging, largest);
	return status;
}

/* Promotions and reaches, so that tapes are recorded as those of the run were. */
static hg_status take_basis(hg_params *params, const hg_state *state)
{
	struct hg__basis basis;
	HG__TRY(hg__basis_make(params, state, &basis));
	hg__basis_swap(params, &basis);
	hg__basis_fini(params->ctx, &basis);
	return HG_OK;
}

static hg_status fill(hg_predictor *p, const hg_state *state)
{
	HG__TRY(take_task(p, state));
	HG__TRY(copy_facts(p->ctx, state, &p->state));
	HG__TRY(make_model(p, state));
	HG__TRY(check_columns(p, state));
	HG__TRY(check_classes(p, state));
	HG__TRY(take_scale(p, state));
	HG__TRY(take_basis(p->params, state));
	return take_weights(p->params, state);
}

/* HG_INFO_DIFFERS if the last bits may be others than those of the run. */
static hg_status compare(const hg_predictor *p, const hg_state *state)
{
	static const char *const names[] = {"library", "device", "separate_ops"};
	char found[80], expected[80];
	hg_state *ours = NULL;
	if (hg_state_create(&ours) < 0)
		return nomem(p->ctx);
	hg_status status = hg__state_note_context(ours, p->ctx, p->params->seed);
	for (size_t k = 0; status == HG_OK && k < sizeof names / sizeof *names; k++) {
		const hg_setting *differs = hg__state_difference(ours, state, names[k]);
		if (!differs)
			continue;
		hg__setting_text(hg_state_find_setting(state, names[k]), found, sizeof found);
		hg__setting_text(differs, expected, sizeof expected);
		status = hg__fail(p->ctx, HG_INFO_DIFFERS,
		                  "%s is %s in %s, here it is %s: logits may differ in their last bits",
		                  names[k], found, hg__state_origin(state), expected);
	}
	hg_state_free(ours);
	return status;
}

hg_status hg_predictor_create(hg_context *ctx, const hg_state *state, hg_predictor **out)
{
	if (out)
		*out = NULL;
	if (!ctx)
		return HG_ERR_ARG;
	if (!state || !out)
		return hg__fail(ctx, HG_ERR_ARG, "predictor: %s is NULL", state ? "predictor" : "state");
	const char *fault = hg_state_fault(state);
	if (fault)
		return hg__fail(ctx, HG_ERR_ARG, "%s: %s", hg__state_origin(state), fault);
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_predictor), "predictor", &memory));
	hg_predictor *p = memory;
	p->ctx = ctx;
	hg__context_hold(ctx);
	hg_status status = fill(p, state);
	if (status >= 0)
		status = compare(p, state);
	if (status < 0) {
		hg_predictor_free(p);
		return status;
	}
	*out = p;
	return status;
}

void hg_predictor_free(hg_predictor *p)
{
	if (!p)
		return;
	hg_context *ctx = p->ctx;
	hg_model_free(p->model);
	hg_params_free(p->params);
	hg_state_free(p->state);
	hg__buffer_free(ctx, &p->mean);
	hg__buffer_free(ctx, &p->deviation);
	hg__host_free(ctx, p, sizeof *p);
	hg__context_release(ctx);
}

/* ---- use ---- */

/* What a call of the user wants. */
struct wish {
	int32_t *prediction;
	float *logits;
	float *embedding; /* NULL: none */
	int layer, of_graphs;
};

static hg_status record_and_run(hg_predictor *p, hg_tape *tape, const hg_model_input *input,
                                const struct wish *w)
{
	hg_var h = HG_NONE;
	const hg_var scores =
	    w->embedding ? hg__model_record_embedding(p->model, tape, input, w->layer, w->of_graphs, &h)
	                 : hg_model_record(p->model, tape, input);
	HG__TRY(hg_tape_compile(tape, scores));
	HG__TRY(hg_tape_forward(tape));
	HG__TRY(hg__predict(p->ctx, hg_tape_value(tape, scores), w->prediction, w->logits));
	if (w->logits && p->mean.data)
		hg__targets_undo(w->logits, hg_tensor_rows(hg_tape_value(tape, scores)),
		                 hg_model_get_config(p->model)->out_features, p->mean.data,
		                 p->deviation.data);
	return w->embedding ? hg_tensor_download(hg_tape_value(tape, h), w->embedding, HG_F32) : HG_OK;
}

static hg_status run(hg_predictor *p, const hg_model_input *input, const struct wish *w)
{
	hg_tape *tape = NULL;
	HG__TRY(hg_tape_create(p->params, HG_EVAL, &tape));
	const hg_status status = record_and_run(p, tape, input, w);
	hg_tape_free(tape);
	return status;
}

hg_status hg_predictor_run(hg_predictor *p, const hg_model_input *input, int32_t *prediction,
                           float *logits)
{
	if (!p)
		return HG_ERR_ARG;
	const int classes = p->loss == HG_LOSS_CROSS_ENTROPY;
	if (!input || (classes ? !prediction : !logits))
		return hg__fail(p->ctx, HG_ERR_ARG, "predictor_run: %s is NULL",
		                !input    ? "input"
		                : classes ? "prediction"
		                          : "logits");
	return run(p, input, &(struct wish){.prediction = prediction, .logits = logits});
}

int64_t hg_predictor_embedding_cols(const hg_predictor *p, int layer)
{
	const int found = p ? hg__model_embedding_layer(p->model, layer) : -1;
	return found < 0 ? 0 : hg__model_embedding_cols(p->model, found);
}

/* Layer 0 is missing where the first layer reads the features, and then so is the last embedding of
 * a model of one layer that has no head. */
static hg_status no_embedding(const hg_predictor *p, int layer)
{
	const hg_model_config *c = hg_model_get_config(p->model);
	const int first = hg__model_embedding_layer(p->model, 0) < 0;
	if (layer == HG_EMBED_LAST)
		return hg__fail(p->ctx, HG_ERR_ARG,
		                "%s: its only layer makes the logits from the features: the embedding "
		                "before them is the features",
		                c->name);
	return hg__fail(p->ctx, HG_ERR_ARG,
	                "%s: embedding of layer %d, expected %d to %d, or the last (%d)%s", c->name,
	                layer, first, c->layers, HG_EMBED_LAST,
	                first && layer == 0 ? ": layer 0 is the features" : "");
}

hg_status hg_predictor_embed(hg_predictor *p, const hg_model_input *input, int layer, int of_nodes,
                             float *embedding, int32_t *prediction, float *logits)
{
	if (!p)
		return HG_ERR_ARG;
	if (!input || !embedding)
		return hg__fail(p->ctx, HG_ERR_ARG, "predictor_embed: %s is NULL",
		                input ? "embedding" : "input");
	const int found = hg__model_embedding_layer(p->model, layer);
	if (found < 0)
		return no_embedding(p, layer);
	const int graphs = hg_model_get_config(p->model)->readout >= 0;
	return run(p, input,
	           &(struct wish){.prediction = prediction,
	                          .logits = logits,
	                          .embedding = embedding,
	                          .layer = found,
	                          .of_graphs = graphs && !of_nodes});
}

const hg_state *hg_predictor_state(const hg_predictor *p)
{
	return p ? p->state : NULL;
}

hg_loss hg_predictor_loss(const hg_predictor *p)
{
	return p ? p->loss : HG_LOSS_CROSS_ENTROPY;
}

hg_params *hg_predictor_params(const hg_predictor *p)
{
	return p ? p->params : NULL;
}

hg_model *hg_predictor_model(const hg_predictor *p)
{
	return p ? p->model : NULL;
}
