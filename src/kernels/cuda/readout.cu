/* Readout: Y[g, c] is the sum, mean or maximum over the rows ptr[g] .. ptr[g+1]-1 of X; 0 (and arg
 * -1) for an empty graph. A NaN wins the maximum; of equal values the first wins.
 *
 *     backward  dX[i, c] = dY[g, c],  dY[g, c] / size,  or dY[g, c] where arg[g, c] is the row
 *
 * A warp takes a graph of few rows and a column tile, a block one of many. If there are few
 * graphs, each is cut into parts, whose number depends on the shape alone, and a second kernel
 * combines them in order. */

#include "kernels/cuda/columns.cuh"

namespace
{

/* Two blocks for each of 108 to 148 multiprocessors. More parts do not pay, because the second
 * kernel processes the parts of a graph one after the other. */
constexpr int64_t READOUT_BLOCKS = 256;

/* Up to this many rows a graph, on average, a warp takes a graph. A block would read it in one step
 * with most threads idle, and wait at barriers. Measured on an H200: 4,096 graphs of 18 rows and 32
 * columns take 9 us, and 27 us with a block for each. */
constexpr int64_t WARP_ROWS = 128;

struct pieces {
	const int64_t *ptr;
	int64_t graphs, parts, tiles, cols;
};

/* The work of one block: rows begin .. end-1 of graph `graph`, from column col on. `slot` is its
 * index among all parts. */
struct piece {
	int64_t graph, slot, first, begin, end, col;
};
template <int W> __device__ struct piece piece_of(const struct pieces &p, int64_t job)
{
	const int64_t tile = job % p.tiles, slot = job / p.tiles, part = slot % p.parts,
	              g = slot / p.parts;
	const int64_t first = p.ptr[g], size = p.ptr[g + 1] - first;
	return {g,
	        slot,
	        first,
	        first + size * part / p.parts,
	        first + size * (part + 1) / p.parts,
	        (tile * blockDim.x + threadIdx.x) * W};
}

__device__ float divisor(const struct pieces &p, int64_t g, bool mean)
{
	const int64_t size = p.ptr[g + 1] - p.ptr[g];
	return mean && size > 0 ? static_cast<float>(size) : 1.0f;
}

template <int W, typename T>
__global__ void sum_kernel(struct pieces p, const T *x, int64_t ld, bool mean, struct floats out)
{
	after_previous();
	for (int64_t job = blockIdx.x; job < p.graphs * p.parts * p.tiles; job += gridDim.x) {
		const struct piece w = piece_of<W>(p, job);
		float acc[1][W] = {}, v[W];
		if (w.col < p.cols)
			for (int64_t row = w.begin + threadIdx.y; row < w.end; row += blockDim.y) {
				load<W>(x + row * ld + w.col, v);
#pragma unroll
				for (int i = 0; i < W; i++)
					acc[0][i] += v[i];
			}
		block_columns(acc);
		if (threadIdx.y != 0 || w.col >= p.cols)
			continue;
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[0][i] /= divisor(p, w.graph, mean);
		out.put<W>(w.slot, w.col, acc[0]);
	}
}

/* The graph of a warp, which is not cut into parts. Only arrays of the graph are read, so this may
 * precede after_previous. */
template <int W> __device__ struct piece piece_of_warp(const struct pieces &p, int64_t job)
{
	const int64_t g = p.tiles > 1 ? job / p.tiles : job, tile = job - g * p.tiles, first = p.ptr[g];
	return {g, g, first, first, p.ptr[g + 1], (tile * blockDim.x + threadIdx.x) * W};
}

/* The same with a warp for each job, of blockDim.x packs by blockDim.y rows. FLIGHT rows of a
 * thread are loaded together: with 32 columns a graph of 32 rows waits for memory once. */
template <int W, typename T>
__global__ void warp_sum_kernel(struct pieces p, const T *x, int64_t ld, bool mean,
                                struct floats out)
{
	const int64_t job = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
	const bool exists = job < p.graphs * p.tiles;
	struct piece w = {};
	if (exists)
		w = piece_of_warp<W>(p, job);
	after_previous();
	if (!exists)
		return;
	float acc[W] = {}, v[W];
	const int64_t down = blockDim.y;
	for (int64_t row = w.begin + threadIdx.y; row < w.end && w.col < p.cols; row += FLIGHT * down) {
		held<T, W> rows[FLIGHT] = {};
#pragma unroll
		for (int u = 0; u < FLIGHT; u++)
			if (row + u * down < w.end)
				rows[u].read(x + (row + u * down) * ld + w.col);
#pragma unroll
		for (int u = 0; u < FLIGHT; u++) {
			rows[u].get(v);
#pragma unroll
			for (int i = 0; i < W; i++)
				acc[i] += v[i]; /* a row that is not there adds 0 */
		}
	}
	for (unsigned step = blockDim.x; step < 32; step *= 2)
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] += __shfl_xor_sync(0xffffffffu, acc[i], step);
	if (threadIdx.y != 0 || w.col >= p.cols)
		return;
	if (mean && w.end > w.begin)
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] /= static_cast<float>(w.end - w.begin);
	out.put<W>(w.slot, w.col, acc);
}

