#ifndef HG_ORDER_COMMUNITY_H
#define HG_ORDER_COMMUNITY_H

#include "order/order.h"

HG_EXTERN_C_BEGIN

/* Sums by key of what one node's edges say: an open hash table that is emptied by walking over what
 * is in it. One for each thread. */
struct hg__tally {
	int32_t *key;  /* [slots] -1: free */
	float *sum;    /* [slots] */
	int32_t *used; /* [slots / 2] slots in the order in which they were taken */
	int64_t count, mask;
};
/* Tables for up to `most` different keys, one for each of work->threads. */
HG_NODISCARD hg_status hg__tally_make(const struct hg__order_work *work, int64_t most,
                                      struct hg__buffer *memory, struct hg__buffer *tallies);

static inline int64_t hg__tally_slot(const struct hg__tally *t, int32_t key)
{
	/* 2^32 / the golden ratio spreads neighbouring keys */
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

/* label [n] <- a community for each node, 0 .. *count-1, such that modularity is (locally) high.
 * volume [n]: the weight of a node's edges, inner ones included. */
HG_NODISCARD hg_status hg__community_find(const struct hg__order_work *work,
                                          const struct hg__symmetric *symmetric,
                                          const double *volume, int32_t *label, int64_t *count);
/* The graph of the communities: weights add up, inner edges are gone. */
HG_NODISCARD hg_status hg__community_merge(const struct hg__order_work *work,
                                           const struct hg__symmetric *symmetric,
                                           const int32_t *label, int64_t count,
                                           struct hg__symmetric *merged);
/* order [n] <- nodes by the place of their parents in parent_order, by number within; parent NULL:
 * by number. */
HG_NODISCARD hg_status hg__community_place(const struct hg__order_work *work, int64_t n,
                                           const int32_t *parent, int64_t parents,
                                           const int32_t *parent_order, int32_t *order);
/* order [n]: parents keep the order parent_order [parents] (NULL: there is one parent); among the
 * children of a parent next comes always the one with the largest share of its edges to those that
 * were placed. */
HG_NODISCARD hg_status hg__community_chain(const struct hg__order_work *work,
                                           const struct hg__symmetric *symmetric,
                                           const double *volume, const int32_t *parent,
                                           int64_t parents, const int32_t *parent_order,
                                           int32_t *order);
/* order [n], in which the nodes of a group stand together: sorted within their group by the mean
 * place of their neighbours, several times. */
HG_NODISCARD hg_status hg__community_settle(const struct hg__order_work *work,
                                            const struct hg__symmetric *symmetric,
                                            const int32_t *group, int64_t groups, int32_t *order);

HG_EXTERN_C_END
#endif
