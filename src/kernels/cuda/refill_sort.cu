/* The arrays of a graph that is refilled, by two radix sorts of the complete list:
 *
 *     list       key(e) = dst 2^bits + src of entry e of the list, self loops or padding
 *     sort       keys by dst and src. With weights the numbers of the entries move with them,
 *                stably, so that equal edges keep the order of the list; without weights equal
 *                edges are one and the same
 *     rows       rowptr[i] = first place whose key is at least i 2^bits
 *     places     col and weights; key(p) = src 2^32 + p of place p, for the transpose
 *     sort       these keys by src only: the sort is stable, so places stay in order
 *     rows       as above
 *     transpose  edge = p, and col = dst from the sorted keys of the first list
 *
 * Three buffers of keys serve both sorts, because the keys of the first are read at the end. */

#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/refill.cuh"

namespace
{

using key_buffers = cub::DoubleBuffer<uint64_t>;
using entry_buffers = cub::DoubleBuffer<uint32_t>;

/* Scratch memory. The entries of the first sort lie in the keys' last buffer, which the second sort
 * uses. */
struct sort_memory {
	uint64_t *key[3];
	uint32_t *entry[2];
	void *cub;
	size_t cub_bytes, bytes;
	int bits; /* of a node */
};

/* Keys of edges have a node of `bits` bits above another one; those of places, above 32 bits. */
constexpr int PLACE_BITS = 32;

__global__ void check_counts(const __grid_constant__ struct hg__refill r)
{
	put_counts(r);
}

__global__ void list_edges(const __grid_constant__ struct hg__refill r, int bits, uint64_t *key,
                           uint32_t *entry)
{
	for (int64_t e = global_thread(); e < r.edges; e += global_threads()) {
		const struct hg__refill_edge edge = hg__refill_edge_at(&r, e);
		key[e] = static_cast<uint64_t>(edge.dst) << bits | static_cast<uint64_t>(edge.src);
		if (r.to.weight)
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

__device__ uint64_t low_bits(uint64_t key, int bits)
{
	return key & ((uint64_t(1) << bits) - 1);
}

__global__ void put_places(const __grid_constant__ struct hg__refill r, int bits,
                           const uint64_t *key, const uint32_t *entry, uint64_t *place)
{
	for (int64_t p = global_thread(); p < r.edges; p += global_threads()) {
		const uint64_t col = low_bits(key[p], bits);
		r.to.col[p] = static_cast<int32_t>(col);
		if (r.to.weight)
			put_weight(r, p, hg__refill_edge_at(&r, entry[p]).weight);
		place[p] = col << PLACE_BITS | static_cast<uint64_t>(p);
	}
}

__global__ void put_transpose(const __grid_constant__ struct hg__refill r, int bits,
                              const uint64_t *key, const uint64_t *place)
{
	for (int64_t q = global_thread(); q < r.edges; q += global_threads()) {
		const uint64_t p = low_bits(place[q], PLACE_BITS);
		r.to.edge_t[q] = static_cast<uint32_t>(p);
		r.to.col_t[q] = static_cast<int32_t>(key[p] >> bits);
	}
}

__global__ void put_nodes(const __grid_constant__ struct hg__refill r)
{
	for (int64_t i = global_thread(); i < r.rows; i += global_threads())
		put_node(r, i);
}

/* ---- host side ---- */

hg_status sort_edges(hg_context *ctx, const struct hg__refill *r, const struct sort_memory &s,
                     size_t &bytes, key_buffers &key, entry_buffers &entry)
{
	const cudaStream_t stream = stream_of(ctx);
	if (r->to.weight)
		return cuda_status(ctx,
		                   cub::DeviceRadixSort::SortPairs(s.cub, bytes, key, entry, r->edges, 0,
		                                                   2 * s.bits, stream),
		                   "graph stream: sort of edges with weights");
	return cuda_status(
	    ctx, cub::DeviceRadixSort::SortKeys(s.cub, bytes, key, r->edges, 0, 2 * s.bits, stream),
	    "graph stream: sort of edges");
}

hg_status sort_places(hg_context *ctx, const struct hg__refill *r, const struct sort_memory &s,
                      size_t &bytes, key_buffers &place)
{
	return cuda_status(ctx,
	                   cub::DeviceRadixSort::SortKeys(s.cub, bytes, place, r->edges, PLACE_BITS,
	                                                  PLACE_BITS + s.bits, stream_of(ctx)),
	                   "graph stream: sort of places");
}

hg_status lay_out(hg_context *ctx, const struct hg__refill *r, char *memory, struct sort_memory *s)
{
	const size_t count = static_cast<size_t>(r->edges),
	             keys = hg__aligned(count * sizeof(uint64_t));
	key_buffers key;
	entry_buffers entry;
	*s = {};
	s->bits = bits_of(static_cast<uint64_t>(r->rows - 1));
	/* more than any of the three sorts needs: pairs are larger than keys, and edges than places */
	HG__CUDA(ctx, "graph stream: sort",
	         cub::DeviceRadixSort::SortPairs(nullptr, s->cub_bytes, key, entry, r->edges, 0,
	                                         2 * s->bits, stream_of(ctx)));
	for (size_t i = 0; i < 3; i++)
		s->key[i] = reinterpret_cast<uint64_t *>(memory + i * keys);
	for (size_t i = 0; i < 2; i++)
		s->entry[i] = reinterpret_cast<uint32_t *>(s->key[2]) + i * count;
	s->cub = memory + 3 * keys;
	s->bytes = 3 * keys + hg__aligned(s->cub_bytes);
	return HG_OK;
}

hg_status put_rows(hg_context *ctx, const struct hg__refill *r, int bits, const uint64_t *key,
                   int64_t *rowptr)
{
	find_rows<<<few_blocks(r->rows + 1), BLOCK, 0, stream_of(ctx)>>>(r->rows, r->edges, bits, key,
	                                                                 rowptr);
	return launched(ctx, "graph stream: rows");
}

} // namespace

hg_status refill_sort_scratch(hg_context *ctx, const struct hg__refill *r, size_t *bytes)
{
	struct sort_memory s;
	HG__TRY(lay_out(ctx, r, nullptr, &s));
	*bytes = s.bytes;
	return HG_OK;
}

hg_status refill_sort(hg_context *ctx, const struct hg__refill *r)
{
	const cudaStream_t stream = stream_of(ctx);
	const unsigned blocks = few_blocks(r->edges);
	struct sort_memory s;
	HG__TRY(lay_out(ctx, r, static_cast<char *>(r->scratch), &s));
	key_buffers key(s.key[0], s.key[1]);
	entry_buffers entry(s.entry[0], s.entry[1]);
	size_t bytes = s.cub_bytes;
	check_counts<<<1, 1, 0, stream>>>(*r);
	HG__TRY(launched(ctx, "graph stream: counts"));
	list_edges<<<blocks, BLOCK, 0, stream>>>(*r, s.bits, key.Current(), entry.Current());
	HG__TRY(launched(ctx, "graph stream: list"));
	HG__TRY(sort_edges(ctx, r, s, bytes, key, entry));
	HG__TRY(put_rows(ctx, r, s.bits, key.Current(), r->to.rowptr));
	key_buffers place(key.Alternate(), s.key[2]);
	put_places<<<blocks, BLOCK, 0, stream>>>(*r, s.bits, key.Current(), entry.Current(),
	                                         place.Current());
	HG__TRY(launched(ctx, "graph stream: columns"));
	bytes = s.cub_bytes;
	HG__TRY(sort_places(ctx, r, s, bytes, place));
	HG__TRY(put_rows(ctx, r, PLACE_BITS, place.Current(), r->to.rowptr_t));
	put_transpose<<<blocks, BLOCK, 0, stream>>>(*r, s.bits, key.Current(), place.Current());
	HG__TRY(launched(ctx, "graph stream: transpose"));
	put_nodes<<<few_blocks(r->rows), BLOCK, 0, stream>>>(*r);
	return launched(ctx, "graph stream: nodes");
}
