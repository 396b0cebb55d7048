/* The epilogue of an element-wise kernel, applied to a pack of W columns of a row in f32 before the
 * store (struct hg__act_drop): y = dropout(f(x)). */
#ifndef HG_KERNELS_CUDA_ACT_DROP_CUH
#define HG_KERNELS_CUDA_ACT_DROP_CUH

#include <type_traits>

#include "kernels/cuda/acts.cuh"
#include "kernels/cuda/drop.cuh"

struct identity {
	static __device__ float value(float x, float)
	{
		return x;
	}
	static __device__ float gradient(float, float dy, float)
	{
		return dy;
	}
};

/* The function A, then dropout if DROPS. READS: the gradient needs y. DRAWS: it also needs the
 * random numbers. relu does not need them, because y > 0 holds exactly where x > 0 and the element
 * was kept. */
template <typename A, bool DROPS> struct act_drop {
	static constexpr bool READS = !std::is_same<A, identity>::value,
	                      DRAWS = DROPS && !std::is_same<A, acts::relu>::value;
	float act_p;
	struct drop d;

	template <int W> __device__ void value(int64_t row, int64_t col, float (&v)[W]) const
	{
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = A::value(v[i], act_p);
		if constexpr (DROPS)
			d.pack<W>(row, col, v);
	}
	/* g is dY on entry, and the gradient on return */
	template <int W>
	__device__ void gradient(int64_t row, int64_t col, const float (&y)[W], float (&g)[W]) const
	{
		if constexpr (DRAWS)
			d.pack<W>(row, col, g);
#pragma unroll
		for (int i = 0; i < W; i++) {
			if constexpr (DROPS && !DRAWS)
				g[i] = g[i] / d.keep;
			g[i] = A::gradient(DRAWS ? y[i] * d.keep : y[i], g[i], act_p);
		}
	}
};

template <typename E> E act_drop_of(const struct hg__act_drop &e)
{
	return {e.act_p, drop_of(e.p, e.key, e.step)};
}

#endif
