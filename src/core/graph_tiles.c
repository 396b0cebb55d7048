/* Decides once for each orientation of a graph whether tiles (plan_tiles.h) make it faster, and
 * keeps them with its plan. */
#include "core/graph.h"
#include "core/plan_tiles.h"

/* A sampled reuse is off by some percent. Graphs whose sample lies just below the limit are
 * therefore counted exactly. */
#define SAMPLE_TOLERANCE 0.9

double hg__tiles_least_reuse(int64_t entries)
{
	const double break_even = 2.64 / (1 - 15e-6 / ((double)entries * 5.6e-12));
	return break_even > 3 ? break_even : 3;
}

static hg_status sample_and_build(const hg_graph *g, const struct hg__csr *csr,
                                  const int64_t *host_rowptr, const struct hg__tile_terms *terms,
                                  struct hg__tiles **tiles)
{
	double reuse = 0;
	HG__TRY(hg__tiles_sample(g->ctx, csr, host_rowptr, &reuse));
	if (reuse >= SAMPLE_TOLERANCE * terms->reuse)
		return hg__tiles_build(g->ctx, csr, host_rowptr, terms, tiles);
	hg__log(g->ctx, HG_LOG_DEBUG,
	        "graph: no tiles: in a sample %.2f entries for a column's work, expected %.2f", reuse,
	        terms->reuse);
	return HG_OK;
}

hg_status hg__graph_tiles(hg_graph *g, int transposed, size_t reserve, int64_t cols, int64_t staged)
{
	const struct hg__tile_terms terms = {hg__tiles_least_reuse(g->m), reserve, staged};
	struct hg__csr csr;
	struct hg__buffer host;
	if (!g->ctx->backend->tiles_count || g->m < HG__TILE_ENTRIES || cols < HG__TILE_WIDTH)
		return HG_OK;
	HG__TRY(transposed ? hg__graph_csr_t(g, 0, &csr) : hg__graph_csr(g, &csr));
	struct hg__plan *plan = transposed && !g->pattern_symmetric ? g->plan_t : g->plan;
	if (plan->tiles_tried)
		return HG_OK;
	plan->tiles_tried = 1;
	HG__TRY(hg__buffer_download(g->ctx, plan == g->plan ? &g->rowptr : &g->rowptr_t,
	                            "tiles: host rowptr", &host));
	const hg_status status = sample_and_build(g, &csr, host.data, &terms, &plan->tiles);
	hg__buffer_free(g->ctx, &host);
	if (status != HG_ERR_NOMEM && status != HG_ERR_UNSUPPORTED)
		return status;
	/* Tiles are optional: without them the aggregation is only slower. */
	hg__log(g->ctx, HG_LOG_INFO, "graph: no tiles: %s", g->ctx->message);
	return HG_OK;
}
