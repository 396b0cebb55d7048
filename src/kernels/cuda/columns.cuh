/* K f32 sums for each column of a matrix. The matrix is cut into blocks of rows; each block adds
 * its rows in a fixed order, and the block that finishes last adds the blocks (totals.cuh). */
#ifndef HG_KERNELS_CUDA_COLUMNS_CUH
#define HG_KERNELS_CUDA_COLUMNS_CUH

#include "kernels/cuda/totals.cuh"

/* From the values of the threads of a block to sums of its columns: first over the lanes of a warp,
 * then over the warps in order. Each step between lanes halves the number of values that a lane
 * holds, as long as it holds more than one. A pack of 8 in a warp of 32 rows takes 4 + 2 + 1 + 1 +
 * 1 exchanges, where whole packs would need 40. */

/* Adds the N values over the lanes of a warp whose numbers differ by multiples of blockDim.x, and
 * writes the N sums to `out`. step: half a warp in the first call. */
template <int N> static __device__ void add_lanes(const float (&v)[N], unsigned step, float *out)
{
	const unsigned lane = static_cast<unsigned>(thread_in_block()) % 32;
	if constexpr (N == 1) {
		unsigned twins = 0; /* lanes that end with the same sum; one of them writes it */
		float sum = v[0];
		for (; step >= blockDim.x; step /= 2) {
			sum += __shfl_xor_sync(0xffffffffu, sum, step);
			twins |= step;
		}
		if ((lane & twins) == 0)
			*out = sum;
	} else if (step < blockDim.x) {
#pragma unroll
		for (int i = 0; i < N; i++)
			out[i] = v[i];
	} else {
		const bool upper = (lane & step) != 0;
		float keep[N / 2];
#pragma unroll
		for (int i = 0; i < N / 2; i++) {
			const float gives = upper ? v[i] : v[N / 2 + i], keeps = upper ? v[N / 2 + i] : v[i];
			keep[i] = keeps + __shfl_xor_sync(0xffffffffu, gives, step);
		}
		add_lanes(keep, step / 2, out + (upper ? N / 2 : 0));
	}
}

/* The largest number of packs that the warps of a block hold side by side: 8 warps of 32, or 16 of
 * 16. */
constexpr int WARP_PACKS = BLOCK;
template <int K, int W> struct warp_columns {
	float sum[K][WARP_PACKS * W]; /* [warp][x][W] */
};
/* All threads of a block must call it. No barrier is needed between two calls. */
template <int K, int W>
static __device__ const struct warp_columns<K, W> &columns_of_warps(const float (&acc)[K][W])
{
	__shared__ struct warp_columns<K, W> part;
	const unsigned pack = static_cast<unsigned>(thread_in_block()) / 32 * blockDim.x + threadIdx.x;
	__syncthreads(); /* another thread may still be reading the result of an earlier call */
#pragma unroll
	for (int k = 0; k < K; k++)
		add_lanes(acc[k], 16, part.sum[k] + pack * W);
	__syncthreads();
	return part;
}
template <int K, int W>
static __device__ float over_warps(const struct warp_columns<K, W> &part, int k, unsigned i)
{
	const unsigned warps = blockDim.x * blockDim.y / 32;
	float sum = 0.0f;
#pragma unroll 8
	for (unsigned w = 0; w < warps; w++)
		sum += part.sum[k][w * blockDim.x * W + i];
	return sum;
}

/* Sums over the y threads of a block for a whole pack, valid where threadIdx.y == 0. */
template <int K, int W> static __device__ void block_columns(float (&acc)[K][W])
{
	const struct warp_columns<K, W> &part = columns_of_warps(acc);
	if (threadIdx.y != 0)
		return;
#pragma unroll
	for (int k = 0; k < K; k++)
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[k][i] = over_warps(part, k, threadIdx.x * W + i);
}
/* The same with one column per thread, so that later work is not repeated W times in one thread:
 * column threadIdx.y of the pack, valid where threadIdx.y < W. */
template <int K, int W>
static __device__ void block_column(const float (&acc)[K][W], float (&sum)[K])
{
	const struct warp_columns<K, W> &part = columns_of_warps(acc);
	if (threadIdx.y >= W)
		return;
#pragma unroll
	for (int k = 0; k < K; k++)
		sum[k] = over_warps(part, k, threadIdx.x * W + threadIdx.y);
}
static_assert(BLOCK / 32 >= 8, "a thread for each column of a pack");

/* A pack as loaded, through the read-only path. The compiler may then load the next rows before it
 * stores a copy of this one; with ordinary loads it must assume that the store changes them. The
 * values are widened only when they are used, so the loads in flight take half as many registers.
 */
