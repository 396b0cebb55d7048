/* The mean over heads: Y[i, c] = 1/h * sum over heads k of X[i, k*d + c], added in order. Backward:
 * dX[i, k*d + c] = dY[i, c] / h. */

#include "kernels/cuda/map.cuh"

namespace
{

struct head_mean {
	struct floats x, y;
	int64_t d;
	int heads;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float sum[W] = {}, v[W];
		for (int k = 0; k < heads; k++) {
			x.get<W>(row, k * d + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				sum[i] += v[i];
		}
#pragma unroll
		for (int i = 0; i < W; i++)
			sum[i] /= static_cast<float>(heads);
		y.put<W>(row, col, sum);
	}
};

struct head_mean_back {
	struct floats dy, dx;
	int64_t d;
	int heads;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		dy.get<W>(row, col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] /= static_cast<float>(heads);
		for (int k = 0; k < heads; k++)
			dx.put<W>(row, k * d + col, v);
	}
};

/* Whether `many` has the columns of all heads and `one` the columns of their mean. */
bool fits(const struct hg__mat &many, const struct hg__mat &one, int heads)
{
	return many.rows == one.rows && is_float(many) && is_float(one) && heads > 0 &&
	       many.cols == one.cols * heads;
}

} // namespace

HG__NO_WORKSPACE(head_mean, head_mean_args)

extern "C" hg_status hg__cuda_head_mean(hg_context *ctx, const struct hg__head_mean_args *a)
{
	const int64_t d = a->y.cols;
	if (!fits(a->x, a->y, a->heads))
		return misfit(ctx, "head_mean", HG__FLOATS, a->x, a->y);
	return walk(ctx, "head_mean", a->y.rows, d, d % 8 == 0,
	            head_mean{floats_of(a->x), floats_of(a->y), d, a->heads});
}

HG__NO_WORKSPACE(head_mean_back, head_mean_args)

/* x is dX [n, h*d], the result; y is dY [n, d]. */
extern "C" hg_status hg__cuda_head_mean_back(hg_context *ctx, const struct hg__head_mean_args *a)
{
	const int64_t d = a->y.cols;
	if (!fits(a->x, a->y, a->heads))
		return misfit(ctx, "head_mean_back", HG__FLOATS, a->x, a->y);
	return walk(ctx, "head_mean_back", a->y.rows, d, d % 8 == 0,
	            head_mean_back{floats_of(a->y), floats_of(a->x), d, a->heads});
}
