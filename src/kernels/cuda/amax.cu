/* out = {max |x| over the finite elements, number of elements that are not finite}. Both are
 * independent of the order of the elements. */

#include "kernels/cuda/totals.cuh"

namespace
{

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

size_t hg__cuda_amax_workspace(const hg_context *, const struct hg__amax_args *)
{
	return totals_bytes<amax_total>();
}

extern "C" hg_status hg__cuda_amax(hg_context *ctx, const struct hg__amax_args *a)
{
	return with_float(ctx, "amax", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return totals<amax_total>(
		    ctx, "amax", a->x.rows, a->x.cols, wide(a->x),
		    amax<T>{data_of<const T>(a->x), a->x.ld, a->x.cols, data_of<float>(a->out)});
	});
}
