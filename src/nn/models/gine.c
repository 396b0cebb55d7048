/* GIN with attributes of edges (Hu, Liu, Gomes, Zitnik, Liang, Pande, Leskovec 2020).
 *
 *     H' = relu(BN2(relu(BN1(S W1)) W2)),  S_i = (1 + eps) D_i + sum or mean over the edges e =
 *                                          (i, j) of relu(D_j + Z_e W_e + b_e),  D = dropout(H)
 *
 * with Z [m, K] the attributes. Without them (K = 0) a message is relu(D_j). The messages are a
 * chain of public ops on m rows; of these the backward pass keeps only the relu's. */
#include "core/context.h"
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "nn/model.h"

struct gine_layer {
	hg_param *eps;          /* [1, 1], or NULL: 0 */
	struct hg__linear edge; /* W_e, b_e; NULL: K = 0 */
	struct hg__perceptron mlp;
};

static void defaults(hg_model_config *config)
{
	config->dropout = 0.5f;
}

static hg_status check(hg_context *ctx, const hg_model_config *config)
{
	HG__TRY(hg__aggregate_check(ctx, config));
	return config->edge_features >= 0 && config->edge_features <= INT32_MAX
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_ARG, "gine: edge_features is %lld, expected 0 to %d",
	                      (long long)config->edge_features, INT32_MAX);
}

static int64_t width(const hg_model_config *config)
{
	return config->hidden;
}

static hg_status build(hg_params *params, const hg_model_config *config,
                       const struct hg__layer_spec *spec, void *layer)
{
	struct gine_layer *l = layer;
	if (config->eps_learnable)
		HG__TRY(
		    hg__param_build(params, spec->name, "eps", 1, 1, HG_INIT_ZEROS, HG_PARAM_F32, &l->eps));
	if (config->edge_features)
		HG__TRY(hg__linear_build(params, spec->name, "edge", config->edge_features, spec->in,
		                         HG_INIT_GLOROT_UNIFORM, 1, &l->edge));
	return hg__perceptron_build(params, spec, &l->mlp);
}

static hg_var record(const hg_model_config *config, const struct hg__layer_spec *spec,
                     const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x,
                     hg_var edges)
{
	const struct gine_layer *l = layer;
	const hg_reduce reduce = config->aggregate == HG_NORM_RIGHT ? HG_REDUCE_MEAN : HG_REDUCE_SUM;
	x = hg__features_dropout(tape, x, config->dropout);
	hg_var message = hg_gather(tape, graph, x.x, HG_END_SOURCE);
	if (l->edge.w)
		message = hg_add(
		    tape, message,
		    hg__linear_record(&l->edge, tape, hg__features_dense(edges, config->edge_features)));
	const hg_var sum = hg_scatter(tape, graph, hg_relu(tape, message), HG_END_DESTINATION, reduce);
	const hg_var s =
	    l->eps ? hg_combine(tape, x.x, sum, hg_tape_param(tape, l->eps)) : hg_add(tape, x.x, sum);
	return hg__perceptron_rest(
	    &l->mlp, spec, tape,
	    hg__linear_record(&l->mlp.first, tape, hg__features_dense(s, spec->in)));
}

/* Training as for GIN. */
const struct hg__model_kind hg__model_gine = {
    .info = {.name = "gine", .edge_features = 1},
    .training = {0.01f, 5e-4f, 0, 200},
    .layer_bytes = sizeof(struct gine_layer),
    .embed = HG__EMBED_LINEAR,
    .head = 1,
    .defaults = defaults,
    .check = check,
    .width = width,
    .build = build,
    .record_edges = record,
};
