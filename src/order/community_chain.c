/* Communities in a row: next comes the one with the largest share of its edges to those that are
 * placed already (maximum adjacency search), parent by parent. */
#include "order/community.h"

/* A heap of nodes, the one with the largest share on top; ties: the smaller number. */
struct heap {
	const double *volume;
	double *tie;    /* [n] weight of a node's edges to placed ones */
	int32_t *node;  /* [n] the heap */
	int64_t *place; /* [n] where a node lies in it; -1: not in it */
	int64_t count;
};

static double share(const struct heap *h, int32_t i)
{
	return h->volume[i] > 0 ? h->tie[i] / h->volume[i] : 0;
}

static int before(const struct heap *h, int32_t a, int32_t b)
{
	const double x = share(h, a), y = share(h, b);
	return x > y || (x >= y && a < b);
}

static void put(struct heap *h, int64_t place, int32_t i)
{
	h->node[place] = i;
	h->place[i] = place;
}

static void rise(struct heap *h, int32_t i)
{
	int64_t k = h->place[i];
	for (; k > 0 && before(h, i, h->node[(k - 1) / 2]); k = (k - 1) / 2)
		put(h, k, h->node[(k - 1) / 2]);
	put(h, k, i);
}

static void insert(struct heap *h, int32_t i)
{
	put(h, h->count++, i);
	rise(h, i);
}

static int32_t take(struct heap *h)
{
	const int32_t top = h->node[0], last = h->node[--h->count];
	int64_t k = 0;
	h->place[top] = -1;
	if (h->count == 0)
		return top;
	for (int64_t child = 1; child < h->count; child = 2 * k + 1) {
		child += child + 1 < h->count && before(h, h->node[child + 1], h->node[child]);
		if (before(h, last, h->node[child]))
			break;
		put(h, k, h->node[child]);
		k = child;
	}
	put(h, k, last);
	return top;
}

static void pull(const struct hg__symmetric *symmetric, struct heap *h, int32_t placed)
{
	for (int s = 0; s < symmetric->sides; s++) {
		const struct hg__side *side = &symmetric->side[s];
		for (int64_t e = side->ptr[placed]; e < side->ptr[placed + 1]; e++) {
			const int32_t j = side->id[e];
			h->tie[j] += side->weight ? (double)side->weight[e] : 1.0;
			if (h->place[j] >= 0)
				rise(h, j);
		}
	}
}

/* order: nodes of each parent together, in any order within; on return in theirs. */
static hg_status chain(const struct hg__order_work *work, const struct hg__symmetric *symmetric,
                       const int32_t *parent, struct heap *h, int32_t *order)
{
	for (int64_t i = 0; i < symmetric->n; i++)
		h->place[i] = -1;
	for (int64_t begin = 0, end; begin < symmetric->n; begin = end) {
		for (end = begin;
		     end < symmetric->n && (!parent || parent[order[end]] == parent[order[begin]]); end++)
			insert(h, order[end]);
		for (int64_t k = begin; k < end; k++) {
			order[k] = take(h);
			pull(symmetric, h, order[k]);
		}
		HG__TRY(hg__order_step(work, "chain of communities", end, symmetric->n));
	}
	return HG_OK;
}

/* order <- nodes in the order of their parents. */
static hg_status by_parent(const struct hg__order_work *work, int64_t n, const int32_t *parent,
                           int64_t parents, const int32_t *parent_order, int32_t *order)
{
	struct hg__buffer place, key = {0};
	HG__TRY(hg__order_alloc(work, parents, sizeof(int32_t), &place));
	hg_status status = hg__order_alloc(work, n, sizeof(int32_t), &key);
	if (status == HG_OK) {
		int32_t *of = place.data, *k = key.data;
		for (int64_t p = 0; p < parents; p++)
			of[parent_order[p]] = (int32_t)p;
		for (int64_t i = 0; i < n; i++)
			k[i] = of[parent[i]];
		status = hg__order_by_key(work, n, parents, k, order);
	}
	hg__order_free(work, &key);
	hg__order_free(work, &place);
	return status;
}

hg_status hg__community_place(const struct hg__order_work *work, int64_t n, const int32_t *parent,
                              int64_t parents, const int32_t *parent_order, int32_t *order)
{
	if (parent)
		return by_parent(work, n, parent, parents, parent_order, order);
	for (int64_t i = 0; i < n; i++)
		order[i] = (int32_t)i;
	return HG_OK;
}

hg_status hg__community_chain(const struct hg__order_work *work,
                              const struct hg__symmetric *symmetric, const double *volume,
                              const int32_t *parent, int64_t parents, const int32_t *parent_order,
                              int32_t *order)
{
	struct hg__buffer tie, node = {0}, place = {0};
	HG__TRY(hg__community_place(work, symmetric->n, parent, parents, parent_order, order));
	HG__TRY(hg__order_alloc(work, symmetric->n, sizeof(double), &tie));
	hg_status status = hg__order_alloc(work, symmetric->n, sizeof(int32_t), &node);
	if (status == HG_OK)
		status = hg__order_alloc(work, symmetric->n, sizeof(int64_t), &place);
	if (status == HG_OK) {
		struct heap h = {volume, tie.data, node.data, place.data, 0};
		status = chain(work, symmetric, parent, &h, order);
	}
	hg__order_free(work, &place);
	hg__order_free(work, &node);
	hg__order_free(work, &tie);
	return status;
}
