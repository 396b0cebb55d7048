/* Building graphs: COO to CSR and transposition, with little memory beside the result. Edges (dst,
 * src) are processed in chunks, in two passes, and then sorted:
 *
 *     count    d(i) = edges of row i;  rowptr = running sum of d
 *     deal     each edge takes the next free position of its row: col = src, and order = its
 *              position in the input
 *     sort     slices of whole rows, by (row, col); if order is needed, first by order, so that
 *              equal edges keep the order of the input
 *
 * Dealing takes positions with atomics, so the state before the sort depends on timing. The state
 * after it does not: equal entries of col are interchangeable, and order has no equal entries.
 *
 * Positions P have 64 bits for the order of a list, which is returned to the caller, and 32 bits
 * for a transpose.
 *
 * Peak memory beside the result, for m edges with chunks and slices of k: 8 bytes a row, and 8 k to
 * stream edges from host memory; then 16 k (24 or 32 with order) for a slice and the scratch of
 * CUB. A row of more than k edges is a slice by itself, and k its length. A sort of all edges at
 * once would take 16 (24) bytes an edge: 1.8 GB for 115 M. */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "kernels/cuda/build.cuh"
#include "kernels/cuda/search.cuh"

/* Edges of a chunk, and edges sorted at once. At most 2^22: launches and the fixed cost of a copy
 * (about 10 us) are small beside its 1.6 ms at 10 GB/s, and a sort fills the device. For smaller
 * lists it is a sixteenth of the list, so that scratch is small beside them too: 1 byte an edge,
 * against 4 for each column id. At least 2^18: 4 MiB. */
static int64_t chunk_of(int64_t m)
{
	const int64_t most = int64_t(1) << 22, least = int64_t(1) << 18,
	              part = m / 16 < most ? m / 16 : most;
	return m < least ? m : part < least ? least : part;
}

/* the type that 64-bit atomics need; row pointers are never negative */
using count_t = unsigned long long;

/* m edges and the number of rows of the result. For COO, two arrays on the device or, if streamed,
 * in host memory. For a CSR to be transposed, entry e = (i, j) is the edge (j, i). */
struct edge_list {
	int64_t rows, cols, m;
	const int32_t *dst, *src;
	bool streamed;
	const int64_t *rowptr; /* that of the CSR [cols + 1], from which src follows; else NULL */
};

/* ---- kernels ---- */

/* next[row[e]]++. */
static __global__ void count_rows(int64_t m, const int32_t *row, count_t *next)
{
	for (int64_t e = global_thread(); e < m; e += global_threads())
		atomicAdd(next + row[e], count_t(1));
}

/* row[e] = the i with rowptr[i] <= begin + e < rowptr[i+1]. */
static __global__ void expand_rows(int64_t rows, int64_t begin, int64_t m, const int64_t *rowptr,
                                   int32_t *row)
{
	for (int64_t e = global_thread(); e < m; e += global_threads())
		row[e] = static_cast<int32_t>(row_of(rowptr, 0, rows, begin + e));
}

template <typename P>
static __global__ void deal(int64_t begin, int64_t m, const int32_t *dst, const int32_t *src,
                            count_t *next, int32_t *col, P *order)
{
	for (int64_t e = global_thread(); e < m; e += global_threads()) {
		const count_t at = atomicAdd(next + dst[e], count_t(1));
		col[at] = src[e];
		if (order)
			order[at] = static_cast<P>(begin + e);
	}
}

/* Rows first .. end-1 and their edges begin .. begin+m-1. The key of (i, j) is (i - first)
 * 2^col_bits + j, which is below 2^62 because ids are int32. */
struct slice {
	int64_t first, end, begin, m;
	int col_bits, key_bits;
};

static __global__ void make_keys(struct slice s, const int64_t *rowptr, const int32_t *col,
                                 uint64_t *key)
{
	for (int64_t e = global_thread(); e < s.m; e += global_threads()) {
		const int64_t row = row_of(rowptr, s.first, s.end, s.begin + e) - s.first;
		key[e] = static_cast<uint64_t>(row) << s.col_bits | static_cast<uint64_t>(col[s.begin + e]);
	}
}

