#ifndef HG_NN_BATCHES_PADDED_H
#define HG_NN_BATCHES_PADDED_H

#include "core/assemble.h"
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
 * The dataset is on the device, as the caller's graph and tensors, and a batch is copied together
 * there (core/assemble.h): the host only says which graphs it has (nn/batches_schedule.h). All
 * arrays of a padded batch lie in one block of device memory, in an order that follows from the
 * shape. */

/* bin_rows: hg__bins.rows of its graphs; 0: it has no bins. Tapes on batches with large bins, and
 * on those without bins, differ from tapes on the others. */
struct hg__shape_of_batch {
	int64_t nodes, edges, graphs;
	int bin_rows;
};

/* The arrays of a block. */
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
	HG__PADDED_BIN, /* int32: first of struct hg__bins */
	HG__PADDED_X,
	HG__PADDED_EDGE_X,
	HG__PADDED_ROW,
	HG__PADDED_ARRAYS = HG__PADDED_ROW + HG_BATCH_ROWS
};

/* What is known of a graph of the dataset without looking at its arrays. */
struct hg__graph_size {
	int32_t nodes, counted; /* counted: what counts in the loss */
	int64_t edges;
};

/* What all padded batches of a dataset share. */
struct hg__padded {
	const hg_batches *all;
	unsigned needs; /* bit a: blocks have array a */
	/* Batches of fewer rows have no large bins, because no tape would use them; 0: they may. */
	int64_t large_bins_rows;
	int64_t per_row;  /* the most edges of a padding row */
	float weight;     /* of such an edge */
	hg_dtype x_dtype; /* of the features, which are dense */
	double x_amax;
	/* The dataset on the device, borrowed from its graph and its tensors. What is not needed is
	 * NULL. */
	struct hg__changing from;
	struct hg__csr x_sparse; /* rowptr NULL: the features are x */
	const float *x_sparse_weight;
	struct hg__mat x, edge_x, row[HG_BATCH_ROWS];
	struct hg__buffer size; /* struct hg__graph_size [graphs] */
	int64_t least_counted;  /* of the graphs that take part, at least 1 */
};

/* Why padded batches are no use for this dataset; NULL: they are. state: the type in which dense
 * features are. captures: the device launches captured steps. */
const char *hg__padded_refusal(const hg_batches *all, hg_dtype state, int captures);
/* from: what the batches were made of; its graph and its tensors must stay. probe: the graph of a
 * batch without padding, on which a tape like those to come is compiled, so it has what they ask
 * for. labels, mask: indices of rows of the batches, -1: none. After a failure, too,
 * hg__padded_fini frees everything. */
HG_NODISCARD hg_status hg__padded_init(struct hg__padded *padded, const hg_batches *all,
                                       const hg_batches_config *from, const hg_graph *probe,
                                       hg_dtype state, int labels, int mask);
void hg__padded_fini(struct hg__padded *padded);

/* batches_shape.c: to how many edges a batch is padded, and then to how many nodes. */
int64_t hg__padded_edges(int64_t edges);
int64_t hg__padded_nodes(const struct hg__padded *padded, int64_t nodes, int64_t edges,
                         int64_t graphs, int64_t padded_edges);
/* The shape of a batch of so many nodes, edges and graphs without bins; the bytes of a block. */
struct hg__shape_of_batch hg__padded_shape(const struct hg__padded *padded, int64_t nodes,
                                           int64_t edges, int64_t graphs);
size_t hg__padded_bytes(const struct hg__padded *padded, const struct hg__shape_of_batch *shape);

/* The batch in a block of device memory. */
struct hg__padded_batch {
	struct hg__shape_of_batch shape;
	struct hg__changing arrays;
	hg_graph *graph;
	hg_tensor x, edge_x, row[HG_BATCH_ROWS]; /* views; absent ones are not used */
	hg_batch batch;                          /* the same as tapes are recorded on it */
};
HG_NODISCARD hg_status hg__padded_open(const struct hg__padded *padded,
                                       const struct hg__shape_of_batch *shape, void *block,
                                       struct hg__padded_batch *batch);
void hg__padded_close(struct hg__padded_batch *batch);
/* The assembly of a batch of this shape in its block, and a call that queues it. list: in device
 * memory. Dense features of sparse ones must be 0 before it, which hg__padded_assemble sees to. */
void hg__padded_assembly(const struct hg__padded *padded, const struct hg__batch_list *list,
                         const struct hg__padded_batch *batch, struct hg__assemble *assembly);
HG_NODISCARD hg_status hg__padded_assemble(const struct hg__padded *padded,
                                           const struct hg__batch_list *list,
                                           const struct hg__padded_batch *batch);

HG_EXTERN_C_END
#endif
