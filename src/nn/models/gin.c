/* Graph isomorphism network (Xu, Hu, Leskovec, Jegelka 2019), with the fixed factor lambda of
 * HalfGNN.
 *
 *     H' = relu(BN(Z2)),  Z2 = relu(BN(Z1)) W2,  Z1 = ((1 + eps) H + lambda * agg(H)) W1,   agg:
 *                         sum or mean over the neighbours
 *
 * The combination is linear, so W1 may come first: Z1 = (1 + eps) U + lambda * agg(U) with U = H
 * W1. The layer aggregates whichever is cheaper to gather. There are no biases, because the batch
 * norm that follows would subtract them again. */
#include "core/context.h"
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "nn/model.h"

#include <math.h>

struct gin_layer {
	hg_param *eps; /* [1, 1], or NULL: 0 */
	struct hg__perceptron mlp;
};

static void defaults(hg_model_config *config)
{
	config->dropout = 0.5f;
}

static hg_status check(hg_context *ctx, const hg_model_config *config)
{
	HG__TRY(hg__aggregate_check(ctx, config));
	if (!isfinite(config->lambda))
		return hg__fail(ctx, HG_ERR_ARG, "gin: lambda is %g, expected a finite number",
		                (double)config->lambda);
	return HG_OK;
}

static int64_t width(const hg_model_config *config)
{
	return config->hidden;
}

static hg_status build(hg_params *params, const hg_model_config *config,
                       const struct hg__layer_spec *spec, void *layer)
{
	struct gin_layer *l = layer;
	if (config->eps_learnable)
		HG__TRY(
		    hg__param_build(params, spec->name, "eps", 1, 1, HG_INIT_ZEROS, HG_PARAM_F32, &l->eps));
	return hg__perceptron_build(params, spec, &l->mlp);
}

/* (1 + eps) X + lambda * agg(X) */
static hg_var combine(const hg_model_config *config, const struct gin_layer *l, hg_tape *tape,
                      hg_graph *graph, hg_var x)
{
	const hg_var sum = hg_spmm(tape, graph, x, HG_NONE, config->aggregate, config->lambda);
	return l->eps ? hg_combine(tape, x, sum, hg_tape_param(tape, l->eps)) : hg_add(tape, x, sum);
}

static hg_var record(const hg_model_config *config, const struct hg__layer_spec *spec,
                     const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x)
{
	const struct gin_layer *l = layer;
	hg_var z;
	if (!x.sparse && hg__aggregate_first(hg_graph_cols(graph), spec->in, spec->out,
	                                     l->mlp.first.w->working->mat.dtype))
		z = hg_linear(tape, combine(config, l, tape, graph, x.x),
		              hg_tape_param(tape, l->mlp.first.w), HG_NONE);
	else
		z = combine(config, l, tape, graph, hg__linear_record(&l->mlp.first, tape, x));
	return hg__perceptron_rest(&l->mlp, spec, tape, z);
}

/* Training: the published rates are for graph tasks (Xu et al. 2019: Adam 0.01). For node tasks
 * every layer has the weight decay of GCN's first layer. */
const struct hg__model_kind hg__model_gin = {
    .info = {.name = "gin"},
    .training = {0.01f, 5e-4f, 0, 200},
    .layer_bytes = sizeof(struct gin_layer),
    .head = 1,
    .defaults = defaults,
    .check = check,
    .width = width,
    .build = build,
    .record = record,
};
