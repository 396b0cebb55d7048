#ifndef HG_NN_LAYERS_LAYERS_H
#define HG_NN_LAYERS_LAYERS_H

#include "halfgraph/model.h"

HG_EXTERN_C_BEGIN

/* Parts that several models have in common. *_build adds parameters (named OWNER.NAME), *_record
 * records ops. */

/* The input of a layer: dense rows X [n, cols], or the same as a sparse matrix (rows = nodes,
 * columns = features). The stored values of a sparse matrix are its own or, after dropout, a
 * variable [m, 1]. */
struct hg__features {
	hg_var x;
	hg_graph *sparse; /* NULL: dense */
	hg_var value;     /* values of the sparse matrix; HG_NONE: its own */
	int64_t cols;
};

/* The values of sparse features as an input of a tape. Each recording adds an entry to the list,
 * which is freed with the model. */
struct hg__feature_values {
	hg_tensor *tensor; /* [m, 1] state */
	struct hg__feature_values *next;
};

struct hg__features hg__features_dense(hg_var x, int64_t cols);
/* Sparse features with values that dropout can change. Uploads the values in `dtype`, prepends them
 * to *list and records them as an input. */
HG_NODISCARD hg_status hg__features_sparse(hg_tape *tape, hg_graph *matrix, hg_dtype dtype,
                                           struct hg__feature_values **list,
                                           struct hg__features *out);
void hg__feature_values_free(hg_context *ctx, struct hg__feature_values *list);
/* Dropout with probability p; entries that are kept are divided by 1 - p. The zeros of a sparse
 * matrix stay zero in any case. */
struct hg__features hg__features_dropout(hg_tape *tape, struct hg__features x, float p);

/* Y = X W + b */
struct hg__linear {
	hg_param *w, *b; /* [in, out], [1, out] or NULL */
};
HG_NODISCARD hg_status hg__linear_build(hg_params *params, const char *owner, const char *name,
                                        int64_t in, int64_t out, hg_init init, int bias,
                                        struct hg__linear *linear);
hg_var hg__linear_record(const struct hg__linear *linear, hg_tape *tape, struct hg__features x);

/* On a graph of `nodes` nodes: is it cheaper to aggregate the `in` columns of a dense X before the
 * product with W [in, out] than the `out` columns after it? */
int hg__aggregate_first(int64_t nodes, int64_t in, int64_t out, hg_dtype state);

/* norm.c: what models have in common that scale the adjacency matrix as `norm` says. The check
 * returns HG_ERR_ARG if it is not one of hg_norm. On a directed graph the norms `both` and `in` are
 * different models, and the warning says so once. graph may be NULL. */
HG_NODISCARD hg_status hg__norm_check(hg_context *ctx, const hg_model_config *config);
void hg__norm_warn(const hg_model_config *config, hg_graph *graph);

/* The same file: HG_ERR_ARG if `aggregate` is neither sum nor mean. */
HG_NODISCARD hg_status hg__aggregate_check(hg_context *ctx, const hg_model_config *config);

/* The same file: the number of propagation steps of a layer; HG_ERR_ARG if it is not 1 to 1000. */
HG_NODISCARD hg_status hg__hops_check(hg_context *ctx, const hg_model_config *config);

/* Y = A~^hops X W + b (convolution.c) */
struct hg__layer_spec;
struct hg__convolution {
	struct hg__linear linear; /* without bias, which is added after the aggregations */
	hg_param *bias;           /* [1, out] */
};
HG_NODISCARD hg_status hg__convolution_build(hg_params *params, const struct hg__layer_spec *spec,
                                             struct hg__convolution *convolution);
hg_var hg__convolution_record(const struct hg__convolution *convolution,
                              const hg_model_config *config, const struct hg__layer_spec *spec,
                              int hops, hg_tape *tape, hg_graph *graph, struct hg__features x);

/* Y = gamma (X - mean) / sqrt(var + eps) + beta, per column */
struct hg__batch_norm {
	hg_param *gamma, *beta, *mean, *var; /* [1, cols] */
};
HG_NODISCARD hg_status hg__batch_norm_build(hg_params *params, const char *owner, const char *name,
                                            int64_t cols, struct hg__batch_norm *norm);
hg_var hg__batch_norm_record(const struct hg__batch_norm *norm, hg_tape *tape, hg_var x);

/* H' = relu(BN2(relu(BN1(H W1)) W2)) (perceptron.c), the end of a layer of GIN. `rest` is all that
 * follows Z = H W1. */
struct hg__perceptron {
	struct hg__linear first, second;
	struct hg__batch_norm norm[2];
};
HG_NODISCARD hg_status hg__perceptron_build(hg_params *params, const struct hg__layer_spec *spec,
                                            struct hg__perceptron *mlp);
hg_var hg__perceptron_rest(const struct hg__perceptron *mlp, const struct hg__layer_spec *spec,
                           hg_tape *tape, hg_var z);

/* Batch or layer normalisation. */
struct hg__feature_norm {
	hg_feature_norm kind;
	struct hg__batch_norm batch; /* layer normalisation: gamma and beta only */
};
HG_NODISCARD hg_status hg__feature_norm_build(hg_params *params, const char *owner,
                                              const char *name, int64_t cols, hg_feature_norm kind,
                                              struct hg__feature_norm *norm);
hg_var hg__feature_norm_record(const struct hg__feature_norm *norm, hg_tape *tape, hg_var x);

/* attention.c: what models with attention have in common. hg__heads_width: the columns of a hidden
 * layer, all heads side by side. The checks return HG_ERR_ARG if `heads`, the value of the named
 * field, is not 1 to HG_ATTENTION_HEADS; if negative_slope is not in [0, 1]; if attention_dropout
 * is not in [0, 1 - 2^-17). */
int64_t hg__heads_width(const hg_model_config *config);
HG_NODISCARD hg_status hg__heads_check(hg_context *ctx, const hg_model_config *config,
                                       const char *field, int heads);
HG_NODISCARD hg_status hg__slope_check(hg_context *ctx, const hg_model_config *config);
HG_NODISCARD hg_status hg__attention_dropout_check(hg_context *ctx, const hg_model_config *config);

/* The same file: what GAT and GATv2 have in common. hg__gat_columns: the columns of all heads of a
 * layer that gives `out`; in the final layer each head is as wide as the output. hg__gat_end: the
 * end of a layer, which is elu(Y + bias), and in the final layer mean over the heads of Y, + bias.
 */
void hg__gat_defaults(hg_model_config *config);
int hg__gat_heads(const hg_model_config *config, int final);
int64_t hg__gat_columns(const hg_model_config *config, int64_t out, int final);
hg_var hg__gat_end(const hg_model_config *config, int final, hg_tape *tape, hg_var y,
                   hg_param *bias);

/* hg_params_add with the name OWNER.NAME. The message has this name also where memory runs out. */
HG_NODISCARD hg_status hg__param_build(hg_params *params, const char *owner, const char *name,
                                       int64_t rows, int64_t cols, hg_init init, unsigned flags,
                                       hg_param **param);

HG_EXTERN_C_END
#endif
