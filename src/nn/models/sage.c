/* GraphSAGE with the mean of all neighbours, of which none are sampled (Hamilton, Ying, Leskovec
 * 2017).
 *
 *     H'_i = relu(mean over j in N(i) of H_j W_n + H_i W_r + b)
 *
 * The mean is linear, so W_n may come first: the aggregation runs on whichever of H and H W_n is
 * cheaper to gather. A row without neighbours has the mean 0. */
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "nn/model.h"

struct sage_layer {
	struct hg__linear neighbors, root; /* root has the bias */
};

static void defaults(hg_model_config *config)
{
	config->dropout = 0.5f;
}

static hg_status check(hg_context *ctx, const hg_model_config *config)
{
	(void)ctx;
	(void)config; /* no field of its own */
	return HG_OK;
}

static int64_t width(const hg_model_config *config)
{
	return config->hidden;
}

static hg_status build(hg_params *params, const hg_model_config *config,
                       const struct hg__layer_spec *spec, void *layer)
{
	struct sage_layer *l = layer;
	(void)config;
	HG__TRY(hg__linear_build(params, spec->name, "neighbors", spec->in, spec->out,
	                         HG_INIT_GLOROT_UNIFORM, 0, &l->neighbors));
	return hg__linear_build(params, spec->name, "root", spec->in, spec->out, HG_INIT_GLOROT_UNIFORM,
	                        1, &l->root);
}

static hg_var record(const hg_model_config *config, const struct hg__layer_spec *spec,
                     const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x)
{
	const struct sage_layer *l = layer;
	hg_var mean;
	(void)config;
	if (!x.sparse && hg__aggregate_first(hg_graph_cols(graph), spec->in, spec->out,
	                                     l->neighbors.w->working->mat.dtype))
		mean = hg_linear(tape, hg_spmm_mean(tape, graph, x.x), hg_tape_param(tape, l->neighbors.w),
		                 HG_NONE);
	else
		mean = hg_spmm_mean(tape, graph, hg__linear_record(&l->neighbors, tape, x));
	const hg_var y = hg_add(tape, mean, hg__linear_record(&l->root, tape, x));
	return spec->final ? y : hg_relu(tape, y);
}

/* Training: as for GCN, on all layers. */
const struct hg__model_kind hg__model_sage = {
    .info = {.name = "sage"},
    .training = {0.01f, 5e-4f, 0, 200},
    .layer_bytes = sizeof(struct sage_layer),
    .head = 0,
    .defaults = defaults,
    .check = check,
    .width = width,
    .build = build,
    .record = record,
};
