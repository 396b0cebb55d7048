/* A graph that is refilled: its memory, the bounds that follow from its promises, and the texts
 * about promises that were broken. The arrays are made by the backend (core/refill.h). */
#include <float.h>
#include <math.h>

#include "core/capture.h"
#include "core/refill.h"
#include "core/versioned.h"
#include "halfgraph/graph_stream.h"

/* Arrays, in the order in which they are allocated. */
enum {
	LIVE,
	BROKEN,
	LIST_DST,
	LIST_SRC,
	LIST_WEIGHT,
	ROWPTR,
	ROWPTR_T,
	COL,
	COL_T,
	EDGE_T,
	WEIGHT,
	WEIGHT_F16,
	INVERSE_ROW,
	INVERSE_COL,
	ROOT_ROW,
	ROOT_COL,
	PTR,
	ID,
	SCRATCH,
	ARRAYS
};

struct hg_graph_stream {
	hg_context *ctx;
	hg_graph_stream_config config;
	struct hg__refill refill;
	struct hg__buffer array[ARRAYS];
	hg_graph *graph;
	struct hg__capture capture; /* of the conversion */
	int converted;              /* 1: it has run once, so it can be captured */
};

/* ---- what is asked for ---- */

static hg_status check_config(hg_context *ctx, const hg_graph_stream_config *c)
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
	return HG_OK;
}

/* Sizes with padding. In the worst case the list is empty and all edges are padding. */
static hg_status set_sizes(hg_context *ctx, const hg_graph_stream_config *c, struct hg__refill *r)
{
	const int64_t most = INT32_MAX;
	*r = (struct hg__refill){.nodes = c->nodes,
	                         .listed = c->edges,
	                         .max_degree = c->max_degree,
	                         .max_weight = c->max_weight,
	                         .self_loops = c->self_loops};
	if (c->nodes <= most && c->edges <= most) {
		r->edges = c->edges + (c->self_loops ? c->nodes : 0);
		r->rows = c->nodes + (r->edges + c->max_degree - 1) / c->max_degree;
		/* an edge that breaks a promise goes to a row of padding */
		r->rows += r->rows == c->nodes;
	}
	if (r->rows < 1 || r->rows > most || r->edges > most)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "graph stream: %lld nodes and %lld edges with max_degree %lld take more "
		                "than 2^31 - 1 rows or edges",
		                (long long)c->nodes, (long long)c->edges, (long long)c->max_degree);
	return HG_OK;
}

/* The largest sums of |r_i a_ij s_j| that the promises allow. With degrees of at most D, d edges of
 * a row weigh at most d w, and its factors are at most 1, 1/d or 1/sqrt(d). Factors are rounded to
 * f32, at most 2 of them. */
static struct hg__part_facts promised_facts(const struct hg__refill *r, int weighted)
{
	const double d = (double)r->max_degree, w = weighted ? (double)r->max_weight : 1.0,
	             up = 1.0 + 0x1p-22;
	struct hg__part_facts of = {.facts = HG_GRAPH_FACTS_INIT,
	                            .least_weight = weighted ? -r->max_weight : 1.0f,
	                            .least_positive = weighted ? FLT_TRUE_MIN : 1.0f,
	                            .batch_max = r->nodes,
	                            .batch_min = 1};
	of.facts.max_row_degree = of.facts.max_col_degree = r->max_degree;
	of.facts.max_row_sum = of.facts.max_col_sum = d * w;
	const double row[HG_NORMS] = {[HG_NORM_NONE] = d,
	                              [HG_NORM_LEFT] = d,
	                              [HG_NORM_RIGHT] = up,
	                              [HG_NORM_BOTH] = sqrt(d) * up,
	                              [HG_NORM_IN] = sqrt(d) * up},
	             col[HG_NORMS] = {[HG_NORM_NONE] = d,
	                              [HG_NORM_LEFT] = up,
	                              [HG_NORM_RIGHT] = d,
	                              [HG_NORM_BOTH] = sqrt(d) * up,
	                              [HG_NORM_IN] = d * up};
	for (int norm = 0; norm < HG_NORMS; norm++) {
		of.facts.norm_row_sum[norm] = w * row[norm];
		of.facts.norm_col_sum[norm] = w * col[norm];
	}
	return of;
}