struct join_sums {
	struct pieces p;
	bool mean;
	struct floats part, y;

	template <int W> __device__ void at(int64_t g, int64_t col) const
	{
		float sum[W] = {}, v[W];
#pragma unroll 8
		for (int64_t k = 0; k < p.parts; k++) {
			part.get<W>(g * p.parts + k, col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				sum[i] += v[i];
		}
#pragma unroll
		for (int i = 0; i < W; i++)
			sum[i] /= divisor(p, g, mean);
		y.put<W>(g, col, sum);
	}
};

/* The first largest value of a column, and its row within the graph; -1: no value seen. */
struct largest {
	float value;
	int32_t row;

	__device__ void see(float v, int32_t r)
	{
		const bool nan = v != v, mine = value != value;
		if (r >= 0 && (row < 0 || (nan && !mine) || (!mine && v > value) ||
		               ((v == value || (nan && mine)) && r < row))) {
			value = v;
			row = r;
		}
	}
};

/* The winner of each column of a block's tile, valid where threadIdx.y == 0. No barrier is needed
 * between two calls. */
template <int W> __device__ void block_largest(struct largest (&best)[W])
{
	__shared__ struct largest part[W][BLOCK];
	const int t = thread_in_block();
	__syncthreads();
#pragma unroll
	for (int i = 0; i < W; i++)
		part[i][t] = best[i];
	for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.y < half)
#pragma unroll
			for (int i = 0; i < W; i++)
				part[i][t].see(part[i][t + half * blockDim.x].value,
				               part[i][t + half * blockDim.x].row);
	}
#pragma unroll
	for (int i = 0; i < W; i++)
		best[i] = part[i][t];
}

/* Values and rows of the winners. The last pack may have columns that do not exist. */
struct winners {
	struct floats value;
	int32_t *row;
	int64_t ld_row, cols;

	template <int W>
	__device__ void put(int64_t slot, int64_t col, const struct largest (&best)[W]) const
	{
		float v[W];
#pragma unroll
		for (int i = 0; i < W; i++) {
			v[i] = best[i].row < 0 ? 0.0f : best[i].value;
			if (col + i < cols)
				row[slot * ld_row + col + i] = best[i].row;
		}
		value.put<W>(slot, col, v);
	}
};

template <int W, typename T>
__global__ void max_kernel(struct pieces p, const T *x, int64_t ld, struct winners out)
{
	after_previous();
	for (int64_t job = blockIdx.x; job < p.graphs * p.parts * p.tiles; job += gridDim.x) {
		const struct piece w = piece_of<W>(p, job);
		struct largest best[W];
		float v[W];
#pragma unroll
		for (int i = 0; i < W; i++)
			best[i] = {0.0f, -1};
		if (w.col < p.cols)
			for (int64_t row = w.begin + threadIdx.y; row < w.end; row += blockDim.y) {
				load<W>(x + row * ld + w.col, v);
#pragma unroll
				for (int i = 0; i < W; i++)
					best[i].see(v[i], static_cast<int32_t>(row - w.first));
			}
		block_largest(best);
		if (threadIdx.y == 0 && w.col < p.cols)
			out.put<W>(w.slot, w.col, best);
	}
}

