#ifndef HG_CORE_CSR_H
#define HG_CORE_CSR_H

#include "halfgraph/graph.h"

HG_EXTERN_C_BEGIN

/* What one item of a plan has of one row is a part: `row`'s entries from the one in the low
 * HG__PART_BITS bits of `place`, as many as the bits above say. slot: the staging slot of its sum;
 * -1: the part is the whole row. */
#define HG__PART_BITS 40
struct hg__plan_part {
	uint64_t place;
	int32_t row, slot;
};
static inline int64_t hg__part_begin(const struct hg__plan_part *part)
{
	return (int64_t)(part->place & (((uint64_t)1 << HG__PART_BITS) - 1));
}
static inline int64_t hg__part_entries(const struct hg__plan_part *part)
{
	return (int64_t)(part->place >> HG__PART_BITS);
}
enum { HG__PART_CLASSES = 7 }; /* by length: core/plan_parts.h */

/* Shall a plan list its parts by length, for kernels whose neighbouring threads should have equally
 * much to do? In one order over all rows, or, where rows use what their neighbours use, within
 * blocks of neighbours. */
enum hg__part_order { HG__PARTS_NONE = 0, HG__PARTS_ALL, HG__PARTS_NEAR };

/* Equal-work decomposition of a CSR (merge path: Merrill and Garland 2016): the sequence "row ends
 * and edges" is cut into `items` pieces of about item_work rows + edges. Item k consumes edges
 * item_edge[k] .. item_edge[k+1]-1 and finishes rows item_row[k] .. item_row[k+1]-1; what is left
 * of its edges belongs to row item_row[k+1], which a later item finishes.
 *
 * A cut moves to the end or to the beginning of the row that it falls in, whichever is nearer, if
 * that is at most hg__plan_reach edges away; so only rows of more than item_work edges are split,
 * and none in a graph of short rows. (Cuts every item_work split 188,000 of 233,000 rows of 493
 * edges on the average; their partial sums cost 0.18 ms of 1.86, H200, F = 64, when aggregation
 * walked by items. Moved, 20,000 rows and 0.02 ms of 1.75.) A cut never parts a row's end from its
 * last edge. So an item has at most item_work + reach + 1 rows + edges, two neighbours together at
 * least item_work (none is empty); it finishes a row with edges exactly if it has the last one; and
 * it has at least one edge of row item_row[k] if that row was begun earlier (item_edge[k] >
 * rowptr[item_row[k]]). item_row[items] = rows: the last item leaves nothing.
 *
 * A row whose edges lie in more than one item is a split row. Each item has two staging slots: 2k
 * for the head (edges of row item_row[k], begun earlier, that this item finishes) and 2k+1 for the
 * tail (edges of row item_row[k+1], which this item does not finish; also when the whole item lies
 * inside one row). Split row s sums slots 2k+1 for k = split_first[s] .. split_last[s]-1 and then
 * slot 2*split_last[s], in this order: bitwise the same always. */
struct hg__plan {
	int64_t items, splits;
	int32_t item_work;
	int64_t *item_edge; /* [items + 1] device */
	/* [items + 1] device; NULL: item k is row k (hg__plan_by_row) */
	int32_t *item_row;
	int32_t *split_row; /* [splits] device */
	/* [splits] device: first item with edges of the row */
	int64_t *split_first;
	/* [splits] device: the item that finishes it */
	int64_t *split_last;
	struct hg__plan_part *part; /* [parts] device; NULL: not listed */
	/* class c: parts part_class[c] .. part_class[c + 1] - 1 */
	int64_t parts, part_class[HG__PART_CLASSES + 1];
	struct hg__tiles *tiles; /* core/plan_tiles.h; NULL: there are none */
	int tiles_tried;         /* they have been asked for */
};

/* How far a cut moves at most: far enough to split no row where the longest has 64 edges, since
 * there is then no second kernel to fold the parts; else half an item, so that items stay of one
 * size. */
static inline int64_t hg__plan_reach(int64_t item_work, int64_t longest_row)
{
	return item_work / 2 < longest_row && longest_row <= 64 ? longest_row : item_work / 2;
}

/* A raw view of one orientation of a graph: what kernels see of it. All pointers are device
 * memory. */
