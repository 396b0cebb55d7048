/* Vectors of sixteen floats for all instruction sets: loads and stores with conversion from and to
 * f16, and sums in a fixed order. */
#ifndef HG_KERNELS_CPU_SIMD_H
#define HG_KERNELS_CPU_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "halfgraph/dtype.h"
#include "kernels/cpu/isa.h"
#include "precision/half.h"

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

/* A vector of sixteen floats: one register with AVX-512, two with AVX2, four with SSE2. Arithmetic
 * uses the compilers' vector types. Every lane does the same IEEE operations in the same order
 * whatever the register width is, so results do not depend on the instruction set. Only gemm is an
 * exception: where no FMA instruction is available a BLAS takes its place (tile.h). */
#define HG__LANES 16
typedef float hg__v16 __attribute__((vector_size(64)));
typedef int32_t hg__i16 __attribute__((vector_size(64)));
typedef float hg__v16_unaligned __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t hg__i16_unaligned __attribute__((vector_size(64), aligned(4), may_alias));

/* A vector is never passed by value to a function that is not inlined. The calling convention for
 * vectors depends on the instruction set (this is what -Wpsabi warns of), and gcc 12 does not align
 * the stack for them where registers are narrower. */
#pragma GCC diagnostic ignored "-Wpsabi"

