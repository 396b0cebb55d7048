#ifndef HG_NN_MODEL_H
#define HG_NN_MODEL_H

#include "autograd/param.h"
#include "halfgraph/model.h"
#include "nn/layers/layers.h"

HG_EXTERN_C_BEGIN

/* The task of one layer. `last`: no layer follows. `final`: the last layer of a node task, whose
 * outputs are the logits, so no activation follows. */
struct hg__layer_spec {
	const char *name; /* "conv0" */
	int64_t in, out;
	int last, final;
};

/* Defaults of a training run. */
struct hg__model_training {
	float lr, weight_decay;
	int first_layer_decay_only, epochs;
};

/* What comes before the first layer. */
enum hg__embedding {
	HG__EMBED_NONE,   /* nothing: the first layer reads the features; dropout before each layer */
	HG__EMBED_LINEAR, /* dropout(X) W + b, as wide as a layer; layers drop out by themselves */
	HG__EMBED_RELU    /* the same and relu */
};

/* A kind of model: a stack of equal layers, perhaps between an embedding and a head. The kind
 * defines one layer; model.c does the rest. The parameters of a layer are in a struct of the kind's
 * own, of layer_bytes bytes. */
struct hg__model_kind {
	hg_model_info info; /* what programs may know of it, its name first */
	struct hg__model_training training;
	size_t layer_bytes;
	enum hg__embedding embed;
	/* 1: in a node task all layers are hidden, and a linear head gives the logits. 0: the last
	 * layer gives the logits. */
	int head;
	void (*defaults)(hg_model_config *config);
	/* Checks what is special to this kind. */
	hg_status (*check)(hg_context *ctx, const hg_model_config *config);
	/* The number of columns of a hidden layer's output. */
	int64_t (*width)(const hg_model_config *config);
	hg_status (*build)(hg_params *params, const hg_model_config *config,
	                   const struct hg__layer_spec *spec, void *layer);
	hg_var (*record)(const hg_model_config *config, const struct hg__layer_spec *spec,
	                 const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x);
	/* In place of `record`, of a kind that reads attributes of edges [m, K]. HG_NONE: K = 0 */
	hg_var (*record_edges)(const hg_model_config *config, const struct hg__layer_spec *spec,
	                       const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x,
	                       hg_var edges);
};

#define HG_MODEL(name) extern const struct hg__model_kind hg__model_##name;
#include "nn/models.def"
#undef HG_MODEL

/* record.c: does it read attributes of edges? */
int hg__model_reads_edges(const hg_model *model);

/* NULL if there is no model of this name. name may be NULL. */
const struct hg__model_kind *hg__model_find(const char *name);

struct hg__model_layer {
	char name[16];
	struct hg__layer_spec spec;
	struct hg__linear head; /* graph task: maps this layer's readout to scores */
	void *own;              /* the kind's struct */
	/* index in params, for the first layer that of the embedding; those of the layer end where the
	 * next layer's begin */
	int64_t first_param;
};

struct hg_model {
	hg_params *params;
	const struct hg__model_kind *kind;
	hg_model_config config;
	struct hg__model_layer *layer; /* [layers] */
	struct hg__linear embed;       /* of a kind that embeds the features */
	struct hg__linear head;        /* node task of a kind that has a head; HG_READOUT_LAST */
	struct hg__linear input_head;  /* HG_READOUT_ALL: maps the readout of H_0 to scores */
	int64_t head_param, end_param; /* the first parameter of the heads; one past the last of all */
	struct hg__feature_values *values;
};

/* H_layer, found while a model is recorded, and its readout where the logits have one. */
struct hg__layer_values {
	int layer;
	hg_var nodes, graphs; /* HG_NONE: not recorded (yet) */
};

/* The layer that `layer` names, HG_EMBED_LAST resolved; below 0 where the model has no such
 * embedding: it is not 0 .. layers, or it is the features themselves. */
int hg__model_embedding_layer(const hg_model *model, int layer);
/* Number of columns of H_layer, 0 <= layer <= layers. */
int64_t hg__model_embedding_cols(const hg_model *model, int layer);
/* hg_model_record, with H_layer, or, `of_graphs`, its readout, in f16 or f32, which can be read
 * after a run. The ops of the logits, their order and their names are the same. layer: 0 to layers;
 * in a node task `of_graphs` is 0. */
hg_var hg__model_record_embedding(hg_model *model, hg_tape *tape, const hg_model_input *input,
                                  int layer, int of_graphs, hg_var *embedding);

HG_EXTERN_C_END
#endif
