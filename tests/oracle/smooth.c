#include "oracle/parts.h"

static double logistic(double x)
{
	return 1 / (1 + exp(-x));
}

static double normal(double x)
{
	return erfc(-x / sqrt(2.0)) / 2;
}

static double density(double x)
{
	return exp(-x * x / 2) / sqrt(2 * 3.14159265358979323846);
}

/* Near 0, a result and the numbers it is computed from are rounded to subnormal numbers of f32.
 * Then the error is not `off` u of the result but a few steps of 2^-149, and some are multiplied by
 * an x of at most 16. */
#define NEAR_ZERO 0x1p-143

static num off_by(num y, double e)
{
	return (num){y.v, y.e + e + NEAR_ZERO};
}

#define ORACLE_SMOOTH(name, value, off, steepest, slope, slope_off)                               \
	static num name##_value(double u, double x, double e)                                         \
	{                                                                                             \
		const double v = value;                                                                   \
		return off_by(num_exact(v), (off)*u * (fabs(v) + (steepest)*e) + (steepest)*e);           \
	}                                                                                             \
	static num name##_slope(double u, double x, num y)                                            \
	{                                                                                             \
		(void)x, (void)y;                                                                         \
		return off_by(slope, (slope_off)*u);                                                      \
	}                                                                                             \
	void oracle_##name(struct oracle_call *c)                                                     \
	{                                                                                             \
		FOR_OUT(r, k)                                                                             \
		OUT(r, k) = name##_value(c->u, IN(0, r, k).v, IN(0, r, k).e);                             \
	}                                                                                             \
	void oracle_##name##_back(struct oracle_call *c)                                              \
	{                                                                                             \
		if (WANT(0))                                                                              \
			FOR_OUT(r, k)                                                                         \
		DIN(0, r, k) = num_mul(c->u, name##_slope(c->u, IN(0, r, k).v, SAVED(r, k)), DOUT(r, k)); \
	}
#include "oracle/smooth.def"
