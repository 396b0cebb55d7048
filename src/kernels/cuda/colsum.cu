/* Y[0, c] = sum over rows of X[r, c], f32: the gradient of a bias (columns.cuh);  copy = X: what a bias hands on of its gradient. */

#include "kernels/cuda/columns.cuh"

namespace
{

template <typename T> struct colsum {
	const T *x;
	int64_t ld;
	float *y;
	struct floats copy;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[1][W]) const
	{
		float v[W];
		load<W>(x + row * ld + col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[0][i] += v[i];
		if (copy.data)
			copy.put<W>(row, col, v);
	}
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		y[col] = sum[0];
	}
};

} // namespace

extern "C" hg_status hg__cuda_colsum(hg_context *ctx, const struct hg__colsum_args *a)
{
	if (a->y.dtype != HG_F32 || a->y.cols != a->x.cols || !alike(a->x, a->copy))
		return misfit(ctx, "colsum", a->x, a->y);
	return with_float(ctx, "colsum", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return columns<1>(ctx, "colsum", a->x.rows, a->x.cols, wide(a->x),
		                  colsum<T>{data_of<const T>(a->x), a->x.ld, data_of<float>(a->y), floats_of(a->copy)});
	});
}
