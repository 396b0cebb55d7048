#ifndef HG_KERNELS_CUDA_ACTS_CUH
#define HG_KERNELS_CUDA_ACTS_CUH

/* The element-wise functions (functions.def): acts::NAME, a functor each. KEEPS_ZERO: of a 0 comes
 * a 0, of two in the gradient, so that padding may be taken for elements. */

#include "kernels/cuda/launch.cuh"

namespace acts
{

#define f_float float
#define F_INLINE static __device__ inline
#define f_abs fabsf
#define f_exp expf
#define f_expm1 expm1f
#define f_log logf
#define f_sqrt sqrtf
#define f_all(x) (x)
/* a macro: what is not picked need not be computed */
#define f_pick(condition, a, b) ((condition) ? (a) : (b))

#include "kernels/formulas.h"

#define HG_FUNCTION(name, reads, zero, zero_back, f, df, ...)                 \
	struct name {                                                             \
		static constexpr bool KEEPS_ZERO = zero, KEEPS_ZERO_BACK = zero_back; \
		static __device__ float value(float x, float p)                       \
		{                                                                     \
			(void)p;                                                          \
			return f;                                                         \
		}                                                                     \
		/* from y or x, which are both `y` here */                            \
		static __device__ float gradient(float y, float dy, float p)          \
		{                                                                     \
			const float x = y;                                                \
			(void)x, (void)p;                                                 \
			return df;                                                        \
		}                                                                     \
	};
#include "kernels/functions.def"

} // namespace acts

#endif
