/* Element-wise kernels. A functor computes one pack of W neighbouring columns of a row, where W is
 * 8 or 1, and `walk` or `flat` calls it for all packs of a matrix. The last pack of a row may
 * contain padding. A functor may compute and store padding, but must not add it to a sum. */
#ifndef HG_KERNELS_CUDA_MAP_CUH
#define HG_KERNELS_CUDA_MAP_CUH

#include "kernels/cuda/launch.cuh"

/* A matrix whose float type is known only at run time. Element-wise kernels accept any mixture of
 * f16 and f32, because a gradient may be f32 where its value is f16. The branch on the type takes
 * the same direction in all threads, and its time is hidden by the memory access. */
struct floats {
	void *data;
	int64_t ld;
	bool half;

	/* These access elements i .. i+W-1 of the storage, or columns col .. col+W-1 of a row. */
	template <int W> __device__ void get(int64_t i, float (&x)[W]) const
	{
		if (half)
			load<W>(static_cast<const __half *>(data) + i, x);
		else
			load<W>(static_cast<const float *>(data) + i, x);
	}
	template <int W> __device__ void put(int64_t i, const float (&x)[W]) const
	{
		if (half)
			store<W>(static_cast<__half *>(data) + i, x);
		else
			store<W>(static_cast<float *>(data) + i, x);
	}
	template <int W> __device__ void get(int64_t row, int64_t col, float (&x)[W]) const
	{
		get<W>(row * ld + col, x);
	}
	template <int W> __device__ void put(int64_t row, int64_t col, const float (&x)[W]) const
	{
		put<W>(row * ld + col, x);
	}
};

static inline struct floats floats_of(const struct hg__mat &m)
{
	return {m.data, m.ld, m.dtype == HG_F16};
}

/* ---- rows and columns ---- */

/* The threads of a block form a rectangle: x runs along the packs of a row, y along rows. There are
 * at most 32 threads in x. A warp then reads up to 32 packs of a row, which are whole lines of
 * memory, and if the matrix is narrow all threads are still busy, with several rows. */
struct tile {
	dim3 grid, block;
};
static inline struct tile tile_of(int64_t rows, int64_t cols, int width, int64_t most_blocks)
{
	const int64_t packs = (cols + width - 1) / width;
	unsigned x = 1;
	while (x < 32 && x < packs)
		x *= 2;
	const unsigned y = BLOCK / x;
	/* 64 blocks side by side are 16,384 columns; what is wider is walked in several strides. */
	const int64_t across = packs > 64 * static_cast<int64_t>(x) ? 64 : grid_for(packs, x);
	const int64_t down = grid_for(rows, y);
	return {dim3(static_cast<unsigned>(down * across > most_blocks ? most_blocks / across : down),
	             static_cast<unsigned>(across)),
	        dim3(x, y)};
}

template <int W, typename F> static __global__ void walk_kernel(int64_t rows, int64_t cols, F f)
{
	after_previous();
	const int64_t first = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * W;
	const int64_t across = static_cast<int64_t>(gridDim.y) * blockDim.x * W,
	              down = static_cast<int64_t>(gridDim.x) * blockDim.y;
	for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows;
	     row += down)
		for (int64_t col = first; col < cols; col += across)
			f.template at<W>(row, col);
}

/* Calls f.at<W>(row, col) for every pack of a [rows, cols] matrix. by_eight: all operands can be
 * read in packs of 8. */
template <typename F>
static hg_status walk(hg_context *ctx, const char *kernel, int64_t rows, int64_t cols,
                      bool by_eight, const F &f)
{
	if (rows == 0 || cols == 0)
		return HG_OK;
	return with_width(by_eight, [&](auto width) {
		constexpr int W = decltype(width)::value;
		const struct tile t = tile_of(rows, cols, W, INT32_MAX);
		return launch(ctx, kernel, walk_kernel<W, F>, t.grid, t.block, rows, cols, f);
	});
}

/* ---- flat: operands of equal layout, as arrays of rows * ld elements, padding included ---- */

template <typename F> static __global__ void flat_kernel(int64_t n, F f)
{
	after_previous();
	const int64_t packs = n / 8;
	for (int64_t i = global_thread(); i < packs; i += global_threads())
		f.template at<8>(8 * i);
	for (int64_t i = 8 * packs + global_thread(); i < n; i += global_threads())
		f.template at<1>(i);
}

/* Calls f.at<W>(i) for all elements, W at a time: elements i .. i+W-1 of the storage. `shape` is
 * the layout that all operands have. */
template <typename F>
static hg_status flat(hg_context *ctx, const char *kernel, const struct hg__mat &shape, const F &f)
{
	const int64_t n = shape.rows * shape.ld;
	if (n == 0)
		return HG_OK;
	return launch(ctx, kernel, flat_kernel<F>, grid_for(n, 8 * BLOCK), BLOCK, n, f);
}

/* Whether a and b are float matrices of the same shape and layout. An absent b fits every a. */
static inline bool alike(const struct hg__mat &a, const struct hg__mat &b)
{
	return b.data == nullptr ||
	       (a.rows == b.rows && a.cols == b.cols && a.ld == b.ld && is_float(a) && is_float(b));
}

#endif
