/* Graph convolution (Kipf, Welling 2017).
 *
 *     H' = relu(A~ H W + b),   A~ = A scaled by 1/sqrt(d d') (both), 1/d (right), 1/d' (left),
 *           or, d_j the in-degree of j, 1/sqrt(d_i d_j) (in)
 *
 * A~ (H W) = (A~ H) W: the aggregation runs on whichever of H and H W is cheaper to gather. Self
 * loops belong to the graph: hg_graph_add_self_loops. */
#include "halfgraph/ops.h"
#include "nn/model.h"

static void defaults(hg_model_config *config)
{
	config->dropout = 0.5f;
}

static int64_t width(const hg_model_config *config)
{
	return config->hidden;
}

static hg_status build(hg_params *params, const hg_model_config *config,
                       const struct hg__layer_spec *spec, void *layer)
{
	(void)config;
	return hg__convolution_build(params, spec, layer);
}

static hg_var record(const hg_model_config *config, const struct hg__layer_spec *spec,
                     const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x)
{
	const hg_var y = hg__convolution_record(layer, config, spec, 1, tape, graph, x);
	return spec->final ? y : hg_relu(tape, y);
}

/* Training: Kipf, Welling 2017: Adam 0.01, weight decay 5e-4 on the first layer, 200 epochs. */
const struct hg__model_kind hg__model_gcn = {
    .info = {.name = "gcn", .self_loops = 1},
    .training = {0.01f, 5e-4f, 1, 200},
    .layer_bytes = sizeof(struct hg__convolution),
    .head = 0,
    .defaults = defaults,
    .check = hg__norm_check,
    .width = width,
    .build = build,
    .record = record,
};