template <typename T, int W> struct held {
	static constexpr int WORDS = static_cast<int>(W * sizeof(T) / sizeof(uint4));
	uint4 word[WORDS];

	__device__ void read(const T *p)
	{
#pragma unroll
		for (int i = 0; i < WORDS; i++)
			word[i] = __ldg(reinterpret_cast<const uint4 *>(p) + i);
	}
	__device__ void get(float (&x)[W]) const
	{
		T values[W];
		memcpy(static_cast<void *>(values), word, sizeof values);
#pragma unroll
		for (int i = 0; i < W; i++)
			x[i] = widen(values[i]);
	}
};
template <typename T> struct held<T, 1> {
	T value;

	__device__ void read(const T *p)
	{
		value = __ldg(p);
	}
	__device__ void get(float (&x)[1]) const
	{
		x[0] = widen(value);
	}
};
template <int W, typename T> static __device__ void load_fixed(const T *p, float (&x)[W])
{
	struct held<T, W> pack;
	pack.read(p);
	pack.get(x);
}

/* Rows whose loads a thread has in flight together. */
constexpr int FLIGHT = 4;

/* The largest number of blocks. Four blocks on each of 108 to 148 multiprocessors, with FLIGHT
 * packs of 16 bytes in flight per thread, are 64 kB per multiprocessor, more than bandwidth times
 * latency (4.3 TB/s * 0.7 us / 132 = 23 kB). More blocks would only give the last block more to
 * add. */
constexpr int64_t COLUMN_BLOCKS = 512;
/* With more than one part there are at most COLUMN_BLOCKS / 2 column tiles, and each has its own
 * counter. */
static_assert(COUNTERS >= COLUMN_BLOCKS / 2, "a counter for each tile");

/* A small matrix is summed by one block per column tile, of ALONE_THREADS threads, in at most
 * ALONE_ROUNDS rounds of loads. For [2708, 7], two rounds without a fold are faster than one round
 * with a fence, a counter and a second round, each of which takes about as long as a round. */
constexpr int ALONE_THREADS = 2 * BLOCK;
constexpr int ALONE_ROUNDS = 2;

/* A matrix as column tiles (blockIdx.x), each cut into `parts` blocks of `each` rows (blockIdx.y).
 * A block stores its sums in partial[part][k][column], where rows are `pitch` elements apart. */
struct column_parts {
	int64_t parts, each, pitch;
	float *partial;
	unsigned *counters;
};

/* Specialised as true for a functor that changes rows while it adds them, or that has branches
 * between its loads. Such a functor sees each row once, and does in three steps what others do in
 * `add`: f.numbers<W>(col) returns values that all rows need; f.fetch<W>(row, col, held) starts the
 * loads of a row into the functor's own `held<W>`; f.use<W>(row, col, numbers, held, acc) adds and
 * stores. So no load waits for the store of another row. */
template <typename F> constexpr bool fetches_first = false;

template <int W, int K, typename F, typename N>
static __device__ void use_rows(const F &f, const N &numbers, int64_t row, int64_t end, int64_t col,
                                float (&acc)[K][W])
{
	typename F::template held<W> held[FLIGHT];
#pragma unroll
	for (int u = 0; u < FLIGHT; u++) {
		const int64_t r = row + u * static_cast<int64_t>(blockDim.y);
		f.template fetch<W>(r < end ? r : end - 1, col, held[u]);
	}
#pragma unroll
	for (int u = 0; u < FLIGHT; u++) {
		const int64_t r = row + u * static_cast<int64_t>(blockDim.y);
		if (r < end)
			f.template use<W>(r, col, numbers, held[u], acc);
	}
}

/* Adds rows row, row + blockDim.y, ... before `end`. All FLIGHT loads start together. A position
 * past the end loads the last row instead and does not count, so that there is no branch between
 * the loads. */
template <int W, int K, typename F>
static __device__ void add_rows(const F &f, int64_t row, int64_t end, int64_t col,
                                float (&acc)[K][W])
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

/* The parts, read as rows of a matrix that is to be summed. */
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

/* Sums over rows begin .. end-1, with one column per thread, as in block_column. */
template <int W, int K, typename F>
static __device__ void sum_rows(const F &f, int64_t begin, int64_t end, int64_t col, bool live,
                                float (&sum)[K])
{
	float acc[K][W] = {};
	const int64_t first = begin + threadIdx.y, down = FLIGHT * static_cast<int64_t>(blockDim.y);
	if constexpr (fetches_first<F>) {
		const auto numbers = f.template numbers<W>(live ? col : 0);
		for (int64_t row = first; live && row < end; row += down)
			use_rows<W>(f, numbers, row, end, col, acc);
	} else {
		for (int64_t row = first; live && row < end; row += down)
			add_rows<W>(f, row, end, col, acc);
	}
	block_column(acc, sum);
}

