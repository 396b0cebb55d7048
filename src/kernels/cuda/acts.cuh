/* The functions of one operand (kernels/functions.def), on the device. Each is a functor
 * acts::NAME; its KEEPS_ZERO and KEEPS_ZERO_BACK are zero and zero_back of functions.def. */
#ifndef HG_KERNELS_CUDA_ACTS_CUH
#define HG_KERNELS_CUDA_ACTS_CUH

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
/* A macro and not a function, so that the operand that is not picked need not be computed. */
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
		/* y: the operand that the op keeps, X or Y */                        \
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
