#ifndef HG_TESTS_ORACLE_NUM_H
#define HG_TESTS_ORACLE_NUM_H

#include <math.h>
#include <stdint.h>

/* A number with its error: v is the exact value in f64, and e bounds how far a computation in the
 * arithmetic with unit roundoff `u` can be from it (running error analysis; Higham, Accuracy and
 * Stability, 3.3). Every function below adds the rounding of its own result. So an oracle that is
 * written once in these numbers gives the value and the test's threshold, which is a theorem. The
 * roundings of f64 itself (2^-53) are below 2^-28 of any bound and are left out. */
typedef struct num {
	double v, e;
} num;

#define ORACLE_U32 0x1p-24
#define ORACLE_U16 0x1p-11
/* The share of a term in the error of a sum of products of halves that tensor cores may have
 * computed. They add 8 terms at a time: each term and the sum so far are cut off below 2 u of the
 * largest, and so is the result. */
#define ORACLE_TENSOR (10.0 / 8.0 * 2.0 * ORACLE_U32)

static inline num num_exact(double v)
{
	return (num){v, 0.0};
}
/* The same for sums over tiles, where halves are multiplied by 1, 2 or 3. Of the t terms of a block
 * and the sum so far, all but the largest are cut off, and so is the result. With t = 1 that is 2
 * errors of 2 u for each term, with more terms it is less. Zeros add no error. Where a part begins
 * there is no sum so far; the error that this saves covers the addition of the part to the
 * others. */
#define ORACLE_TILES (4.0 * ORACLE_U32)

/* The result of one operation whose exact value is `v`, where `e` comes from the operands: fl(x) =
 * x (1 + d), |d| <= u, or an absolute error in the subnormal range: 2^-150 in f32, 2^-25 in f16. */
static inline num num_round(double u, double v, double e)
{
	const double tiny = u > 0x1p-20 ? 0x1p-25 : 0x1p-150;
	return (num){v, e + u * (fabs(v) + e) + tiny};
}

static inline num num_add(double u, num a, num b)
{
	return num_round(u, a.v + b.v, a.e + b.e);
}

static inline num num_sub(double u, num a, num b)
{
	return num_round(u, a.v - b.v, a.e + b.e);
}

static inline num num_mul(double u, num a, num b)
{
	return num_round(u, a.v * b.v, fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e);
}

/* a / b, for |b| > e_b. Elsewhere the bound is infinite. */
static inline num num_div(double u, num a, num b)
{
	const double low = fabs(b.v) - b.e, q = a.v / b.v;
	return low > 0 ? num_round(u, q, (a.e + fabs(q) * b.e) / low) : (num){q, INFINITY};
}

/* exp and log have an error of at most 2 units in the last place (4 u) on both backends. */
static inline num num_exp(double u, num a)
{
	const double v = exp(a.v);
	const num r = num_round(4 * u, v, v * expm1(a.e));
	return r;
}

static inline num num_log(double u, num a)
{
	const double low = a.v - a.e;
	return low > 0 ? num_round(4 * u, log(a.v), a.e / low) : (num){log(a.v), INFINITY};
}

/* log(1 + a) for a >= 0. */
static inline num num_log1p(double u, num a)
{
	return num_round(4 * u, log1p(a.v), a.e);
}

static inline num num_expm1(double u, num a)
{
	return num_round(4 * u, expm1(a.v), exp(a.v) * expm1(a.e));
}

static inline num num_sqrt(double u, num a)
{
	const double v = sqrt(a.v), low = a.v > a.e ? sqrt(a.v - a.e) : 0.0;
	return num_round(u, v, v - low);
}

/* A sum of `count` terms in any order and grouping: gamma_count * sum |x|, plus the errors of the
 * terms (larger by the same factor). `acc` collects it. */
struct num_sum {
	double v, mag, e;
	int64_t count;
};

static inline void num_sum_add(struct num_sum *s, num a)
{
	s->v += a.v;
	s->mag += fabs(a.v) + a.e;
	s->e += a.e;
	s->count++;
}

static inline num num_sum_get(double u, const struct num_sum *s)
{
	const double ku = (double)(s->count + 1) * u, gamma = ku < 0.5 ? ku / (1 - ku) : INFINITY;
	return (num){s->v,
	             s->count ? s->e + gamma * s->mag + (u > 0x1p-20 ? 0x1p-25 * (double)s->count : 0.0)
	                      : 0.0};
}

/* The store: one rounding to f16 or f32. */
static inline num num_store(int is_half, num a)
{
	return num_round(is_half ? ORACLE_U16 : ORACLE_U32, a.v, a.e);
}

#endif
