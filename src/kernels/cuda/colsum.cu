/* Column sums, which are the gradient of a bias: Y[0, c] = sum over rows of X[r, c], in f32
 * (columns.cuh). `copy` optionally receives X, as the gradient that passes through the bias. */

#include "kernels/cuda/columns.cuh"

namespace
{

template <typename T, bool COPY> struct colsum {
	const T *x;
	int64_t ld;
	float *y;
	T *copy;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[1][W]) const
	{
		float v[W];
		load_fixed<W>(x + row * ld + col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[0][i] += v[i];
		if constexpr (COPY)
			store<W>(copy + row * ld + col, v);
	}
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		y[col] = sum[0];
	}
};

template <typename T, bool COPY>
hg_status launch_colsum(hg_context *ctx, const struct hg__colsum_args *a)
{
	return columns<1>(ctx, "colsum", a->x.rows, a->x.cols, wide(a->x),
	                  colsum<T, COPY>{data_of<const T>(a->x), a->x.ld, data_of<float>(a->y),
	                                  data_of<T>(a->copy)});
}

} // namespace

size_t hg__cuda_colsum_workspace(const hg_context *, const struct hg__colsum_args *a)
{
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

extern "C" hg_status hg__cuda_colsum(hg_context *ctx, const struct hg__colsum_args *a)
{
	if (a->y.dtype != HG_F32 || a->y.cols != a->x.cols || !alike(a->x, a->copy))
		return misfit(ctx, "colsum", HG__FLOATS, a->x, a->y, a->copy);
	const bool copies = a->copy.data && a->copy.dtype == a->x.dtype;
	if (a->copy.data && !copies) {
		const struct hg__axpby_args convert = {a->x, {}, a->copy, 1.0f, 0.0f, nullptr};
		HG__TRY(hg__cuda_axpby(ctx, &convert));
	}
	return with_float(ctx, "colsum", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return copies ? launch_colsum<T, true>(ctx, a) : launch_colsum<T, false>(ctx, a);
	});
}