static __global__ void split_keys(struct slice s, const uint64_t *key, int32_t *col)
{
	const uint64_t mask = (uint64_t(1) << s.col_bits) - 1;
	for (int64_t e = global_thread(); e < s.m; e += global_threads())
		col[s.begin + e] = static_cast<int32_t>(key[e] & mask);
}

/* `in` holds elements begin .. begin+count-1 of an array; order [m]. */
static __global__ void gather_weights(int64_t m, int64_t begin, int64_t count, const float *in,
                                      const int64_t *order, float *out)
{
	for (int64_t e = global_thread(); e < m; e += global_threads()) {
		const int64_t from = order[e] - begin;
		if (from >= 0 && from < count)
			out[e] = in[from];
	}
}

/* ---- count and deal ---- */

static size_t bytes_of(int64_t count, size_t size)
{
	return hg__aligned(static_cast<size_t>(count) * size);
}

static bool on_device(const void *memory)
{
	cudaPointerAttributes attributes;
	if (cudaPointerGetAttributes(&attributes, memory) == cudaSuccess)
		return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
	(void)cudaGetLastError();
	return false;
}

/* Edges begin .. begin+m-1 as arrays on the device. room: memory for two chunks, used only if the
 * arrays do not exist on the device. */
struct chunk {
	int64_t begin, m;
	const int32_t *dst, *src;
};

static hg_status load_chunk(hg_context *ctx, const edge_list *in, int64_t begin, int32_t *room,
                            bool want_src, struct chunk *c)
{
	const cudaStream_t stream = stream_of(ctx);
	const int64_t length = chunk_of(in->m), left = in->m - begin, m = left < length ? left : length;
	const size_t bytes = static_cast<size_t>(m) * sizeof(int32_t);
	int32_t *const second = room + length;
	*c = {begin, m, in->streamed ? room : in->dst + begin,
	      in->streamed || in->rowptr ? second : in->src + begin};
	if (in->streamed) {
		HG__CUDA(ctx, "graph: edges to the device",
		         cudaMemcpyAsync(room, in->dst + begin, bytes, cudaMemcpyHostToDevice, stream));
		if (want_src)
			HG__CUDA(
			    ctx, "graph: edges to the device",
			    cudaMemcpyAsync(second, in->src + begin, bytes, cudaMemcpyHostToDevice, stream));
	} else if (in->rowptr && want_src) {
		expand_rows<<<grid_for(m, BLOCK), BLOCK, 0, stream>>>(in->cols, begin, m, in->rowptr,
		                                                      second);
		return launched(ctx, "graph: row ids");
	}
	return HG_OK;
}

/* Scratch: the next free position of each row, room for a chunk, and CUB's own. */
struct deal_scratch {
	count_t *next;
	int32_t *room;
	void *cub;
	size_t cub_bytes, bytes;
};

static hg_status deal_lay_out(hg_context *ctx, const edge_list *in, char *memory,
                              struct deal_scratch *s)
{
	const size_t next = bytes_of(in->rows + 1, sizeof(count_t)),
	             room = in->streamed || in->rowptr ? bytes_of(2 * chunk_of(in->m), sizeof(int32_t))
	                                               : 0;
	s->cub_bytes = 0;
	int64_t *sums = nullptr;
	HG__CUDA(ctx, "graph: row pointers",
	         cub::DeviceScan::InclusiveSum(nullptr, s->cub_bytes, sums, sums, in->rows + 1,
	                                       stream_of(ctx)));
	s->next = reinterpret_cast<count_t *>(memory);
	s->room = reinterpret_cast<int32_t *>(memory + next);
	s->cub = memory + next + room;
	s->bytes = next + room + hg__aligned(s->cub_bytes);
	return HG_OK;
}

/* rowptr [rows + 1]. The counts are stored one position later, so that their running sum is the row
 * pointers. */
