#include <math.h>

#include "harness.h"
#include "precision/bound.h"
#include "precision/half.h"

/* Each bound against sums that are really computed in the arithmetic it speaks of: err / bound <= 1, always, and for some not far below (a bound that is
 * never approached proves little). */

enum { MOST = 5000 };

static float narrowed(double x)
{
	return hg_half_to_float(hg_half_from_double(x));
}

static void gamma_is_k_u(void)
{
	CHECK_WITHIN(hg__gamma(1, 0x1p-11), 1.0 / 2047, 1e-18);
	CHECK_WITHIN(hg__gamma(100, 0x1p-24), 100 * 0x1p-24 / (1 - 100 * 0x1p-24), 1e-20);
	CHECK(hg__gamma(0, 0x1p-11) == 0);
	CHECK(isinf(hg__gamma(2048, 0x1p-11)) && isinf(hg__gamma(1e9, 0x1p-24)));
	CHECK(isfinite(hg__gamma(2047, 0x1p-11)));
}

static void narrowing(void)
{
	double worst = 0;
	for (int i = 0; i < 2000000; i++) {
		const double x = ldexp(test_normal(), (int)test_below(44) - 30), bound = hg__bound_narrow(HG_F16, x);
		if (fabs(x) >= 65520) {
			CHECK(isinf(bound));
			continue;
		}
		const double ratio = fabs((double)narrowed(x) - x) / bound;
		CHECK_MSG(ratio <= 1, "%a: ratio %g", x, ratio);
		worst = fmax(worst, ratio);
	}
	CHECK(worst > 0.9);
	CHECK(hg__bound_narrow(HG_I32, 5) == 0 && hg__bound_narrow(HG_F32, 1) < 0x1p-23);
}

/* One random row: products of halves are exact in f64, and so is, but for 2^-53, their sum. */
struct row {
	int n;
	float a[MOST], x[MOST];
	double y, abs_sum;
};

static void random_row(struct row *r, int n, double scale)
{
	r->n = n;
	r->y = r->abs_sum = 0;
	for (int i = 0; i < n; i++) {
		r->a[i] = narrowed(test_uniform());
		r->x[i] = narrowed(scale * test_normal());
		r->y += (double)r->a[i] * (double)r->x[i];
		r->abs_sum += fabs((double)r->a[i] * (double)r->x[i]);
	}
}

static void sums_in_f32_narrowed_once(void)
{
	static struct row r;
	double worst16 = 0, worst32 = 0;
	for (int i = 0; i < 3000; i++) {
		random_row(&r, (int)test_below(MOST), ldexp(1, (int)test_below(20) - 14));
		float sum = 0;
		for (int k = 0; k < r.n; k++)
			sum += r.a[k] * r.x[k];
		worst32 = fmax(worst32, fabs((double)sum - r.y) / hg__bound_sum(HG_F32, r.n, r.abs_sum, r.y));
		if (fabs(r.y) < 65000)
			worst16 = fmax(worst16, fabs((double)hg_half_to_float(hg_half_from_float(sum)) - r.y) / hg__bound_sum(HG_F16, r.n, r.abs_sum, r.y));
	}
	CHECK_MSG(worst16 <= 1 && worst32 <= 1, "err/bound: f16 %g, f32 %g", worst16, worst32);
	CHECK(worst16 > 0.5);
	CHECK(hg__bound_sum(HG_F32, 0, 0, 0) == 0 && hg__bound_sum(HG_F16, 0, 0, 0) == 0x1p-25);
}

static float add16(float a, float b)
{
	return narrowed((double)a + (double)b);
}

static float mul16(float a, float b)
{
	return narrowed((double)a * (double)b);
}

/* Part [first, last) of a row as a kernel sums it in f16: batch by batch, each scaled before it joins. batch = 0: one batch. */
static float part16(const struct row *r, int first, int last, int batch, float factor)
{
	float total = 0, sum = 0;
	for (int k = first, in_batch = 0; k < last; k++) {
		sum = add16(sum, mul16(r->a[k], r->x[k]));
		if (batch && ++in_batch == batch) {
			total = add16(total, mul16(sum, factor));
			sum = 0;
			in_batch = 0;
		}
	}
	return add16(total, mul16(sum, factor));
}