HG__INLINE hg__v16 hg__vset(float x)
{
	return (hg__v16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

HG__INLINE hg__v16 hg__vload(const float *p)
{
	return *(const hg__v16_unaligned *)p;
}

HG__INLINE void hg__vstore(float *p, hg__v16 v)
{
	*(hg__v16_unaligned *)p = v;
}

/* In each lane: a where all bits of the mask are one, b where they are zero. */
HG__INLINE hg__v16 hg__vselect(hg__i16 mask, hg__v16 a, hg__v16 b)
{
	return (hg__v16)(((hg__i16)a & mask) | ((hg__i16)b & ~mask));
}

/* a * b + c in every lane, with one rounding. */
HG__INLINE hg__v16 hg__vfma(hg__v16 a, hg__v16 b, hg__v16 c)
{
	hg__v16 y;
#if defined(__AVX512F__)
	y = (hg__v16)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
	for (int i = 0; i < HG__LANES; i++)
		y[i] = __builtin_fmaf(a[i], b[i], c[i]);
#endif
	return y;
}

#if defined(__AVX512F__)

HG__INLINE hg__v16 hg__vload_half(const hg_half *p)
{
	return (hg__v16)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

HG__INLINE void hg__vstore_half(hg_half *p, hg__v16 v)
{
	_mm256_storeu_si256((__m256i *)(void *)p,
	                    _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* Rounds every lane to f16 once and widens it again. */
HG__INLINE hg__v16 hg__vround_half(hg__v16 v)
{
	return (hg__v16)_mm512_cvtph_ps(
	    _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#elif defined(__F16C__)

HG__INLINE hg__v16 hg__vload_half(const hg_half *p)
{
	union {
		__m256 part[2];
		hg__v16 all;
	} u;
	u.part[0] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
	u.part[1] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + 8)));
	return u.all;
}

HG__INLINE void hg__vstore_half(hg_half *p, hg__v16 v)
{
	union {
		hg__v16 all;
		__m256 part[2];
	} u = {v};
	_mm_storeu_si128((__m128i *)(void *)p,
	                 _mm256_cvtps_ph(u.part[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
	_mm_storeu_si128((__m128i *)(void *)(p + 8),
	                 _mm256_cvtps_ph(u.part[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

HG__INLINE hg__v16 hg__vround_half(hg__v16 v)
{
	union {
		hg__v16 all;
		__m256 part[2];
	} u = {v};
	u.part[0] =
	    _mm256_cvtph_ps(_mm256_cvtps_ph(u.part[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
	u.part[1] =
	    _mm256_cvtph_ps(_mm256_cvtps_ph(u.part[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
	return u.all;
}

#else

HG__INLINE hg__v16 hg__vload_half(const hg_half *p)
{
	float f[HG__LANES];
	for (int i = 0; i < HG__LANES; i++)
		f[i] = hg__half_to_float(p[i]);
	return hg__vload(f);
}

HG__INLINE void hg__vstore_half(hg_half *p, hg__v16 v)
{
	float f[HG__LANES];
	hg__vstore(f, v);
	for (int i = 0; i < HG__LANES; i++)
		p[i] = hg__half_from_float(f[i]);
}

HG__INLINE hg__v16 hg__vround_half(hg__v16 v)
{
	hg_half h[HG__LANES];
	hg__vstore_half(h, v);
	return hg__vload_half(h);
}

#endif

HG__INLINE hg__v16 hg__vsqrt(hg__v16 v)
{
#if defined(__AVX512F__)
	return (hg__v16)_mm512_sqrt_ps((__m512)v);
#else
	float f[HG__LANES];
	hg__vstore(f, v);
	for (int i = 0; i < HG__LANES; i++)
		f[i] = sqrtf(f[i]);
	return hg__vload(f);
#endif
}

/* Conversions of one element. */
HG__INLINE float hg__widen1(hg_half h)
{
#if defined(__F16C__)
	return _cvtsh_ss(h);
#else
	return hg__half_to_float(h);
#endif
}

HG__INLINE hg_half hg__narrow1(float x)
{
#if defined(__F16C__)
	return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
#else
	return hg__half_from_float(x);
#endif
}

/* Loads n <= 16 elements from p and sets the other lanes to zero. Nothing behind the n elements is
 * read, so p may end there. */
HG__INLINE hg__v16 hg__vload_n(const float *p, int n)
{
#if defined(__AVX512F__)
	return (hg__v16)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
	if (n == HG__LANES)
		return hg__vload(p);
	float f[HG__LANES] = {0};
	for (int i = 0; i < n; i++)
		f[i] = p[i];
	return hg__vload(f);
#endif
}

HG__INLINE hg__v16 hg__vload_half_n(const hg_half *p, int n)
{
#if defined(__AVX512BW__) && defined(__AVX512VL__)
	return (hg__v16)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p));
#else
	if (n == HG__LANES)
		return hg__vload_half(p);
	hg_half h[HG__LANES] = {0};
	if (n == 8)
		memcpy(h, p, 8 * sizeof(*h));
	else
		for (int i = 0; i < n; i++)
			h[i] = p[i];
	return hg__vload_half(h);
#endif
}

/* Stores the first n <= 16 lanes at p. */
HG__INLINE void hg__vstore_n(float *p, hg__v16 v, int n)
{
#if defined(__AVX512F__)
	_mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
	float f[HG__LANES];
	hg__vstore(f, v);
	memcpy(p, f, (size_t)n * sizeof(*p));
#endif
}

HG__INLINE void hg__vstore_half_n(hg_half *p, hg__v16 v, int n)
{
#if defined(__AVX512BW__) && defined(__AVX512VL__)
	_mm256_mask_storeu_epi16(
	    p, (__mmask16)((1u << n) - 1),
	    _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
	hg_half h[HG__LANES];
	hg__vstore_half(h, v);
	if (n == 8)
		memcpy(p, h, 8 * sizeof(*h));
	else
		for (int i = 0; i < n; i++)
			p[i] = h[i];
#endif
}

/* Lane i becomes table[index[i]], where 0 <= index < 16 and the table has 16 entries. */
HG__INLINE hg__v16 hg__vspread(const float *table, hg__i16 index)
{
#if defined(__AVX512F__)
	return (hg__v16)_mm512_permutexvar_ps((__m512i)index, (__m512)hg__vload(table));
#else
	float f[HG__LANES];
	for (int i = 0; i < HG__LANES; i++)
		f[i] = table[index[i]];
	return hg__vload(f);
#endif
}

/* Lanes that are 4, 2 or 1 apart are exchanged, within aligned groups of 8, 4 or 2 lanes. */
HG__INLINE hg__v16 hg__vswap4(hg__v16 v)
{
	return __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
}

HG__INLINE hg__v16 hg__vswap2(hg__v16 v)
{
	return __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
}

HG__INLINE hg__v16 hg__vswap1(hg__v16 v)
{
	return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
}

/* The sum of the lanes as a tree: lane i adds lane i + 8, then i + 4, i + 2 and i + 1. */
typedef float hg__v8 __attribute__((vector_size(32)));
typedef float hg__v4 __attribute__((vector_size(16)));
HG__INLINE float hg__vsum(hg__v16 v)
{
	const hg__v8 a = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
	                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
	const hg__v4 b =
	    __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
	const hg__v4 c = b + __builtin_shufflevector(b, b, 2, 3, 0, 1);
	return c[0] + c[1];
}

/* The larger value in every lane. A NaN counts as the largest. */
HG__INLINE hg__v16 hg__vmax(hg__v16 a, hg__v16 b)
{
	return hg__vselect((a > b) | (a != a), a, b);
}

/* The largest of the lanes. A NaN counts as the largest. */
HG__INLINE float hg__vlargest(hg__v16 v)
{
	v = hg__vmax(
	    v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
	v = hg__vmax(v, hg__vswap4(v));
	v = hg__vmax(v, hg__vswap2(v));
	v = hg__vmax(v, hg__vswap1(v));
	return v[0];
}

/* Convert n elements: hg__widen from f16 to f32, hg__narrow from f32 to f16. */
HG__INLINE void hg__widen(int64_t n, const hg_half *in, float *out)
{
	int64_t i = 0;
	for (; i + HG__LANES <= n; i += HG__LANES)
		hg__vstore(out + i, hg__vload_half(in + i));
	if (i < n)
		hg__vstore_n(out + i, hg__vload_half_n(in + i, (int)(n - i)), (int)(n - i));
}

HG__INLINE void hg__narrow(int64_t n, const float *in, hg_half *out)
{
	int64_t i = 0;
	for (; i + HG__LANES <= n; i += HG__LANES)
		hg__vstore_half(out + i, hg__vload(in + i));
	if (i < n)
		hg__vstore_half_n(out + i, hg__vload_n(in + i, (int)(n - i)), (int)(n - i));
}

/* Sums of n terms. Lane i % 16 adds term i, and then the lanes are added as a tree, so an error
 * bound for them has depth n / 16 + 4. */
HG__INLINE float hg__sum(int64_t n, const float *x)
{
	hg__v16 acc = {0};
	int64_t i = 0;
	for (; i + HG__LANES <= n; i += HG__LANES)
		acc += hg__vload(x + i);
	if (i < n)
		acc += hg__vload_n(x + i, (int)(n - i));
	return hg__vsum(acc);
}

HG__INLINE float hg__dot(int64_t n, const float *x, const float *y)
{
	hg__v16 acc = {0};
	int64_t i = 0;
	for (; i + HG__LANES <= n; i += HG__LANES)
		acc += hg__vload(x + i) * hg__vload(y + i);
	if (i < n)
		acc += hg__vload_n(x + i, (int)(n - i)) * hg__vload_n(y + i, (int)(n - i));
	return hg__vsum(acc);
}

/* Heads of 8 columns: a vector holds two heads, and the 8 lanes of each are added as a tree. */
HG__INLINE void hg__dot_eights(int64_t cols, const float *a, const float *b, float *out)
{
	for (int64_t c = 0; c < cols; c += HG__LANES) {
		const int n = cols - c < HG__LANES ? (int)(cols - c) : HG__LANES;
		hg__v16 v = hg__vload_n(a + c, n) * hg__vload_n(b + c, n);
		v += hg__vswap4(v);
		v += hg__vswap2(v);
		v += hg__vswap1(v);
		out[c / 8] = v[0];
		if (n > 8)
			out[c / 8 + 1] = v[8];
	}
}

/* For every head k: out[k] = sum over c of a[k * d + c] b[k * d + c]. */
HG__INLINE void hg__dot_heads(int64_t heads, int64_t d, const float *a, const float *b, float *out)
{
	if (d == 8)
		hg__dot_eights(heads * d, a, b, out);
	else
		for (int64_t k = 0; k < heads; k++)
			out[k] = hg__dot(d, a + k * d, b + k * d);
}

#endif
