/* Batch normalisation (batch_norm.cu) of a few thousand rows. A column tile, W columns of all rows,
 * is kept in the registers of one block or of a cluster of blocks. One kernel does a whole pass and
 * reads X (and dY) once.
 *
 *     block b of B has rows (k B + b) threads + t of its tile, k < R
 *     each sum adds over k, then lanes, warps and blocks, in this order
 *
 * The forward pass computes the mean first and then the squares about it, in two passes over
 * registers. */

#include "kernels/cuda/batch_norm.cuh"
#include "kernels/cuda/cluster.cuh"

namespace
{

/* 512 threads have 128 registers each. In the forward pass at most 32 of them hold rows; in the
 * backward pass 64 do, for x and dy. */
constexpr int TILE_THREADS = 512;
template <typename T> constexpr int TILE_ROWS = 16 / static_cast<int>(sizeof(T));

/* The type of one access to a row: the W columns of a row are one access, or two for 8 floats. */
template <int BYTES> struct tile_word {
	using type = uint4;
};
template <> struct tile_word<8> {
	using type = uint2;
};
template <> struct tile_word<4> {
	using type = unsigned;
};
template <typename T, int W, int R> struct column_tile {
	using word_type = typename tile_word<W *static_cast<int>(sizeof(T))>::type;
	static constexpr int WORDS = static_cast<int>(W * sizeof(T) / sizeof(word_type));
	word_type word[R][WORDS];

	static __device__ int row(int k)
	{
		return static_cast<int>((static_cast<unsigned>(k) * cluster_blocks() + cluster_rank()) *
		                            blockDim.y +
		                        threadIdx.y);
	}
	/* Loads all rows; all loads are in flight together. */
	__device__ void read(const T *x, int64_t ld, int64_t rows, int64_t col)
	{
#pragma unroll
		for (int k = 0; k < R; k++)
			if (row(k) < rows)
#pragma unroll
				for (int w = 0; w < WORDS; w++)
					word[k][w] = reinterpret_cast<const word_type *>(x + row(k) * ld + col)[w];
	}
	__device__ void get(int k, float (&v)[W]) const
	{
		T values[W];
		memcpy(static_cast<void *>(values), word[k], sizeof values);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = widen(values[i]);
	}
};
/* The first column of the tile. */
template <int W> __device__ int64_t tile_column()
{
	return static_cast<int64_t>(blockIdx.x / cluster_blocks()) * W;
}

/* Reads one value per column from shared memory, where thread threadIdx.y = column has written it.
 */
template <int W> __device__ void read_columns(const float *shared, float (&v)[W])
{
#pragma unroll
	for (int i = 0; i < W; i++)
		v[i] = shared[i];
}

template <typename T, int W, int R>
__global__ void __launch_bounds__(TILE_THREADS)
    tile_kernel(int64_t cols, struct statistics all, struct normalise<T> f)
{
	after_previous();
	const struct statistics stats = all.count();
	__shared__ struct inbox<1, W> sums, squares;
	__shared__ float means[W], rstds[W];
	const int64_t first = tile_column<W>(), col = first + threadIdx.y, rows = stats.rows;
	/* owner: the thread has a column; records: it also stores the statistics, for all blocks of the
	 * cluster */
	const bool owner = threadIdx.y < W, records = owner && col < cols && cluster_rank() == 0;
	struct column_tile<T, W, R> x;
	struct column_pack<W> p;
	struct running old = {};
	float acc[1][W] = {}, sum[1] = {}, centre = 0.0f;
	cluster_begin();
	x.read(f.x, f.ld, rows, first);
	load<W>(f.of.gamma + first, p.gamma);
	load<W>(f.of.beta + first, p.beta);
	if (records)
		old = stats.load_running(col);
#pragma unroll
	for (int k = 0; k < R; k++)
		if (x.row(k) < rows) {
			float v[W];
			x.get(k, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				acc[0][i] += v[i];
		}
	cluster_wait();
	cluster_column(acc, sums, sum);
	if (owner)
		means[threadIdx.y] = centre = sum[0] / static_cast<float>(rows);
	__syncthreads();
	read_columns(means, p.mean);
	memset(static_cast<void *>(acc), 0, sizeof acc);
#pragma unroll
	for (int k = 0; k < R; k++)
		if (x.row(k) < rows) {
			float v[W];
			x.get(k, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				acc[0][i] += (v[i] - p.mean[i]) * (v[i] - p.mean[i]);
		}
	cluster_column(acc, squares, sum);
	if (owner)
		rstds[threadIdx.y] = col < cols ? stats.scale(sum[0]) : 0.0f;
	__syncthreads();
	read_columns(rstds, p.rstd);
#pragma unroll
	for (int k = 0; k < R; k++)
		if (x.row(k) < rows) {
			float v[W];
			x.get(k, v);
			p.normalise(f.relu, v);
			store<W>(f.y + x.row(k) * f.ld + first, v);
		} else if (x.row(k) < all.rows) {
			const float zeros[W] = {};
			store<W>(f.y + x.row(k) * f.ld + first, zeros);
		}
	if (records)
		stats.record(col, centre, sum[0], old);
}

template <typename T, int W, int R>
__global__ void __launch_bounds__(TILE_THREADS)
    tile_back_kernel(int64_t all, int64_t cols, struct parameter_gradients<T> g,
                     struct input_gradient<T> f)
{
	after_previous();
	const int64_t rows = rows_that_count(f.live, all);
	const float over_rows = over(rows);
	__shared__ struct inbox<2, W> sums;
	__shared__ float dgammas[W], dbetas[W];
	const int64_t first = tile_column<W>(), col = first + threadIdx.y;
	struct column_tile<T, W, R> x, dy;
	cluster_begin();
	x.read(g.x, g.ld, rows, first);
	dy.read(g.dy, g.ld, rows, first);
	const struct column_pack<W> p = g.of.template at<W>(first);
	float acc[2][W] = {}, sum[2] = {}, v[W], d[W];
#pragma unroll
	for (int k = 0; k < R; k++)
		if (x.row(k) < rows) {
			x.get(k, v);
			dy.get(k, d);
			p.relu_gradient(g.relu, v, d);
			p.add_gradients(v, d, acc);
		}
	cluster_wait();
	cluster_column(acc, sums, sum);
	if (threadIdx.y < W) {
		if (col < cols && cluster_rank() == 0)
			g.finish(col, sum);
		dgammas[threadIdx.y] = sum[0] * over_rows;
		dbetas[threadIdx.y] = sum[1] * over_rows;
	}
	if (!f.dx)
		return;
	__syncthreads();
	float dg[W], db[W];
	read_columns(dgammas, dg);
	read_columns(dbetas, db);
#pragma unroll
	for (int k = 0; k < R; k++)
		if (x.row(k) < rows) {
			x.get(k, v);
			dy.get(k, d);
			p.relu_gradient(g.relu, v, d);
			p.input_gradient(d, dg, db, f.over_unit, v);
			store<W>(f.dx + x.row(k) * f.ld + first, v);
		} else if (x.row(k) < all) {
			const float zeros[W] = {};
			store<W>(f.dx + x.row(k) * f.ld + first, zeros);
		}
}

/* ---- the layout of a matrix ---- */

/* Rows per block in a cluster. 8 warps, two per scheduler, hide half of each other's waits, and
 * fewer rows would leave most of the sum to the combination of blocks. Derived, not measured. */
constexpr int64_t SHARE = 256;
/* Columns up to which clusters take more than one row per thread: all their blocks then run at
 * once, with a multiprocessor each. In several rounds nothing would be loaded while the sums of a
 * round are combined, and the alternating kernels of batch_norm.cu keep memory busier. Derived, not
 * measured. */
constexpr int64_t ONE_ROUND_COLUMNS = 132 / CLUSTER * 8;
/* Columns up to which tiles have two columns, where there are no clusters: as long as each tile has
 * its own multiprocessor. A thread then has a quarter of the arithmetic between its loads. Wider
 * matrices have tiles of 8 columns, which read whole sectors of memory. Derived from counting
 * instructions, not measured: 900 instructions per thread for 8 columns and 6 rows take 2 us with 4
 * warps per scheduler. */
constexpr int64_t NARROW_COLUMNS = 132 * 2;

/* The number of rows that fit the registers. */
template <typename T> int64_t most_rows(const hg_context *ctx, int64_t cols)
{
	const int64_t limit = cluster_limit(ctx);
	return limit * TILE_THREADS * (limit == 1 || cols <= ONE_ROUND_COLUMNS ? TILE_ROWS<T> : 1);
}

struct tile_layout {
	unsigned blocks; /* blocks of a cluster */
	dim3 block;
};
struct tile_layout lay_tile(const hg_context *ctx, int64_t rows)
{
	const int64_t limit = cluster_limit(ctx);
	int64_t blocks = limit > 1 ? 2 : 1; /* a cluster wherever the device has them */
	while (blocks < limit && blocks * SHARE < rows)
		blocks *= 2;
	const int64_t warps = (rows + 32 * blocks - 1) / (32 * blocks), most = TILE_THREADS / 32;
	return {static_cast<unsigned>(blocks),
	        dim3(1, static_cast<unsigned>(32 * (warps < most ? warps : most)))};
}

/* Calls f(layout, W, R). */
template <typename T, typename F>
hg_status with_tile(const hg_context *ctx, const struct hg__mat &x, F f)
{
	const struct tile_layout l = lay_tile(ctx, x.rows);
	if (cluster_limit(ctx) == 1 && x.cols <= NARROW_COLUMNS)
		return f(l, int_constant<2>{}, int_constant<TILE_ROWS<T>>{});
	if (x.rows <= static_cast<int64_t>(l.blocks) * l.block.y)
		return f(l, int_constant<8>{}, int_constant<1>{});
	return f(l, int_constant<8>{}, int_constant<TILE_ROWS<T>>{});
}

template <typename T> hg_status run_tile(hg_context *ctx, const struct hg__batch_norm_args *a)
{
	return with_tile<T>(ctx, a->x, [&](const struct tile_layout &l, auto width, auto rows) {
		constexpr int W = decltype(width)::value, R = decltype(rows)::value;
		return launch_clusters(ctx, "batch_norm", tile_kernel<T, W, R>, l.blocks,
		                       l.blocks * grid_for(a->x.cols, W), l.block, a->x.cols,
		                       statistics_of(a), normalise_of<T>(a));
	});
}
template <typename T>
hg_status run_tile_back(hg_context *ctx, const struct hg__batch_norm_back_args *a)
{
	return with_tile<T>(ctx, a->x, [&](const struct tile_layout &l, auto width, auto rows) {
		constexpr int W = decltype(width)::value, R = decltype(rows)::value;
		return launch_clusters(ctx, "batch_norm_back", tile_back_kernel<T, W, R>, l.blocks,
		                       l.blocks * grid_for(a->x.cols, W), l.block, a->x.rows, a->x.cols,
		                       parameter_gradients_of<T>(a), input_gradient_of<T>(a));
	});
}

} // namespace

bool hg__cuda_batch_norm_is_short(const hg_context *ctx, const struct hg__mat &x)
{
	return wide(x) && x.cols > 0 && x.rows > 0 &&
	       x.rows <=
	           (x.dtype == HG_F16 ? most_rows<__half>(ctx, x.cols) : most_rows<float>(ctx, x.cols));
}

hg_status hg__cuda_batch_norm_tile(hg_context *ctx, const struct hg__batch_norm_args *a)
{
	return with_float(ctx, "batch_norm", a->x.dtype,
	                  [&](auto zero) { return run_tile<decltype(zero)>(ctx, a); });
}

hg_status hg__cuda_batch_norm_tile_back(hg_context *ctx, const struct hg__batch_norm_back_args *a)
{
	return with_float(ctx, "batch_norm_back", a->x.dtype,
	                  [&](auto zero) { return run_tile_back<decltype(zero)>(ctx, a); });
}
