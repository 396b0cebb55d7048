/* Decides once for each orientation of a batch whether dense counts (plan_dense.h) make attention
 * faster, and of which graphs, and keeps them with its plan. */
#include "core/graph.h"
#include "core/plan_dense.h"

/* One orientation in host memory, and what is chosen there. */
struct host_batch {
	struct hg__buffer rowptr, col, ptr, listed;
	struct hg__dense_source source;
	struct hg__dense_choice choice;
};

static void host_batch_free(const hg_graph *g, struct host_batch *b)
{
	hg__buffer_free(g->ctx, &b->rowptr);
	hg__buffer_free(g->ctx, &b->col);
	hg__buffer_free(g->ctx, &b->ptr);
	hg__buffer_free(g->ctx, &b->listed);
}

static hg_status fetch_pointers(const hg_graph *g, int forward, struct host_batch *b)
{
	HG__TRY(hg__buffer_download(g->ctx, forward ? &g->rowptr : &g->rowptr_t,
	                            "dense counts: host rowptr", &b->rowptr));
	HG__TRY(hg__buffer_download(g->ctx, &g->batch_ptr, "dense counts: host ptr", &b->ptr));
	HG__TRY(hg__buffer_host(g->ctx, g->batch, 1, "dense counts: choice", &b->listed));
	b->source = (struct hg__dense_source){b->rowptr.data, NULL, g->batch, b->ptr.data};
	b->choice.listed = b->listed.data;
	return HG_OK;
}

/* Sets *chosen to whether dense counts pay. The entries are fetched only if sizes do not rule that
 * out. */
static hg_status choose(const hg_graph *g, int forward, int64_t least, struct host_batch *b,
                        int *chosen)
{
	HG__TRY(fetch_pointers(g, forward, b));
	*chosen = hg__dense_choose(g->ctx, &b->source, least, &b->choice);
	if (!*chosen)
		return HG_OK;
	HG__TRY(hg__buffer_download(g->ctx, forward ? &g->col : &g->col_t, "dense counts: host col",
	                            &b->col));
	b->source.col = b->col.data;
	*chosen = hg__dense_choose(g->ctx, &b->source, least, &b->choice);
	return HG_OK;
}

/* Sets *fits to whether what is chosen leaves `reserve` bytes free. */
static hg_status find_room(const hg_graph *g, const struct hg__dense_choice *c, size_t reserve,
                           int *fits)
{
	const size_t counts = hg__dense_size(c->graphs, c->tiles),
	             plan = c->other_rows ? hg__plan_most_bytes(c->other_rows, c->other_entries, 1) : 0,
	             needed = counts + plan;
	size_t room = 0;
	HG__TRY(hg__device_room(g->ctx, &room));
	*fits = needed <= room && reserve <= room - needed;
	if (*fits)
		hg__log(g->ctx, HG_LOG_INFO, "graph: dense counts of %lld of %lld graphs: %zu bytes",
		        (long long)c->graphs, (long long)g->batch, counts);
	else
		hg__log(g->ctx, HG_LOG_INFO,
		        "graph: no dense counts: they take %zu bytes, %zu are free, of which a run needs "
		        "%zu",
		        needed, room, reserve);
	return HG_OK;
}

/* Builds the plan of the rows of all graphs that are not listed. Entries of a graph are near each
 * other (HG__PARTS_NEAR). */
static hg_status build_rest(const hg_graph *g, const struct host_batch *b, struct hg__plan **rest)
{
	const struct hg__dense_source *s = &b->source;
	struct hg__buffer memory;
	HG__TRY(hg__buffer_host(g->ctx, b->choice.other_rows, sizeof(int32_t), "dense counts: rows",
	                        &memory));
	int32_t *row = memory.data;
	for (int64_t k = 0; k < s->graphs; k++)
		for (int64_t i = s->ptr[k]; !b->choice.listed[k] && i < s->ptr[k + 1]; i++)
			*row++ = (int32_t)i;
	const hg_status status = hg__plan_build_some(g->ctx, b->choice.other_rows, memory.data,
	                                             s->rowptr, HG__PARTS_NEAR, rest);
	hg__buffer_free(g->ctx, &memory);
	return status;
}

/* Attaches both plans of a mix, or neither. */
static hg_status build_mix(const hg_graph *g, const struct host_batch *b, struct hg__plan *plan)
{
	struct hg__buffer memory;
	struct hg__plan *rest = NULL;
	HG__TRY(hg__buffer_host(g->ctx, 1, sizeof(struct hg__plan), "plan", &memory));
	struct hg__plan *counted = memory.data;
	hg_status status = hg__dense_build(g->ctx, &b->source, &b->choice, &counted->dense);
	if (status == HG_OK)
		status = build_rest(g, b, &rest);
	if (status < 0) {
		hg__plan_free(g->ctx, counted);
		return status;
	}
	plan->counted = counted;
	plan->rest = rest;
	return HG_OK;
}

static hg_status choose_and_build(const hg_graph *g, int forward, size_t reserve, int64_t least,
                                  struct hg__plan *plan)
{
	struct host_batch b = {0};
	int builds = 0;
	hg_status status = choose(g, forward, least, &b, &builds);
	if (status == HG_OK && builds)
		status = find_room(g, &b.choice, reserve, &builds);
	if (status == HG_OK && builds)
		status = b.choice.other_rows ? build_mix(g, &b, plan)
		                             : hg__dense_build(g->ctx, &b.source, &b.choice, &plan->dense);
	host_batch_free(g, &b);
	return status;
}

hg_status hg__graph_dense_from(hg_graph *g, int transposed, size_t reserve, int64_t least)
{
	struct hg__csr csr;
	if (!g->ctx->backend->wants_dense || !g->batch_set || g->m == 0 || g->weight.data ||
	    g->batch_min > HG__DENSE_NODES)
		return HG_OK;
	HG__TRY(transposed ? hg__graph_csr_t(g, 0, &csr) : hg__graph_csr(g, &csr));
	const int forward = !transposed || g->pattern_symmetric;
	struct hg__plan *plan = forward ? g->plan : g->plan_t;
	if (plan->dense_tried)
		return HG_OK;
	plan->dense_tried = 1;
	const hg_status status = choose_and_build(g, forward, reserve, least, plan);
	if (status != HG_ERR_NOMEM)
		return status;
	/* Dense counts are optional: without them attention is only slower. */
	hg__log(g->ctx, HG_LOG_INFO, "graph: no dense counts: %s", g->ctx->message);
	return HG_OK;
}

hg_status hg__graph_dense(hg_graph *g, int transposed, size_t reserve)
{
	return hg__graph_dense_from(g, transposed, reserve, HG__DENSE_SAVED);
}
