/* Dense counts: one orientation of a batch of graphs, or of the small and full ones among them, as
 * small dense matrices, for kernels in which one block computes everything of a graph by tensor
 * cores. */
#ifndef HG_CORE_PLAN_DENSE_H
#define HG_CORE_PLAN_DENSE_H

#include "core/context.h"
#include "core/csr.h"
#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* Each listed graph of the batch is a matrix [nodes, nodes] of counts: how often column j is an
 * entry of row i. It is padded with 0 to tiles of HG__DENSE_TILE x HG__DENSE_TILE, `side` tiles in
 * each direction, where
 *
 *     side = ceil(nodes / HG__DENSE_TILE)
 *
 * Tile (I, J) of a graph is number graph.tile + I * side + J. A tile is HG__DENSE_WORDS words of
 * eight counts of four bits, in the order in which the lanes of a warp hold a tensor-core product
 * (kernels/cuda/tensor_core.cuh): with g < 8 and t < 4, word 4 g + t has
 *
 *     bits 4 b .. 4 b + 3    the count in row  g + 8 (b / 2 % 2),  column  2 t + b % 2 + 8 (b / 4)
 *
 * Graphs without nodes are never listed. The largest graphs come first, so that the last blocks of
 * a launch are short. */
enum {
	HG__DENSE_TILE = 16,
	HG__DENSE_WORDS = 32,
	HG__DENSE_NODES = 128, /* the most nodes of a graph: eight warps of 16 rows */
	HG__DENSE_COUNT = 15   /* the largest count */
};

/* The least fill of dense counts: entries / counts, with the padding. Derived for attention with
 * one head of d = 128 columns on an H200: a count takes three products of 128 numbers, 768
 * operations or 2.3 ps at 330 Tflop/s, and an entry of a CSR two gathers of 256 bytes, 54 ps
 * (measured on reddit-like with d = 64, doubled). They break even at a fill of 4.3 %. The limit is
 * that, rounded down to 4 %, where counts take up to 7 % more. */
#define HG__DENSE_FILL 0.04

/* Where only some graphs of a batch are listed, their counts take the time of HG__DENSE_FILL times
 * as many entries, and what is left of their entries is saved. That must be at least this number of
 * entries, and this share of those of the batch. The number pays for one kernel more in each pass:
 * about 5 us, with a beginning and an end in which the GPU is not full, are 93,000 entries of
 * 54 ps, and the limit is the next power of two, on the safe side. A smaller share would hardly
 * show in a step, but counts and the plan of the other rows take memory. (Derived; what a mix saves
 * near these limits was not measured.) */
#define HG__DENSE_SAVED (1 << 17)
#define HG__DENSE_SHARE 0.125

struct hg__dense_graph {
	int32_t first, nodes; /* nodes first .. first + nodes - 1 of the batch */
	int64_t tile;         /* number of its first tile */
};
struct hg__dense {
	int64_t graphs, tiles;
	int32_t most_nodes;            /* of a graph */
	struct hg__dense_graph *graph; /* [graphs] device */
	uint32_t *count;               /* [tiles * HG__DENSE_WORDS] device */
};

HG_HD static inline int32_t hg__dense_side(int64_t nodes)
{
	return (int32_t)((nodes + HG__DENSE_TILE - 1) / HG__DENSE_TILE);
}

/* One orientation of a batch, in host memory: its CSR arrays, and the node ptr [graphs + 1] with
 * which each graph begins. */
struct hg__dense_source {
	const int64_t *rowptr;
	const int32_t *col; /* hg__dense_choose: may be NULL */
	int64_t graphs;
	const int64_t *ptr;
};

/* Which graphs of a batch are listed. */
struct hg__dense_choice {
	uint8_t *listed; /* [graphs] of the source: 1 or 0 */
	int64_t graphs, tiles;
	int32_t most_nodes;
	int64_t other_rows, other_entries; /* of graphs that are not listed */
};

/* Chooses the graphs. Those that can have dense counts have at most HG__DENSE_NODES nodes and no
 * entry more than HG__DENSE_COUNT times. If these are all graphs with nodes, and their counts
 * together are full enough, they are the choice. Otherwise it is those among them that are full
 * enough on their own, if they save enough: at least `least` entries (see HG__DENSE_SAVED). The
 * choice is the same for both orientations.
 *
 * Returns 0, and the log says why, if dense counts do not pay, or an entry joins two graphs.
 * Without source.col, entries are not checked, so that a batch can be refused before they are
 * known. */
int hg__dense_choose(hg_context *ctx, const struct hg__dense_source *source, int64_t least,
                     struct hg__dense_choice *choice);

/* Builds the dense counts of the chosen graphs, whose entries have been checked. */
HG_NODISCARD hg_status hg__dense_build(hg_context *ctx, const struct hg__dense_source *source,
                                       const struct hg__dense_choice *choice,
                                       struct hg__dense **dense);
/* Bytes of dense counts for this many graphs and tiles. */
size_t hg__dense_size(int64_t graphs, int64_t tiles);
size_t hg__dense_bytes(const struct hg__dense *dense);
void hg__dense_free(hg_context *ctx, struct hg__dense *dense);

HG_EXTERN_C_END
#endif
