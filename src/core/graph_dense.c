/* Decides once for each orientation of a batch whether dense counts (plan_dense.h) make attention
 * faster, and keeps them with its plan. */
#include "core/graph.h"
#include "core/plan_dense.h"

static hg_status fetch_and_build(const hg_graph *g, int forward, size_t reserve,
                                 struct hg__dense **dense)
{
	struct hg__buffer rowptr, col = {0}, ptr = {0};
	HG__TRY(hg__buffer_download(g->ctx, forward ? &g->rowptr : &g->rowptr_t,
	                            "dense counts: host rowptr", &rowptr));
	hg_status status =
	    hg__buffer_download(g->ctx, forward ? &g->col : &g->col_t, "dense counts: host col", &col);
	if (status == HG_OK)
		status = hg__buffer_download(g->ctx, &g->batch_ptr, "dense counts: host ptr", &ptr);
	const struct hg__dense_source source = {rowptr.data, col.data, g->batch, ptr.data, reserve};
	if (status == HG_OK)
		status = hg__dense_build(g->ctx, &source, dense);
	hg__buffer_free(g->ctx, &rowptr);
	hg__buffer_free(g->ctx, &col);
	hg__buffer_free(g->ctx, &ptr);
	return status;
}

hg_status hg__graph_dense(hg_graph *g, int transposed, size_t reserve)
{
	struct hg__csr csr;
	if (!g->ctx->backend->wants_dense || !g->batch_set || g->m == 0 || g->weight.data ||
	    g->batch_max > HG__DENSE_NODES)
		return HG_OK;
	HG__TRY(transposed ? hg__graph_csr_t(g, 0, &csr) : hg__graph_csr(g, &csr));
	const int forward = !transposed || g->pattern_symmetric;
	struct hg__plan *plan = forward ? g->plan : g->plan_t;
	if (plan->dense_tried)
		return HG_OK;
	plan->dense_tried = 1;
	const hg_status status = fetch_and_build(g, forward, reserve, &plan->dense);
	if (status != HG_ERR_NOMEM)
		return status;
	/* Dense counts are optional: without them attention is only slower. */
	hg__log(g->ctx, HG_LOG_INFO, "graph: no dense counts: %s", g->ctx->message);
	return HG_OK;
}
