#ifndef HG_KERNELS_FORMULAS_H
#define HG_KERNELS_FORMULAS_H

/* The functions of functions.def that take more than one term, written once for both backends. A
 * backend defines first: f_float, one or sixteen numbers of f32; F_INLINE; f_all(c), c in each;
 * f_pick(condition, a, b); f_abs, f_sqrt; f_exp, f_expm1 (of x <= 0) and f_log, each within 4 u of
 * its value (2 units in the last place), u = u32 = 2^-24. Products and sums are two roundings on
 * both. Bounds are of first order, relative, and hold down to the smallest normal number; there
 * what is stored is rounded once or twice more, absolutely. A NaN comes out as it went in, so that
 * its sign, too, is the same in every instruction set. */

/* 1 / (1 + e^-x), in [0, 1]. By e = e^-|x| <= 1, which cannot overflow: 1 / (1 + e) for x >= 0,
 * e / (1 + e) below. e is off by 4 u and moves e / (1 + e) by as much at most; a sum, a quotient
 * and a product: 7 u. */
F_INLINE f_float f_logistic(f_float x)
{
	const f_float e = f_exp(-f_abs(x)), r = 1.0f / (1.0f + e);
	return f_pick(x >= 0.0f, r, f_pick(x < 0.0f, e * r, x));
}

/* tanh |x| = -t / (2 + t), t = e^(-2 |x|) - 1 in [-1, 0]: in [0, 1], since -t <= 1 <= 2 + t. t is
 * off by 4 u, the quotient by up to twice that, 2 / (2 + t) of it; a sum and a quotient: 10 u. */
F_INLINE f_float f_tanh(f_float x)
{
	const f_float t = f_expm1(-2.0f * f_abs(x)), y = -t / (2.0f + t);
	return f_pick(x > 0.0f, y, f_pick(x < 0.0f, -y, x));
}

/* The normal distribution: Phi(x) = erfc(-x / sqrt 2) / 2, in [0, 1]. Of its tail
 *
 *     Phi(-a) = e^(-a^2 / 2) q(t) / (a + 3),  t = (a - 3) / (a + 3),  0 <= a <= 16
 *
 * q is the polynomial of degree 9 with the smallest largest relative error there, 0.4 u, and 1.3 u
 * with its coefficients in f32 (Lawson's iteration, 600 Chebyshev points). Beyond 16 the
 * exponential is 0. Phi(x) = 1 - Phi(-x) for x >= 0.
 *
 * Error: that of a^2 / 2, u of it, is one of the exponential; that of the exponential 4 u; 3 u by
 * t, 4 u of which move q by 0.71; 2.2 u of Horner's scheme; 4 u of r and the products. Together
 * (15 + x^2 / 2) u, at most 102 u, where Phi leaves f32. */
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

/* Its density, e^(-x^2 / 2) / sqrt(2 pi): (6 + x^2 / 2) u. */
F_INLINE f_float f_density(f_float x)
{
	return 0x1.988454p-2f * f_exp(-0.5f * (x * x));
}

#endif
