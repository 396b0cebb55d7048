#ifndef HG_NN_MODEL_H
#define HG_NN_MODEL_H

#include "autograd/param.h"
#include "halfgraph/model.h"
#include "nn/layers/layers.h"

HG_EXTERN_C_BEGIN

/* What one layer is asked to be. `final`: the last layer of a node task whose outputs are the
 * logits: no activation follows. */
struct hg__layer_spec {
	const char *name; /* "conv0" */
	int64_t in, out;
	int final;
};

/* What a training run takes where the caller has no wish. */
struct hg__model_training {
	float lr, weight_decay;
	int first_layer_decay_only, epochs;
};

/* What every model is: a stack of layers of one kind, dropout before each of them. A kind says what
 * one layer is; model.c does the rest. A layer's parameters live in a struct of the kind's own,
 * layer_bytes large. */
struct hg__model_kind {
	const char *name;
	struct hg__model_training training;
	size_t layer_bytes;
	/* node task: hidden layers only, and a linear head gives the logits. 0: the last layer gives
	 * them */
	int head;
	void (*defaults)(hg_model_config *config);
	/* what only this kind can refuse */
	hg_status (*check)(hg_context *ctx, const hg_model_config *config);
	/* columns of a hidden layer's output */
	int64_t (*width)(const hg_model_config *config);
	hg_status (*build)(hg_params *params, const hg_model_config *config,
	                   const struct hg__layer_spec *spec, void *layer);
	hg_var (*record)(const hg_model_config *config, const struct hg__layer_spec *spec,
	                 const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x);
};

#define HG_MODEL(name) extern const struct hg__model_kind hg__model_##name;
#include "nn/models.def"
#undef HG_MODEL

/* NULL if there is none of that name; name may be NULL. */
const struct hg__model_kind *hg__model_find(const char *name);

struct hg__model_layer {
	char name[16];
	struct hg__layer_spec spec;
	struct hg__linear head; /* graph task: scores from this layer's readout */
	void *own;              /* the kind's struct */
	int64_t first_param;    /* index in params; its last one stands before the next layer's first */
};

struct hg_model {
	hg_params *params;
	const struct hg__model_kind *kind;
	hg_model_config config;
	struct hg__model_layer *layer; /* [layers] */
	struct hg__linear head;        /* node task of a kind that has one */
	int64_t head_param, end_param; /* first parameter of the heads, one past the last of all */
	struct hg__feature_values *values;
};

HG_EXTERN_C_END
#endif
