/* Sum, mean and Euclidean norm of each row, in f32. The gradients are dX = dY, dY / cols and (X /
 * norm) dY. A row is read once, but twice by the gradient of the norm, from the cache the second
 * time. */

#include "kernels/cuda/rows.cuh"

namespace
{

/* A reduction: finish(sum of term(x), cols) over a row. Its gradient is gradient(x, norm, dy,
 * cols); READS says that it needs x and the norm. */
struct sum {
	static constexpr bool READS = false;
	static __device__ float term(float x)
	{
		return x;
	}
	static __device__ float finish(float total, int64_t)
	{
		return total;
	}
	static __device__ float gradient(float, float, float dy, int64_t)
	{
		return dy;
	}
};
struct mean : sum {
	static __device__ float finish(float total, int64_t cols)
	{
		return cols > 0 ? total / static_cast<float>(cols) : 0.0f;
	}
	static __device__ float gradient(float, float, float dy, int64_t cols)
	{
		return dy / static_cast<float>(cols);
	}
};
struct norm {
	static constexpr bool READS = true;
	static __device__ float term(float x)
	{
		return x * x;
	}
	static __device__ float finish(float total, int64_t)
	{
		return sqrtf(total);
	}
	static __device__ float gradient(float x, float length, float dy, int64_t)
	{
		return length == 0.0f ? 0.0f : x / length * dy;
	}
};

/* The result, in all lanes of the row. */
template <typename R, int W, typename T>
__device__ float reduced(const T *x, int64_t end, int64_t cols)
{
	const int64_t step = static_cast<int64_t>(blockDim.x) * W;
	float v[W], total = 0.0f;
	for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < end; col += step) {
		load<W>(x + col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			total += col + i < end ? R::term(v[i]) : 0.0f;
	}
	return R::finish(row_sum(total), cols);
}

template <typename T, typename R> struct reduce {
	const T *x;
	struct floats y;
	int64_t ld, cols;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const float v[1] = {reduced<R, W>(x + row * ld, live ? cols : 0, cols)};
		if (live && threadIdx.x == 0)
			y.put<1>(row, 0, v);
	}
};

template <typename T, typename R> struct reduce_back {
	const T *x;
	struct floats dy, dx;
	int64_t ld, cols;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t end = live ? cols : 0, step = static_cast<int64_t>(blockDim.x) * W;
		float g[1] = {0.0f}, v[W] = {}, length = 0.0f;
		if (live)
			dy.get<1>(row, 0, g);
		if constexpr (R::READS)
			length = reduced<R, W>(x + row * ld, end, cols);
		for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < end; col += step) {
			if constexpr (R::READS)
				load<W>(x + row * ld + col, v);
			float d[W];
#pragma unroll
			for (int i = 0; i < W; i++)
				d[i] = R::gradient(v[i], length, g[0], cols);
			dx.put<W>(row, col, d);
		}
	}
};

/* A row without columns has a result as well, so there is at least one column of threads. */
template <typename R> hg_status run_row_reduce(hg_context *ctx, const struct hg__row_reduce_args *a)
{
	return with_float(ctx, "row_reduce", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(ctx, "row_reduce", a->x.rows, a->x.cols > 0 ? a->x.cols : 1, wide(a->x),
		                reduce<T, R>{data_of<const T>(a->x), floats_of(a->y), a->x.ld, a->x.cols});
	});
}

template <typename R>
hg_status run_row_reduce_back(hg_context *ctx, const struct hg__row_reduce_back_args *a)
{
	return with_float(ctx, "row_reduce_back", a->dx.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(ctx, "row_reduce_back", a->dx.rows, a->dx.cols, wide(a->dx),
		                reduce_back<T, R>{data_of<const T>(a->x), floats_of(a->dy),
		                                  floats_of(a->dx), a->dx.ld, a->dx.cols});
	});
}

/* In the order of hg__row_reduce. */
constexpr struct {
	hg_status (*forward)(hg_context *, const struct hg__row_reduce_args *);
	hg_status (*backward)(hg_context *, const struct hg__row_reduce_back_args *);
	bool reads;
} reductions[HG__ROW_COUNT] = {{run_row_reduce<sum>, run_row_reduce_back<sum>, sum::READS},
                               {run_row_reduce<mean>, run_row_reduce_back<mean>, mean::READS},
                               {run_row_reduce<norm>, run_row_reduce_back<norm>, norm::READS}};
static_assert(every(reductions, [](const auto &row) { return row.forward && row.backward; }),
              "a hole");

/* Whether `one` has one value for each row of `many`. */
bool shapes_fit(const struct hg__mat &many, const struct hg__mat &one)
{
	return many.rows == one.rows && one.cols == 1 && is_float(many) && is_float(one);
}

} // namespace

HG__NO_WORKSPACE(row_reduce, row_reduce_args)

extern "C" hg_status hg__cuda_row_reduce(hg_context *ctx, const struct hg__row_reduce_args *a)
{
	HG__TRY(hg__has_number(ctx, "row_reduce", "reduction", a->reduce, HG__ROW_COUNT));
	if (!shapes_fit(a->x, a->y))
		return misfit(ctx, "row_reduce", HG__FLOATS, a->x, a->y);
	return reductions[a->reduce].forward(ctx, a);
}

HG__NO_WORKSPACE(row_reduce_back, row_reduce_back_args)

extern "C" hg_status hg__cuda_row_reduce_back(hg_context *ctx,
                                              const struct hg__row_reduce_back_args *a)
{
	HG__TRY(hg__has_number(ctx, "row_reduce_back", "reduction", a->reduce, HG__ROW_COUNT));
	if (!shapes_fit(a->dx, a->dy))
		return misfit(ctx, "row_reduce_back", HG__FLOATS, a->dx, a->dy);
	if (reductions[a->reduce].reads && (!alike(a->dx, a->x) || a->x.dtype != a->dx.dtype))
		return misfit(ctx, "row_reduce_back", HG__ONE_FLOAT, a->dx, a->x);
	return reductions[a->reduce].backward(ctx, a);
}
