/* Error bounds of sums and products: the formulas that bound.h states and derives. */
#include "precision/bound.h"

#include <math.h>

#include "precision/half.h"

static const double u16 = 0x1p-11, eta16 = 0x1p-24, u32 = 0x1p-24, eta32 = 0x1p-149;

double hg__gamma(double k, double u)
{
	const double ku = k * u;
	return ku < 1 ? ku / (1 - ku) : INFINITY;
}

double hg__headroom(hg_dtype dtype, double x)
{
	return log2(hg_dtype_get(dtype)->overflow / fabs(x));
}

double hg__bound_narrow(hg_dtype to, double x)
{
	const hg_dtype_facts *t = hg_dtype_get(to);
	if (!t || !t->is_float)
		return 0;
	return fabs(x) < t->overflow ? t->u * fabs(x) + t->min_subnormal / 2 : INFINITY;
}

/* 0 stays 0 even where the factor is infinite (not 0 * INFINITY): an empty sum is exact. */
static double scale_or_zero(double factor, double value)
{
	return value == 0 ? 0 : factor * value;
}

double hg__bound_sum_f32(double depth, double abs_sum)
{
	return scale_or_zero(hg__gamma(depth, u32), abs_sum) + depth * eta32 / 2;
}

double hg__depth_dot(hg_dtype of, double k)
{
	return of == HG_F16 ? 2.5 * k : k;
}

double hg__depth_tiles(double k)
{
	return 4 * k;
}

double hg__bound_sum(hg_dtype to, double depth, double abs_sum, double y)
{
	const double e = hg__bound_sum_f32(depth, abs_sum);
	return to == HG_F16 ? e + u16 * (fabs(y) + e) + eta16 / 2 : e;
}

double hg__bound_product(double a, double da, double x, double dx)
{
	return fabs(a) * dx + fabs(x) * da + da * dx;
}

static int64_t batch_count(int64_t edges, int64_t batch, int64_t pieces)
{
	return (batch > 0 ? (edges + batch - 1) / batch : edges > 0) + pieces;
}

double hg__depth_f16(int64_t edges, int64_t batch, int64_t pieces)
{
	const int64_t longest = batch > 0 && edges > batch ? batch : edges;
	return (double)(longest + batch_count(edges, batch, pieces) + 6);
}

double hg__growth_f16(double k)
{
	return fmin(1 + hg__gamma(k, u16), 2);
}

double hg__largest_sum_f16(double term, int64_t k)
{
	const float t = hg__half_to_float(hg__half_from_double(term));
	float sum = 0;
	for (int64_t i = 0; i < k; i++)
		sum = hg__half_round(sum + t);
	return (double)sum;
}

double hg__bound_sum_f16(const struct hg__sum_f16 *s)
{
	const double f = fabs(s->factor),
	             gamma = hg__gamma(hg__depth_f16(s->edges, s->batch, s->pieces), u16);
	const double subnormal = f < 0x1p-14 ? s->abs_sum : 0;
	const double near_zero =
	    f * s->tiny + (double)batch_count(s->edges, s->batch, s->pieces) + subnormal;
	return scale_or_zero(gamma, f * s->abs_sum) + (1 + gamma) * eta16 / 2 * near_zero;
}
