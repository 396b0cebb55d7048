/* What a backend needs to put a batch together from whole graphs of a dataset, all of which is in
 * device memory (nn/batches_padded.h). */
#ifndef HG_CORE_ASSEMBLE_H
#define HG_CORE_ASSEMBLE_H

#include "core/graph_blocks.h"
#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* The graphs of a batch, in their order, and where each of them begins in it. */
struct hg__batch_list {
	int64_t graphs, bins;
	const int32_t *graph; /* [graphs]: numbers in the dataset */
	const int64_t *row;   /* [graphs + 1]: the first node of each, and the number of all nodes */
	const int64_t *edge;  /* [graphs + 1]: the same of the edges */
	const int32_t *bin;   /* [bins]: the first node of each bin that begins with a graph */
};

/* Rows that come with nodes, edges or graphs. The bytes behind a row are set to 0 up to the next
 * one. to NULL: there are none. */
struct hg__row_copy {
	const void *from;
	void *to;
	size_t bytes, from_pitch, to_pitch;
};

/* Sparse rows of nodes that become dense ones. rowptr NULL: there are none. */
struct hg__row_scatter {
	const int64_t *rowptr;
	const int32_t *col;
	const float *weight; /* NULL: all 1 */
	struct hg__mat to;
};

enum { HG__ASSEMBLE_ROWS = 4 };

/* Of the arrays of the dataset, `from`, those of the list's graphs go to `to`, a batch padded to
 * to.rows nodes and to.m edges. What is NULL in `to` is not made. */
struct hg__assemble {
	struct hg__batch_list list;
	struct hg__changing from, to;
	float weight;       /* of the edges of padding rows */
	hg_half weight_f16; /* the same */
	struct hg__row_copy of_node, of_edge, of_graph[HG__ASSEMBLE_ROWS];
	struct hg__row_scatter sparse;
};

HG_EXTERN_C_END
#endif
