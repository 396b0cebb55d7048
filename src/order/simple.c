/* Orders that cost one or two passes over the edges: by degree, and by the most popular
 * neighbour. */
#include "order/order.h"

hg_status hg__order_by_key(const struct hg__order_work *work, int64_t n, int64_t keys,
                           const int32_t *key, int32_t *order)
{
	struct hg__buffer memory;
	HG__TRY(hg__order_alloc(work, keys + 1, sizeof(int64_t), &memory));
	int64_t *next = memory.data;
	for (int64_t i = 0; i < n; i++)
		next[key[i] + 1]++;
	for (int64_t k = 0; k < keys; k++)
		next[k + 1] += next[k];
	for (int64_t i = 0; i < n; i++)
		order[next[key[i]]++] = (int32_t)i;
	hg__order_free(work, &memory);
	return HG_OK;
}

/* Sorts the nodes by falling degree, ties by number: rank [n] receives the position of each node,
 * order the nodes. */
static hg_status by_degree(const struct hg__order_work *work, const struct hg__symmetric *symmetric,
                           int32_t *rank, int32_t *order)
{
	int64_t most = 0;
	for (int64_t i = 0; i < symmetric->n; i++) {
		const int64_t degree = hg__symmetric_degree(symmetric, i);
		most = degree > most ? degree : most;
	}
	/* degrees from INT32_MAX on share the first key */
	most = most < INT32_MAX ? most : INT32_MAX - 1;
	for (int64_t i = 0; i < symmetric->n; i++) {
		const int64_t degree = hg__symmetric_degree(symmetric, i);
		rank[i] = (int32_t)(degree < most ? most - degree : 0);
	}
	HG__TRY(hg__order_by_key(work, symmetric->n, most + 1, rank, order));
	for (int64_t k = 0; k < symmetric->n; k++)
		rank[order[k]] = (int32_t)k;
	return HG_OK;
}

hg_status hg__order_degree(const struct hg__order_work *work, const struct hg__symmetric *symmetric,
                           int32_t *order)
{
	struct hg__buffer rank;
	HG__TRY(hg__order_alloc(work, symmetric->n, sizeof(int32_t), &rank));
	const hg_status status = by_degree(work, symmetric, rank.data, order);
	hg__order_free(work, &rank);
	return status;
}

/* Rank of the most popular neighbour of i, the one with the highest degree. A node without
 * neighbours has its own rank. */
static int32_t leader_rank(const struct hg__symmetric *symmetric, const int32_t *rank, int64_t i)
{
	int32_t best = INT32_MAX;
	for (int s = 0; s < symmetric->sides; s++)
		for (int64_t e = symmetric->side[s].ptr[i]; e < symmetric->side[s].ptr[i + 1]; e++)
			if (rank[symmetric->side[s].id[e]] < best)
				best = rank[symmetric->side[s].id[e]];
	return best == INT32_MAX ? rank[i] : best;
}

hg_status hg__order_leading(const struct hg__order_work *work,
                            const struct hg__symmetric *symmetric, int32_t *order)
{
	struct hg__buffer rank, key = {0};
	HG__TRY(hg__order_alloc(work, symmetric->n, sizeof(int32_t), &rank));
	hg_status status = hg__order_alloc(work, symmetric->n, sizeof(int32_t), &key);
	if (status == HG_OK)
		status = by_degree(work, symmetric, rank.data, order);
	if (status == HG_OK) {
		int32_t *of = key.data;
#pragma omp parallel for schedule(dynamic, 1024) num_threads(work->threads)
		for (int64_t i = 0; i < symmetric->n; i++)
			of[i] = leader_rank(symmetric, rank.data, i);
		status = hg__order_by_key(work, symmetric->n, symmetric->n, of, order);
	}
	hg__order_free(work, &key);
	hg__order_free(work, &rank);
	return status;
}
