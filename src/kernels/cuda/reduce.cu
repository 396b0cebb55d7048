/* Sums of columns (the gradient of a bias), the inner product of two matrices, and the largest magnitude with the number of non-finite elements. */

#include "kernels/cuda/columns.cuh"

namespace
{

template <typename T> struct colsum {
	const T *x;
	int64_t ld;
	float *y;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[1][W]) const
	{
		float v[W];
		load<W>(x + row * ld + col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[0][i] += v[i];
	}
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		y[col] = sum[0];
	}
};

struct dot_total {
	double sum;

	__device__ void add(const dot_total &o)
	{
		sum += o.sum;
	}
};

struct dot_all {
	struct floats a, b;
	int64_t cols;
	float *y;

	template <int W> __device__ void add(int64_t row, int64_t col, dot_total &mine) const
	{
		float v[W], w[W];
		a.get<W>(row, col, v);
		b.get<W>(row, col, w);
#pragma unroll
		for (int i = 0; i < W; i++)
			if (col + i < cols)
				mine.sum += static_cast<double>(v[i]) * static_cast<double>(w[i]);
	}
	__device__ void finish(const dot_total &total) const
	{
		*y = static_cast<float>(total.sum);
	}
};

struct amax_total {
	int64_t nonfinite;
	float most;

	__device__ void add(const amax_total &o)
	{
		nonfinite += o.nonfinite;
		most = fmaxf(most, o.most);
	}
};

template <typename T> struct amax {
	const T *x;
	int64_t ld, cols;
	float *out;

	template <int W> __device__ void add(int64_t row, int64_t col, amax_total &mine) const
	{
		float v[W];
		load<W>(x + row * ld + col, v);
#pragma unroll
		for (int i = 0; i < W; i++) {
			const float magnitude = col + i < cols ? fabsf(v[i]) : 0.0f;
			if (magnitude < INFINITY)
				mine.most = fmaxf(mine.most, magnitude);
			else
				mine.nonfinite++;
		}
	}
	__device__ void finish(const amax_total &total) const
	{
		out[0] = total.most;
		out[1] = static_cast<float>(total.nonfinite);
	}
};

} // namespace

extern "C" hg_status hg__cuda_colsum(hg_context *ctx, const struct hg__colsum_args *a)
{
	if (a->y.dtype != HG_F32 || a->y.cols != a->x.cols)
		return misfit(ctx, "colsum", a->x, a->y);
	return with_float(ctx, "colsum", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return columns<1>(ctx, "colsum", a->x.rows, a->x.cols, wide(a->x), colsum<T>{data_of<const T>(a->x), a->x.ld, data_of<float>(a->y)});
	});
}

extern "C" hg_status hg__cuda_dot_all(hg_context *ctx, const struct hg__dot_all_args *a)
{
	if (!alike(a->a, a->b))
		return misfit(ctx, "dot_all", a->a, a->b);
	return totals<dot_total>(ctx, "dot_all", a->a.rows, a->a.cols, wide(a->a), dot_all{floats_of(a->a), floats_of(a->b), a->a.cols, data_of<float>(a->y)});
}

extern "C" hg_status hg__cuda_amax(hg_context *ctx, const struct hg__amax_args *a)
{
	return with_float(ctx, "amax", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return totals<amax_total>(ctx, "amax", a->x.rows, a->x.cols, wide(a->x), amax<T>{data_of<const T>(a->x), a->x.ld, a->x.cols, data_of<float>(a->out)});
	});
}
