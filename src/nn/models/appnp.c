/* Approximate personalised propagation of neural predictions (Klicpera, Bojchevski, Guennemann
 * 2019): dense layers, and behind the last one
 *
 *     Z_0 = H W + b,  Z_{k+1} = (1 - teleport) A~ Z_k + teleport Z_0,  k = 0 .. hops - 1
 *
 * with A~ as for gcn. No weight is learnt between the steps, so a node sees `hops` steps far at the
 * cost of two layers. */
#include "core/context.h"
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "nn/model.h"

static void defaults(hg_model_config *config)
{
	config->hops = 10;
	config->teleport = 0.1f;
	config->dropout = 0.5f;
}

static hg_status check(hg_context *ctx, const hg_model_config *config)
{
	HG__TRY(hg__norm_check(ctx, config));
	HG__TRY(hg__hops_check(ctx, config));
	return config->teleport >= 0.0f && config->teleport <= 1.0f
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_ARG, "%s: teleport is %g, expected 0 to 1", config->name,
	                      (double)config->teleport);
}

static int64_t width(const hg_model_config *config)
{
	return config->hidden;
}

static hg_status build(hg_params *params, const hg_model_config *config,
                       const struct hg__layer_spec *spec, void *layer)
{
	(void)config;
	return hg__linear_build(params, spec->name, "", spec->in, spec->out, HG_INIT_GLOROT_UNIFORM, 1,
	                        layer);
}

static hg_var propagate(const hg_model_config *config, hg_tape *tape, hg_graph *graph, hg_var z)
{
	const hg_var restart = hg_scale(tape, z, config->teleport);
	for (int k = 0; k < config->hops; k++)
		z = hg_add(tape, hg_spmm(tape, graph, z, HG_NONE, config->norm, 1.0f - config->teleport),
		           restart);
	return z;
}

static hg_var record(const hg_model_config *config, const struct hg__layer_spec *spec,
                     const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x)
{
	hg_var y = hg__linear_record(layer, tape, x);
	if (spec->last) {
		hg__norm_warn(config, graph);
		y = propagate(config, tape, graph, y);
	}
	return spec->final ? y : hg_relu(tape, y);
}

/* Training: Klicpera et al. 2019: Adam 0.01, a weight decay of 5e-3 on the first layer. */
const struct hg__model_kind hg__model_appnp = {
    .info = {.name = "appnp", .self_loops = 1},
    .training = {0.01f, 5e-3f, 1, 200},
    .layer_bytes = sizeof(struct hg__linear),
    .head = 0,
    .defaults = defaults,
    .check = check,
    .width = width,
    .build = build,
    .record = record,
};
