/* The steps of the order by communities (community.c): find communities, merge them into a smaller
 * graph, order them in a chain, and refine the order of the nodes. */
#ifndef HG_ORDER_COMMUNITY_H
#define HG_ORDER_COMMUNITY_H

#include "order/order.h"

HG_EXTERN_C_BEGIN

/* Sums of edge weights by key, for the edges of one node: an open hash table. It is cleared by
 * visiting only its used slots, so a node of few edges costs little. Each thread has its own. */
struct hg__tally {
	int32_t *key;  /* [slots] -1: the slot is free */
	float *sum;    /* [slots] */
	int32_t *used; /* [slots / 2] the used slots, in the order of their first use */
	int64_t count, mask;
};
/* One table for each of work->threads, for up to `most` different keys. */
HG_NODISCARD hg_status hg__tally_make(const struct hg__order_work *work, int64_t most,
                                      struct hg__buffer *memory, struct hg__buffer *tallies);

static inline int64_t hg__tally_slot(const struct hg__tally *t, int32_t key)
{
	/* 2^32 / the golden ratio spreads neighbouring keys (multiplicative hashing) */
	int64_t slot = (int64_t)((uint32_t)key * 2654435769u >> 7) & t->mask;
	while (t->key[slot] != key && t->key[slot] >= 0)
		slot = (slot + 1) & t->mask;
	return slot;
}
static inline void hg__tally_add(struct hg__tally *t, int32_t key, float weight)
{
	const int64_t slot = hg__tally_slot(t, key);
	if (t->key[slot] < 0) {
		t->key[slot] = key;
		t->sum[slot] = 0;
		t->used[t->count++] = (int32_t)slot;
	}
	t->sum[slot] += weight;
}
static inline void hg__tally_clear(struct hg__tally *t)
{
	while (t->count > 0)
		t->key[t->used[--t->count]] = -1;
}

/* Finds communities of locally maximal modularity. label [n] receives the community of each node, 0
 * .. *count-1. volume [n] is the weight of each node's edges, including edges inside it. */
HG_NODISCARD hg_status hg__community_find(const struct hg__order_work *work,
                                          const struct hg__symmetric *symmetric,
                                          const double *volume, int32_t *label, int64_t *count);
/* Builds the graph whose nodes are the communities. Weights of parallel edges are added; edges
 * inside a community are dropped. */
HG_NODISCARD hg_status hg__community_merge(const struct hg__order_work *work,
                                           const struct hg__symmetric *symmetric,
                                           const int32_t *label, int64_t count,
                                           struct hg__symmetric *merged);
/* Orders nodes by the position of their parents in parent_order, and by number within a parent.
 * With parent NULL, by number. */
HG_NODISCARD hg_status hg__community_by_parent(const struct hg__order_work *work, int64_t n,
                                               const int32_t *parent, int64_t parents,
                                               const int32_t *parent_order, int32_t *order);
/* Orders nodes in a chain. Parents keep the order parent_order [parents] (NULL: there is one
 * parent). Among the children of a parent, the next one is always that with the largest share of
 * its edges to nodes that are already ordered. */
HG_NODISCARD hg_status hg__community_chain(const struct hg__order_work *work,
                                           const struct hg__symmetric *symmetric,
                                           const double *volume, const int32_t *parent,
                                           int64_t parents, const int32_t *parent_order,
                                           int32_t *order);
/* Refines an order in which the nodes of each group are contiguous: several times, the nodes of a
 * group are sorted by the mean position of their neighbours. */
HG_NODISCARD hg_status hg__community_refine(const struct hg__order_work *work,
                                            const struct hg__symmetric *symmetric,
                                            const int32_t *group, int64_t groups, int32_t *order);

HG_EXTERN_C_END
#endif