static hg_status find_rows(hg_context *ctx, const edge_list *in, struct deal_scratch s,
                           int64_t *rowptr)
{
	const cudaStream_t stream = stream_of(ctx);
	struct chunk c;
	HG__CUDA(
	    ctx, "graph: row pointers",
	    cudaMemsetAsync(rowptr, 0, static_cast<size_t>(in->rows + 1) * sizeof *rowptr, stream));
	for (int64_t begin = 0; begin < in->m; begin += c.m) {
		HG__TRY(load_chunk(ctx, in, begin, s.room, false, &c));
		count_rows<<<grid_for(c.m, BLOCK), BLOCK, 0, stream>>>(
		    c.m, c.dst, reinterpret_cast<count_t *>(rowptr + 1));
		HG__TRY(launched(ctx, "graph: degrees"));
	}
	return cuda_status(
	    ctx,
	    cub::DeviceScan::InclusiveSum(s.cub, s.cub_bytes, rowptr, rowptr, in->rows + 1, stream),
	    "graph: row pointers");
}

template <typename P>
static hg_status deal_edges(hg_context *ctx, const edge_list *in, struct deal_scratch s,
                            int64_t *rowptr, int32_t *col, P *order)
{
	const cudaStream_t stream = stream_of(ctx);
	struct chunk c;
	HG__TRY(find_rows(ctx, in, s, rowptr));
	HG__CUDA(ctx, "graph: edges",
	         cudaMemcpyAsync(s.next, rowptr, static_cast<size_t>(in->rows) * sizeof *rowptr,
	                         cudaMemcpyDeviceToDevice, stream));
	for (int64_t begin = 0; begin < in->m && col; begin += c.m) {
		HG__TRY(load_chunk(ctx, in, begin, s.room, true, &c));
		deal<<<grid_for(c.m, BLOCK), BLOCK, 0, stream>>>(c.begin, c.m, c.dst, c.src, s.next, col,
		                                                 order);
		HG__TRY(launched(ctx, "graph: edges"));
	}
	return HG_OK;
}

/* col NULL: computes the row pointers alone. */
template <typename P>
static hg_status place_edges(hg_context *ctx, const edge_list *in, int64_t *rowptr, int32_t *col,
                             P *order)
{
	struct deal_scratch s;
	void *memory = nullptr;
	HG__TRY(deal_lay_out(ctx, in, nullptr, &s));
	const size_t bytes = s.bytes;
	HG__TRY(hg__device_alloc(ctx, bytes, "scratch to place edges", &memory));
	hg_status status = deal_lay_out(ctx, in, static_cast<char *>(memory), &s);
	if (status >= 0)
		status = deal_edges(ctx, in, s, rowptr, col, order);
	hg__device_free(ctx, memory, bytes);
	return status;
}

/* ---- sort ---- */

/* The slice that begins with row `first`: at least one row, and further rows while they have at
 * most a chunk of edges together. */
static struct slice slice_at(const edge_list *in, const int64_t *rowptr, int64_t first)
{
	const int64_t length = chunk_of(in->m);
	int64_t end = first + 1;
	while (end < in->rows && rowptr[end + 1] - rowptr[first] <= length)
		end++;
	const int col_bits = bits_of(static_cast<uint64_t>(in->cols));
	return {first,         end,
	        rowptr[first], rowptr[end] - rowptr[first],
	        col_bits,      col_bits + bits_of(static_cast<uint64_t>(end - first - 1))};
}

/* Two buffers of keys and, with order, two of positions. */
template <typename P> struct sort_scratch {
	uint64_t *key[2];
	P *place[2];
	void *cub;
	size_t cub_bytes, bytes;
};

template <typename P>
static hg_status sort_lay_out(hg_context *ctx, int64_t longest, bool ordered, char *memory,
                              struct sort_scratch<P> *s)
{
	const size_t keys = bytes_of(longest, sizeof(uint64_t)),
	             places = ordered ? bytes_of(longest, sizeof(P)) : 0;
	size_t by_key = 0, by_place = 0;
	cub::DoubleBuffer<uint64_t> a;
	cub::DoubleBuffer<P> b;
	if (ordered) {
		HG__CUDA(ctx, "graph: sort",
		         cub::DeviceRadixSort::SortPairs(nullptr, by_place, b, a, longest, 0,
		                                         8 * static_cast<int>(sizeof(P)), stream_of(ctx)));
		HG__CUDA(
		    ctx, "graph: sort",
		    cub::DeviceRadixSort::SortPairs(nullptr, by_key, a, b, longest, 0, 64, stream_of(ctx)));
	} else {
		HG__CUDA(
		    ctx, "graph: sort",
		    cub::DeviceRadixSort::SortKeys(nullptr, by_key, a, longest, 0, 64, stream_of(ctx)));
	}
	for (size_t i = 0; i < 2; i++) {
		s->key[i] = reinterpret_cast<uint64_t *>(memory + i * keys);
		s->place[i] = reinterpret_cast<P *>(memory + 2 * keys + i * places);
	}
	s->cub = memory + 2 * (keys + places);
	s->cub_bytes = by_key > by_place ? by_key : by_place;
	s->bytes = 2 * (keys + places) + hg__aligned(s->cub_bytes);
	return HG_OK;
}

