#ifndef HG_KERNELS_CUDA_ACTS_CUH
#define HG_KERNELS_CUDA_ACTS_CUH

/* Activations, element by element:
 *
 *     relu        y = x > 0 ? x : 0          f' = y > 0
 *     leaky relu  y = x > 0 ? x : p x        f' = y > 0 ? 1 : p
 *     elu         y = x > 0 ? x : p (e^x-1)  f' = y > 0 ? 1 : y + p
 *     exp         y = e^x                    f' = y
 *     log         y = log x                  f' = 1 / x, x in the place of y
 *     sqrt        y = root of x              f' = 1 / (2 y)
 *
 * A NaN stays one on the way forward. KEEPS_ZERO: of a 0 comes a 0, of two in the gradient, so that
 * padding may be taken for elements. */

#include "kernels/cuda/launch.cuh"

struct relu {
	static constexpr bool KEEPS_ZERO = true, KEEPS_ZERO_BACK = true;
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
	static constexpr bool KEEPS_ZERO = true, KEEPS_ZERO_BACK = true;
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
	static constexpr bool KEEPS_ZERO = true, KEEPS_ZERO_BACK = true;
	static __device__ float value(float x, float p)
	{
		return x > 0.0f ? x : p * expm1f(x);
	}
	static __device__ float gradient(float y, float dy, float p)
	{
		return y > 0.0f ? dy : (y + p) * dy;
	}
};

struct exponential {
	static constexpr bool KEEPS_ZERO = false, KEEPS_ZERO_BACK = true;
	static __device__ float value(float x, float)
	{
		return expf(x);
	}
	static __device__ float gradient(float y, float dy, float)
	{
		return y * dy;
	}
};
struct logarithm {
	static constexpr bool KEEPS_ZERO = false, KEEPS_ZERO_BACK = false;
	static __device__ float value(float x, float)
	{
		return logf(x);
	}
	static __device__ float gradient(float x, float dy, float)
	{
		return dy / x;
	}
};
struct square_root {
	static constexpr bool KEEPS_ZERO = true, KEEPS_ZERO_BACK = false;
	static __device__ float value(float x, float)
	{
		return sqrtf(x);
	}
	static __device__ float gradient(float y, float dy, float)
	{
		return dy / (2.0f * y);
	}
};

#endif
