#ifndef HG_KERNELS_CUDA_COLUMNS_CUH
#define HG_KERNELS_CUDA_COLUMNS_CUH

/* K sums for each column of a matrix, f32: blocks of rows, each summed in a fixed order, then the blocks, by the last of them to be ready (totals.cuh). */

#include "kernels/cuda/totals.cuh"

/* Add up acc over the y threads of a block, in a tree; the sums are valid where threadIdx.y == 0. May be called again at once. */
template <int K, int W> static __device__ void block_columns(float (&acc)[K][W])
{
	__shared__ float part[K * W][BLOCK];
	const int t = thread_in_block();
	__syncthreads(); /* an earlier call may still be reading */
#pragma unroll
	for (int k = 0; k < K; k++)
#pragma unroll
		for (int i = 0; i < W; i++)
			part[k * W + i][t] = acc[k][i];
	for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.y < half)
#pragma unroll
			for (int j = 0; j < K * W; j++)
				part[j][t] += part[j][t + half * blockDim.x];
	}
	/* A thread of row 0 reads what it wrote last itself. */
#pragma unroll
	for (int k = 0; k < K; k++)
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[k][i] = part[k * W + i][t];
}

/* Through the read-only path: the compiler may then read the next rows before it has stored the copy of this one, which it must not where a store could
 * change what is read. */
template <int W, typename T> static __device__ void load_fixed(const T *p, float (&x)[W])
{
	if constexpr (W == 1) {
		x[0] = widen(__ldg(p));
	} else {
		constexpr int WORDS = static_cast<int>(W * sizeof(T) / sizeof(uint4));
		uint4 words[WORDS];
		T values[W];
#pragma unroll
		for (int i = 0; i < WORDS; i++)
			words[i] = __ldg(reinterpret_cast<const uint4 *>(p) + i);
		memcpy(static_cast<void *>(values), words, sizeof values);
#pragma unroll
		for (int i = 0; i < W; i++)
			x[i] = widen(values[i]);
	}
}

/* Rows that a thread has in flight at once. */
constexpr int FLIGHT = 4;

/* Blocks in all, at most. Four for each of 108 to 148 multiprocessors, each thread with FLIGHT packs of 16 bytes on their way, are 64 kB for every
 * multiprocessor, more than bandwidth times latency (4.3 TB/s * 0.7 us / 132 = 23 kB); more blocks would only leave more for the last one to add up. */
constexpr int64_t COLUMN_BLOCKS = 512;
/* With more than one part there are at most COLUMN_BLOCKS / 2 tiles, each of which has its own counter. */
static_assert(COUNTERS >= COLUMN_BLOCKS / 2, "a counter for each tile");

/* A matrix as `tiles` stripes of columns, each cut into `parts` blocks of rows. Where a block puts its sums: partial[part][k][column], columns `pitch` wide. */
struct column_parts {
	int64_t tiles, parts, pitch;
	float *partial;
	unsigned *counters;
};

/* Rows row, row + blockDim.y, ... as far as they are before `end`. All FLIGHT loads start together: what is past the end loads the last row once more, so that
 * no branch stands between them, and does not count. */
template <int W, int K, typename F> static __device__ void add_rows(const F &f, int64_t row, int64_t end, int64_t col, float (&acc)[K][W])
{
#pragma unroll
	for (int u = 0; u < FLIGHT; u++) {
		const int64_t r = row + u * static_cast<int64_t>(blockDim.y);
		float one[K][W] = {};
		f.template add<W>(r < end ? r : end - 1, col, one);
#pragma unroll
		for (int k = 0; k < K; k++)
#pragma unroll
			for (int i = 0; i < W; i++)
				acc[k][i] += r < end ? one[k][i] : 0.0f;
	}
}

/* The parts as rows to be added. */
template <int K> struct parts_as_rows {
	const float *partial;
	int64_t pitch;

	template <int W> __device__ void add(int64_t part, int64_t col, float (&acc)[K][W]) const
	{
#pragma unroll
		for (int k = 0; k < K; k++) {
			float v[W];
			load<W>(partial + (part * K + k) * pitch + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				acc[k][i] += v[i];
		}
	}
};

/* Sums over rows begin .. end-1 for the columns of this block, valid where threadIdx.y == 0. */
template <int W, int K, typename F> static __device__ void sum_rows(const F &f, int64_t begin, int64_t end, int64_t col, bool live, float (&acc)[K][W])
{
	memset(static_cast<void *>(acc), 0, sizeof acc);
	for (int64_t row = begin + threadIdx.y; live && row < end; row += FLIGHT * static_cast<int64_t>(blockDim.y))
		add_rows<W>(f, row, end, col, acc);
	block_columns(acc);
}

template <int W, int K, typename F> static __global__ void __launch_bounds__(BLOCK) columns_kernel(int64_t rows, int64_t cols, struct column_parts p, F f)
{
	const int64_t part = blockIdx.x / p.tiles, tile = blockIdx.x % p.tiles;
	const int64_t col = (tile * blockDim.x + threadIdx.x) * W;
	const int64_t begin = rows * part / p.parts, end = rows * (part + 1) / p.parts;
	float acc[K][W];
	sum_rows<W>(f, begin, end, col, col < cols, acc);
	if (p.parts > 1) {
		if (threadIdx.y == 0 && col < cols)
#pragma unroll
			for (int k = 0; k < K; k++)
				store<W>(p.partial + (part * K + k) * p.pitch + col, acc[k]);
		if (!is_last(p.counters + tile, static_cast<unsigned>(p.parts)))
			return;
		sum_rows<W>(parts_as_rows<K>{p.partial, p.pitch}, 0, p.parts, col, col < cols, acc);
	}
	if (threadIdx.y != 0)
		return;
#pragma unroll
	for (int i = 0; i < W; i++) {
		float sum[K];
#pragma unroll
		for (int k = 0; k < K; k++)
			sum[k] = acc[k][i];
		if (col + i < cols)
			f.finish(col + i, sum);
	}
}

/* f.add<W>(row, col, acc[K][W]) adds a pack of a row, and may be called twice for the same one; f.finish(col, sum[K]) receives the sums of one column, also
 * when there are no rows. Every thread adds about rows / (parts * y) packs, at least the FLIGHT that it has on their way at once where the matrix has them. */
template <int K, typename F> static hg_status columns(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols, bool by_eight, const F &f)
{
	if (cols == 0)
		return HG_OK;
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const dim3 block = tile_of(rows, cols, W, COLUMN_BLOCKS).block;
		struct column_parts p;
		p.tiles = grid_for(cols, static_cast<int64_t>(block.x) * W);
		p.pitch = hg__leading(cols);
		const int64_t most = p.tiles < COLUMN_BLOCKS ? COLUMN_BLOCKS / p.tiles : 1, wanted = grid_for(rows, static_cast<int64_t>(block.y) * FLIGHT);
		p.parts = wanted < most ? wanted : most;
		void *memory;
		HG__TRY(hg__workspace(ctx, static_cast<size_t>(p.parts * K * p.pitch) * sizeof(float), &memory));
		p.partial = static_cast<float *>(memory);
		p.counters = counters_of(ctx);
		columns_kernel<W, K><<<static_cast<unsigned>(p.tiles * p.parts), block, 0, stream_of(ctx)>>>(rows, cols, p, f);
		return launched(ctx, kernel);
	});
}

#endif
