/* Graph transformer (Dwivedi, Bresson 2021), h heads of d columns.
 *
 *     Q | K | V = H W + w                           [n, 3*h*d]
 *     p_ij = softmax over j in N(i) of <Q_i, K_j> / sqrt(d), per head
 *     A_i = sum over j of p_ij V_j                  heads side by side
 *     R = norm1(H + dropout(A) P + b)
 *     H' = norm2(R + dropout(relu(R F1 + f1)) F2 + f2)
 *
 * norm1 and norm2 are batch or layer normalisation; F1 doubles the width. The embedding H_0 =
 * dropout(X) W + b brings the features to the width of the layers. */
#include <math.h>

#include "core/context.h"
#include "halfgraph/ops.h"
#include "halfgraph/ops_attention.h"
#include "nn/model.h"

struct gt_layer {
	struct hg__linear qkv, proj; /* [h*d, 3*h*d], [h*d, h*d], with biases */
	struct hg__linear ff[2];     /* [h*d, 2*h*d], [2*h*d, h*d], with biases */
	struct hg__feature_norm norm[2];
};

static void defaults(hg_model_config *config)
{
	config->hidden = 8;
	config->dropout = 0.5f;
}

static hg_status check(hg_context *ctx, const hg_model_config *config)
{
	HG__TRY(hg__heads_check(ctx, config, "heads", config->heads));
	if (config->feature_norm < HG_BATCH_NORM || config->feature_norm > HG_LAYER_NORM)
		return hg__fail(ctx, HG_ERR_ARG,
		                "gt: feature_norm is %d, expected HG_BATCH_NORM or HG_LAYER_NORM",
		                (int)config->feature_norm);
	return hg__attention_dropout_check(ctx, config);
}

static hg_status linear_build(hg_params *params, const struct hg__layer_spec *spec,
                              const char *name, int64_t in, int64_t out, struct hg__linear *linear)
{
	return hg__linear_build(params, spec->name, name, in, out, HG_INIT_GLOROT_UNIFORM, 1, linear);
}

static hg_status build(hg_params *params, const hg_model_config *config,
                       const struct hg__layer_spec *spec, void *layer)
{
	struct gt_layer *l = layer;
	const int64_t d = spec->out;
	HG__TRY(linear_build(params, spec, "qkv", d, 3 * d, &l->qkv));
	HG__TRY(linear_build(params, spec, "proj", d, d, &l->proj));
	HG__TRY(
	    hg__feature_norm_build(params, spec->name, "norm1", d, config->feature_norm, &l->norm[0]));
	HG__TRY(linear_build(params, spec, "ff1", d, 2 * d, &l->ff[0]));
	HG__TRY(linear_build(params, spec, "ff2", 2 * d, d, &l->ff[1]));
	return hg__feature_norm_build(params, spec->name, "norm2", d, config->feature_norm,
	                              &l->norm[1]);
}

/* A */
static hg_var attention_record(const hg_model_config *config, const struct gt_layer *l,
                               hg_tape *tape, hg_graph *graph, struct hg__features x)
{
	hg_attention_config attention = HG_ATTENTION_CONFIG_INIT;
	attention.score = HG_SCORE_DOT;
	attention.heads = config->heads;
	attention.scale = 1.0f / sqrtf((float)config->hidden);
	attention.dropout = config->attention_dropout;
	/* Without k and v, q is Q | K | V. */
	const hg_attention_operands of = {.q = hg__linear_record(&l->qkv, tape, x),
	                                  .k = HG_NONE,
	                                  .v = HG_NONE,
	                                  .c = HG_NONE,
	                                  .bias = HG_NONE};
	return hg_attention(tape, graph, &of, &attention);
}

/* norm(H + dropout(Y) W + b) */
static hg_var add_record(const struct hg__linear *linear, const struct hg__feature_norm *norm,
                         hg_tape *tape, hg_var h, struct hg__features y, float dropout)
{
	y = hg__features_dropout(tape, y, dropout);
	return hg__feature_norm_record(norm, tape, hg_add(tape, h, hg__linear_record(linear, tape, y)));
}

static hg_var record(const hg_model_config *config, const struct hg__layer_spec *spec,
                     const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x)
{
	const struct gt_layer *l = layer;
	const int64_t d = spec->out;
	const hg_var a = attention_record(config, l, tape, graph, x),
	             r = add_record(&l->proj, &l->norm[0], tape, x.x, hg__features_dense(a, d),
	                            config->dropout),
	             inner =
	                 hg_relu(tape, hg__linear_record(&l->ff[0], tape, hg__features_dense(r, d)));
	return add_record(&l->ff[1], &l->norm[1], tape, r, hg__features_dense(inner, 2 * d),
	                  config->dropout);
}

/* Training: as the other models. Few labels are too few for a model of this size: Cora's test
 * accuracy is 74 %, with layer normalisation 78 % (100 epochs, fp32, mean of 2 seeds), where the
 * smaller GATv2 and AGNN reach 82 % and 81 %. The paper's tasks have thousands of graphs. */
const struct hg__model_kind hg__model_gt = {
    .info = {.name = "gt", .heads = 1}, /* the residual keeps a node's own row */
    .training = {0.01f, 5e-4f, 0, 200},
    .layer_bytes = sizeof(struct gt_layer),
    .embed = HG__EMBED_LINEAR,
    .head = 1,
    .defaults = defaults,
    .check = check,
    .width = hg__heads_width,
    .build = build,
    .record = record,
};
