#ifndef HG_NN_BATCHES_H
#define HG_NN_BATCHES_H

#include "core/graph_blocks.h"
#include "halfgraph/batches.h"

HG_EXTERN_C_BEGIN

/* The inside of hg_batches: batches.c makes it, batches_order.c orders the graphs,
 * batches_load.c makes the batches. */

/* Rows of a tensor that the host reads: a compact copy, or the tensor itself if it is in host
 * memory. */
struct hg__table {
	hg_dtype dtype;
	int64_t rows, cols;
	const char *at; /* the first row */
	size_t pitch;   /* bytes from a row to the next */
	struct hg__buffer copy;
	hg_tensor *held; /* the tensor, if it is read in place */
};

/* Host arrays in which the CSR of a batch is put together; they grow and never shrink. */
struct hg__csr_stage {
	struct hg__buffer rowptr, col, weight;
};

struct hg_batches {
	hg_context *ctx;
	int64_t per_batch; /* graphs of a batch */
	uint64_t seed;
	/* The dataset: nodes ptr[g] to ptr[g + 1] - 1 are those of graph g. Columns of `graph` count
	 * from the first node of their own graph. */
	int64_t graphs;
	struct hg__buffer ptr; /* int64 [graphs + 1] */
	struct hg__host_csr graph, sparse;
	struct hg__part_facts graph_facts, sparse_facts;
	int is_sparse;
	int64_t features; /* columns */
	struct hg__table dense;
	struct hg__table edge; /* attributes of edges, in CSR order */
	int has_edges;
	double x_amax, edge_amax;
	struct hg__table row[HG_BATCH_ROWS]; /* rows 0: none */
	/* Graphs that take part: their numbers, and their order in one epoch. */
	int64_t count;
	struct hg__buffer chosen, order; /* int64 [count] */
	int64_t ordered;                 /* the epoch of `order` */
	/* For packing the graphs of a batch into bins (core/bins.h): uint16 [graphs], the nodes of
	 * each, and int64 [at most per_batch], scratch. */
	struct hg__buffer nodes, packing;
	/* The batch in place, and the arrays in which it was put together. */
	hg_batch batch;
	hg_graph *batch_graph, *batch_sparse;
	hg_tensor *batch_dense, *batch_edge, *batch_row[HG_BATCH_ROWS];
	struct hg__csr_stage stage, sparse_stage;
	struct hg__buffer stage_ptr, stage_id, stage_table;
};

/* batches_order.c: order [count] of an epoch. scratch: as long as `packing`, with whose help the
 * graphs of each batch are packed; NULL: they are not. */
void hg__batches_shuffle(const hg_batches *batches, int64_t epoch, int64_t *order,
                         int64_t *scratch);
/* batches_order.c: the graphs of batch k of an epoch, valid until another epoch is asked for. */
const int64_t *hg__batches_of_epoch(hg_batches *batches, int64_t epoch, int64_t k, int64_t *graphs);
/* batches_load.c: frees the batch in place. */
void hg__batches_drop(hg_batches *batches);

HG_EXTERN_C_END
#endif