/* The same with a warp for each job, of blockDim.x packs by blockDim.y rows. */
template <int W, typename T>
__global__ void warp_max_kernel(struct pieces p, const T *x, int64_t ld, struct winners out)
{
	after_previous();
	const int64_t job = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
	if (job >= p.graphs * p.tiles)
		return;
	const struct piece w = piece_of_warp<W>(p, job);
	struct largest best[W];
	float v[W];
#pragma unroll
	for (int i = 0; i < W; i++)
		best[i] = {0.0f, -1};
	if (w.col < p.cols)
		for (int64_t row = w.begin + threadIdx.y; row < w.end; row += blockDim.y) {
			load<W>(x + row * ld + w.col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				best[i].see(v[i], static_cast<int32_t>(row - w.first));
		}
	for (unsigned step = blockDim.x; step < 32; step *= 2)
#pragma unroll
		for (int i = 0; i < W; i++) {
			const struct largest other = of_lane(best[i], static_cast<int>(step));
			best[i].see(other.value, other.row);
		}
	if (threadIdx.y == 0 && w.col < p.cols)
		out.put<W>(w.slot, w.col, best);
}

struct join_winners {
	int64_t parts;
	struct winners part, out;

	template <int W> __device__ void at(int64_t g, int64_t col) const
	{
		struct largest best[W];
		float v[W];
#pragma unroll
		for (int i = 0; i < W; i++)
			best[i] = {0.0f, -1};
		for (int64_t k = 0; k < parts; k++) {
			part.value.get<W>(g * parts + k, col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				if (col + i < part.cols)
					best[i].see(v[i], part.row[(g * parts + k) * part.ld_row + col + i]);
		}
		out.put<W>(g, col, best);
	}
};

/* How the graphs are cut, for blocks of this shape. */
struct pieces cut_graphs(const struct hg__readout_args *a, dim3 block, int width)
{
	const int64_t graphs = a->y.rows, cols = a->y.cols,
	              tiles = grid_for(cols, static_cast<int64_t>(block.x) * width);
	const int64_t most = graphs * tiles < READOUT_BLOCKS ? READOUT_BLOCKS / (graphs * tiles) : 1;
	const int64_t wanted = grid_for(a->x.rows / graphs, static_cast<int64_t>(block.y) * 8);
	return {a->ptr, graphs, wanted < most ? wanted : most, tiles, cols};
}

/* How warps take graphs of few rows: blocks of 8 warps, each of block.x packs. */
struct by_warp {
	bool yes;
	struct pieces p;
	dim3 block;
	unsigned grid;
};
struct by_warp warps_for(const struct hg__readout_args *a, int width)
{
	constexpr unsigned WARPS = 8;
	const int64_t graphs = a->y.rows, packs = grid_for(a->y.cols, width);
	unsigned x = 1;
	while (x < 32 && x < packs)
		x *= 2;
	const int64_t tiles = grid_for(packs, x);
	return {graphs * tiles >= READOUT_BLOCKS && a->x.rows <= WARP_ROWS * graphs,
	        {a->ptr, graphs, 1, tiles, a->y.cols},
	        dim3(x, 32 / x, WARPS),
	        grid_for(graphs * tiles, WARPS)};
}

template <int W, typename T> hg_status run_sum(hg_context *ctx, const struct hg__readout_args *a)
{
	const dim3 block = tile_of(a->x.rows, a->y.cols, W, INT32_MAX).block;
	const struct pieces p = cut_graphs(a, block, W);
	const unsigned grid = grid_for(p.graphs * p.parts * p.tiles, 1);
	const bool mean = a->reduce == HG_REDUCE_MEAN;
	const struct by_warp small = warps_for(a, W);
	if (small.yes)
		return launch(ctx, "readout", warp_sum_kernel<W, T>, small.grid, small.block, small.p,
		              data_of<const T>(a->x), a->x.ld, mean, floats_of(a->y));
	if (p.parts == 1) {
		return launch(ctx, "readout", sum_kernel<W, T>, grid, block, p, data_of<const T>(a->x),
		              a->x.ld, mean, floats_of(a->y));
	}
	void *memory;
	const int64_t pitch = hg__leading(p.cols);
	HG__TRY(hg__workspace(ctx, static_cast<size_t>(p.graphs * p.parts * pitch) * sizeof(float),
	                      &memory));
	const struct floats part = {memory, pitch, false};
	HG__TRY(launch(ctx, "readout", sum_kernel<W, T>, grid, block, p, data_of<const T>(a->x),
	               a->x.ld, false, part));
	return walk(ctx, "readout", p.graphs, p.cols, W == 8,
	            join_sums{p, mean, part, floats_of(a->y)});
}

template <int W, typename T> hg_status run_max(hg_context *ctx, const struct hg__readout_args *a)
{
	const dim3 block = tile_of(a->x.rows, a->y.cols, W, INT32_MAX).block;
	const struct pieces p = cut_graphs(a, block, W);
	const unsigned grid = grid_for(p.graphs * p.parts * p.tiles, 1);
	const struct winners out = {floats_of(a->y), data_of<int32_t>(a->arg), a->arg.ld, p.cols};
	const struct by_warp small = warps_for(a, W);
	if (small.yes)
		return launch(ctx, "readout", warp_max_kernel<W, T>, small.grid, small.block, small.p,
		              data_of<const T>(a->x), a->x.ld, out);
	if (p.parts == 1) {
		return launch(ctx, "readout", max_kernel<W, T>, grid, block, p, data_of<const T>(a->x),
		              a->x.ld, out);
	}
	void *memory;
	const int64_t pitch = hg__leading(p.cols), elements = p.graphs * p.parts * pitch;
	HG__TRY(hg__workspace(ctx, static_cast<size_t>(elements) * (sizeof(float) + sizeof(int32_t)),
	                      &memory));
	const struct winners part = {
	    {memory, pitch, false},
	    reinterpret_cast<int32_t *>(static_cast<float *>(memory) + elements),
	    pitch,
	    p.cols};
	HG__TRY(launch(ctx, "readout", max_kernel<W, T>, grid, block, p, data_of<const T>(a->x),
	               a->x.ld, part));
	return walk(ctx, "readout", p.graphs, p.cols, W == 8, join_winners{p.parts, part, out});
}

/* The gradient of sum and mean: every row of a graph gets the same, and a row of no graph 0. */
struct spread {
	const int64_t *ptr;
	const int32_t *id;
	struct floats dy, dx;
	bool mean;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		const int64_t g = id[row];
		float v[W] = {};
		if (g >= 0) {
			const float size = mean ? static_cast<float>(ptr[g + 1] - ptr[g]) : 1.0f;
			dy.get<W>(g, col, v);
			if (mean)
#pragma unroll
				for (int i = 0; i < W; i++)
					v[i] /= size;
		}
		dx.put<W>(row, col, v);
	}
};

/* The gradient of the maximum: only the winning row gets it. */
struct pick {
	const int64_t *ptr;
	const int32_t *id, *arg;
	int64_t ld_arg, cols;
	struct floats dy, dx;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		const int64_t g = id[row];
		float v[W] = {};
		if (g >= 0) {
			const int32_t place = static_cast<int32_t>(row - ptr[g]);
			dy.get<W>(g, col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = col + i < cols && arg[g * ld_arg + col + i] == place ? v[i] : 0.0f;
		}
		dx.put<W>(row, col, v);
	}
};

hg_status back_spread(hg_context *ctx, const struct hg__readout_back_args *a)
{
	return walk(
	    ctx, "readout_back", a->dx.rows, a->dx.cols, wide(a->dx),
	    spread{a->ptr, a->id, floats_of(a->dy), floats_of(a->dx), a->reduce == HG_REDUCE_MEAN});
}
hg_status back_pick(hg_context *ctx, const struct hg__readout_back_args *a)
{
	return walk(ctx, "readout_back", a->dx.rows, a->dx.cols, wide(a->dx),
	            pick{a->ptr, a->id, data_of<const int32_t>(a->arg), a->arg.ld, a->dx.cols,
	                 floats_of(a->dy), floats_of(a->dx)});
}

template <int W, typename T>
hg_status run_readout(hg_context *ctx, const struct hg__readout_args *a)
{
	/* In the order of hg_reduce. */
	static constexpr hg_status (*runs[HG__READOUTS])(
	    hg_context *, const struct hg__readout_args *) = {run_sum<W, T>, run_sum<W, T>,
	                                                      run_max<W, T>};
	static_assert(every(runs, [](auto run) { return run != nullptr; }), "a hole");
	return runs[a->reduce](ctx, a);
}
constexpr hg_status (*backs[HG__READOUTS])(hg_context *, const struct hg__readout_back_args *) = {
    back_spread, back_spread, back_pick};
static_assert(every(backs, [](auto back) { return back != nullptr; }), "a hole");

} // namespace

