/* Bins: a batch of small graphs cut into pieces of whole graphs, each of at most HG__BIN_ROWS
 * nodes, for kernels that compute several layers of a piece without leaving the chip. */
#ifndef HG_CORE_BINS_H
#define HG_CORE_BINS_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* Bin k has the nodes first[k] .. first[k + 1] - 1. Neighbouring graphs share a bin as long as they
 * fit. Rows behind the last graph are padding, and count as graphs of one node. Only the first
 * first[bins + 1] bins have nodes: those behind are empty, so that batches of one shape have as
 * many bins. */
enum { HG__BIN_ROWS = 48 };
struct hg__bins {
	int64_t bins;
	int32_t *first; /* [bins + 2] device */
};

/* The most bins of so many rows. Two neighbours have more than HG__BIN_ROWS together. */
static inline int64_t hg__bins_most(int64_t rows)
{
	return 2 * (rows / (HG__BIN_ROWS + 1)) + 2;
}
/* Cuts a batch into bins: ptr [graphs + 1] as for hg_graph_set_batch. Writes first [bins + 2],
 * where bins is at least hg__bins_most(rows), and returns how many of them have nodes. */
int64_t hg__bins_cut(int64_t graphs, const int64_t *ptr, int64_t rows, int64_t bins,
                     int32_t *first);

/* Orders graphs so that bins are full: order [graphs] has numbers k of graphs of ptr[k + 1] -
 * ptr[k] nodes, at most HG__BIN_ROWS each. Those of a bin come to stand side by side, the largest
 * first. Graphs of one size keep their order. scratch [graphs]. */
void hg__bins_pack(const int64_t *ptr, int64_t graphs, int64_t *order, int64_t *scratch);

/* Whether a graph is a batch that can have bins: its largest graph fits, and if its arrays change
 * they bring the bins. */
int hg__graph_has_bins(const hg_graph *graph);
/* The bins of a batch whose largest graph has at most HG__BIN_ROWS nodes. The graph keeps them. */
HG_NODISCARD hg_status hg__graph_bins(hg_graph *graph, const struct hg__bins **bins);

HG_EXTERN_C_END
#endif
