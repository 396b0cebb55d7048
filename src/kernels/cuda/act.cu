/* Activations, element by element (acts.cuh). Traffic: one read and one write of the state; backward two reads and one write. */

#include "kernels/cuda/acts.cuh"
#include "kernels/cuda/map.cuh"

namespace
{

template <typename A> struct forward {
	struct floats x, y;
	float p;

	template <int W> __device__ void at(int64_t i) const
	{
		float v[W];
		x.get<W>(i, v);
#pragma unroll
		for (int j = 0; j < W; j++)
			v[j] = A::value(v[j], p);
		y.put<W>(i, v);
	}
};

template <typename A> struct backward {
	struct floats y, dy, dx;
	float p;

	template <int W> __device__ void at(int64_t i) const
	{
		float v[W], g[W];
		y.get<W>(i, v);
		dy.get<W>(i, g);
#pragma unroll
		for (int j = 0; j < W; j++)
			g[j] = A::gradient(v[j], g[j], p);
		dx.put<W>(i, g);
	}
};

template <typename A> hg_status run(hg_context *ctx, const struct hg__act_args *a)
{
	return flat(ctx, "act", a->x, forward<A>{floats_of(a->x), floats_of(a->y), a->p});
}

template <typename A> hg_status run_back(hg_context *ctx, const struct hg__act_back_args *a)
{
	return flat(ctx, "act_back", a->y, backward<A>{floats_of(a->y), floats_of(a->dy), floats_of(a->dx), a->p});
}

/* In the order of hg__act. */
constexpr struct {
	hg_status (*forward)(hg_context *, const struct hg__act_args *);
	hg_status (*backward)(hg_context *, const struct hg__act_back_args *);
} acts[HG__ACT_COUNT] = {{run<relu>, run_back<relu>}, {run<leaky_relu>, run_back<leaky_relu>}, {run<elu>, run_back<elu>}};

} // namespace

extern "C" hg_status hg__cuda_act(hg_context *ctx, const struct hg__act_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "act", a->x, a->y);
	return acts[a->act].forward(ctx, a);
}

extern "C" hg_status hg__cuda_act_back(hg_context *ctx, const struct hg__act_back_args *a)
{
	if (!alike(a->y, a->dy) || !alike(a->y, a->dx))
		return misfit(ctx, "act_back", a->y, a->dx);
	return acts[a->act].backward(ctx, a);
}
