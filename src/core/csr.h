/* A graph in CSR form as kernels read it, the work plan that divides its rows and edges into items
 * of equal work, and the internal functions of hg_graph (core/graph.c) that return both. */
#ifndef HG_CORE_CSR_H
#define HG_CORE_CSR_H

#include <string.h>

#include "halfgraph/graph.h"

HG_EXTERN_C_BEGIN

/* The entries of one row that lie in one item of a plan. `range` packs the first entry in its low
 * HG__PART_BITS bits and the number of entries in the bits above. slot is the staging slot of the
 * part's sum; -1 means that the part is the whole row. */
#define HG__PART_BITS 40
struct hg__plan_part {
	uint64_t range;
	int32_t row, slot;
};
static inline int64_t hg__part_begin(const struct hg__plan_part *part)
{
	return (int64_t)(part->range & (((uint64_t)1 << HG__PART_BITS) - 1));
}
static inline int64_t hg__part_entries(const struct hg__plan_part *part)
{
	return (int64_t)(part->range >> HG__PART_BITS);
}
enum { HG__PART_CLASSES = 7 }; /* classes of length: core/plan_parts.h */

/* Whether a plan lists its parts by length, for kernels in which neighbouring threads should
 * have the same amount of work. ALL sorts over all rows. NEAR sorts only within blocks of
 * neighbouring rows: it is for graphs in which neighbouring rows use the same columns, so that
 * caches keep them. */
enum hg__part_order { HG__PARTS_NONE = 0, HG__PARTS_ALL, HG__PARTS_NEAR };

/* Equal-work decomposition of a CSR (merge path: Merrill and Garland 2016). The sequence of all row
 * ends and edges is cut into `items` pieces of about item_work rows + edges. Item k covers edges
 * item_edge[k] .. item_edge[k+1]-1 and finishes rows item_row[k] .. item_row[k+1]-1. Its remaining
 * edges belong to row item_row[k+1], which a later item finishes.
 *
 * A cut moves to the nearer end of the row that it falls in, if that end is at most hg__plan_reach
 * edges away. So only rows of more than item_work edges are split, and a graph of short rows has no
 * split rows at all. (Measured on an H200, F = 64, when aggregation iterated over items: cuts
 * exactly every item_work split 188,000 of 233,000 rows of 493 edges on average, and their partial
 * sums took 0.18 ms of 1.86. With moved cuts 20,000 rows were split, and 0.02 ms of 1.75 was spent
 * on them.)
 *
 * A cut never separates a row's end from its last edge. From this follow the invariants:
 *
 * - An item has at most item_work + reach + 1 rows + edges, and two neighbouring items together
 * have at least item_work. No item is empty.
 * - An item finishes a row with edges exactly if it has the row's last edge.
 * - If row item_row[k] was begun in an earlier item (item_edge[k] > rowptr[item_row[k]]), item k
 * has at least one edge of it.
 * - item_row[items] = rows: the last item leaves no edges over.
 *
 * A row whose edges lie in more than one item is a split row. Each item has two staging slots for
 * partial sums: 2k for the head (edges of row item_row[k], begun earlier, which this item finishes)
 * and 2k+1 for the tail (edges of row item_row[k+1], which this item does not finish; also when the
 * whole item lies inside one row). Split row s adds slots 2k+1 for k = split_first[s] ..
 * split_last[s]-1 and then slot 2*split_last[s], always in this order, so the bits never change. */
struct hg__plan {
	int64_t items, splits;
	int32_t item_work;
	int by_row;         /* 1: item_edge is the rowptr of the CSR, which the plan does not own */
	int64_t *item_edge; /* [items + 1] device; NULL: a plan of some rows (hg__plan_build_some) */
	/* [items + 1] device; NULL: item k is row k (hg__plan_by_row), or a plan of some rows */
	int32_t *item_row;
	/* [items + 1] device: how many slots the items before item k use. With it, the slots that are
	 * used have numbers without gaps: the head of item k is item_slot[k], its tail is
	 * item_slot[k + 1] - 1, and those of a split row follow each other. */
	int32_t *item_slot;
	int64_t slots;      /* all that are used */
	int32_t *split_row; /* [splits] device */
	/* [splits] device: the first item with edges of the row */
	int64_t *split_first;
	/* [splits] device: the item that finishes the row */
	int64_t *split_last;
	struct hg__plan_part *part; /* [parts] device; NULL: parts are not listed */
	/* class c has parts part_class[c] .. part_class[c + 1] - 1 */
	int64_t parts, part_class[HG__PART_CLASSES + 1];
	struct hg__tiles *tiles; /* core/plan_tiles.h; NULL: the plan has none */
	int tiles_tried;         /* 1: the first call of hg__graph_tiles has decided */
	struct hg__dense *dense; /* core/plan_dense.h; NULL: the plan has none */
	int dense_tried;         /* 1: the first call of hg__graph_dense has decided */
	/* Of a batch in which some graphs have dense counts: a plan that has these and nothing else,
	 * and the plan of the rows of all other graphs (hg__plan_build_some). NULL: neither. */
	struct hg__plan *counted, *rest;
};

