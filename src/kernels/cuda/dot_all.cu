/* y = sum over all r, c of A[r, c] * B[r, c]. Products are exact in f64 (at most 48 bits), are
 * summed in f64, and narrowed once to f32. */

#include "kernels/cuda/totals.cuh"

namespace
{

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

} // namespace

size_t hg__cuda_dot_all_workspace(const hg_context *, const struct hg__dot_all_args *a)
{
	return hg__reduction_bytes(a->a.rows, a->a.cols);
}

extern "C" hg_status hg__cuda_dot_all(hg_context *ctx, const struct hg__dot_all_args *a)
{
	if (!alike(a->a, a->b))
		return misfit(ctx, "dot_all", HG__FLOATS, a->a, a->b);
	return totals<dot_total>(
	    ctx, "dot_all", a->a.rows, a->a.cols, wide(a->a),
	    dot_all{floats_of(a->a), floats_of(a->b), a->a.cols, data_of<float>(a->y)});
}
