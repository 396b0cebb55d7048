#ifndef HG_CORE_GRAPH_BLOCKS_H
#define HG_CORE_GRAPH_BLOCKS_H

#include "core/graph.h"

HG_EXTERN_C_BEGIN

/* A graph that is a part of another one, of which its facts are known: whole graphs of a batch, or
 * some rows of a matrix. It is made without a check or a pass over its edges. */

/* What holds for every part of a graph. Bounds are bounds, numbers that count are 0. */
struct hg__part_facts {
	hg_graph_facts facts;
	int pattern_symmetric;
	float least_weight, least_positive;
	int64_t batch_max, batch_min;
};
/* Reads them from the whole graph. blocks 1: a part is whole graphs of its batch, so nodes keep
 * their degrees; 0: some of its rows, with all columns. */
HG_NODISCARD hg_status hg__part_facts_get(hg_graph *whole, int blocks,
                                          struct hg__part_facts *facts);

/* The host arrays of a part, as hg_graph_from_csr and hg_graph_set_batch accept them, with sorted
 * rows. */
struct hg__part {
	int64_t rows, cols, m;
	const int64_t *rowptr;
	const int32_t *col;
	const float *weight; /* NULL: all 1 */
	int64_t count;       /* graphs of the batch; 0: it is none */
	const int64_t *ptr;  /* [count + 1] */
	const int32_t *id;   /* [rows] the graph of each node */
};
/* The arrays of a part in device memory of the caller, who changes them between runs of the tapes
 * on the graph: a batch of a fixed shape. Rows from ptr[count] on have id -1 and belong to no
 * graph. There are more rows than graphs, and not as many as edges, so that a tape tells them apart
 * by their number (autograd/live.c). What is NULL cannot be asked of the graph
 * (HG_ERR_UNSUPPORTED).
 *
 * scatters 1: the graph is the list dst, src (hg__graph_scatters), in whose order the weights are,
 * and has no rowptr, col and what belongs to them. */
struct hg__changing {
	int64_t rows, m, count;
	int scatters;
	int32_t *dst, *src;
	int64_t *rowptr, *rowptr_t, *ptr;
	int32_t *col, *col_t, *id;
	uint32_t *edge_t;
	float *weight, *inverse_row, *inverse_col, *root_row, *root_col;
	void *weight_f16;
	struct hg__bins bins; /* first NULL: none */
};
/* A new square graph that borrows the arrays. Its plans have an item for each row. No row may have
 * more edges than `facts` says, no sum be larger. HG_ERR_ARG: more rows than node ids reach. */
HG_NODISCARD hg_status hg__graph_of_changing(hg_context *ctx, const struct hg__changing *arrays,
                                             const struct hg__part_facts *facts, hg_graph **graph);
/* A new graph with a copy of the arrays. */
HG_NODISCARD hg_status hg__graph_of_part(hg_context *ctx, const struct hg__part *part,
                                         const struct hg__part_facts *facts, hg_graph **graph);

HG_EXTERN_C_END
#endif
