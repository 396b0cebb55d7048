#ifndef HG_NN_BATCHES_PADDED_H
#define HG_NN_BATCHES_PADDED_H

#include "core/mat.h"
#include "nn/batches.h"

HG_EXTERN_C_BEGIN

/* Batches of few different shapes, so that a tape and a captured step serve many batches.
 *
 * A batch of n nodes, m edges and G graphs is padded to N > n nodes and E >= m edges. Rows n to N -
 * 1 belong to no graph (their id is -1), have features 0, and the edges that are missing are edges
 * of such rows to themselves, no more of them in a row than the dataset has. So every kernel sees N
 * rows and E edges, and nothing that bounds the dataset is exceeded. The factors of normalisations
 * are 0 there. N and E follow from n, m and the dataset alone, and G is exact, so the bits of a
 * step do not depend on the batches before it.
 *
 * All arrays of a padded batch lie in one block of memory, in an order that follows from the shape:
 * the host fills a block, and one copy brings it to the device. */

struct hg__shape_of_batch {
	int64_t nodes, edges, graphs;
};

/* The arrays of a block. The features are the last, so that a block whose features the device makes
 * (batches_shared.c) is copied up to them. */
enum hg__padded_array {
	HG__PADDED_ROWPTR,
	HG__PADDED_COL,
	HG__PADDED_WEIGHT,
	HG__PADDED_WEIGHT_F16,
	HG__PADDED_ROWPTR_T,
	HG__PADDED_COL_T,
	HG__PADDED_EDGE_T,
	HG__PADDED_INVERSE_ROW,
	HG__PADDED_INVERSE_COL,
	HG__PADDED_ROOT_ROW,
	HG__PADDED_ROOT_COL,
	HG__PADDED_PTR,
	HG__PADDED_ID,
	HG__PADDED_BIN,      /* int32: first of struct hg__bins */
	HG__PADDED_X_ROW,    /* int32 [nodes]: rows of hg__padded.table */
	HG__PADDED_X_ROWPTR, /* int64 [nodes + 1]: 0, 1, 2 and so on */
	HG__PADDED_EDGE_X,
	HG__PADDED_ROW,
	HG__PADDED_X = HG__PADDED_ROW + HG_BATCH_ROWS,
	HG__PADDED_ARRAYS
};

/* What all padded batches of a dataset share. */
struct hg__padded {
	const hg_batches *all;
	unsigned needs;   /* bit a: blocks have array a */
	int64_t per_row;  /* the most edges of a padding row */
	float weight;     /* of such an edge */
	hg_dtype x_dtype; /* of the features, which are dense */
	double x_amax;
	/* Of the dataset, on the host. Numbers of columns and edges count from the first of their
	 * graph. A buffer that is not needed is empty. */
	struct hg__buffer rowptr_t, col_t, edge_t, weight_f16; /* int64, int32, uint32, f16 */
	struct hg__buffer factor[4]; /* f32: as HG__PADDED_INVERSE_ROW and the arrays after it */
	/* Where few rows of the features differ: these rows and one of zeros, on the device, and which
	 * of them each node has, on the host. 0: a batch brings its rows. */
	int64_t distinct;
	struct hg__buffer table, row_of; /* x_dtype [distinct + 1, leading], int32 [nodes] */
	struct hg__buffer counted;       /* int64 [graphs]: what counts in the loss of each graph */
	int64_t least_counted;           /* of the graphs that take part, at least 1 */
};

/* Why padded batches are no use for this dataset; NULL: they are. state: the type in which dense
 * features are. captures: the device launches captured steps. */
const char *hg__padded_refusal(const hg_batches *all, hg_dtype state, int captures);
/* probe: the graph of a batch without padding, on which a tape like those to come is compiled, so
 * it has what they ask for. labels, mask: indices of rows of the batches, -1: none. After a
 * failure, too, hg__padded_fini frees everything. */
HG_NODISCARD hg_status hg__padded_init(struct hg__padded *padded, const hg_batches *all,
                                       const hg_graph *probe, hg_dtype state, int labels, int mask);
void hg__padded_fini(struct hg__padded *padded);

/* The nodes and edges of a batch of these graphs, without padding. */
void hg__padded_live(const hg_batches *all, const int64_t *graph, int64_t graphs, int64_t *nodes,
                     int64_t *edges);
/* The shape of a batch of these graphs, the bytes of its block on the device and of what the host
 * fills of it, and what counts in its loss. */
struct hg__shape_of_batch hg__padded_shape(const struct hg__padded *padded, const int64_t *graph,
                                           int64_t graphs);
size_t hg__padded_bytes(const struct hg__padded *padded, const struct hg__shape_of_batch *shape);
size_t hg__padded_filled(const struct hg__padded *padded, const struct hg__shape_of_batch *shape);
int64_t hg__padded_counted(const struct hg__padded *padded, const int64_t *graph, int64_t graphs);
/* Fills every byte of a block that kernels read: its first hg__padded_filled bytes. Safe on any
 * thread: it only reads what is shared, allocates nothing and cannot fail. */
void hg__padded_fill(const struct hg__padded *padded, const struct hg__shape_of_batch *shape,
                     const int64_t *graph, void *block);
/* The same by several threads: each calls hg__padded_fill_part with another part, 0 <= part <
 * parts. When all have returned, one calls hg__padded_fill_end, which computes what needs all
 * parts. */
void hg__padded_fill_part(const struct hg__padded *padded, const struct hg__shape_of_batch *shape,
                          const int64_t *graph, int part, int parts, void *block);
void hg__padded_fill_end(const struct hg__padded *padded, const struct hg__shape_of_batch *shape,
                         void *block);

/* The batch in a block of device memory. */
struct hg__padded_batch {
	struct hg__shape_of_batch shape;
	hg_graph *graph;
	hg_tensor x, edge_x, row[HG_BATCH_ROWS]; /* views; absent ones are not used */
	const int32_t *x_row;                    /* device; NULL: the block brings the features */
	const int64_t *x_rowptr;
	hg_batch batch; /* the same as tapes are recorded on it */
};
HG_NODISCARD hg_status hg__padded_open(const struct hg__padded *padded,
                                       const struct hg__shape_of_batch *shape, void *block,
                                       struct hg__padded_batch *batch);
void hg__padded_close(struct hg__padded_batch *batch);
/* Queues what the device makes of a block that was copied: the features, where the block has only
 * numbers of rows. */
HG_NODISCARD hg_status hg__padded_complete(const struct hg__padded *padded,
                                           const struct hg__padded_batch *batch);

HG_EXTERN_C_END
#endif
