/* Y = A~^hops X W + b, A~ the adjacency matrix scaled as `norm` says: the layer of GCN (hops 1) and
 * of SGC.
 *
 * A~ (X W) = (A~ X) W: the aggregations run on whichever of X and X W is cheaper to gather. */
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "nn/model.h"

hg_status hg__convolution_build(hg_params *params, const struct hg__layer_spec *spec,
                                struct hg__convolution *c)
{
	HG__TRY(hg__linear_build(params, spec->name, "", spec->in, spec->out, HG_INIT_GLOROT_UNIFORM, 0,
	                         &c->linear));
	return hg__param_build(params, spec->name, "bias", 1, spec->out, HG_INIT_ZEROS, 0, &c->bias);
}

static hg_var aggregate(hg_tape *tape, hg_graph *graph, hg_norm norm, int hops, hg_var x)
{
	for (int k = 0; k < hops; k++)
		x = hg_spmm(tape, graph, x, HG_NONE, norm, 1.0f);
	return x;
}

hg_var hg__convolution_record(const struct hg__convolution *c, const hg_model_config *config,
                              const struct hg__layer_spec *spec, int hops, hg_tape *tape,
                              hg_graph *graph, struct hg__features x)
{
	const hg_var bias = hg_tape_param(tape, c->bias);
	hg__norm_warn(config, graph);
	if (!x.sparse && hg__aggregate_first(hg_graph_cols(graph), spec->in, spec->out,
	                                     c->linear.w->working->mat.dtype)) {
		const hg_var y = aggregate(tape, graph, config->norm, hops, x.x);
		return hg_linear(tape, y, hg_tape_param(tape, c->linear.w), bias);
	}
	const hg_var y = hg__linear_record(&c->linear, tape, x);
	return hg_bias_add(tape, aggregate(tape, graph, config->norm, hops, y), bias);
}
