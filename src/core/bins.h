/* Bins: a batch of small graphs cut into pieces of whole graphs, each of at most HG__BIN_ROWS
 * nodes, for kernels that compute several layers of a piece without leaving the chip. */
#ifndef HG_CORE_BINS_H
#define HG_CORE_BINS_H

#include "core/context.h"
#include "precision/hostdevice.h"

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
/* The first nodes of the bins that begin with a graph: ptr [graphs + 1] as for hg_graph_set_batch.
 * Writes first [at most graphs] and returns how many there are. */
int64_t hg__bins_begin(int64_t graphs, const int64_t *ptr, int32_t *first);

/* The bins behind those have padding alone. A row of padding may still join the bin before it, so
 * the first of them begins HG__BIN_ROWS behind the last bin that begins with a graph, and all are
 * full. begun: what hg__bins_begin returned; last: the first node of the last of these, if there is
 * one. */
HG_HD static inline int64_t hg__bins_behind(int64_t begun, int64_t last)
{
	return begun ? last + HG__BIN_ROWS : 0;
}
/* How many bins of so many rows have nodes. behind: what hg__bins_behind gives. */
HG_HD static inline int64_t hg__bins_used(int64_t begun, int64_t behind, int64_t rows)
{
	return behind < rows ? begun + (rows - behind + HG__BIN_ROWS - 1) / HG__BIN_ROWS : begun;
}
/* The first node of bin k, which does not begin with a graph. */
HG_HD static inline int64_t hg__bins_padding(int64_t begun, int64_t behind, int64_t k, int64_t rows)
{
	const int64_t first = behind + (k - begun) * HG__BIN_ROWS;
	return first < rows ? first : rows;
}

/* Cuts a batch into bins. Writes first [bins + 2], where bins is at least hg__bins_most(rows), and
 * returns how many of them have nodes. */
int64_t hg__bins_cut(int64_t graphs, const int64_t *ptr, int64_t rows, int64_t bins,
                     int32_t *first);

/* Orders graphs so that bins are full: order [graphs] has numbers k of graphs of nodes[k] nodes, at
 * most HG__BIN_ROWS each. Those of a bin come to stand side by side, the largest first. Graphs of
 * one size keep their order. scratch [graphs]. */
void hg__bins_pack(const uint8_t *nodes, int64_t graphs, int64_t *order, int64_t *scratch);

/* Whether a graph is a batch that can have bins: its largest graph fits, and if its arrays change
 * they bring the bins. */
int hg__graph_has_bins(const hg_graph *graph);
/* The bins of a batch whose largest graph has at most HG__BIN_ROWS nodes. The graph keeps them. */
HG_NODISCARD hg_status hg__graph_bins(hg_graph *graph, const struct hg__bins **bins);

HG_EXTERN_C_END
#endif
