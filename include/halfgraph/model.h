#ifndef HALFGRAPH_MODEL_H
#define HALFGRAPH_MODEL_H

#include "halfgraph/graph.h"
#include "halfgraph/ops.h"
#include "halfgraph/param.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/* GCN, GIN and GAT as compositions of public ops. One configuration for all; a model ignores what
 * it has no use for. Inside an hg_train_config its size must be exact. */
typedef struct hg_model_config {
	size_t size;
	const char *name;                  /* "gcn", "gin", "gat" */
	int64_t in_features, out_features; /* 1 to 2^31 - 1 */
	int layers, hidden, heads;
	float dropout;
	/* GCN. BOTH, the default, divides by the roots of in- and out-degree; of a directed graph that
	 * is another model than PyTorch Geometric's, which is IN (graph.h): hg_model_record warns
	 * (context.h) */
	hg_norm norm;
	/* GIN */
	int eps_learnable;
	hg_norm aggregate; /* HG_NORM_NONE: sum, HG_NORM_RIGHT: mean */
	float lambda;      /* fixed factor on the aggregated sum (HalfGNN); 1: none */
	/* GAT */
	float negative_slope, attention_dropout;
	int out_heads; /* heads of the last layer, averaged */
	/* all */
	int readout; /* -1: node task; else an hg_reduce: graph task, every layer's readout summed up */
} hg_model_config;
/* 2 layers, hidden 64, 8 heads, dropout 0.5, norm BOTH, learnable eps, sum, slope 0.2, node task,
 * and on top what the model of that name has of its own. A name that hg_model_names does not list,
 * or NULL, is kept for hg_model_create to refuse. */
HG_API hg_model_config hg_model_config_default(const char *name);

typedef struct hg_model hg_model;

/* What a model reads. x: dense features [n, d] or NULL; x_sparse: the same as a weighted graph
 * [n, d] (rows = nodes, columns = features) or NULL. One of the two. All of the model's context.
 * Inside an hg_train_data its size must be exact. */
typedef struct hg_model_input {
	size_t size;
	hg_graph *graph;
	const hg_tensor *x;
	hg_graph *x_sparse;
	double x_amax; /* < 0: unknown */
} hg_model_input;
#define HG_MODEL_INPUT_INIT                   \
	{                                         \
		sizeof(hg_model_input), 0, 0, 0, -1.0 \
	}

/* Adds its parameters to `params` (borrowed), all of them or, on failure, none. HG_ERR_ARG names
 * the field. */
HG_API HG_NODISCARD hg_status hg_model_create(hg_params *params, const hg_model_config *config,
                                              hg_model **model);
HG_API void hg_model_free(hg_model *model);
HG_API const hg_model_config *hg_model_get_config(const hg_model *model);
/* Record the model on a tape; returns the logits [n or graphs, out_features]; a mistake is one of
 * the tape's, as with any op. The tape must be freed before the model. */
HG_API hg_var hg_model_record(hg_model *model, hg_tape *tape, const hg_model_input *input);
/* Layer (0-based) that a parameter belongs to; config.layers for the heads that make the scores; -1
 * if it is not this model's. For "weight decay on the first layer". */
HG_API int hg_model_param_layer(const hg_model *model, const hg_param *param);
/* Names of all models, NULL-terminated. */
HG_API const char *const *hg_model_names(void);

HG_EXTERN_C_END
#endif
