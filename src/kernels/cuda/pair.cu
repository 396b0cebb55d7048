/* Functions of two operands, element by element (pairs.def). Traffic: two reads and one write of
 * the state. */

#include "kernels/cuda/map.cuh"

namespace
{

#define HG_PAIR(name, value)                         \
	struct name {                                    \
		static __device__ float of(float a, float b) \
		{                                            \
			return value;                            \
		}                                            \
	};
#include "kernels/pairs.def"

template <typename P> struct elements {
	struct floats a, b, y;

	template <int W> __device__ void at(int64_t i) const
	{
		float v[W], w[W];
		a.get<W>(i, v);
		b.get<W>(i, w);
#pragma unroll
		for (int j = 0; j < W; j++)
			v[j] = P::of(v[j], w[j]);
		y.put<W>(i, v);
	}
};

template <typename P> hg_status run(hg_context *ctx, const struct hg__pair_args *a)
{
	return flat(ctx, "pair", a->a, elements<P>{floats_of(a->a), floats_of(a->b), floats_of(a->y)});
}

/* In the order of hg__pair. */
constexpr hg_status (*pairs[HG__PAIR_COUNT])(hg_context *, const struct hg__pair_args *) = {
#define HG_PAIR(name, value) run<name>,
#include "kernels/pairs.def"
};
static_assert(every(pairs, [](auto pair) { return pair != nullptr; }), "a hole");

} // namespace

HG__NO_WORKSPACE(pair, pair_args)

extern "C" hg_status hg__cuda_pair(hg_context *ctx, const struct hg__pair_args *a)
{
	HG__TRY(hg__has_number(ctx, "pair", "function", a->pair, HG__PAIR_COUNT));
	if (!alike(a->a, a->b) || !alike(a->a, a->y))
		return misfit(ctx, "pair", HG__FLOATS, a->a, a->b, a->y);
	return pairs[a->pair](ctx, a);
}
