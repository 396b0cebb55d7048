#ifndef HG_KERNELS_CPU_ACTS_H
#define HG_KERNELS_CPU_ACTS_H

#include "kernels/cpu/exp.h"
#include "kernels/cpu/log.h"
#include "kernels/cpu/map.h"

/* The activations: hg__activations[act], with the slope or alpha as env. */

/* Forward, f(x); a NaN passes through each. */

static void relu(const void *env, int64_t n, const float *x, const float *z, float *y)
{
	(void)env;
	(void)z;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		y[i] = x[i] <= 0.0f ? 0.0f : x[i];
}

static void leaky_relu(const void *env, int64_t n, const float *x, const float *z, float *y)
{
	const float p = *(const float *)env;
	(void)z;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		y[i] = x[i] > 0.0f ? x[i] : p * x[i];
}

/* x > 0 ? x : alpha expm1(x) */
static void elu(const void *env, int64_t n, const float *x, const float *z, float *y)
{
	const hg__v16 p = hg__vset(*(const float *)env);
	(void)z;
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const int count = (int)hg__min(HG__LANES, n - i);
		const hg__v16 v = hg__vload_n(x + i, count);
		hg__vstore_n(y + i, hg__vselect(v > 0.0f, v, p * hg__vexpm1(v)), count);
	}
}

static void exponential(const void *env, int64_t n, const float *x, const float *z, float *y)
{
	(void)env;
	(void)z;
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const int count = (int)hg__min(HG__LANES, n - i);
		hg__vstore_n(y + i, hg__vexp(hg__vload_n(x + i, count)), count);
	}
}

static void logarithm(const void *env, int64_t n, const float *x, const float *z, float *y)
{
	(void)env;
	(void)z;
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const int count = (int)hg__min(HG__LANES, n - i);
		hg__vstore_n(y + i, hg__vlog(hg__vload_n(x + i, count)), count);
	}
}

static void square_root(const void *env, int64_t n, const float *x, const float *z, float *y)
{
	(void)env;
	(void)z;
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const int count = (int)hg__min(HG__LANES, n - i);
		hg__vstore_n(y + i, hg__vsqrt(hg__vload_n(x + i, count)), count);
	}
}

/* Backward, dx = f'(x) dy with f' from y. x here is y, z is dy. */

static void relu_back(const void *env, int64_t n, const float *y, const float *dy, float *dx)
{
	(void)env;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

static void leaky_relu_back(const void *env, int64_t n, const float *y, const float *dy, float *dx)
{
	const float p = *(const float *)env;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		dx[i] = y[i] > 0.0f ? dy[i] : p * dy[i];
}

static void elu_back(const void *env, int64_t n, const float *y, const float *dy, float *dx)
{
	const float p = *(const float *)env;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		dx[i] = y[i] > 0.0f ? dy[i] : (y[i] + p) * dy[i];
}

static void exponential_back(const void *env, int64_t n, const float *y, const float *dy, float *dx)
{
	(void)env;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		dx[i] = y[i] * dy[i];
}

/* y is x here */
static void logarithm_back(const void *env, int64_t n, const float *x, const float *dy, float *dx)
{
	(void)env;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		dx[i] = dy[i] / x[i];
}

static void square_root_back(const void *env, int64_t n, const float *y, const float *dy, float *dx)
{
	(void)env;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		dx[i] = dy[i] / (2.0f * y[i]);
}

/* Those that keep a 0 may be given padding, too. */
static const struct hg__activation {
	hg__map_fn forward, backward;
	int keeps_zero, keeps_zero_back;
} hg__activations[HG__ACT_COUNT] = {
    [HG__ACT_RELU] = {relu, relu_back, 1, 1},
    [HG__ACT_LEAKY_RELU] = {leaky_relu, leaky_relu_back, 1, 1},
    [HG__ACT_ELU] = {elu, elu_back, 1, 1},
    [HG__ACT_EXP] = {exponential, exponential_back, 0, 1},
    [HG__ACT_LOG] = {logarithm, logarithm_back, 0, 0},
    [HG__ACT_SQRT] = {square_root, square_root_back, 1, 0},
};

#endif
