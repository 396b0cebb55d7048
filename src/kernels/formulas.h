#ifndef HG_KERNELS_FORMULAS_H
#define HG_KERNELS_FORMULAS_H

/* The longer functions of functions.def, written once for both backends. A backend defines these
 * names before it includes this file:
 *
 *     f_float                    one f32 number on the GPU, a vector of sixteen on the CPU
 *     F_INLINE                   the specifiers of a function
 *     f_all(c)                   c in every lane
 *     f_pick(condition, a, b)    a where the condition holds, otherwise b
 *     f_abs, f_sqrt
 *     f_exp, f_expm1, f_log      each within 4 u of its value; f_expm1 for x <= 0 only
 *
 * Here u = u32 = 2^-24, half a unit in the last place. Both backends round a product and a sum
 * separately. The error bounds below are relative and of first order. They hold down to the
 * smallest normal number; a smaller result is rounded to a multiple of the smallest subnormal once
 * or twice more. A NaN is returned as it is, so that even its sign is the same in every instruction
 * set. */

/* 1 / (1 + e^-x), in [0, 1]. It is computed from e = e^-|x| <= 1, which cannot overflow:
 * 1 / (1 + e) for x >= 0, and e / (1 + e) for x < 0. Error: e is off by 4 u, which moves
 * e / (1 + e) by at most 4 u; the sum, the quotient and the product add 3 u. Together 7 u. */
F_INLINE f_float f_logistic(f_float x)
{
	const f_float e = f_exp(-f_abs(x)), r = 1.0f / (1.0f + e);
	return f_pick(x >= 0.0f, r, f_pick(x < 0.0f, e * r, x));
}

/* tanh |x| = -t / (2 + t) with t = e^(-2 |x|) - 1 in [-1, 0]. The result is in [0, 1], since
 * -t <= 1 <= 2 + t. Error: t is off by 4 u, which moves the quotient by 2 / (2 + t) times as much,
 * at most 8 u; the sum and the quotient add 2 u. Together 10 u. */
F_INLINE f_float f_tanh(f_float x)
{
	const f_float t = f_expm1(-2.0f * f_abs(x)), y = -t / (2.0f + t);
	return f_pick(x > 0.0f, y, f_pick(x < 0.0f, -y, x));
}

/* The distribution function of the normal distribution: Phi(x) = erfc(-x / sqrt 2) / 2, in [0, 1].
 * Its lower tail is computed as
 *
 *     Phi(-a) = e^(-a^2 / 2) q(t) / (a + 3),  t = (a - 3) / (a + 3),  0 <= a <= 16
 *
 * and for x >= 0, Phi(x) = 1 - Phi(-x). q is the polynomial of degree 9 whose largest relative
 * error is the smallest: 0.4 u, and 1.3 u once its coefficients are rounded to f32. It was found by
 * Lawson's iteration on 600 Chebyshev points. Beyond a = 16 the exponential is 0.
 *
 * Error: a^2 / 2 is off by u times itself, which moves the exponential by (x^2 / 2) u. The
 * exponential itself is off by 4 u. t is off by 4 u, which moves q by at most 3 u. q is off by
 * 1.3 u, Horner's scheme adds 2.2 u, and r and the products add 4 u. Together (15 + x^2 / 2) u, at
 * most 102 u before Phi underflows in f32. */
F_INLINE f_float f_normal(f_float x)
{
	const f_float e = f_exp(-0.5f * (x * x)), to = f_abs(x);
	const f_float a = f_pick(to > 16.0f, f_all(16.0f), to), r = 1.0f / (3.0f + a),
	              t = (a - 3.0f) * r;
	f_float q = f_all(0x1.f1d1d2p-15f);
	q = q * t + -0x1.918b4ap-13f;
	q = q * t + -0x1.f157fp-11f;
	q = q * t + 0x1.07ef4p-10f;
	q = q * t + 0x1.c68f4p-8f;
	q = q * t + -0x1.56be8cp-7f;
	q = q * t + -0x1.8322acp-5f;
	q = q * t + 0x1.d71366p-3f;
	q = q * t + -0x1.04c73p-1f;
	q = q * t + 0x1.754a76p-1f;
	const f_float tail = e * (r * q);
	return f_pick(x < 0.0f, tail, 1.0f - tail);
}

/* The density of the normal distribution, e^(-x^2 / 2) / sqrt(2 pi). Error: (6 + x^2 / 2) u. */
F_INLINE f_float f_density(f_float x)
{
	return 0x1.988454p-2f * f_exp(-0.5f * (x * x));
}

#endif
