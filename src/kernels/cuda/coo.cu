#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/launch.cuh"

/* Building graphs: COO to CSR and transposition, both as one stable radix sort of 64-bit keys dst * cols + src (below 2^62, since ids are int32). */

static __global__ void make_keys(int64_t m, int64_t cols, const int32_t *dst, const int32_t *src, uint64_t *key, int64_t *place)
{
	for (int64_t e = global_thread(); e < m; e += global_threads()) {
		key[e] = static_cast<uint64_t>(dst[e]) * static_cast<uint64_t>(cols) + static_cast<uint64_t>(src[e]);
		place[e] = e;
	}
}

static __global__ void split_keys(int64_t m, int64_t cols, const uint64_t *key, int32_t *col)
{
	for (int64_t e = global_thread(); e < m; e += global_threads())
		col[e] = static_cast<int32_t>(key[e] % static_cast<uint64_t>(cols));
}

/* rowptr[i] = number of keys below i * cols. */
static __global__ void find_rows(int64_t rows, int64_t cols, int64_t m, const uint64_t *key, int64_t *rowptr)
{
	for (int64_t i = global_thread(); i <= rows; i += global_threads()) {
		const uint64_t bound = static_cast<uint64_t>(i) * static_cast<uint64_t>(cols);
		int64_t low = 0, high = m;
		while (low < high) {
			const int64_t middle = low + (high - low) / 2;
			if (key[middle] < bound)
				low = middle + 1;
			else
				high = middle;
		}
		rowptr[i] = low;
	}
}

/* row[e] = the i with rowptr[i] <= e < rowptr[i+1]. */
static __global__ void expand_rows(int64_t rows, int64_t m, const int64_t *rowptr, int32_t *row)
{
	for (int64_t e = global_thread(); e < m; e += global_threads()) {
		int64_t low = 0, high = rows; /* rowptr[low] <= e < rowptr[high] */
		while (high - low > 1) {
			const int64_t middle = low + (high - low) / 2;
			if (rowptr[middle] <= e)
				low = middle;
			else
				high = middle;
		}
		row[e] = static_cast<int32_t>(low);
	}
}

static __global__ void gather(int64_t m, const float *in, const int64_t *index, float *out)
{
	for (int64_t e = global_thread(); e < m; e += global_threads())
		out[e] = in[index[e]];
}

