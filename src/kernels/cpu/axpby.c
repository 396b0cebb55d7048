/* Y = alpha (1 + *alpha_p) X + beta Z, element by element. alpha_p may be NULL and Z absent. */
#include "kernels/cpu/map.h"

static void axpby(const void *env, int64_t n, const float *x, const float *z, float *y)
{
	const float *factor = env;
	if (!z) {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			y[i] = factor[0] * x[i];
		return;
	}
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		y[i] = factor[0] * x[i] + factor[1] * z[i];
}

HG__NO_WORKSPACE(axpby, axpby_args)

hg_status HG__CPU(axpby)(hg_context *ctx, const struct hg__axpby_args *a)
{
	const float factor[2] = {a->alpha_p ? a->alpha * (1.0f + *a->alpha_p) : a->alpha, a->beta};
	return HG__CPU(map)(ctx, "axpby", axpby, factor, 1, a->x, a->z, a->y);
}