static double ratio16(const struct row *r, int batch, int pieces, double factor)
{
	const float f = narrowed(factor);
	float y = 0;
	for (int p = 0; p < pieces; p++)
		y = add16(y, part16(r, (int)((int64_t)r->n * p / pieces), (int)((int64_t)r->n * (p + 1) / pieces), batch, f));
	return fabs((double)y - factor * r->y) / hg__bound_sum_f16(r->n, batch, pieces, factor, r->abs_sum);
}

static void discretized_sums_in_f16(void)
{
	static struct row r;
	double worst = 0;
	for (int i = 0; i < 3000; i++) {
		random_row(&r, 1 + (int)test_below(MOST), ldexp(1, (int)test_below(18) - 14));
		worst = fmax(worst, ratio16(&r, 64, 1 + (int)test_below(12), 1.0 / r.n));
	}
	CHECK_MSG(worst <= 1, "err/bound %g", worst);
	CHECK(worst > 0.005);
}

/* 1/degree below 2^-14 is a subnormal half with few bits left: the term for the factor is what keeps this a theorem. */
static void a_subnormal_factor_is_accounted_for(void)
{
	static struct row r;
	double worst = 0;
	for (int i = 0; i < 1000; i++) {
		random_row(&r, 1 + (int)test_below(MOST), 16.0);
		for (int k = 0; k < r.n; k++) {
			r.a[k] = fabsf(r.a[k]);
			r.x[k] = fabsf(r.x[k]);
		}
		r.y = r.abs_sum;
		worst = fmax(worst, ratio16(&r, 64, 1, 1.0 / 300000 * (1 + test_uniform())));
	}
	CHECK_MSG(worst <= 1, "err/bound %g", worst);
	CHECK(worst > 0.02);
}

static void naive_sums_in_f16(void)
{
	static struct row r;
	double worst = 0;
	for (int i = 0; i < 2000; i++) {
		random_row(&r, 1 + (int)test_below(1500), 1.0);
		worst = fmax(worst, ratio16(&r, 0, 1, 1.0 / r.n));
	}
	CHECK_MSG(worst <= 1, "err/bound %g", worst);
}

static void depth_is_short_where_it_is_discretized(void)
{
	CHECK(hg__depth_f16(0, 64, 1) == 5);
	CHECK(hg__depth_f16(64, 64, 1) == 64 + 1 + 1 + 4);
	CHECK(hg__depth_f16(100000, 64, 200) == 64 + 1563 + 200 + 4);
	CHECK(hg__depth_f16(1000, 0, 1) == 1000 + 1 + 1 + 4);
	CHECK(isfinite(hg__bound_sum_f16(100000, 64, 200, 1e-5, 1e5)) && isinf(hg__bound_sum_f16(100000, 0, 200, 1e-5, 1e5)));
}

static void products_of_narrowed_operands(void)
{
	for (int i = 0; i < 100000; i++) {
		const double a = test_normal(), x = test_normal(), da = 0.1 * test_uniform(), dx = 0.1 * test_uniform();
		const double perturbed = (a + da * (2 * test_uniform() - 1)) * (x + dx * (2 * test_uniform() - 1));
		CHECK_WITHIN(perturbed, a * x, hg__bound_product(a, da, x, dx) * (1 + 1e-15));
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(gamma_is_k_u),
	    TEST(narrowing),
	    TEST(sums_in_f32_narrowed_once),
	    TEST(discretized_sums_in_f16),
	    TEST(a_subnormal_factor_is_accounted_for),
	    TEST(naive_sums_in_f16),
	    TEST(depth_is_short_where_it_is_discretized),
	    TEST(products_of_narrowed_operands),
	};
	return RUN_TESTS(argc, argv, cases);
}
