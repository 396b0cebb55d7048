/* Softmax of each row, in f32: Y = exp(X - max) / sum exp(X - max). Backward: dX = Y (dY - sum over
 * the row of Y dY). */

#include "kernels/cuda/softmax.cuh"

namespace
{

template <typename T> struct softmax {
	const T *x;
	struct floats y;
	int64_t ld, cols;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t end = live ? cols : 0, step = static_cast<int64_t>(blockDim.x) * W;
		const struct softmax_row s = softmax_of<W>(x + row * ld, end);
		for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < end; col += step) {
			float v[W];
			load<W>(x + row * ld + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				/* padding may be far above the maximum */
				v[i] = col + i < end ? expf(v[i] - s.max) / s.sum : 0.0f;
			y.put<W>(row, col, v);
		}
	}
};

template <typename T> struct softmax_back {
	const T *y, *dy;
	struct floats dx;
	int64_t ld, cols;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t end = live ? cols : 0, first = static_cast<int64_t>(threadIdx.x) * W,
		              step = static_cast<int64_t>(blockDim.x) * W;
		float v[W], d[W], dot = 0.0f;
		for (int64_t col = first; col < end; col += step) {
			load<W>(y + row * ld + col, v);
			load<W>(dy + row * ld + col, d);
#pragma unroll
			for (int i = 0; i < W; i++)
				dot += col + i < end ? v[i] * d[i] : 0.0f;
		}
		dot = row_sum(dot);
		for (int64_t col = first; col < end; col += step) {
			load<W>(y + row * ld + col, v);
			load<W>(dy + row * ld + col, d);
#pragma unroll
			for (int i = 0; i < W; i++)
				d[i] = v[i] * (d[i] - dot);
			dx.put<W>(row, col, d);
		}
	}
};

} // namespace

HG__NO_WORKSPACE(softmax, softmax_args)

extern "C" hg_status hg__cuda_softmax(hg_context *ctx, const struct hg__softmax_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "softmax", HG__FLOATS, a->x, a->y);
	return with_float(ctx, "softmax", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(ctx, "softmax", a->x.rows, a->x.cols, wide(a->x),
		                softmax<T>{data_of<const T>(a->x), floats_of(a->y), a->x.ld, a->x.cols});
	});
}

HG__NO_WORKSPACE(softmax_back, softmax_back_args)

extern "C" hg_status hg__cuda_softmax_back(hg_context *ctx, const struct hg__softmax_back_args *a)
{
	if (!alike(a->y, a->dy) || !alike(a->y, a->dx) || a->y.dtype != a->dy.dtype)
		return misfit(ctx, "softmax_back", HG__ONE_FLOAT, a->y, a->dy);
	return with_float(ctx, "softmax_back", a->y.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(ctx, "softmax_back", a->y.rows, a->y.cols, wide(a->y),
		                softmax_back<T>{data_of<const T>(a->y), data_of<const T>(a->dy),
		                                floats_of(a->dx), a->y.ld, a->y.cols});
	});
}
