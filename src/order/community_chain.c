/* Orders communities in a chain, parent by parent. The next one is always that with the largest
 * share of its edges to communities already in the chain (maximum adjacency search). */
#include "order/community.h"

/* A heap of nodes with the largest share on top. Ties go to the smaller number. */
struct heap {
	const double *volume;
	double *chained_weight; /* [n] weight of a node's edges to nodes in the chain */
	int32_t *node;          /* [n] the heap */
	int64_t *position;      /* [n] index of each node in the heap; -1: not in it */
	int64_t count;
};

static double chain_share(const struct heap *h, int32_t i)
{
	return h->volume[i] > 0 ? h->chained_weight[i] / h->volume[i] : 0;
}

static int heap_precedes(const struct heap *h, int32_t a, int32_t b)
{
	const double x = chain_share(h, a), y = chain_share(h, b);
	return x > y || (x >= y && a < b);
}

static void heap_set(struct heap *h, int64_t position, int32_t i)
{
	h->node[position] = i;
	h->position[i] = position;
}

static void heap_sift_up(struct heap *h, int32_t i)
{
	int64_t k = h->position[i];
	for (; k > 0 && heap_precedes(h, i, h->node[(k - 1) / 2]); k = (k - 1) / 2)
		heap_set(h, k, h->node[(k - 1) / 2]);
	heap_set(h, k, i);
}

static void heap_insert(struct heap *h, int32_t i)
{
	heap_set(h, h->count++, i);
	heap_sift_up(h, i);
}

static int32_t heap_pop(struct heap *h)
{
	const int32_t top = h->node[0], last = h->node[--h->count];
	int64_t k = 0;
	h->position[top] = -1;
	if (h->count == 0)
		return top;
	for (int64_t child = 1; child < h->count; child = 2 * k + 1) {
		child += child + 1 < h->count && heap_precedes(h, h->node[child + 1], h->node[child]);
		if (heap_precedes(h, last, h->node[child]))
			break;
		heap_set(h, k, h->node[child]);
		k = child;
	}
	heap_set(h, k, last);
	return top;
}

static void add_edges_of(const struct hg__symmetric *symmetric, struct heap *h, int32_t chained)
{
	for (int s = 0; s < symmetric->sides; s++) {
		const struct hg__side *side = &symmetric->side[s];
		for (int64_t e = side->ptr[chained]; e < side->ptr[chained + 1]; e++) {
			const int32_t j = side->id[e];
			h->chained_weight[j] += side->weight ? (double)side->weight[e] : 1.0;
			if (h->position[j] >= 0)
				heap_sift_up(h, j);
		}
	}
}

/* On entry the nodes of each parent are contiguous in `order`; on return they are in chain
 * order. */
static hg_status chain_parents(const struct hg__order_work *work,
                               const struct hg__symmetric *symmetric, const int32_t *parent,
                               struct heap *h, int32_t *order)
{
	for (int64_t i = 0; i < symmetric->n; i++)
		h->position[i] = -1;
	for (int64_t begin = 0, end; begin < symmetric->n; begin = end) {
		for (end = begin;
		     end < symmetric->n && (!parent || parent[order[end]] == parent[order[begin]]); end++)
			heap_insert(h, order[end]);
		for (int64_t k = begin; k < end; k++) {
			order[k] = heap_pop(h);
			add_edges_of(symmetric, h, order[k]);
		}
		HG__TRY(hg__order_progress(work, "chain of communities", end, symmetric->n));
	}
	return HG_OK;
}

/* Sorts the nodes by the position of their parents. */
static hg_status sort_by_parent(const struct hg__order_work *work, int64_t n, const int32_t *parent,
                                int64_t parents, const int32_t *parent_order, int32_t *order)
{
	struct hg__buffer position, key = {0};
	HG__TRY(hg__order_alloc(work, parents, sizeof(int32_t), &position));
	hg_status status = hg__order_alloc(work, n, sizeof(int32_t), &key);
	if (status == HG_OK) {
		int32_t *of = position.data, *k = key.data;
		for (int64_t p = 0; p < parents; p++)
			of[parent_order[p]] = (int32_t)p;
		for (int64_t i = 0; i < n; i++)
			k[i] = of[parent[i]];
		status = hg__order_by_key(work, n, parents, k, order);
	}
	hg__order_free(work, &key);
	hg__order_free(work, &position);
	return status;
}

hg_status hg__community_by_parent(const struct hg__order_work *work, int64_t n,
                                  const int32_t *parent, int64_t parents,
                                  const int32_t *parent_order, int32_t *order)
{
	if (parent)
		return sort_by_parent(work, n, parent, parents, parent_order, order);
	for (int64_t i = 0; i < n; i++)
		order[i] = (int32_t)i;
	return HG_OK;
}

hg_status hg__community_chain(const struct hg__order_work *work,
                              const struct hg__symmetric *symmetric, const double *volume,
                              const int32_t *parent, int64_t parents, const int32_t *parent_order,
                              int32_t *order)
{
	struct hg__buffer chained_weight, node = {0}, position = {0};
	HG__TRY(hg__community_by_parent(work, symmetric->n, parent, parents, parent_order, order));
	HG__TRY(hg__order_alloc(work, symmetric->n, sizeof(double), &chained_weight));
	hg_status status = hg__order_alloc(work, symmetric->n, sizeof(int32_t), &node);
	if (status == HG_OK)
		status = hg__order_alloc(work, symmetric->n, sizeof(int64_t), &position);
	if (status == HG_OK) {
		struct heap h = {volume, chained_weight.data, node.data, position.data, 0};
		status = chain_parents(work, symmetric, parent, &h, order);
	}
	hg__order_free(work, &position);
	hg__order_free(work, &node);
	hg__order_free(work, &chained_weight);
	return status;
}
