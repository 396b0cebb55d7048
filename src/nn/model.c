/* A model: layers of its kind, one after the other, then the scores.
 *
 *     H_0 = X,  H_{l+1} = layer_l(G, dropout(H_l))
 *     or, for a kind that embeds the features,
 *     H_0 = f(dropout(X) W + b),  H_{l+1} = layer_l(G, H_l),  f = relu or nothing
 *
 *     node task    logits = H_L, or dropout(H_L) W + b for a kind with a head
 *     graph task   logits = sum over l of dropout(readout(H_{l+1})) W_l + b_l      (Xu et al. 2019:
 *                  each depth contributes), of all layers or of the last, with the input or
 *                  without */
#include "nn/model.h"

#include <stdio.h>
#include <string.h>

#include "core/versioned.h"

static const struct hg__model_kind *const kinds[] = {
#define HG_MODEL(name) &hg__model_##name,
#include "nn/models.def"
#undef HG_MODEL
};
static const char *const names[] = {
#define HG_MODEL(name) #name,
#include "nn/models.def"
#undef HG_MODEL
    NULL,
};

const char *const *hg_model_names(void)
{
	return names;
}

const struct hg__model_kind *hg__model_find(const char *name)
{
	for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i]->info.name, name) == 0)
			return kinds[i];
	return NULL;
}

const hg_model_info *hg_model_get_info(const char *name)
{
	const struct hg__model_kind *kind = hg__model_find(name);
	return kind ? &kind->info : NULL;
}

hg_model_config hg_model_config_default(const char *name)
{
	hg_model_config config = {.size = sizeof config,
	                          .name = name,
	                          .layers = 2,
	                          .hidden = 64,
	                          .heads = 8,
	                          .dropout = 0.5f,
	                          .norm = HG_NORM_BOTH,
	                          .eps_learnable = 1,
	                          .aggregate = HG_NORM_NONE,
	                          .lambda = 1.0f,
	                          .negative_slope = 0.2f,
	                          .out_heads = 1,
	                          .readout = -1,
	                          .feature_norm = HG_BATCH_NORM};
	const struct hg__model_kind *kind = hg__model_find(name);
	if (kind)
		kind->defaults(&config);
	return config;
}

/* Reads the caller's configuration over the model's own defaults; a caller of an older version
 * knows fewer fields. */
static hg_status config_read(hg_context *ctx, const hg_model_config *theirs, hg_model_config *ours)
{
	hg_model_config head = hg_model_config_default(NULL);
	if (!hg__struct_read(&head, sizeof head, theirs))
		return hg__fail(ctx, HG_ERR_ARG,
		                "model: config.size is not set (start from hg_model_config_default), or a "
		                "field unknown to this version is used");
	*ours = hg_model_config_default(head.name);
	(void)hg__struct_read(ours, sizeof *ours, theirs); /* cannot fail: it was read above */
	return HG_OK;
}

static hg_status readout_layers_check(hg_context *ctx, const hg_model_config *c)
{
	if ((int)c->readout_layers < HG_READOUT_LAYERS || (int)c->readout_layers > HG_READOUT_ALL)
		return hg__fail(ctx, HG_ERR_ARG,
		                "%s: readout_layers is %d, expected one of "
		                "hg_readout_layers (0 to 2)",
		                c->name, (int)c->readout_layers);
	if (c->readout < 0 && c->readout_layers != HG_READOUT_LAYERS)
		return hg__fail(ctx, HG_ERR_ARG,
		                "%s: readout_layers is %d, but a node task (readout -1) reads nothing out",
		                c->name, (int)c->readout_layers);
	return HG_OK;
}

static hg_status config_check(hg_context *ctx, const hg_model_config *c)
{
	const struct hg__model_kind *kind = hg__model_find(c->name);
	if (!c->name)
		return hg__fail(ctx, HG_ERR_ARG,
		                "model: name is NULL, expected one that hg_model_names lists");
	if (!kind)
		return hg__fail(ctx, HG_ERR_ARG,
		                "model: name is \"%s\", expected one that hg_model_names lists", c->name);
	/* Columns and labels are int32. */
	if (c->in_features < 1 || c->in_features > INT32_MAX || c->out_features < 1 ||
	    c->out_features > INT32_MAX)
		return hg__fail(ctx, HG_ERR_ARG,
		                "%s: in_features %lld, out_features %lld, expected 1 to %d of each",
		                c->name, (long long)c->in_features, (long long)c->out_features, INT32_MAX);
	if (c->layers < 1 || c->layers > 1000)
		return hg__fail(ctx, HG_ERR_ARG, "%s: layers is %d, expected 1 to 1000", c->name,
		                c->layers);
	if (c->hidden < 1)
		return hg__fail(ctx, HG_ERR_ARG, "%s: hidden is %d, expected at least 1", c->name,
		                c->hidden);
	if (!(c->dropout >= 0.0f && c->dropout < 1.0f))
		return hg__fail(ctx, HG_ERR_ARG, "%s: dropout is %g, expected at least 0 and less than 1",
		                c->name, (double)c->dropout);
	if (c->readout < -1 || c->readout > HG_REDUCE_MAX)
		return hg__fail(ctx, HG_ERR_ARG,
		                "%s: readout is %d, expected -1 (node task) or one of hg_reduce", c->name,
		                c->readout);
	HG__TRY(readout_layers_check(ctx, c));
	return kind->check(ctx, c);
}

