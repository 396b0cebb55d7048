/* What a backend needs to make the arrays of a graph that is refilled (graph_stream.c) from a list
 * of edges. */
#ifndef HG_CORE_REFILL_H
#define HG_CORE_REFILL_H

#include "core/graph_blocks.h"
#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* The promises that a list can break, in the order in which they are named. */
enum hg__promise {
	HG__PROMISE_NODES,
	HG__PROMISE_EDGES,
	HG__PROMISE_DST,
	HG__PROMISE_SRC,
	HG__PROMISE_WEIGHT,
	HG__PROMISE_IN_DEGREE,
	HG__PROMISE_OUT_DEGREE
};
/* Of all promises that are broken a word keeps the first: the minimum over them, which does not
 * depend on the order. `at` is the number of an edge or node. */
#define HG__PROMISES_KEPT UINT64_MAX
HG_HD static inline uint64_t hg__broken_word(enum hg__promise promise, int64_t at)
{
	return (uint64_t)promise << 56 | (uint64_t)at;
}

/* An edge of the complete list, which has `edges` entries: those of the list, self loops if there
 * are any, and padding. */
struct hg__refill_edge {
	int32_t dst, src;
	float weight;
	uint64_t broken; /* HG__PROMISES_KEPT, or a word */
};

/* All pointers are device memory. Where `to` scatters, its list is the complete list, and scratch
 * holds the degrees of rows and then those of columns: int32 [2 * rows]. */
struct hg__refill {
	int64_t nodes, listed; /* room of the list */
	int64_t rows, edges;   /* those of the graph: with padding */
	int64_t max_degree;
	float max_weight;
	int self_loops;
	const int64_t *live;                /* [2] nodes and edges of the list */
	const int32_t *list_dst, *list_src; /* [listed] */
	const float *list_weight;           /* [listed] or NULL */
	struct hg__changing to;
	uint64_t *broken;
	void *scratch; /* refill_scratch bytes */
};

static inline size_t hg__refill_degree_bytes(const struct hg__refill *r)
{
	return 2 * (size_t)r->rows * sizeof(int32_t);
}
HG_HD static inline int32_t *hg__refill_degrees(const struct hg__refill *r, int transposed)
{
	return (int32_t *)r->scratch + (transposed ? r->rows : 0);
}

static inline HG_HD int64_t hg__refill_within(int64_t x, int64_t most)
{
	return x < 0 ? 0 : x > most ? most : x;
}

/* Entry e of the complete list. An edge that breaks a promise becomes one from the last row to
 * itself, so that every id is within the graph. */
HG_HD static inline struct hg__refill_edge hg__refill_edge_at(const struct hg__refill *r, int64_t e)
{
	const int64_t nodes = hg__refill_within(r->live[0], r->nodes),
	              m = hg__refill_within(r->live[1], r->listed), loops = r->self_loops ? nodes : 0;
	struct hg__refill_edge edge = {0, 0, 1.0f, HG__PROMISES_KEPT};
	if (e >= m + loops) {
		edge.dst = edge.src = (int32_t)(nodes + (e - m - loops) / r->max_degree);
		edge.weight = 0.0f;
		return edge;
	}
	if (e >= m) {
		edge.dst = edge.src = (int32_t)(e - m);
		return edge;
	}
	const int32_t dst = r->list_dst[e], src = r->list_src[e];
	const float weight = r->list_weight ? r->list_weight[e] : 1.0f;
	const int dst_is_good = dst >= 0 && dst < nodes, src_is_good = src >= 0 && src < nodes,
	          weight_is_good =
	              !r->list_weight || (weight >= -r->max_weight && weight <= r->max_weight);
	if (dst_is_good && src_is_good && weight_is_good) {
		edge.dst = dst;
		edge.src = src;
		edge.weight = weight;
		return edge;
	}
	edge.dst = edge.src = (int32_t)(r->rows - 1);
	edge.weight = 0.0f;
	edge.broken = hg__broken_word(!dst_is_good   ? HG__PROMISE_DST
	                              : !src_is_good ? HG__PROMISE_SRC
	                                             : HG__PROMISE_WEIGHT,
	                              e);
	return edge;
}

/* What is wrong with the numbers of the list themselves. */
HG_HD static inline uint64_t hg__refill_counts_broken(const struct hg__refill *r)
{
	return r->live[0] < 0 || r->live[0] > r->nodes    ? hg__broken_word(HG__PROMISE_NODES, 0)
	       : r->live[1] < 0 || r->live[1] > r->listed ? hg__broken_word(HG__PROMISE_EDGES, 0)
	                                                  : HG__PROMISES_KEPT;
}

HG_EXTERN_C_END
#endif
