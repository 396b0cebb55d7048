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

/* Two random numbers of 64 bits, for positions 2 pair and 2 pair + 1 of an epoch. */
static struct hg__rng4 draw_pair(uint64_t key, int64_t pair, int64_t epoch)
{
	return hg__philox(key, (uint32_t)pair, (uint32_t)((uint64_t)pair >> 32), (uint32_t)epoch,
	                  (uint32_t)((uint64_t)epoch >> 32));
}

/* A number in [0, n), n < 2^32: the upper part of n times a random number of 64 bits, so no value
 * is more probable than another by more than n / 2^64. */
static int64_t below(const uint32_t word[2], int64_t n)
{
	const uint64_t low = (uint64_t)word[0] * (uint64_t)n, high = (uint64_t)word[1] * (uint64_t)n;
	return (int64_t)((high + (low >> 32)) >> 32);
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void hg__batches_shuffle(const hg_batches *b, int64_t epoch, int64_t *order, int64_t *scratch)
{
	const uint64_t key = hg__rng_key(hg__rng_key(b->seed, ORDER_STREAM), 0);
	const int64_t per_batch = smaller(b->per_batch, b->count);
	memcpy(order, b->chosen.data, (size_t)b->count * sizeof *order);
	struct hg__rng4 pair = draw_pair(key, (b->count - 1) / 2, epoch);
	for (int64_t i = b->count - 1; i > 0 && epoch >= 0; i--) {
		const int64_t j = below(&pair.w[i % 2 * 2], i + 1), aside = order[i];
		order[i] = order[j];
		order[j] = aside;
		if (i % 2 == 0)
			pair = draw_pair(key, i / 2 - 1, epoch);
	}
	for (int64_t k = 0; k < b->count && scratch && epoch >= 0; k += per_batch)
		hg__bins_pack(b->small.data, smaller(per_batch, b->count - k), order + k, scratch);
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
