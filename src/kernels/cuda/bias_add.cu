/* Y = X + b with one row b for all rows. The operands are state or f32. */

#include "kernels/cuda/map.cuh"

namespace
{

struct bias_add {
	struct floats x, b, y;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W], add[W];
		x.get<W>(row, col, v);
		b.get<W>(col, add);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] += add[i];
		y.put<W>(row, col, v);
	}
};

} // namespace

HG__NO_WORKSPACE(bias_add, bias_add_args)

extern "C" hg_status hg__cuda_bias_add(hg_context *ctx, const struct hg__bias_add_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "bias_add", HG__FLOATS, a->x, a->y);
	if (a->b.cols != a->x.cols || !is_float(a->b))
		return misfit(ctx, "bias_add", HG__FLOATS, a->x, a->b);
	return walk(ctx, "bias_add", a->x.rows, a->x.cols, wide(a->x),
	            bias_add{floats_of(a->x), floats_of(a->b), floats_of(a->y)});
}
