#include "core/graph_stream_check.h"

/* ---- a config ---- */

hg_status hg__stream_check_config(hg_context *ctx, const hg_graph_stream_config *c)
{
	if (c->nodes < 1 || c->edges < 0 || c->max_degree < 1)
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph stream: nodes %lld, edges %lld, max_degree %lld, expected at least "
		                "1, 0 and 1",
		                (long long)c->nodes, (long long)c->edges, (long long)c->max_degree);
	if (!(c->max_weight > 0.0f && c->max_weight <= 65504.0f) ||
	    (c->self_loops && c->max_weight < 1.0f))
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph stream: max_weight is %g, expected a number in (0, 65504], and at "
		                "least 1 with self loops",
		                (double)c->max_weight);
	if ((unsigned)c->aggregation > HG_AGGREGATION_AUTO)
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph stream: aggregation is %d, expected one of "
		                "hg_aggregation",
		                (int)c->aggregation);
	if (c->aggregation == HG_AGGREGATION_AUTO && (c->uses < 1 || c->width < 1))
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph stream: uses is %lld and width is %lld, expected at least 1 for "
		                "HG_AGGREGATION_AUTO",
		                (long long)c->uses, (long long)c->width);
	return HG_OK;
}

hg_status hg__stream_too_large(hg_context *ctx, const hg_graph_stream_config *c)
{
	return hg__fail(ctx, HG_ERR_UNSUPPORTED,
	                "graph stream: %lld nodes and %lld edges with max_degree %lld take more than "
	                "2^31 - 1 rows or edges",
	                (long long)c->nodes, (long long)c->edges, (long long)c->max_degree);
}

/* ---- a list ---- */

hg_status hg__stream_check_list(hg_context *ctx, const hg_graph_stream_config *c, int64_t nodes,
                                int64_t m, const int32_t *dst, const int32_t *src,
                                const float *weight)
{
	if (nodes < 0 || nodes > c->nodes || m < 0 || m > c->edges)
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph stream: %lld nodes and %lld edges, expected at most %lld and %lld",
		                (long long)nodes, (long long)m, (long long)c->nodes, (long long)c->edges);
	if (m && (!dst || !src))
		return hg__fail(ctx, HG_ERR_ARG, "graph stream: dst or src is NULL");
	if (m && !weight != !c->weighted)
		return hg__fail(ctx, HG_ERR_ARG,
		                c->weighted ? "graph stream: weight is NULL, but the stream has weights"
		                            : "graph stream: weights for a stream that was made without");
	return HG_OK;
}

/* ---- promises ---- */

static hg_status degree_of(hg_context *ctx, const struct hg__refill *r, int transposed,
                           int64_t node, int64_t *degree)
{
	int64_t ends[2] = {0, 0};
	int32_t counted = 0;
	if (r->to.scatters) {
		HG__TRY(ctx->backend->copy_out(ctx, &counted, hg__refill_degrees(r, transposed) + node,
		                               sizeof counted));
		*degree = counted;
		return HG_OK;
	}
	const int64_t *ptr = transposed ? r->to.rowptr_t : r->to.rowptr;
	HG__TRY(ctx->backend->copy_out(ctx, ends, ptr + node, sizeof ends));
	*degree = ends[1] - ends[0];
	return HG_OK;
}

static hg_status tell_degree(hg_context *ctx, const hg_graph_stream_config *c,
                             const struct hg__refill *r, int transposed, int64_t node)
{
	int64_t degree = 0;
	HG__TRY(degree_of(ctx, r, transposed, node, &degree));
	return hg__fail(ctx, HG_ERR_ARG,
	                "graph stream: %lld edges %s node %lld%s, but at most %lld were promised "
	                "(max_degree)",
	                (long long)degree, transposed ? "lead from" : "lead to", (long long)node,
	                c->self_loops ? " with its self loop" : "", (long long)c->max_degree);
}

static hg_status tell_edge(hg_context *ctx, const hg_graph_stream_config *c,
                           const struct hg__refill *r, enum hg__promise promise, int64_t e,
                           const int64_t *live)
{
	const struct hg__backend *b = ctx->backend;
	int32_t id = 0;
	float weight = 0.0f;
	if (promise == HG__PROMISE_WEIGHT) {
		HG__TRY(b->copy_out(ctx, &weight, r->list_weight + e, sizeof weight));
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph stream: the weight of edge %lld is %g, but numbers from %g to %g "
		                "were promised (max_weight)",
		                (long long)e, (double)weight, -(double)c->max_weight,
		                (double)c->max_weight);
	}
	const int is_src = promise == HG__PROMISE_SRC;
	const int32_t *list = is_src ? r->list_src : r->list_dst;
	HG__TRY(b->copy_out(ctx, &id, list + e, sizeof id));
	return hg__fail(
	    ctx, HG_ERR_ARG, "graph stream: the %s of edge %lld is node %ld, expected 0 to %lld",
	    is_src ? "source" : "destination", (long long)e, (long)id, (long long)live[0] - 1);
}

hg_status hg__stream_check_promises(hg_context *ctx, const hg_graph_stream_config *c,
                                    const struct hg__refill *r)
{
	const struct hg__backend *b = ctx->backend;
	uint64_t word = 0;
	int64_t live[2] = {0, 0};
	HG__TRY(b->copy_out(ctx, &word, r->broken, sizeof word));
	HG__TRY(b->copy_out(ctx, live, r->live, sizeof live));
	if (word == HG__PROMISES_KEPT)
		return HG_OK;
	const enum hg__promise promise = (enum hg__promise)(word >> 56);
	const int64_t at = (int64_t)(word & (UINT64_MAX >> 8));
	switch (promise) {
	case HG__PROMISE_NODES:
	case HG__PROMISE_EDGES:
		return hg__stream_check_list(ctx, c, live[0], live[1], r->list_dst, r->list_src,
		                             r->list_weight);
	case HG__PROMISE_DST:
	case HG__PROMISE_SRC:
	case HG__PROMISE_WEIGHT:
		return tell_edge(ctx, c, r, promise, at, live);
	default:
		return tell_degree(ctx, c, r, promise == HG__PROMISE_OUT_DEGREE, at);
	}
}
