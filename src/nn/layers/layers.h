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

/* Y = gamma (X - mean) / sqrt(var + eps) + beta, per column */
struct hg__batch_norm {
	hg_param *gamma, *beta, *mean, *var; /* [1, cols] */
};
HG_NODISCARD hg_status hg__batch_norm_build(hg_params *params, const char *owner, const char *name,
                                            int64_t cols, struct hg__batch_norm *norm);
hg_var hg__batch_norm_record(const struct hg__batch_norm *norm, hg_tape *tape, hg_var x);

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
 * is not in [0, 1). */
int64_t hg__heads_width(const hg_model_config *config);
HG_NODISCARD hg_status hg__heads_check(hg_context *ctx, const hg_model_config *config,
                                       const char *field, int heads);
HG_NODISCARD hg_status hg__slope_check(hg_context *ctx, const hg_model_config *config);
HG_NODISCARD hg_status hg__attention_dropout_check(hg_context *ctx, const hg_model_config *config);

/* hg_params_add with the name OWNER.NAME. The message has this name also where memory runs out. */
HG_NODISCARD hg_status hg__param_build(hg_params *params, const char *owner, const char *name,
                                       int64_t rows, int64_t cols, hg_init init, unsigned flags,
                                       hg_param **param);

HG_EXTERN_C_END
#endif