template <int W, int K, typename F>
static __global__ void __launch_bounds__(ALONE_THREADS)
    columns_kernel(int64_t rows, int64_t cols, struct column_parts p, F f)
{
	after_previous();
	const int64_t part = blockIdx.y,
	              pack = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * W,
	              col = pack + threadIdx.y;
	const int64_t begin = part * p.each, end = begin + p.each < rows ? begin + p.each : rows;
	/* This includes padding, because the second sum_rows reads it. */
	const bool mine = threadIdx.y < W && pack < cols;
	float sum[K];
	sum_rows<W>(f, begin, end, pack, pack < cols, sum);
	if (p.parts > 1) {
		if (mine)
#pragma unroll
			for (int k = 0; k < K; k++)
				p.partial[(part * K + k) * p.pitch + col] = sum[k];
		if (!is_last(p.counters + blockIdx.x, static_cast<unsigned>(p.parts)))
			return;
		sum_rows<W>(parts_as_rows<K>{p.partial, p.pitch}, 0, p.parts, pack, pack < cols, sum);
	}
	if (mine && col < cols)
		f.finish(col, sum);
}

/* The grid of columns_kernel, or of a kernel that combines blocks in the same way. `numbers`: f32
 * values per column and part; `threads`: the largest number of threads in a block. */
struct column_layout {
	dim3 grid, block;
	struct column_parts of;
};
static inline hg_status lay_columns(hg_context *ctx, int64_t rows, int64_t cols, int width,
                                    int numbers, int threads, struct column_layout *l)
{
	l->block = tile_of(rows, cols, width, COLUMN_BLOCKS).block;
	const int64_t tiles = grid_for(cols, static_cast<int64_t>(l->block.x) * width),
	              most = tiles < COLUMN_BLOCKS ? COLUMN_BLOCKS / tiles : 1;
	const int64_t alone = threads / l->block.x,
	              wanted = grid_for(rows, static_cast<int64_t>(l->block.y) * FLIGHT);
	int64_t parts = wanted < most ? wanted : most;
	if (parts > 1 && l->block.x < 32 && rows <= alone * FLIGHT * ALONE_ROUNDS) {
		l->block.y = static_cast<unsigned>(alone);
		parts = 1;
	}
	l->of.each = rows > 0 ? (rows + parts - 1) / parts : 1;
	l->of.parts = grid_for(rows, l->of.each);
	l->of.pitch = hg__leading(cols);
	l->of.counters = counters_of(ctx);
	l->grid = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(l->of.parts));
	void *memory;
	HG__TRY(hg__workspace(
	    ctx, static_cast<size_t>(l->of.parts * numbers * l->of.pitch) * sizeof(float), &memory));
	l->of.partial = static_cast<float *>(memory);
	return HG_OK;
}

/* Sums columns with a functor: f.add<W>(row, col, acc[K][W]) adds a pack of a row, and may be
 * called twice for the same row; f.finish(col, sum[K]) receives the sums of one column, also if
 * there are no rows. Every thread adds about rows / (parts * y) packs, and at least FLIGHT if the
 * matrix has enough rows. */
template <int K, typename F>
static hg_status columns(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols,
                         bool by_eight, const F &f)
{
	if (cols == 0)
		return HG_OK;
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		struct column_layout l;
		HG__TRY(lay_columns(ctx, rows, cols, W, K, ALONE_THREADS, &l));
		return launch(ctx, kernel, columns_kernel<W, K, F>, l.grid, l.block, rows, cols, l.of, f);
	});
}

/* ---- element-wise kernels with per-column values: a thread loads the values of its columns once,
 * for FLIGHT rows whose loads start together ---- */

template <int W, typename F>
static __global__ void __launch_bounds__(BLOCK) by_column_kernel(int64_t rows, int64_t cols, F f)
{
	after_previous();
	const int64_t col = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * W;
	const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y * FLIGHT + threadIdx.y;
	if (col >= cols)
		return;
	typename F::template pack<W> v[FLIGHT];
#pragma unroll
	for (int u = 0; u < FLIGHT; u++) {
		const int64_t row = first + u * static_cast<int64_t>(blockDim.y);
		f.read(row < rows ? row : rows - 1, col, v[u]);
	}
	const auto numbers = f.template numbers<W>(col);
#pragma unroll
	for (int u = 0; u < FLIGHT; u++) {
		const int64_t row = first + u * static_cast<int64_t>(blockDim.y);
		if (row < rows)
			f.write(row, col, numbers, v[u]);
	}
}
/* Calls f.read(row, col, pack<W> &), f.numbers<W>(col) and then f.write(row, col, numbers, pack)
 * for every pack of a [rows, cols] matrix. read may be called for a row that is not written. The
 * rows are along x of the grid, which may have 2^31 blocks. */
template <typename F>
static hg_status each_by_column(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols,
                                bool by_eight, const F &f)
{
	if (rows == 0 || cols == 0)
		return HG_OK;
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const dim3 block = tile_of(rows, cols, W, INT32_MAX).block;
		const dim3 grid(grid_for(rows, static_cast<int64_t>(block.y) * FLIGHT),
		                grid_for(cols, static_cast<int64_t>(block.x) * W));
		return launch(ctx, kernel, by_column_kernel<W, F>, grid, block, rows, cols, f);
	});
}

#endif
