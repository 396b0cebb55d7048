/* Packs of W = 1, 2, 4 or 8 halves, which a lane loads and stores in one access, and of as many
 * floats in scratch memory. */
#ifndef HG_BENCH_PACKS_CUH
#define HG_BENCH_PACKS_CUH

#include "kernels/cuda/launch.cuh"

template <int W> struct halves;
template <> struct halves<1> {
	using word = unsigned short;
};
template <> struct halves<2> {
	using word = unsigned;
};
template <> struct halves<4> {
	using word = uint2;
};
template <> struct halves<8> {
	using word = uint4;
};
template <int W> using word = typename halves<W>::word;

template <int W> static __device__ inline word<W> fetch_word(const __half *p)
{
	return __ldg(reinterpret_cast<const word<W> *>(p));
}
template <int W> static __device__ inline void widen_word(const word<W> &bits, float (&x)[W])
{
	__half h[W];
	memcpy(static_cast<void *>(h), &bits, sizeof bits);
#pragma unroll
	for (int i = 0; i < W; i++)
		x[i] = __half2float(h[i]);
}
template <int W> static __device__ inline void store_word(__half *p, const float (&x)[W])
{
	__half h[W];
#pragma unroll
	for (int i = 0; i < W; i++)
		h[i] = __float2half_rn(x[i]);
	word<W> bits;
	memcpy(&bits, h, sizeof bits);
	*reinterpret_cast<word<W> *>(p) = bits;
}
template <int W> static __device__ inline void store_floats(float *p, const float (&x)[W])
{
	if constexpr (W == 1) {
		*p = x[0];
	} else if constexpr (W == 2) {
		*reinterpret_cast<float2 *>(p) = make_float2(x[0], x[1]);
	} else {
#pragma unroll
		for (int i = 0; i < W; i += 4)
			reinterpret_cast<float4 *>(p)[i / 4] = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
	}
}

/* *p += x for eight numbers, atomically, in an order that changes from run to run. p is a multiple
 * of 16 bytes (halves) or 32 bytes (floats). */
static __device__ inline void atomic_add(__half *p, const float (&x)[8])
{
#pragma unroll
	for (int i = 0; i < 4; i++)
		atomicAdd(reinterpret_cast<__half2 *>(p) + i, __floats2half2_rn(x[2 * i], x[2 * i + 1]));
}
static __device__ inline void atomic_add(float *p, const float (&x)[8])
{
#if __CUDA_ARCH__ >= 900
	atomicAdd(reinterpret_cast<float4 *>(p), make_float4(x[0], x[1], x[2], x[3]));
	atomicAdd(reinterpret_cast<float4 *>(p) + 1, make_float4(x[4], x[5], x[6], x[7]));
#else
#pragma unroll
	for (int i = 0; i < 8; i++)
		atomicAdd(p + i, x[i]);
#endif
}

#endif
