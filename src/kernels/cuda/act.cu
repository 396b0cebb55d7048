/* Functions of one operand, element by element: Y = f(X), and dX = f'(X) dY, for each f in
 * kernels/functions.def. The forward pass reads and writes one matrix each; the backward pass reads
 * two and writes one. */

#include "kernels/cuda/acts.cuh"
#include "kernels/cuda/map.cuh"

namespace
{

template <typename A> struct forward {
	struct floats x, y;
	int64_t cols;
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
	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		x.get<W>(row, col, v);
#pragma unroll
		for (int j = 0; j < W; j++)
			v[j] = col + j < cols ? A::value(v[j], p) : 0.0f;
		y.put<W>(row, col, v);
	}
};

template <typename A> struct backward {
	struct floats y, dy, dx;
	int64_t cols;
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
	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W], g[W];
		y.get<W>(row, col, v);
		dy.get<W>(row, col, g);
#pragma unroll
		for (int j = 0; j < W; j++)
			g[j] = col + j < cols ? A::gradient(v[j], g[j], p) : 0.0f;
		dx.put<W>(row, col, g);
	}
};

/* If padding keeps its zeros, storage is processed as one array, padding included. Otherwise rows
 * are processed one by one, and zeros are stored in their padding. */
template <bool KEEPS_ZERO, typename F>
hg_status visit(hg_context *ctx, const char *kernel, const struct hg__mat &shape, const F &f)
{
	if constexpr (KEEPS_ZERO)
		return flat(ctx, kernel, shape, f);
	else
		return walk(ctx, kernel, shape.rows, shape.cols, wide(shape), f);
}

template <typename A> hg_status run(hg_context *ctx, const struct hg__act_args *a)
{
	return visit<A::KEEPS_ZERO>(ctx, "act", a->x,
	                            forward<A>{floats_of(a->x), floats_of(a->y), a->x.cols, a->p});
}

template <typename A> hg_status run_back(hg_context *ctx, const struct hg__act_back_args *a)
{
	return visit<A::KEEPS_ZERO_BACK>(
	    ctx, "act_back", a->y,
	    backward<A>{floats_of(a->y), floats_of(a->dy), floats_of(a->dx), a->y.cols, a->p});
}

/* One row per function, in the order of hg__act. */
constexpr struct {
	hg_status (*forward)(hg_context *, const struct hg__act_args *);
	hg_status (*backward)(hg_context *, const struct hg__act_back_args *);
} table[HG__ACT_COUNT] = {
#define HG_FUNCTION(name, ...) {run<acts::name>, run_back<acts::name>},
#include "kernels/functions.def"
};
static_assert(every(table, [](const auto &row) { return row.forward && row.backward; }), "a hole");

} // namespace

HG__NO_WORKSPACE(act, act_args)

extern "C" hg_status hg__cuda_act(hg_context *ctx, const struct hg__act_args *a)
{
	HG__TRY(hg__has_number(ctx, "act", "function", a->act, HG__ACT_COUNT));
	if (!alike(a->x, a->y))
		return misfit(ctx, "act", HG__FLOATS, a->x, a->y);
	return table[a->act].forward(ctx, a);
}

HG__NO_WORKSPACE(act_back, act_back_args)

extern "C" hg_status hg__cuda_act_back(hg_context *ctx, const struct hg__act_back_args *a)
{
	HG__TRY(hg__has_number(ctx, "act_back", "function", a->act, HG__ACT_COUNT));
	if (!alike(a->y, a->dy) || !alike(a->y, a->dx))
		return misfit(ctx, "act_back", HG__FLOATS, a->y, a->dy, a->dx);
	return table[a->act].backward(ctx, a);
}