/* Stable sorts, the less significant key first: by position, then by (row, col). */
template <typename P>
static hg_status sort_pairs(hg_context *ctx, struct slice s, struct sort_scratch<P> t,
                            int place_bits, P *order, const uint64_t **sorted)
{
	const cudaStream_t stream = stream_of(ctx);
	const size_t bytes = static_cast<size_t>(s.m) * sizeof *order;
	cub::DoubleBuffer<uint64_t> key(t.key[0], t.key[1]);
	cub::DoubleBuffer<P> place(t.place[0], t.place[1]);
	HG__CUDA(ctx, "graph: sort",
	         cudaMemcpyAsync(t.place[0], order + s.begin, bytes, cudaMemcpyDeviceToDevice, stream));
	HG__CUDA(ctx, "graph: sort",
	         cub::DeviceRadixSort::SortPairs(t.cub, t.cub_bytes, place, key, s.m, 0, place_bits,
	                                         stream));
	HG__CUDA(ctx, "graph: sort",
	         cub::DeviceRadixSort::SortPairs(t.cub, t.cub_bytes, key, place, s.m, 0, s.key_bits,
	                                         stream));
	HG__CUDA(
	    ctx, "graph: sort",
	    cudaMemcpyAsync(order + s.begin, place.Current(), bytes, cudaMemcpyDeviceToDevice, stream));
	*sorted = key.Current();
	return HG_OK;
}

template <typename P>
static hg_status sort_slice(hg_context *ctx, struct slice s, struct sort_scratch<P> t,
                            int place_bits, const int64_t *rowptr, int32_t *col, P *order)
{
	const cudaStream_t stream = stream_of(ctx);
	const unsigned grid = grid_for(s.m, BLOCK);
	const uint64_t *sorted = nullptr;
	make_keys<<<grid, BLOCK, 0, stream>>>(s, rowptr, col, t.key[0]);
	HG__TRY(launched(ctx, "graph: keys"));
	if (order) {
		HG__TRY(sort_pairs(ctx, s, t, place_bits, order, &sorted));
	} else {
		cub::DoubleBuffer<uint64_t> key(t.key[0], t.key[1]);
		HG__CUDA(
		    ctx, "graph: sort",
		    cub::DeviceRadixSort::SortKeys(t.cub, t.cub_bytes, key, s.m, 0, s.key_bits, stream));
		sorted = key.Current();
	}
	split_keys<<<grid, BLOCK, 0, stream>>>(s, sorted, col);
	return launched(ctx, "graph: columns");
}

/* host_rowptr: a copy of the row pointers in host memory, where slices are cut. */
template <typename P>
static hg_status sort_rows(hg_context *ctx, const edge_list *in, const int64_t *host_rowptr,
                           const int64_t *rowptr, int32_t *col, P *order)
{
	int64_t longest = 0;
	for (int64_t row = 0; row < in->rows;) {
		const struct slice s = slice_at(in, host_rowptr, row);
		longest = s.m > longest ? s.m : longest;
		row = s.end;
	}
	struct sort_scratch<P> t;
	void *memory = nullptr;
	HG__TRY(sort_lay_out(ctx, longest, order != nullptr, nullptr, &t));
	const size_t bytes = t.bytes;
	HG__TRY(hg__device_alloc(ctx, bytes, "scratch to sort edges", &memory));
	hg_status status =
	    sort_lay_out(ctx, longest, order != nullptr, static_cast<char *>(memory), &t);
	for (int64_t row = 0; row < in->rows && status >= 0;) {
		const struct slice s = slice_at(in, host_rowptr, row);
		if (s.m > 0)
			status =
			    sort_slice(ctx, s, t, bits_of(static_cast<uint64_t>(in->m)), rowptr, col, order);
		row = s.end;
	}
	hg__device_free(ctx, memory, bytes);
	return status;
}

