/* Log-softmax of each row, in f32: Y = X - max - log(sum exp(X - max)). Backward: dX = dY - exp(Y)
 * * sum over the row of dY. */

#include "kernels/cuda/softmax.cuh"

namespace
{

template <typename T> struct log_softmax {
	const T *x;
	struct floats y;
	int64_t ld, cols;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t end = live ? cols : 0, step = static_cast<int64_t>(blockDim.x) * W;
		const struct softmax_row s = softmax_of<W>(x + row * ld, end);
		const float log_sum = logf(s.sum);
		for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < end; col += step) {
			float v[W];
			load<W>(x + row * ld + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = (v[i] - s.max) - log_sum;
			y.put<W>(row, col, v);
		}
	}
};

template <typename T> struct log_softmax_back {
	const T *y, *dy;
	struct floats dx;
	int64_t ld, cols;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t end = live ? cols : 0, first = static_cast<int64_t>(threadIdx.x) * W,
		              step = static_cast<int64_t>(blockDim.x) * W;
		float v[W], d[W], sum = 0.0f;
		for (int64_t col = first; col < end; col += step) {
			load<W>(dy + row * ld + col, d);
#pragma unroll
			for (int i = 0; i < W; i++)
				sum += col + i < end ? d[i] : 0.0f;
		}
		sum = row_sum(sum);
		for (int64_t col = first; col < end; col += step) {
			load<W>(y + row * ld + col, v);
			load<W>(dy + row * ld + col, d);
#pragma unroll
			for (int i = 0; i < W; i++)
				d[i] -= expf(v[i]) * sum;
			dx.put<W>(row, col, d);
		}
	}
};

} // namespace

HG__NO_WORKSPACE(log_softmax, log_softmax_args)

extern "C" hg_status hg__cuda_log_softmax(hg_context *ctx, const struct hg__log_softmax_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "log_softmax", HG__FLOATS, a->x, a->y);
	return with_float(ctx, "log_softmax", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(
		    ctx, "log_softmax", a->x.rows, a->x.cols, wide(a->x),
		    log_softmax<T>{data_of<const T>(a->x), floats_of(a->y), a->x.ld, a->x.cols});
	});
}

HG__NO_WORKSPACE(log_softmax_back, log_softmax_back_args)

extern "C" hg_status hg__cuda_log_softmax_back(hg_context *ctx,
                                               const struct hg__log_softmax_back_args *a)
{
	if (!alike(a->y, a->dy) || !alike(a->y, a->dx) || a->y.dtype != a->dy.dtype)
		return misfit(ctx, "log_softmax_back", HG__ONE_FLOAT, a->y, a->dy);
	return with_float(ctx, "log_softmax_back", a->y.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(ctx, "log_softmax_back", a->y.rows, a->y.cols, wide(a->y),
		                log_softmax_back<T>{data_of<const T>(a->y), data_of<const T>(a->dy),
		                                    floats_of(a->dx), a->y.ld, a->y.cols});
	});
}
