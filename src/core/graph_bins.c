/* Cuts a batch into bins (bins.h): graphs in their order, each into the bin of the graph before it
 * if that has room, else into a new one. A graph that needs a large bin begins one, unless it is in
 * one. */
#include "core/bins.h"
#include "core/graph.h"

int hg__bins_rows_of(int64_t graphs, const int64_t *ptr)
{
	int64_t largest = 0;
	for (int64_t k = 0; k < graphs; k++)
		largest = ptr[k + 1] - ptr[k] > largest ? ptr[k + 1] - ptr[k] : largest;
	return hg__bins_rows(largest);
}

int64_t hg__bins_begin(int64_t graphs, const int64_t *ptr, int32_t *first)
{
	int64_t begun = 0;
	int large = 0; /* the bin that has begun */
	for (int64_t k = 0; k < graphs; k++) {
		const int is_large = hg__bin_is_large(ptr[k + 1] - ptr[k]);
		const int64_t most = large ? HG__LARGE_BIN_ROWS : HG__BIN_ROWS;
		if (ptr[k + 1] > ptr[k] &&
		    (begun == 0 || is_large > large || ptr[k + 1] - first[begun - 1] > most)) {
			first[begun++] = (int32_t)ptr[k];
			large = is_large;
		}
	}
	return begun;
}

int64_t hg__bins_cut(int64_t graphs, const int64_t *ptr, int64_t rows, int64_t bins, int32_t *first)
{
	const int64_t begun = hg__bins_begin(graphs, ptr, first),
	              behind = hg__bins_behind(begun, begun ? first[begun - 1] : 0, ptr[graphs]),
	              used = hg__bins_used(begun, behind, rows);
	for (int64_t k = begun; k <= bins; k++)
		first[k] = (int32_t)hg__bins_padding(begun, behind, k, rows);
	first[bins + 1] = (int32_t)used;
	return used;
}

/* The bins of a batch that stays as it is: no more than have nodes. */
static hg_status build_bins(hg_graph *g)
{
	struct hg__buffer ptr, first;
	HG__TRY(hg__buffer_download(g->ctx, &g->batch_ptr, "bins: host ptr", &ptr));
	const int64_t most = hg__bins_most(g->rows);
	hg_status status =
	    hg__buffer_host(g->ctx, most + 2, sizeof(int32_t), "bins: first nodes", &first);
	if (status == HG_OK) {
		int32_t *host = first.data;
		g->bins.bins = hg__bins_cut(g->batch, ptr.data, g->rows, most, host);
		host[g->bins.bins + 1] = (int32_t)g->bins.bins;
		status = hg__buffer_upload(g->ctx, g->bins.bins + 2, sizeof(int32_t), first.data,
		                           "bins: first nodes", &g->bin_first);
	}
	g->bins.first = g->bin_first.data;
	hg__buffer_free(g->ctx, &ptr);
	hg__buffer_free(g->ctx, &first);
	return status;
}

int hg__graph_bin_rows(const hg_graph *g)
{
	return g->batch_set && (!g->changes || g->bins.first) ? g->bins.rows : 0;
}

hg_status hg__graph_bins(hg_graph *g, const struct hg__bins **bins)
{
	*bins = &g->bins;
	if (g->bins.first)
		return HG_OK;
	HG__TRY(hg__graph_keeps(g, "bins"));
	if (!hg__graph_bin_rows(g))
		return hg__fail(g->ctx, HG_ERR_INTERNAL,
		                "bins: one of %lld graphs has more than %d nodes, which is the most",
		                (long long)g->batch, HG__LARGE_BIN_ROWS);
	return build_bins(g);
}
