/* A graph that is refilled: its memory, and the bounds that follow from its promises. The arrays
 * are made by the backend (core/refill.h). */
#include <float.h>
#include <math.h>

#include "core/capture.h"
#include "core/graph_stream_check.h"
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
	DST,
	SRC,
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

/* ---- what is promised ---- */

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
		/* a tape tells nodes from edges by their number (autograd/live.c) */
		r->rows += r->rows == r->edges;
	}
	if (r->rows < 1 || r->rows > most || r->edges > most)
		return hg__stream_too_large(ctx, c);
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
	const int scatters = s->config.aggregation == HG_AGGREGATION_SCATTER;
	const int64_t weights = s->config.weighted ? r->edges : 0, list = scatters ? r->edges : 0,
	              entries = scatters ? 0 : r->edges, ptr = scatters ? 0 : r->rows + 1;
	const struct {
		int64_t count;
		size_t size;
	} of[SCRATCH] = {[LIVE] = {2, sizeof(int64_t)},
	                 [BROKEN] = {1, sizeof(uint64_t)},
	                 [LIST_DST] = {r->listed, sizeof(int32_t)},
	                 [LIST_SRC] = {r->listed, sizeof(int32_t)},
	                 [LIST_WEIGHT] = {s->config.weighted ? r->listed : 0, sizeof(float)},
	                 [DST] = {list, sizeof(int32_t)},
	                 [SRC] = {list, sizeof(int32_t)},
	                 [ROWPTR] = {ptr, sizeof(int64_t)},
	                 [ROWPTR_T] = {ptr, sizeof(int64_t)},
	                 [COL] = {entries, sizeof(int32_t)},
	                 [COL_T] = {entries, sizeof(int32_t)},
	                 [EDGE_T] = {entries, sizeof(uint32_t)},
	                 [WEIGHT] = {weights, sizeof(float)},
	                 /* sums that scatter read f32 */
	                 [WEIGHT_F16] = {scatters ? 0 : weights, sizeof(hg_half)},
	                 [INVERSE_ROW] = {r->rows, sizeof(float)},
	                 [INVERSE_COL] = {r->rows, sizeof(float)},
	                 [ROOT_ROW] = {r->rows, sizeof(float)},
	                 [ROOT_COL] = {r->rows, sizeof(float)},
	                 [PTR] = {2, sizeof(int64_t)},
	                 [ID] = {r->rows, sizeof(int32_t)}};
	for (int i = 0; i < SCRATCH; i++)
		HG__TRY(hg__buffer_device(s->ctx, of[i].count, of[i].size, "graph stream", &s->array[i]));
	s->refill.to.scatters = scatters;
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
	                              .scatters = r->to.scatters,
	                              .dst = s->array[DST].data,
	                              .src = s->array[SRC].data,
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
	HG__TRY(hg__stream_check_config(ctx, &c));
	HG__TRY(hg__buffer_host(ctx, 1, sizeof(hg_graph_stream), "graph stream", &self));
	hg_graph_stream *s = self.data;
	s->ctx = ctx;
	s->config = c;
	if (c.aggregation == HG_AGGREGATION_AUTO)
		s->config.aggregation = hg__stream_choose(ctx->backend->kind, &c);
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

hg_aggregation hg_graph_stream_aggregation(const hg_graph_stream *s)
{
	return s ? s->config.aggregation : HG_AGGREGATION_GATHER;
}

/* ---- refills ---- */

hg_status hg_graph_stream_refill(hg_graph_stream *s, int64_t nodes, int64_t m, const int32_t *dst,
                                 const int32_t *src, const float *weight)
{
	if (!s)
		return HG_ERR_ARG;
	const struct hg__backend *b = s->ctx->backend;
	const int64_t live[2] = {nodes, m};
	const size_t ids = (size_t)m * sizeof *dst;
	HG__TRY(hg__stream_check_list(s->ctx, &s->config, nodes, m, dst, src, weight));
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

hg_status hg_graph_stream_check(hg_graph_stream *s)
{
	return s ? hg__stream_check_promises(s->ctx, &s->config, &s->refill) : HG_ERR_ARG;
}
