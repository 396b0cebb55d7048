/* Graph convolution (Kipf, Welling 2017).
 *
 *     H' = relu(A~ H W + b),   A~ = A scaled by 1/sqrt(d d') (both), 1/d (right), 1/d' (left),
 *           or, d_j the in-degree of j, 1/sqrt(d_i d_j) (in)
 *
 * A~ (H W) = (A~ H) W: the aggregation runs on whichever of H and H W is cheaper to gather. Self
 * loops belong to the graph: hg_graph_add_self_loops. */
#include "core/context.h"
#include "core/graph.h"
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "nn/model.h"

struct gcn_layer {
	struct hg__linear linear; /* without bias, which is added after the aggregation */
	hg_param *bias;           /* [1, out] */
};

static void defaults(hg_model_config *config)
{
	config->dropout = 0.5f;
}

static hg_status check(hg_context *ctx, const hg_model_config *config)
{
	if (config->norm < HG_NORM_NONE || config->norm > HG_NORM_IN)
		return hg__fail(ctx, HG_ERR_ARG, "gcn: norm is %d, expected one of hg_norm (0 to 4)",
		                (int)config->norm);
	return HG_OK;
}

static int64_t width(const hg_model_config *config)
{
	return config->hidden;
}

static hg_status build(hg_params *params, const hg_model_config *config,
                       const struct hg__layer_spec *spec, void *layer)
{
	struct gcn_layer *l = layer;
	(void)config;
	HG__TRY(hg__linear_build(params, spec->name, "", spec->in, spec->out, HG_INIT_GLOROT_UNIFORM, 0,
	                         &l->linear));
	return hg__param_build(params, spec->name, "bias", 1, spec->out, HG_INIT_ZEROS, 0, &l->bias);
}

/* On a directed graph the norms `both` and `in` are different models, and other frameworks train
 * `in`. */
static void warn_if_directed(hg_context *ctx, const hg_model_config *config, hg_graph *graph)
{
	if (config->norm == HG_NORM_BOTH && hg__graph_know(graph) == HG_OK && !graph->pattern_symmetric)
		hg__log_once(
		    ctx, HG__LOG_DIRECTED, HG_LOG_WARN,
		    "gcn: the graph is directed, and norm both divides by the roots of in- and "
		    "out-degree; PyTorch Geometric divides by those of in-degrees (norm in). Or add "
		    "every edge's reverse");
}

static hg_var record(const hg_model_config *config, const struct hg__layer_spec *spec,
                     const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x)
{
	const struct gcn_layer *l = layer;
	const hg_var bias = hg_tape_param(tape, l->bias);
	if (graph)
		warn_if_directed(hg_graph_context(graph), config, graph);
	hg_var y;
	if (!x.sparse && hg__aggregate_first(hg_graph_cols(graph), spec->in, spec->out,
	                                     l->linear.w->working->mat.dtype)) {
		y = hg_spmm(tape, graph, x.x, HG_NONE, config->norm, 1.0f);
		y = hg_linear(tape, y, hg_tape_param(tape, l->linear.w), bias);
	} else {
		y = hg__linear_record(&l->linear, tape, x);
		y = hg_bias_add(tape, hg_spmm(tape, graph, y, HG_NONE, config->norm, 1.0f), bias);
	}
	return spec->final ? y : hg_relu(tape, y);
}

/* Training: Kipf, Welling 2017: Adam 0.01, weight decay 5e-4 on the first layer, 200 epochs. */
const struct hg__model_kind hg__model_gcn = {
    .info = {.name = "gcn", .self_loops = 1},
    .training = {0.01f, 5e-4f, 1, 200},
    .layer_bytes = sizeof(struct gcn_layer),
    .head = 0,
    .defaults = defaults,
    .check = check,
    .width = width,
    .build = build,
    .record = record,
};