/* ---- memory ---- */

static hg_status arrays_make(hg_graph_stream *s)
{
	const struct hg__refill *r = &s->refill;
	const int64_t weights = s->config.weighted ? r->edges : 0;
	const struct {
		int64_t count;
		size_t size;
	} of[SCRATCH] = {[LIVE] = {2, sizeof(int64_t)},
	                 [BROKEN] = {1, sizeof(uint64_t)},
	                 [LIST_DST] = {r->listed, sizeof(int32_t)},
	                 [LIST_SRC] = {r->listed, sizeof(int32_t)},
	                 [LIST_WEIGHT] = {s->config.weighted ? r->listed : 0, sizeof(float)},
	                 [ROWPTR] = {r->rows + 1, sizeof(int64_t)},
	                 [ROWPTR_T] = {r->rows + 1, sizeof(int64_t)},
	                 [COL] = {r->edges, sizeof(int32_t)},
	                 [COL_T] = {r->edges, sizeof(int32_t)},
	                 [EDGE_T] = {r->edges, sizeof(uint32_t)},
	                 [WEIGHT] = {weights, sizeof(float)},
	                 [WEIGHT_F16] = {weights, sizeof(hg_half)},
	                 [INVERSE_ROW] = {r->rows, sizeof(float)},
	                 [INVERSE_COL] = {r->rows, sizeof(float)},
	                 [ROOT_ROW] = {r->rows, sizeof(float)},
	                 [ROOT_COL] = {r->rows, sizeof(float)},
	                 [PTR] = {2, sizeof(int64_t)},
	                 [ID] = {r->rows, sizeof(int32_t)}};
	for (int i = 0; i < SCRATCH; i++)
		HG__TRY(hg__buffer_device(s->ctx, of[i].count, of[i].size, "graph stream", &s->array[i]));
	size_t bytes = 0;
	HG__TRY(s->ctx->backend->refill_scratch(s->ctx, r, &bytes));
	return hg__buffer_device(s->ctx, (int64_t)bytes, 1, "scratch of a graph stream",
	                         &s->array[SCRATCH]);
}

static void arrays_set(hg_graph_stream *s)
{
	struct hg__refill *r = &s->refill;
	r->live = s->array[LIVE].data;
	r->broken = s->array[BROKEN].data;
	r->list_dst = s->array[LIST_DST].data;
	r->list_src = s->array[LIST_SRC].data;
	r->list_weight = s->array[LIST_WEIGHT].data;
	r->scratch = s->array[SCRATCH].data;
	r->to = (struct hg__changing){.rows = r->rows,
	                              .m = r->edges,
	                              .count = 1,
	                              .rowptr = s->array[ROWPTR].data,
	                              .rowptr_t = s->array[ROWPTR_T].data,
	                              .ptr = s->array[PTR].data,
	                              .col = s->array[COL].data,
	                              .col_t = s->array[COL_T].data,
	                              .id = s->array[ID].data,
	                              .edge_t = s->array[EDGE_T].data,
	                              .weight = s->array[WEIGHT].data,
	                              .inverse_row = s->array[INVERSE_ROW].data,
	                              .inverse_col = s->array[INVERSE_COL].data,
	                              .root_row = s->array[ROOT_ROW].data,
	                              .root_col = s->array[ROOT_COL].data,
	                              .weight_f16 = s->array[WEIGHT_F16].data};
}

static hg_status stream_make(hg_graph_stream *s)
{
	static const int64_t nothing[2];
	HG__TRY(set_sizes(s->ctx, &s->config, &s->refill));
	HG__TRY(arrays_make(s));
	arrays_set(s);
	const struct hg__part_facts facts = promised_facts(&s->refill, s->config.weighted);
	HG__TRY(hg__graph_of_changing(s->ctx, &s->refill.to, &facts, &s->graph));
	s->graph->broken = s->refill.broken;
	HG__TRY(s->ctx->backend->copy_in(s->ctx, s->array[LIVE].data, nothing, sizeof nothing));
	return hg_graph_stream_convert(s);
}