struct hg__csr {
	int64_t rows, cols, m;
	const int64_t *rowptr; /* [rows + 1] */
	const int32_t *col;    /* [m] */
	/* [m] where entry p's edge value lies in an edge tensor; NULL: at p (always so for the forward
	 * orientation) */
	const uint32_t *edge;
	const struct hg__plan *plan;
};

/* Where the edge value of entry p lies. */
static inline int64_t hg__edge_of(const struct hg__csr *csr, int64_t p)
{
	return csr->edge ? csr->edge[p] : p;
}

/* The decomposition in which every row is an item of its own: no row is split, and hubs decide how
 * long it takes. The naive sum needs it. */
static inline struct hg__plan hg__plan_by_row(const struct hg__csr *csr)
{
	struct hg__plan plan = {0};
	plan.items = csr->rows;
	plan.item_edge = (int64_t *)csr->rowptr;
	return plan;
}

/* Work of one item: enough items to fill a GPU on small graphs, long ones on large graphs. Depends
 * on the graph alone. */
HG_NODISCARD hg_status hg__plan_build(hg_context *ctx, int64_t rows, int64_t m,
                                      const int64_t *host_rowptr, enum hg__part_order order,
                                      struct hg__plan **plan);
size_t hg__plan_bytes(const struct hg__plan *plan);
/* At most, before there is one; listed: with its parts. */
size_t hg__plan_most_bytes(int64_t rows, int64_t m, int listed);
void hg__plan_free(hg_context *ctx, struct hg__plan *plan);

/* A place of csr.edge is 32 bits, half the memory and half the traffic of what it would take
 * elsewhere. */
#define HG__MOST_PLACES ((int64_t)UINT32_MAX + 1)

/* The internal face of hg_graph (core/graph.c). Forward orientation, and its transpose (built when
 * first asked for; where the pattern is symmetric the arrays are shared, and `edge` alone is extra
 * memory). want_edge 0: csr_t->edge may be NULL even where it would be needed (unit weights); else
 * more than HG__MOST_PLACES edges are HG_ERR_UNSUPPORTED. */
HG_NODISCARD hg_status hg__graph_csr(hg_graph *graph, struct hg__csr *csr);
HG_NODISCARD hg_status hg__graph_csr_t(hg_graph *graph, int want_edge, struct hg__csr *csr_t);
/* Tiles for sums of unit weights over one orientation, `cols` columns wide, if the graph is one
 * that they are worth it for and if they leave `reserve` bytes of device memory: then the plan of
 * that orientation has them from now on. The first call decides. */
HG_NODISCARD hg_status hg__graph_tiles(hg_graph *graph, int transposed, size_t reserve,
                                       int64_t cols);
/* Device bytes that a graph holds; and those that it will take for its transpose (and `edge`) when
 * it is asked for them. */
size_t hg__graph_bytes(const hg_graph *graph);
HG_NODISCARD hg_status hg__graph_missing(hg_graph *graph, int want_edge, size_t *bytes);
/* Both factors are roots, and that of the column is multiplied first. */
static inline int hg__norm_is_root(hg_norm norm)
{
	return norm == HG_NORM_BOTH || norm == HG_NORM_IN;
}
/* f32 device vectors r [rows], c [cols] of a normalisation; NULL where all ones. For the transpose
 * they change places. */
HG_NODISCARD hg_status hg__graph_norm(hg_graph *graph, hg_norm norm, const float **row_scale,
                                      const float **col_scale);
/* The graph's own weights in CSR order as a device vector of `dtype` (f32, or f16 narrowed once);
 * NULL if unweighted. For the transpose use them through csr_t.edge. */
HG_NODISCARD hg_status hg__graph_weight(hg_graph *graph, hg_dtype dtype, const void **weight);
/* Batch pointers [batch + 1] on the device, and the graph id of each node [rows]. A graph without a
 * batch is one graph. */
HG_NODISCARD hg_status hg__graph_batch(hg_graph *graph, const int64_t **ptr, const int32_t **id);
/* Largest graph of the batch, in nodes, and the smallest that has any (0: none has). */
int64_t hg__graph_batch_max(const hg_graph *graph);
int64_t hg__graph_batch_min(const hg_graph *graph);

HG_EXTERN_C_END
#endif