static size_t padded(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

/* Scratch of one sort: the keys twice, the places once more (the other copy is the caller's `order`), and what CUB asks for. */
struct sort_scratch {
	uint64_t *key[2];
	int64_t *place;
	void *cub;
	size_t cub_bytes, bytes;
};

static struct sort_scratch lay_out(char *memory, int64_t m, size_t cub_bytes)
{
	const size_t column = padded(static_cast<size_t>(m) * sizeof(int64_t));
	struct sort_scratch s;
	s.key[0] = reinterpret_cast<uint64_t *>(memory);
	s.key[1] = reinterpret_cast<uint64_t *>(memory + column);
	s.place = reinterpret_cast<int64_t *>(memory + 2 * column);
	s.cub = memory + 3 * column;
	s.cub_bytes = cub_bytes;
	s.bytes = 3 * column + padded(cub_bytes);
	return s;
}

/* Bits that a radix sort of numbers up to `largest` has to look at; at least one. */
static int bits_of(uint64_t largest)
{
	int bits = 1;
	while (largest >>= 1)
		bits++;
	return bits;
}

/* m > 0: the part of csr_from_coo that needs scratch. */
static hg_status sort_edges(hg_context *ctx, struct sort_scratch s, int64_t rows, int64_t cols, int64_t m, const int32_t *dst, const int32_t *src,
                            int64_t *rowptr, int32_t *col, int64_t *order)
{
	const unsigned grid = grid_for(m, BLOCK);
	const cudaStream_t stream = stream_of(ctx);
	make_keys<<<grid, BLOCK, 0, stream>>>(m, cols, dst, src, s.key[0], order);
	HG__TRY(launched(ctx, "graph: keys"));
	cub::DoubleBuffer<uint64_t> keys(s.key[0], s.key[1]);
	cub::DoubleBuffer<int64_t> places(order, s.place);
	const int end_bit = bits_of(static_cast<uint64_t>(rows) * static_cast<uint64_t>(cols) - 1);
	HG__CUDA(ctx, "graph: sort", cub::DeviceRadixSort::SortPairs(s.cub, s.cub_bytes, keys, places, m, 0, end_bit, stream));
	if (places.Current() != order)
		HG__CUDA(ctx, "graph: sort", cudaMemcpyAsync(order, places.Current(), static_cast<size_t>(m) * sizeof *order, cudaMemcpyDeviceToDevice, stream));
	split_keys<<<grid, BLOCK, 0, stream>>>(m, cols, keys.Current(), col);
	HG__TRY(launched(ctx, "graph: columns"));
	find_rows<<<grid_for(rows + 1, BLOCK), BLOCK, 0, stream>>>(rows, cols, m, keys.Current(), rowptr);
	HG__TRY(launched(ctx, "graph: row pointers"));
	HG__CUDA(ctx, "graph: sort", cudaStreamSynchronize(stream)); /* the scratch goes back to an allocator that may not know the stream */
	return HG_OK;
}

hg_status hg__cuda_csr_from_coo(hg_context *ctx, int64_t rows, int64_t cols, int64_t m, const int32_t *dst, const int32_t *src, int64_t *rowptr, int32_t *col,
                                int64_t *order)
{
	if (m == 0)
		return cuda_status(ctx, cudaMemsetAsync(rowptr, 0, static_cast<size_t>(rows + 1) * sizeof *rowptr, stream_of(ctx)), "graph: row pointers");
	size_t cub_bytes = 0;
	cub::DoubleBuffer<uint64_t> keys;
	cub::DoubleBuffer<int64_t> places;
	HG__CUDA(ctx, "graph: sort", cub::DeviceRadixSort::SortPairs(nullptr, cub_bytes, keys, places, m, 0, 64, stream_of(ctx)));
	const size_t bytes = lay_out(nullptr, m, cub_bytes).bytes;
	void *memory = nullptr;
	HG__TRY(hg__device_alloc(ctx, bytes, "scratch to sort edges", &memory));
	const hg_status status = sort_edges(ctx, lay_out(static_cast<char *>(memory), m, cub_bytes), rows, cols, m, dst, src, rowptr, col, order);
	hg__device_free(ctx, memory, bytes);
	return status;
}

/* Entry e = (i, j) becomes the edge (j, i): sorted by (j, i), its place in the input is its CSR position. */
hg_status hg__cuda_csr_transpose(hg_context *ctx, const struct hg__csr *csr, int64_t *rowptr, int32_t *col, int64_t *edge)
{
	const size_t bytes = static_cast<size_t>(csr->m) * sizeof(int32_t);
	void *memory = nullptr;
	HG__TRY(hg__device_alloc(ctx, bytes, "row ids of edges", &memory));
	int32_t *row = static_cast<int32_t *>(memory);
	expand_rows<<<grid_for(csr->m, BLOCK), BLOCK, 0, stream_of(ctx)>>>(csr->rows, csr->m, csr->rowptr, row);
	hg_status status = launched(ctx, "graph: row ids");
	if (status >= 0)
		status = hg__cuda_csr_from_coo(ctx, csr->cols, csr->rows, csr->m, csr->col, row, rowptr, col, edge);
	hg__device_free(ctx, memory, bytes);
	return status;
}

hg_status hg__cuda_gather_f32(hg_context *ctx, int64_t m, const float *in, const int64_t *index, float *out)
{
	gather<<<grid_for(m, BLOCK), BLOCK, 0, stream_of(ctx)>>>(m, in, index, out);
	return launched(ctx, "graph: gather");
}