/* The largest distance by which a cut moves. Where the longest row has at most 64 edges it is that
 * length: no row is then split, which saves the second kernel that adds partial sums. Otherwise it
 * is half an item, so that items stay of similar size. */
static inline int64_t hg__plan_reach(int64_t item_work, int64_t longest_row)
{
	return item_work / 2 < longest_row && longest_row <= 64 ? longest_row : item_work / 2;
}

/* A raw view of one orientation of a graph, as kernels read it. All pointers are device memory. */
struct hg__csr {
	int64_t rows, cols, m;
	const int64_t *rowptr; /* [rows + 1] */
	const int32_t *col;    /* [m] */
	/* [m] the index of entry p's value in an edge tensor. NULL: the index is p, which always holds
	 * for the forward orientation. */
	const uint32_t *edge;
	const struct hg__plan *plan;
};

/* A graph as a list of edges in any order. All pointers are device memory. */
struct hg__coo {
	int64_t rows, cols, m;
	const int32_t *dst, *src; /* [m] row and column of each edge */
};

/* Index of entry p in an edge tensor. */
static inline int64_t hg__edge_of(const struct hg__csr *csr, int64_t p)
{
	return csr->edge ? csr->edge[p] : p;
}

/* The decomposition in which every row is one item. No row is split, so the longest row decides the
 * running time. The naive f16 sum needs it, because it adds a whole row in one accumulator. */
static inline struct hg__plan hg__plan_by_row(const struct hg__csr *csr)
{
	struct hg__plan plan;
	memset(&plan, 0, sizeof plan); /* C++ warns of = {0} */
	plan.items = csr->rows;
	plan.by_row = 1;
	plan.item_edge = (int64_t *)csr->rowptr;
	return plan;
}

/* Builds the plan of a CSR. item_work is small enough to give a GPU enough items on small graphs,
 * and larger on large ones. It depends on the graph alone, so that sums have the same order on
 * every device and with any number of threads. */
HG_NODISCARD hg_status hg__plan_build(hg_context *ctx, int64_t rows, int64_t m,
                                      const int64_t *host_rowptr, enum hg__part_order order,
                                      struct hg__plan **plan);
/* Builds the plan of some rows of a CSR, row[0] < row[1] < ... in host memory: what hg__plan_build
 * would build of a CSR with these rows alone, but with the numbers of rows and entries that they
 * have here. It has no arrays of items, which only number staging slots. So it is for kernels that
 * take listed parts, and these write no other rows. order: not HG__PARTS_NONE. */
HG_NODISCARD hg_status hg__plan_build_some(hg_context *ctx, int64_t rows, const int32_t *row,
                                           const int64_t *host_rowptr, enum hg__part_order order,
                                           struct hg__plan **plan);
size_t hg__plan_bytes(const struct hg__plan *plan);
/* An upper bound on hg__plan_bytes before the plan is built. listed: 1 if the plan lists its
 * parts. */
size_t hg__plan_most_bytes(int64_t rows, int64_t m, int listed);
void hg__plan_free(hg_context *ctx, struct hg__plan *plan);

/* csr.edge holds 32-bit indices: 64-bit ones would double its memory and traffic. This limits the
 * number of edges of a graph whose transpose needs `edge`. */
#define HG__EDGE_INDEX_LIMIT ((int64_t)UINT32_MAX + 1)

/* The internal interface of hg_graph (core/graph.c).
 *
 * The forward orientation of a graph, and its transpose. The transpose is built by the first call
 * that needs it; where the pattern is symmetric it shares the forward arrays, and `edge` alone
 * takes extra memory. need_edge 0: csr_t->edge may be NULL even where the order of edges differs,
 * because the caller has no edge values. need_edge 1: more than HG__EDGE_INDEX_LIMIT edges are
 * HG_ERR_UNSUPPORTED. */
HG_NODISCARD hg_status hg__graph_csr(hg_graph *graph, struct hg__csr *csr);
HG_NODISCARD hg_status hg__graph_csr_t(hg_graph *graph, int need_edge, struct hg__csr *csr_t);
/* An orientation in which entry p has the index of its value in an edge tensor as its column. So it
 * is the matrix [rows, m] that adds, with the kernels for neighbours, the values of the edges of
 * each row. It has no tiles and no dense counts, which are those of neighbours. The graph keeps it.
 * The first call for the forward orientation takes 4 m bytes of device memory. HG_ERR_UNSUPPORTED:
 * more than INT32_MAX edges. */
HG_NODISCARD hg_status hg__graph_by_edge(hg_graph *graph, int transposed,
                                         const struct hg__csr **csr);