static int graph_task(const hg_model *model)
{
	return model->config.readout >= 0;
}

/* Sets name and widths of layer l. */
static void layer_place(hg_model *model, int64_t l, int64_t in)
{
	struct hg__model_layer *layer = &model->layer[l];
	const int last = l + 1 == model->config.layers,
	          final = last && !model->kind->head && !graph_task(model);
	(void)snprintf(layer->name, sizeof layer->name, "conv%lld", (long long)l);
	layer->spec = (struct hg__layer_spec){
	    layer->name, in, final ? model->config.out_features : model->kind->width(&model->config),
	    last, final};
}

/* *width: the columns of X, replaced by those of H_0. */
static hg_status embedding_build(hg_model *model, int64_t *width)
{
	const int64_t in = *width;
	if (model->kind->embed == HG__EMBED_NONE)
		return HG_OK;
	*width = model->kind->width(&model->config);
	return hg__linear_build(model->params, "embed", "", in, *width, HG_INIT_GLOROT_UNIFORM, 1,
	                        &model->embed);
}

static hg_status layers_build(hg_model *model)
{
	hg_context *ctx = model->params->ctx;
	int64_t width = model->config.in_features;
	for (int l = 0; l < model->config.layers; l++) {
		struct hg__model_layer *layer = &model->layer[l];
		layer->first_param = model->params->count;
		if (l == 0)
			HG__TRY(embedding_build(model, &width));
		layer_place(model, l, width);
		HG__TRY(hg__host_alloc(ctx, 1, model->kind->layer_bytes, "model: layer", &layer->own));
		HG__TRY(model->kind->build(model->params, &model->config, &layer->spec, layer->own));
		width = layer->spec.out;
	}
	return HG_OK;
}

static hg_status heads_build(hg_model *model)
{
	const hg_model_config *c = &model->config;
	const int64_t width = model->layer[c->layers - 1].spec.out;
	const int last = c->readout_layers == HG_READOUT_LAST;
	model->head_param = model->params->count;
	if (graph_task(model) ? last : model->kind->head)
		HG__TRY(hg__linear_build(model->params, "head", "", width, c->out_features,
		                         HG_INIT_GLOROT_UNIFORM, 1, &model->head));
	if (c->readout_layers == HG_READOUT_ALL)
		HG__TRY(hg__linear_build(model->params, "input", "head", model->layer[0].spec.in,
		                         c->out_features, HG_INIT_GLOROT_UNIFORM, 1, &model->input_head));
	for (int l = 0; graph_task(model) && !last && l < c->layers; l++)
		HG__TRY(hg__linear_build(model->params, model->layer[l].name, "head", width,
		                         c->out_features, HG_INIT_GLOROT_UNIFORM, 1,
		                         &model->layer[l].head));
	model->end_param = model->params->count;
	return HG_OK;
}

hg_status hg_model_create(hg_params *params, const hg_model_config *config, hg_model **out)
{
	if (!params)
		return HG_ERR_ARG;
	hg_context *ctx = params->ctx;
	if (!config || !out)
		return hg__fail(ctx, HG_ERR_ARG, "model: %s is NULL", config ? "model" : "config");
	*out = NULL;
	hg_model_config ours;
	HG__TRY(config_read(ctx, config, &ours));
	HG__TRY(config_check(ctx, &ours));
	const int64_t before = params->count;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_model), "model", &memory));
	hg_model *model = memory;
	model->params = params;
	model->kind = hg__model_find(ours.name);
	model->config = ours;
	model->config.name = model->kind->info.name;
	hg_status status =
	    hg__host_alloc(ctx, (size_t)ours.layers, sizeof *model->layer, "model: layers", &memory);
	if (status >= 0) {
		model->layer = memory;
		status = layers_build(model);
	}
	if (status >= 0)
		status = heads_build(model);
	if (status < 0) {
		hg_model_free(model);
		hg__params_cut(params, before);
		return status;
	}
	*out = model;
	return HG_OK;
}

void hg_model_free(hg_model *model)
{
	if (!model)
		return;
	hg_context *ctx = model->params->ctx;
	for (int l = 0; model->layer && l < model->config.layers; l++)
		hg__host_free(ctx, model->layer[l].own, model->kind->layer_bytes);
	hg__host_free(ctx, model->layer, (size_t)model->config.layers * sizeof *model->layer);
	hg__feature_values_free(ctx, model->values);
	hg__host_free(ctx, model, sizeof *model);
}

const hg_model_config *hg_model_get_config(const hg_model *model)
{
	return model ? &model->config : NULL;
}

int hg_model_param_layer(const hg_model *model, const hg_param *param)
{
	if (!model || !param || param->params != model->params ||
	    param->index < model->layer[0].first_param || param->index >= model->end_param)
		return -1;
	if (param->index >= model->head_param)
		return model->config.layers;
	int l = model->config.layers - 1;
	while (param->index < model->layer[l].first_param)
		l--;
	return l;
}