size_t hg__cuda_readout_workspace(const hg_context *, const struct hg__readout_args *a)
{
	/* of each part of a graph, a value and its row for each column */
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

extern "C" hg_status hg__cuda_readout(hg_context *ctx, const struct hg__readout_args *a)
{
	const bool no_places =
	    a->reduce == HG_REDUCE_MAX && a->y.rows > 0 && a->y.cols > 0 && !a->arg.data;
	HG__TRY(hg__has_number(ctx, "readout", "reduction", a->reduce, HG__READOUTS));
	if (a->arg.data)
		HG__TRY(hg__has_type(ctx, "readout", "places", a->arg.dtype, HG_I32));
	if (a->x.cols != a->y.cols || a->x.ld != a->y.ld || !is_float(a->y) || no_places)
		return misfit(ctx, "readout", HG__FLOATS, a->x, a->y);
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	return with_float(ctx, "readout", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(
		    wide(a->x), [&](auto width) { return run_readout<decltype(width)::value, T>(ctx, a); });
	});
}

HG__NO_WORKSPACE(readout_back, readout_back_args)

extern "C" hg_status hg__cuda_readout_back(hg_context *ctx, const struct hg__readout_back_args *a)
{
	HG__TRY(hg__has_number(ctx, "readout_back", "reduction", a->reduce, HG__READOUTS));
	if (a->dx.cols != a->dy.cols || a->dx.ld != a->dy.ld || !is_float(a->dx) || !is_float(a->dy))
		return misfit(ctx, "readout_back", HG__FLOATS, a->dy, a->dx);
	return backs[a->reduce](ctx, a);
}
