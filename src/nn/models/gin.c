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
	struct hg__linear first, second;
	hg_param *eps; /* [1, 1], or NULL: 0 */
	struct hg__batch_norm norm[2];
};

static void defaults(hg_model_config *config)
{
	config->dropout = 0.5f;
}

static hg_status check(hg_context *ctx, const hg_model_config *config)
{
	if (config->aggregate != HG_NORM_NONE && config->aggregate != HG_NORM_RIGHT)
		return hg__fail(ctx, HG_ERR_ARG,
		                "gin: aggregate is %d, expected HG_NORM_NONE (sum) or HG_NORM_RIGHT (mean)",
		                (int)config->aggregate);
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
	HG__TRY(hg__linear_build(params, spec->name, "mlp1", spec->in, spec->out,
	                         HG_INIT_GLOROT_UNIFORM, 0, &l->first));
	HG__TRY(hg__batch_norm_build(params, spec->name, "bn1", spec->out, &l->norm[0]));
	HG__TRY(hg__linear_build(params, spec->name, "mlp2", spec->out, spec->out,
	                         HG_INIT_GLOROT_UNIFORM, 0, &l->second));
	return hg__batch_norm_build(params, spec->name, "bn2", spec->out, &l->norm[1]);
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
	                                     l->first.w->working->mat.dtype))
		z = hg_linear(tape, combine(config, l, tape, graph, x.x), hg_tape_param(tape, l->first.w),
		              HG_NONE);
	else
		z = combine(config, l, tape, graph, hg__linear_record(&l->first, tape, x));
	z = hg_relu(tape, hg__batch_norm_record(&l->norm[0], tape, z));
	z = hg__linear_record(&l->second, tape, hg__features_dense(z, spec->out));
	return hg_relu(tape, hg__batch_norm_record(&l->norm[1], tape, z));
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
