/* The arrays of a graph that is refilled (core/refill.h), by two radix sorts of the complete list:
 *
 *     list       key(e) = dst 2^bits + src of entry e of the list, self loops or padding
 *     sort       entries by key, stably, so that equal edges keep the order of the list
 *     rows       rowptr[i] = first place whose key is at least i 2^bits
 *     places     col and weights; key(p) of place p with src and dst exchanged
 *
 * and then sort and rows of these keys, for the transpose, whose `edge` are the places p. All sizes
 * are those of the room, so the work can be captured. */

#include <cub/device/device_radix_sort.cuh>

#include "core/refill.h"
#include "kernels/cuda/build.cuh"
#include "kernels/overflow.h"

namespace
{

using word_t = unsigned long long; /* the type that 64-bit atomics need */
using key_buffers = cub::DoubleBuffer<uint64_t>;
using entry_buffers = cub::DoubleBuffer<uint32_t>;

/* Scratch memory: two buffers of keys and of entries, and CUB's own. */
struct sort_memory {
	uint64_t *key[2];
	uint32_t *entry[2];
	void *cub;
	size_t cub_bytes, bytes;
	int bits; /* of a node */
};

__device__ void keep_least(uint64_t *word, uint64_t other)
{
	if (other < HG__PROMISES_KEPT)
		atomicMin(reinterpret_cast<word_t *>(word), static_cast<word_t>(other));
}

__global__ void check_counts(const __grid_constant__ struct hg__refill r)
{
	*r.broken = hg__refill_counts_broken(&r);
	r.to.ptr[0] = 0;
	r.to.ptr[1] = hg__refill_within(r.live[0], r.nodes);
}

__global__ void list_edges(const __grid_constant__ struct hg__refill r, int bits, uint64_t *key,
                           uint32_t *entry)
{
	for (int64_t e = global_thread(); e < r.edges; e += global_threads()) {
		const struct hg__refill_edge edge = hg__refill_edge_at(&r, e);
		key[e] = static_cast<uint64_t>(edge.dst) << bits | static_cast<uint64_t>(edge.src);
		entry[e] = static_cast<uint32_t>(e);
		keep_least(r.broken, edge.broken);
	}
}

/* A search for each row, since any number of rows may be empty. */
__global__ void find_rows(int64_t rows, int64_t edges, int bits, const uint64_t *key,
                          int64_t *rowptr)
{
	for (int64_t i = global_thread(); i <= rows; i += global_threads()) {
		int64_t low = 0, high = edges;
		while (low < high) {
			const int64_t middle = low + (high - low) / 2;
			if (key[middle] >> bits < static_cast<uint64_t>(i))
				low = middle + 1;
			else
				high = middle;
		}
		rowptr[i] = low;
	}
}

__device__ int32_t col_of(uint64_t key, int bits)
{
	return static_cast<int32_t>(key & ((uint64_t(1) << bits) - 1));
}

/* key, entry: of each place; they become those of the list for the transpose. */
__global__ void put_places(const __grid_constant__ struct hg__refill r, int bits, uint64_t *key,
                           uint32_t *entry)
{
	for (int64_t p = global_thread(); p < r.edges; p += global_threads()) {
		const uint64_t k = key[p];
		const int32_t col = col_of(k, bits);
		r.to.col[p] = col;
		if (r.to.weight) {
			const float weight = hg__refill_edge_at(&r, entry[p]).weight;
			r.to.weight[p] = weight;
			static_cast<__half *>(r.to.weight_f16)[p] = __float2half_rn(weight);
		}
		key[p] = static_cast<uint64_t>(col) << bits | k >> bits;
		entry[p] = static_cast<uint32_t>(p);
	}
}

__global__ void put_transpose(const __grid_constant__ struct hg__refill r, int bits,
                              const uint64_t *key, const uint32_t *entry)
{
	for (int64_t p = global_thread(); p < r.edges; p += global_threads()) {
		r.to.col_t[p] = col_of(key[p], bits);
		r.to.edge_t[p] = entry[p];
	}
}

__device__ void put_factors(double degree, float *inverse, float *root)
{
	*inverse = inverse_of_degree(degree);
	*root = root_of_degree(degree);
}

__global__ void put_nodes(const __grid_constant__ struct hg__refill r)
{
	const int64_t nodes = hg__refill_within(r.live[0], r.nodes);
	for (int64_t i = global_thread(); i < r.rows; i += global_threads()) {
		const int64_t in = r.to.rowptr[i + 1] - r.to.rowptr[i],
		              out = r.to.rowptr_t[i + 1] - r.to.rowptr_t[i];
		put_factors(degree(r.to.rowptr, i), r.to.inverse_row + i, r.to.root_row + i);
		put_factors(degree(r.to.rowptr_t, i), r.to.inverse_col + i, r.to.root_col + i);
		r.to.id[i] = i < nodes ? 0 : -1;
		if (i < nodes && in > r.max_degree)
			keep_least(r.broken, hg__broken_word(HG__PROMISE_IN_DEGREE, i));
		if (i < nodes && out > r.max_degree)
			keep_least(r.broken, hg__broken_word(HG__PROMISE_OUT_DEGREE, i));
	}
}

__global__ void raise_word(const uint64_t *broken, uint64_t raised, uint64_t *word)
{
	if (*broken != HG__PROMISES_KEPT && raised > *word)
		*word = raised;
}

/* ---- host side ---- */

hg_status lay_out(hg_context *ctx, const struct hg__refill *r, char *memory, struct sort_memory *s)
{
	const size_t count = static_cast<size_t>(r->edges),
	             keys = hg__aligned(count * sizeof(uint64_t)),
	             entries = hg__aligned(count * sizeof(uint32_t));
	key_buffers key;
	entry_buffers entry;
	*s = {};
	s->bits = bits_of(static_cast<uint64_t>(r->rows - 1));
	HG__CUDA(ctx, "graph stream: sort",
	         cub::DeviceRadixSort::SortPairs(nullptr, s->cub_bytes, key, entry, r->edges, 0,
	                                         2 * s->bits, stream_of(ctx)));
	for (size_t i = 0; i < 2; i++) {
		s->key[i] = reinterpret_cast<uint64_t *>(memory + i * keys);
		s->entry[i] = reinterpret_cast<uint32_t *>(memory + 2 * keys + i * entries);
	}
	s->cub = memory + 2 * (keys + entries);
	s->bytes = 2 * (keys + entries) + hg__aligned(s->cub_bytes);
	return HG_OK;
}

/* Sorts a list of keys, and finds its rows. */
hg_status sort_edges(hg_context *ctx, const struct hg__refill *r, const struct sort_memory &s,
                     key_buffers &key, entry_buffers &entry, int64_t *rowptr)
{
	const cudaStream_t stream = stream_of(ctx);
	size_t bytes = s.cub_bytes;
	HG__CUDA(
	    ctx, "graph stream: sort",
	    cub::DeviceRadixSort::SortPairs(s.cub, bytes, key, entry, r->edges, 0, 2 * s.bits, stream));
	find_rows<<<few_blocks(r->rows + 1), BLOCK, 0, stream>>>(r->rows, r->edges, s.bits,
	                                                         key.Current(), rowptr);
	return launched(ctx, "graph stream: rows");
}

/* A list without room for edges. */
hg_status clear_rows(hg_context *ctx, const struct hg__refill *r)
{
	const size_t bytes = static_cast<size_t>(r->rows + 1) * sizeof(int64_t);
	const cudaStream_t stream = stream_of(ctx);
	HG__CUDA(ctx, "graph stream: rows", cudaMemsetAsync(r->to.rowptr, 0, bytes, stream));
	HG__CUDA(ctx, "graph stream: rows", cudaMemsetAsync(r->to.rowptr_t, 0, bytes, stream));
	return HG_OK;
}

hg_status make_edges(hg_context *ctx, const struct hg__refill *r)
{
	const cudaStream_t stream = stream_of(ctx);
	const unsigned blocks = few_blocks(r->edges);
	struct sort_memory s;
	HG__TRY(lay_out(ctx, r, static_cast<char *>(r->scratch), &s));
	key_buffers key(s.key[0], s.key[1]);
	entry_buffers entry(s.entry[0], s.entry[1]);
	list_edges<<<blocks, BLOCK, 0, stream>>>(*r, s.bits, key.Current(), entry.Current());
	HG__TRY(launched(ctx, "graph stream: list"));
	HG__TRY(sort_edges(ctx, r, s, key, entry, r->to.rowptr));
	put_places<<<blocks, BLOCK, 0, stream>>>(*r, s.bits, key.Current(), entry.Current());
	HG__TRY(launched(ctx, "graph stream: columns"));
	HG__TRY(sort_edges(ctx, r, s, key, entry, r->to.rowptr_t));
	put_transpose<<<blocks, BLOCK, 0, stream>>>(*r, s.bits, key.Current(), entry.Current());
	return launched(ctx, "graph stream: transpose");
}

} // namespace

hg_status hg__cuda_refill_scratch(hg_context *ctx, const struct hg__refill *r, size_t *bytes)
{
	struct sort_memory s = {};
	if (r->edges > 0)
		HG__TRY(lay_out(ctx, r, nullptr, &s));
	*bytes = s.bytes;
	return HG_OK;
}

hg_status hg__cuda_refill(hg_context *ctx, const struct hg__refill *r)
{
	const cudaStream_t stream = stream_of(ctx);
	check_counts<<<1, 1, 0, stream>>>(*r);
	HG__TRY(launched(ctx, "graph stream: counts"));
	HG__TRY(r->edges > 0 ? make_edges(ctx, r) : clear_rows(ctx, r));
	put_nodes<<<few_blocks(r->rows), BLOCK, 0, stream>>>(*r);
	return launched(ctx, "graph stream: nodes");
}

hg_status hg__cuda_raise(hg_context *ctx, const uint64_t *broken, int32_t node, uint64_t *word)
{
	const cudaStream_t stream = stream_of(ctx);
	raise_word<<<1, 1, 0, stream>>>(broken, hg__overflow_word(node, INFINITY), word);
	return launched(ctx, "graph stream: promises");
}
