/* The order of Cuthill and McKee 1969, reversed (George 1971): a breadth-first search from a
 * peripheral node, in which neighbours follow by rising degree. */
#include <stdlib.h>

#include "order/order.h"

struct bfs {
	const struct hg__symmetric *symmetric;
	int32_t *order; /* the queue lies in order[begin .. end-1] */
	int32_t *depth; /* [n] -1: not reached yet */
	int32_t *rank;  /* [n] position of each node by rising degree */
	int64_t begin, end;
};

static int by_number(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

/* Appends the neighbours of i that have not been reached, sorted by rank. Until they are sorted the
 * queue holds their ranks. */
static void append_neighbours(struct bfs *b, const int32_t *by_rank, int32_t i)
{
	const int64_t first = b->end;
	for (int s = 0; s < b->symmetric->sides; s++)
		for (int64_t e = b->symmetric->side[s].ptr[i]; e < b->symmetric->side[s].ptr[i + 1]; e++) {
			const int32_t j = b->symmetric->side[s].id[e];
			if (b->depth[j] >= 0)
				continue;
			b->depth[j] = b->depth[i] + 1;
			b->order[b->end++] = b->rank[j];
		}
	qsort(b->order + first, (size_t)(b->end - first), sizeof *b->order, by_number);
	for (int64_t k = first; k < b->end; k++)
		b->order[k] = by_rank[b->order[k]];
}

/* Searches the component of `root`, from index `begin` of the order on; returns its last node. */
static int32_t search_component(struct bfs *b, const int32_t *by_rank, int32_t root)
{
	b->end = b->begin;
	b->depth[root] = 0;
	b->order[b->end++] = root;
	for (int64_t k = b->begin; k < b->end; k++)
		append_neighbours(b, by_rank, b->order[k]);
	return b->order[b->end - 1];
}

/* Orders each component by three searches. The first two only look for a peripheral node, since
 * each begins where the one before ended; the third makes the order. */
static hg_status all_components(const struct hg__order_work *work, struct bfs *b,
                                const int32_t *by_rank)
{
	for (int64_t i = 0; i < b->symmetric->n; i++)
		b->depth[i] = -1;
	for (int64_t k = 0; k < b->symmetric->n; k++) {
		int32_t root = by_rank[k];
		if (b->depth[root] >= 0)
			continue;
		for (int trial = 0; trial < 2; trial++) {
			root = search_component(b, by_rank, root);
			for (int64_t q = b->begin; q < b->end; q++)
				b->depth[b->order[q]] = -1;
		}
		(void)search_component(b, by_rank, root);
		b->begin = b->end;
		HG__TRY(hg__order_progress(work, "rcm order", b->end, b->symmetric->n));
	}
	return HG_OK;
}

static void reverse_order(int64_t n, int32_t *a)
{
	for (int64_t k = 0; k < n / 2; k++) {
		const int32_t x = a[k];
		a[k] = a[n - 1 - k];
		a[n - 1 - k] = x;
	}
}

hg_status hg__order_rcm(const struct hg__order_work *work, const struct hg__symmetric *symmetric,
                        int32_t *order)
{
	struct hg__buffer depth, rank = {0}, ranked = {0};
	HG__TRY(hg__order_alloc(work, symmetric->n, sizeof(int32_t), &depth));
	hg_status status = hg__order_alloc(work, symmetric->n, sizeof(int32_t), &rank);
	if (status == HG_OK)
		status = hg__order_alloc(work, symmetric->n, sizeof(int32_t), &ranked);
	if (status == HG_OK)
		status = hg__order_degree(work, symmetric, ranked.data);
	if (status == HG_OK) {
		struct bfs b = {symmetric, order, depth.data, rank.data, 0, 0};
		reverse_order(symmetric->n, ranked.data);
		for (int64_t k = 0; k < symmetric->n; k++)
			b.rank[((int32_t *)ranked.data)[k]] = (int32_t)k;
		status = all_components(work, &b, ranked.data);
		reverse_order(symmetric->n, order);
	}
	hg__order_free(work, &ranked);
	hg__order_free(work, &rank);
	hg__order_free(work, &depth);
	return status;
}
