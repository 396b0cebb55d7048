/* Models that propagate with a scaled adjacency matrix. */
#include "core/context.h"
#include "core/graph.h"
#include "nn/layers/layers.h"

#include <string.h>

hg_status hg__norm_check(hg_context *ctx, const hg_model_config *config)
{
	if (config->norm < HG_NORM_NONE || config->norm >= HG_NORM_VALUES)
		return hg__fail(ctx, HG_ERR_ARG, "%s: norm is %d, expected one of hg_norm (0 to %d)",
		                config->name, (int)config->norm, HG_NORM_VALUES - 1);
	return HG_OK;
}

/* Other frameworks train the norm `in`. */
void hg__norm_warn(const hg_model_config *config, hg_graph *graph)
{
	if (graph && config->norm == HG_NORM_BOTH && hg__graph_know(graph) == HG_OK &&
	    !graph->pattern_symmetric)
		hg__log_once(
		    hg_graph_context(graph), HG__LOG_DIRECTED, HG_LOG_WARN,
		    "%s: the graph is directed, and norm both divides by the roots of in- and "
		    "out-degree; PyTorch Geometric divides by those of in-degrees (norm in). Or add "
		    "every edge's reverse",
		    config->name);
}

hg_status hg__hops_check(hg_context *ctx, const hg_model_config *config)
{
	return config->hops >= 1 && config->hops <= 1000
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_ARG, "%s: hops is %d, expected 1 to 1000", config->name,
	                      config->hops);
}

hg_status hg__aggregate_check(hg_context *ctx, const hg_model_config *config)
{
	return config->aggregate == HG_NORM_NONE || config->aggregate == HG_NORM_RIGHT
	           ? HG_OK
	           : hg__fail(ctx, HG_ERR_ARG,
	                      "%s: aggregate is %d, expected HG_NORM_NONE (sum) or HG_NORM_RIGHT "
	                      "(mean)",
	                      config->name, (int)config->aggregate);
}
