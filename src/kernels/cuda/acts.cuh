#ifndef HG_KERNELS_CUDA_ACTS_CUH
#define HG_KERNELS_CUDA_ACTS_CUH

/* Activations, element by element:
 *
 *     relu        y = x > 0 ? x : 0          f' = y > 0
 *     leaky relu  y = x > 0 ? x : p x        f' = y > 0 ? 1 : p
 *     elu         y = x > 0 ? x : p (e^x-1)  f' = y > 0 ? 1 : y + p
 *
 * A NaN stays one on the way forward. */

#include "kernels/cuda/launch.cuh"

struct relu {
	static __device__ float value(float x, float)
	{
		return x <= 0.0f ? 0.0f : x;
	}
	static __device__ float gradient(float y, float dy, float)
	{
		return y > 0.0f ? dy : 0.0f;
	}
};
struct leaky_relu {
	static __device__ float value(float x, float p)
	{
		return x > 0.0f ? x : p * x;
	}
	static __device__ float gradient(float y, float dy, float p)
	{
		return y > 0.0f ? dy : p * dy;
	}
};
struct elu {
	static __device__ float value(float x, float p)
	{
		return x > 0.0f ? x : p * expm1f(x);
	}
	static __device__ float gradient(float y, float dy, float p)
	{
		return y > 0.0f ? dy : (y + p) * dy;
	}
};

#endif
