/* The functions of one operand (kernels/functions.def), on vectors of sixteen numbers. The table
 * hg__activations has one row per function, in the order of hg__act. */
#ifndef HG_KERNELS_CPU_ACTS_H
#define HG_KERNELS_CPU_ACTS_H

#include "kernels/cpu/exp.h"
#include "kernels/cpu/log.h"
#include "kernels/cpu/map.h"

#define f_float hg__v16
#define F_INLINE HG__INLINE
#define f_all hg__vset
#define f_pick hg__vselect
#define f_exp hg__vexp
#define f_expm1 hg__vexpm1
#define f_log hg__vlog
#define f_sqrt hg__vsqrt

HG__INLINE hg__v16 f_abs(hg__v16 x)
{
	return (hg__v16)((hg__i16)x & 0x7FFFFFFF);
}

#include "kernels/formulas.h"

/* For each function: its value and its gradient for one vector, and NAME_forward and NAME_backward,
 * which compute n elements for HG__CPU(map). env points to the function's constant p. In
 * NAME_backward, x is the operand that the op keeps (X or Y), and z is dY. */
#define HG_FUNCTION(name, reads, zero, zero_back, value, gradient, ...)                     \
	HG__INLINE hg__v16 name##_value(hg__v16 x, hg__v16 p)                                   \
	{                                                                                       \
		(void)p;                                                                            \
		return value;                                                                       \
	}                                                                                       \
	HG__INLINE hg__v16 name##_gradient(hg__v16 x, hg__v16 dy, hg__v16 p)                    \
	{                                                                                       \
		const hg__v16 y = x;                                                                \
		(void)y, (void)p;                                                                   \
		return gradient;                                                                    \
	}                                                                                       \
	static void name##_forward(const void *env, int64_t n, const float *x, const float *z,  \
	                           float *y)                                                    \
	{                                                                                       \
		const hg__v16 p = hg__vset(*(const float *)env);                                    \
		(void)z;                                                                            \
		for (int64_t i = 0; i < n; i += HG__LANES) {                                        \
			const int count = (int)hg__min(HG__LANES, n - i);                               \
			hg__vstore_n(y + i, name##_value(hg__vload_n(x + i, count), p), count);         \
		}                                                                                   \
	}                                                                                       \
	static void name##_backward(const void *env, int64_t n, const float *x, const float *z, \
	                            float *y)                                                   \
	{                                                                                       \
		const hg__v16 p = hg__vset(*(const float *)env);                                    \
		for (int64_t i = 0; i < n; i += HG__LANES) {                                        \
			const int count = (int)hg__min(HG__LANES, n - i);                               \
			const hg__v16 of = hg__vload_n(x + i, count), dy = hg__vload_n(z + i, count);   \
			hg__vstore_n(y + i, name##_gradient(of, dy, p), count);                         \
		}                                                                                   \
	}
#include "kernels/functions.def"

/* keeps_zero, keeps_zero_back: zero and zero_back of functions.def. */
static const struct hg__activation {
	hg__map_fn forward, backward;
	int keeps_zero, keeps_zero_back;
} hg__activations[HG__ACT_COUNT] = {
#define HG_FUNCTION(name, reads, zero, zero_back, ...) \
	{name##_forward, name##_backward, zero, zero_back},
#include "kernels/functions.def"
};

#endif