hg_status hg_graph_stream_create(hg_context *ctx, const hg_graph_stream_config *config,
                                 hg_graph_stream **stream)
{
	hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
	struct hg__buffer self = {0};
	if (stream)
		*stream = NULL;
	if (!ctx || !config || !stream)
		return hg__fail(ctx, HG_ERR_ARG, "graph stream: context, config or stream is NULL");
	if (!hg__struct_read(&c, sizeof c, config))
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph stream: the size of the config is not set (start from "
		                "HG_GRAPH_STREAM_CONFIG_INIT)");
	HG__TRY(check_config(ctx, &c));
	HG__TRY(hg__buffer_host(ctx, 1, sizeof(hg_graph_stream), "graph stream", &self));
	hg_graph_stream *s = self.data;
	s->ctx = ctx;
	s->config = c;
	hg__context_hold(ctx);
	const hg_status status = stream_make(s);
	if (status < 0) {
		hg_graph_stream_free(s);
		return status;
	}
	*stream = s;
	return HG_OK;
}

void hg_graph_stream_free(hg_graph_stream *s)
{
	if (!s)
		return;
	hg_context *ctx = s->ctx;
	hg__capture_drop(ctx, &s->capture);
	hg_graph_free(s->graph);
	for (int i = 0; i < ARRAYS; i++)
		hg__buffer_free(ctx, &s->array[i]);
	hg__host_free(ctx, s, sizeof *s);
	hg__context_release(ctx);
}

hg_graph *hg_graph_stream_graph(const hg_graph_stream *s)
{
	return s ? s->graph : NULL;
}

/* ---- refills ---- */

static hg_status check_list(const hg_graph_stream *s, int64_t nodes, int64_t m, const int32_t *dst,
                            const int32_t *src, const float *weight)
{
	if (nodes < 0 || nodes > s->config.nodes || m < 0 || m > s->config.edges)
		return hg__fail(s->ctx, HG_ERR_ARG,
		                "graph stream: %lld nodes and %lld edges, expected at most %lld and %lld",
		                (long long)nodes, (long long)m, (long long)s->config.nodes,
		                (long long)s->config.edges);
	if (m && (!dst || !src))
		return hg__fail(s->ctx, HG_ERR_ARG, "graph stream: dst or src is NULL");
	if (m && !weight != !s->config.weighted)
		return hg__fail(s->ctx, HG_ERR_ARG,
		                s->config.weighted
		                    ? "graph stream: weight is NULL, but the stream has weights"
		                    : "graph stream: weights for a stream that was made without");
	return HG_OK;
}

hg_status hg_graph_stream_refill(hg_graph_stream *s, int64_t nodes, int64_t m, const int32_t *dst,
                                 const int32_t *src, const float *weight)
{
	if (!s)
		return HG_ERR_ARG;
	const struct hg__backend *b = s->ctx->backend;
	const int64_t live[2] = {nodes, m};
	const size_t ids = (size_t)m * sizeof *dst;
	HG__TRY(check_list(s, nodes, m, dst, src, weight));
	HG__TRY(b->copy_in(s->ctx, s->array[LIST_DST].data, dst, ids));
	HG__TRY(b->copy_in(s->ctx, s->array[LIST_SRC].data, src, ids));
	if (weight)
		HG__TRY(b->copy_in(s->ctx, s->array[LIST_WEIGHT].data, weight, (size_t)m * sizeof *weight));
	HG__TRY(b->copy_in(s->ctx, s->array[LIVE].data, live, sizeof live));
	return hg_graph_stream_convert(s);
}

hg_status hg_graph_stream_list_get(const hg_graph_stream *s, hg_graph_stream_list *list)
{
	if (!s || !list)
		return HG_ERR_ARG;
	const hg_graph_stream_list ours = {.size = sizeof ours,
	                                   .live = s->array[LIVE].data,
	                                   .dst = s->array[LIST_DST].data,
	                                   .src = s->array[LIST_SRC].data,
	                                   .weight = s->array[LIST_WEIGHT].data};
	return hg__struct_write(list, &ours, sizeof ours)
	           ? HG_OK
	           : hg__fail(s->ctx, HG_ERR_ARG,
	                      "graph stream: the size of the list is not set (start from "
	                      "HG_GRAPH_STREAM_LIST_INIT)");
}

