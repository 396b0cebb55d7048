/* Bins: a batch of small graphs cut into pieces of whole graphs, for kernels that compute several
 * layers of a piece without leaving the chip. A bin has at most HG__BIN_ROWS nodes. One that begins
 * with a larger graph is a large bin, and has at most HG__LARGE_BIN_ROWS. */
#ifndef HG_CORE_BINS_H
#define HG_CORE_BINS_H

#include "core/context.h"
#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* Bin k has the nodes first[k] .. first[k + 1] - 1. Neighbouring graphs share a bin as long as they
 * fit. Rows behind the last graph are padding, and count as graphs of one node. Only the first
 * first[bins + 1] bins have nodes: those behind are empty, so that batches of one shape have as
 * many bins. */
enum { HG__BIN_ROWS = 48, HG__LARGE_BIN_ROWS = 8 * HG__BIN_ROWS };
struct hg__bins {
	int64_t bins;
	int32_t *first; /* [bins + 2] device */
	/* The most nodes of a bin: HG__BIN_ROWS or HG__LARGE_BIN_ROWS; 0: some graph fits in none, and
	 * there are no bins. */
	int rows;
};

/* Is a graph, or a bin, of so many nodes a large one? */
HG_HD static inline int hg__bin_is_large(int64_t rows)
{
	return rows > HG__BIN_ROWS;
}
/* The most bins of so many rows. Two neighbours have more than HG__BIN_ROWS together. */
static inline int64_t hg__bins_most(int64_t rows)
{
	return 2 * (rows / (HG__BIN_ROWS + 1)) + 2;
}
/* The most of them that are large. */
static inline int64_t hg__bins_most_large(int64_t rows)
{
	return rows / (HG__BIN_ROWS + 1);
}
/* The most nodes of a bin of a batch whose largest graph has so many; 0: it has no bins. */
static inline int hg__bins_rows(int64_t largest)
{
	return largest <= HG__BIN_ROWS         ? HG__BIN_ROWS
	       : largest <= HG__LARGE_BIN_ROWS ? HG__LARGE_BIN_ROWS
	                                       : 0;
}
/* The same for a batch: ptr [graphs + 1] as for hg_graph_set_batch. */
int hg__bins_rows_of(int64_t graphs, const int64_t *ptr);
/* The first nodes of the bins that begin with a graph: ptr [graphs + 1] as for hg_graph_set_batch.
 * Writes first [at most graphs] and returns how many there are. */
int64_t hg__bins_begin(int64_t graphs, const int64_t *ptr, int32_t *first);

/* The bins behind those have padding alone. A row of padding may still join the bin before it,
 * unless that is large, so the first of them begins HG__BIN_ROWS behind the last bin that begins
 * with a graph, and all are full. begun: what hg__bins_begin returned; last: the first node of the
 * last of these, if there is one; nodes: those of all graphs. */
HG_HD static inline int64_t hg__bins_behind(int64_t begun, int64_t last, int64_t nodes)
{
	const int64_t full = begun ? last + HG__BIN_ROWS : 0;
	return full > nodes ? full : nodes;
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

/* Orders graphs so that bins are full: order [graphs] has numbers k of graphs of nodes[k] nodes.
 * Those of a bin come to stand side by side, the largest first, and large bins before the others.
 * Graphs of one size keep their order. If one has more than HG__LARGE_BIN_ROWS nodes there are no
 * bins, and all keep their order. scratch [graphs]. */
void hg__bins_pack(const uint16_t *nodes, int64_t graphs, int64_t *order, int64_t *scratch);

/* The most nodes of a bin of this graph; 0: it is no batch, a graph of it fits in no bin, or its
 * arrays change and bring no bins. */
int hg__graph_bin_rows(const hg_graph *graph);
/* The bins of a graph that has some. The graph keeps them. */
HG_NODISCARD hg_status hg__graph_bins(hg_graph *graph, const struct hg__bins **bins);

HG_EXTERN_C_END
#endif
