/* Y = alpha (1 + *alpha_p) X + beta Z, in f32, narrowed once. The operands may have different float
 * types, so this is also the cast. Y may be X or Z, because every thread reads its elements before
 * it writes them. */

#include "kernels/cuda/map.cuh"

namespace
{

struct axpby {
	struct floats x, z, y;
	float alpha, beta;
	const float *alpha_p;

	template <int W> __device__ void at(int64_t i) const
	{
		const float factor = alpha_p ? alpha * (1.0f + *alpha_p) : alpha;
		float v[W], w[W] = {};
		x.get<W>(i, v);
		if (z.data)
			z.get<W>(i, w);
#pragma unroll
		for (int j = 0; j < W; j++)
			v[j] = z.data ? factor * v[j] + beta * w[j] : factor * v[j];
		y.put<W>(i, v);
	}
};

} // namespace

HG__NO_WORKSPACE(axpby, axpby_args)

extern "C" hg_status hg__cuda_axpby(hg_context *ctx, const struct hg__axpby_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "axpby", HG__FLOATS, a->x, a->y);
	if (!alike(a->x, a->z))
		return misfit(ctx, "axpby", HG__FLOATS, a->x, a->z);
	return flat(
	    ctx, "axpby", a->x,
	    axpby{floats_of(a->x), floats_of(a->z), floats_of(a->y), a->alpha, a->beta, a->alpha_p});
}