static hg_status queue_conversion(void *user)
{
	const hg_graph_stream *s = user;
	return s->ctx->backend->refill(s->ctx, &s->refill);
}

hg_status hg_graph_stream_convert(hg_graph_stream *s)
{
	if (!s)
		return HG_ERR_ARG;
	const struct hg__backend *b = s->ctx->backend;
	if (!b->capture_begin || !s->converted) {
		HG__TRY(queue_conversion(s));
		s->converted = 1;
		return HG_OK;
	}
	if (!s->capture.work)
		HG__TRY(hg__capture(s->ctx, queue_conversion, s, &s->capture));
	return b->work_launch(s->ctx, s->capture.work);
}

/* ---- promises ---- */

static hg_status degree_of(const hg_graph_stream *s, int transposed, int64_t node, int64_t *degree)
{
	int64_t ends[2] = {0, 0};
	const int64_t *ptr = s->array[transposed ? ROWPTR_T : ROWPTR].data;
	HG__TRY(s->ctx->backend->copy_out(s->ctx, ends, ptr + node, sizeof ends));
	*degree = ends[1] - ends[0];
	return HG_OK;
}

static hg_status tell_degree(const hg_graph_stream *s, int transposed, int64_t node)
{
	int64_t degree = 0;
	HG__TRY(degree_of(s, transposed, node, &degree));
	return hg__fail(s->ctx, HG_ERR_ARG,
	                "graph stream: %lld edges %s node %lld%s, but at most %lld were promised "
	                "(max_degree)",
	                (long long)degree, transposed ? "lead from" : "lead to", (long long)node,
	                s->config.self_loops ? " with its self loop" : "",
	                (long long)s->config.max_degree);
}

static hg_status tell_edge(const hg_graph_stream *s, enum hg__promise promise, int64_t e,
                           const int64_t *live)
{
	const struct hg__backend *b = s->ctx->backend;
	int32_t id = 0;
	float weight = 0.0f;
	if (promise == HG__PROMISE_WEIGHT) {
		HG__TRY(b->copy_out(s->ctx, &weight, s->refill.list_weight + e, sizeof weight));
		return hg__fail(s->ctx, HG_ERR_ARG,
		                "graph stream: the weight of edge %lld is %g, but numbers from %g to %g "
		                "were promised (max_weight)",
		                (long long)e, (double)weight, -(double)s->config.max_weight,
		                (double)s->config.max_weight);
	}
	const int is_src = promise == HG__PROMISE_SRC;
	const int32_t *list = is_src ? s->refill.list_src : s->refill.list_dst;
	HG__TRY(b->copy_out(s->ctx, &id, list + e, sizeof id));
	return hg__fail(
	    s->ctx, HG_ERR_ARG, "graph stream: the %s of edge %lld is node %ld, expected 0 to %lld",
	    is_src ? "source" : "destination", (long long)e, (long)id, (long long)live[0] - 1);
}

hg_status hg_graph_stream_check(hg_graph_stream *s)
{
	if (!s)
		return HG_ERR_ARG;
	const struct hg__backend *b = s->ctx->backend;
	uint64_t word = 0;
	int64_t live[2] = {0, 0};
	HG__TRY(b->copy_out(s->ctx, &word, s->refill.broken, sizeof word));
	HG__TRY(b->copy_out(s->ctx, live, s->refill.live, sizeof live));
	if (word == HG__PROMISES_KEPT)
		return HG_OK;
	const enum hg__promise promise = (enum hg__promise)(word >> 56);
	const int64_t at = (int64_t)(word & (UINT64_MAX >> 8));
	switch (promise) {
	case HG__PROMISE_NODES:
	case HG__PROMISE_EDGES:
		return check_list(s, live[0], live[1], s->refill.list_dst, s->refill.list_src,
		                  s->refill.list_weight);
	case HG__PROMISE_DST:
	case HG__PROMISE_SRC:
	case HG__PROMISE_WEIGHT:
		return tell_edge(s, promise, at, live);
	default:
		return tell_degree(s, promise == HG__PROMISE_OUT_DEGREE, at);
	}
}