template <typename P>
static hg_status build_csr(hg_context *ctx, const edge_list *in, int64_t *rowptr, int32_t *col,
                           P *order)
{
	const size_t bytes = static_cast<size_t>(in->rows + 1) * sizeof *rowptr;
	void *memory = nullptr;
	HG__TRY(place_edges(ctx, in, rowptr, col, order));
	if (in->m == 0)
		return HG_OK;
	HG__TRY(hg__host_alloc(ctx, static_cast<size_t>(in->rows + 1), sizeof *rowptr,
	                       "graph: host rowptr", &memory));
	hg_status status = ctx->backend->copy_out(ctx, memory, rowptr, bytes);
	if (status >= 0)
		status = sort_rows(ctx, in, static_cast<const int64_t *>(memory), rowptr, col, order);
	hg__host_free(ctx, memory, bytes);
	return status;
}

/* ---- the backend's functions ---- */

hg_status hg__cuda_csr_from_coo(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
                                const int32_t *dst, const int32_t *src, int64_t *rowptr,
                                int32_t *col, int64_t *order)
{
	const edge_list in = {rows,   cols, m, dst, src, m > 0 && !(on_device(dst) && on_device(src)),
	                      nullptr};
	return build_csr(ctx, &in, rowptr, col,
	                 reinterpret_cast<uint64_t *>(order)); /* never negative */
}

static edge_list transposed(const struct hg__csr *csr)
{
	return {csr->cols, csr->rows, csr->m, csr->col, nullptr, false, csr->rowptr};
}

hg_status hg__cuda_csr_transpose(hg_context *ctx, const struct hg__csr *csr, int64_t *rowptr,
                                 int32_t *col, uint32_t *edge)
{
	const edge_list in = transposed(csr);
	return build_csr(ctx, &in, rowptr, col, edge);
}

hg_status hg__cuda_column_ptr(hg_context *ctx, const struct hg__csr *csr, int64_t *ptr)
{
	const edge_list in = transposed(csr);
	return place_edges<uint32_t>(ctx, &in, ptr, nullptr, nullptr);
}

/* Gathers from host memory, one chunk at a time. Each chunk takes a pass over all positions; about
 * 30 passes of 8 bytes an edge cost less than the copy. */
static hg_status gather_chunks(hg_context *ctx, int64_t m, const float *in, float *room,
                               const int64_t *index, float *out)
{
	const int64_t length = chunk_of(m);
	for (int64_t begin = 0; begin < m; begin += length) {
		const int64_t count = m - begin < length ? m - begin : length;
		HG__CUDA(ctx, "graph: weights to the device",
		         cudaMemcpyAsync(room, in + begin, static_cast<size_t>(count) * sizeof *in,
		                         cudaMemcpyHostToDevice, stream_of(ctx)));
		gather_weights<<<grid_for(m, BLOCK), BLOCK, 0, stream_of(ctx)>>>(m, begin, count, room,
		                                                                 index, out);
		HG__TRY(launched(ctx, "graph: gather"));
	}
	return HG_OK;
}

hg_status hg__cuda_gather_f32(hg_context *ctx, int64_t m, const float *in, const int64_t *index,
                              float *out)
{
	if (m == 0)
		return HG_OK;
	if (on_device(in)) {
		gather_weights<<<grid_for(m, BLOCK), BLOCK, 0, stream_of(ctx)>>>(m, 0, m, in, index, out);
		return launched(ctx, "graph: gather");
	}
	const size_t bytes = static_cast<size_t>(chunk_of(m)) * sizeof *in;
	void *room = nullptr;
	HG__TRY(hg__device_alloc(ctx, bytes, "room for weights", &room));
	const hg_status status = gather_chunks(ctx, m, in, static_cast<float *>(room), index, out);
	hg__device_free(ctx, room, bytes);
	return status;
}