/* Builds tiles for sums of unit weights over one orientation and attaches them to its plan, if they
 * make a sum of `cols` columns faster on this graph and leave `reserve` bytes of device memory
 * free, beside the staging of `staged` columns, which is what the sum stores of a row. The first
 * call for an orientation decides for good. */
HG_NODISCARD hg_status hg__graph_tiles(hg_graph *graph, int transposed, size_t reserve,
                                       int64_t cols, int64_t staged);
/* Builds dense counts of one orientation of a batch, of all graphs or of some (core/plan_dense.h),
 * and attaches them to its plan, if they make attention faster on this batch and leave `reserve`
 * bytes of device memory free. The first call for an orientation decides for good. least: how many
 * entries counts of some graphs must save; hg__graph_dense has HG__DENSE_SAVED. */
HG_NODISCARD hg_status hg__graph_dense(hg_graph *graph, int transposed, size_t reserve);
HG_NODISCARD hg_status hg__graph_dense_from(hg_graph *graph, int transposed, size_t reserve,
                                            int64_t least);
/* Device bytes that a graph holds, and the further bytes that its transpose (and `edge`) will take
 * when they are first needed. */
size_t hg__graph_bytes(const hg_graph *graph);
HG_NODISCARD hg_status hg__graph_missing(hg_graph *graph, int need_edge, size_t *bytes);
/* Whether both factors of a normalisation are square roots. The column factor is then multiplied
 * first. */
static inline int hg__norm_is_root(hg_norm norm)
{
	return norm == HG_NORM_BOTH || norm == HG_NORM_IN || norm == HG_NORM_WEIGHTED;
}
/* Whether the factors are made of sums of weights. */
static inline int hg__norm_is_weighted(hg_norm norm)
{
	return norm == HG_NORM_WEIGHTED || norm == HG_NORM_WEIGHTED_MEAN;
}
/* What range proofs need of such a normalisation. In f64, of the factors as kernels read them. */
struct hg__weighed {
	int known;
	double row_sum, col_sum; /* the largest sums of |r_i a_ij s_j| of a row and of a column */
	double factor;           /* the largest r_i or s_j */
};
/* Makes the factors and the facts of such a normalisation, if there are none yet, and stores the
 * facts. HG_ERR_ARG, which names the node: a weighted degree is negative, or its factor is not a
 * normal number of f32. HG_ERR_SHAPE as for hg__graph_norm. */
HG_NODISCARD hg_status hg__graph_weigh(hg_graph *graph, hg_norm norm, struct hg__weighed *facts);
/* The same facts, where hg__graph_weigh has made them. All that is not known is infinite. */
struct hg__weighed hg__graph_weighed(const hg_graph *graph, hg_norm norm);
/* Whether sums over the neighbours of this graph are scattered from the edges of a list
 * (HG_AGGREGATION_SCATTER). Such a graph has a list and no CSR, and asking for one is
 * HG_ERR_UNSUPPORTED. */
int hg__graph_scatters(const hg_graph *graph);
/* The list of such a graph, or of its transpose. */
struct hg__coo hg__graph_coo(const hg_graph *graph, int transposed);
/* Whether a graph that is refilled keeps its promises: device memory for backend.h's `raise`; NULL
 * for all other graphs. */
const uint64_t *hg__graph_broken(const hg_graph *graph);
/* The number of nodes of a graph that changes, in device memory; its rows from there on are padding
 * (graph_blocks.h). NULL for all other graphs. */
const int64_t *hg__graph_live(const hg_graph *graph);
/* f32 device vectors r [rows] and c [cols] of a normalisation; NULL where all factors are 1. For
 * the transpose the two are exchanged. */
HG_NODISCARD hg_status hg__graph_norm(hg_graph *graph, hg_norm norm, const float **row_scale,
                                      const float **col_scale);
/* The graph's edge weights in CSR order, a device vector of `dtype` (f32, or f16 narrowed once);
 * NULL if the graph is unweighted. For the transpose they are read through csr_t.edge. */
HG_NODISCARD hg_status hg__graph_weight(hg_graph *graph, hg_dtype dtype, const void **weight);
/* The least weight of an edge, and the least positive one. Both are 1 if there is none. The first
 * call copies the weights to the host. */
HG_NODISCARD hg_status hg__graph_least_weight(hg_graph *graph, float *least, float *positive);
/* Batch pointers [batch + 1] and the graph number of each node [rows], both on the device. A graph
 * without a batch counts as one graph. */
HG_NODISCARD hg_status hg__graph_batch(hg_graph *graph, const int64_t **ptr, const int32_t **id);
/* Number of nodes of the largest graph of the batch, and of the smallest that is not empty (0: all
 * are empty). */
int64_t hg__graph_batch_max(const hg_graph *graph);
int64_t hg__graph_batch_min(const hg_graph *graph);

HG_EXTERN_C_END
#endif
