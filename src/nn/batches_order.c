/* The order of the graphs of a dataset in an epoch, and how it falls into batches. */
#include <string.h>

#include "core/bins.h"
#include "core/rng.h"
#include "nn/batches.h"

int64_t hg_batches_graphs(const hg_batches *b)
{
	return b ? b->count : 0;
}

int64_t hg_batches_count(const hg_batches *b)
{
	return b ? (b->count - 1) / b->per_batch + 1 : 0;
}

/* "order" in ASCII: orders have a stream of random numbers of their own. */
#define ORDER_STREAM 0x6F72646572u

/* A number in [0, n), n < 2^32: the upper part of n times 64 random bits, so no value is more
 * probable than another by more than n / 2^64. The bits are those of SplitMix64, which takes a
 * third of the time of the generator of dropout. */
static int64_t draw_below(uint64_t key, int64_t position, int64_t n)
{
	const uint64_t bits = hg__rng_key(key, (uint64_t)position),
	               low = (bits & UINT32_MAX) * (uint64_t)n, high = (bits >> 32) * (uint64_t)n;
	return (int64_t)((high + (low >> 32)) >> 32);
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void hg__batches_shuffle(const hg_batches *b, int64_t epoch, int64_t *order, int64_t *scratch)
{
	const uint64_t key = hg__rng_key(hg__rng_key(b->seed, ORDER_STREAM), (uint64_t)epoch);
	const int64_t per_batch = smaller(b->per_batch, b->count);
	memcpy(order, b->chosen.data, (size_t)b->count * sizeof *order);
	for (int64_t i = b->count - 1; i > 0 && epoch >= 0; i--) {
		const int64_t j = draw_below(key, i, i + 1), aside = order[i];
		order[i] = order[j];
		order[j] = aside;
	}
	for (int64_t k = 0; k < b->count && scratch && epoch >= 0; k += per_batch)
		hg__bins_pack(b->nodes.data, smaller(per_batch, b->count - k), order + k, scratch);
}

const int64_t *hg__batches_of_epoch(hg_batches *b, int64_t epoch, int64_t k, int64_t *graphs)
{
	const int64_t first = k * b->per_batch;
	if (epoch != b->ordered)
		hg__batches_shuffle(b, epoch, b->order.data, b->packing.data);
	b->ordered = epoch;
	*graphs = smaller(b->per_batch, b->count - first);
	return (const int64_t *)b->order.data + first;
}

hg_status hg_batches_order(const hg_batches *b, int64_t epoch, int64_t *order)
{
	if (!b)
		return HG_ERR_ARG;
	if (!order || epoch < HG_BATCHES_IN_ORDER)
		return hg__fail(b->ctx, HG_ERR_ARG,
		                order ? "batches_order: epoch is %lld, expected at least 0, or "
		                        "HG_BATCHES_IN_ORDER"
		                      : "batches_order: order is NULL",
		                (long long)epoch);
	hg__batches_shuffle(b, epoch, order, b->packing.data);
	return HG_OK;
}
