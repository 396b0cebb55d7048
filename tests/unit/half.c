#include <float.h>
#include <math.h>
#include <string.h>

#include "harness.h"
#include "precision/half.h"

/* Conversions, compared with a second method that has nothing in common with them: numbers as
 * multiples of a unit, with ldexp and nearbyint in f64. */

/* sign * n * 2^(e - 25), from the definition of binary16. */
static double decode(hg_half h)
{
	const int exponent = h >> 10 & 31, fraction = h & 1023;
	const double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
	                         : exponent     ? ldexp(1024 + fraction, exponent - 25)
	                                        : ldexp(fraction, -24);
	return h & 0x8000 ? -magnitude : magnitude;
}

/* The nearest multiple of the unit in the last place at |x|, which is 2^(e - 10) with e >= -14.
 * nearbyint rounds ties to even. */
static hg_half encode(double x)
{
	const hg_half sign = signbit(x) ? 0x8000 : 0;
	const double a = fabs(x);
	if (a == 0 || isinf(a))
		return (hg_half)(sign | (a > 0 ? 0x7C00 : 0));
	const int e = ilogb(a) < -14 ? -14 : ilogb(a);
	const double value = ldexp(nearbyint(ldexp(a, 10 - e)), e - 10);
	if (value >= 65536)
		return (hg_half)(sign | 0x7C00);
	if (value < 0x1p-14)
		return (hg_half)(sign | (int)ldexp(value, 24));
	const int E = ilogb(value);
	return (hg_half)(sign | (E + 15) << 10 | ((int)ldexp(value, 10 - E) & 1023));
}

static uint32_t bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

static float from_bits(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

static void every_half_is_a_float(void)
{
	for (uint32_t i = 0; i < 65536; i++) {
		const hg_half h = (hg_half)i;
		const float f = hg_half_to_float(h);
		const double d = decode(h);
		if (isnan(d)) {
			CHECK_MSG(isnan(f), "0x%04x is a NaN", i);
			CHECK_EQ_I(bits(f),
			           (uint32_t)(h & 0x8000) << 16 | 0x7FC00000u | (uint32_t)(h & 0x3FF) << 13);
		} else {
			CHECK_MSG((double)f == d && !signbit(f) == !signbit(d), "0x%04x gave %g, expected %g",
			          i, (double)f, d);
		}
	}
}

static void half_to_float_and_back_is_the_identity(void)
{
	for (uint32_t i = 0; i < 65536; i++) {
		const hg_half h = (hg_half)i, quiet = (h & 0x7FFF) > 0x7C00 ? 0x0200 : 0;
		CHECK_EQ_I(hg_half_from_float(hg_half_to_float(h)), h | quiet);
		CHECK_EQ_I(hg_half_from_double((double)hg_half_to_float(h)), h | quiet);
	}
}

static void same(double x)
{
	const hg_half expected = encode(x), found = hg_half_from_double(x);
	CHECK_MSG(found == expected, "double %.20a gave 0x%04x, expected 0x%04x", x, found, expected);
	if ((double)(float)x == x) {
		const hg_half narrow = hg_half_from_float((float)x);
		CHECK_MSG(narrow == expected, "float %a gave 0x%04x, expected 0x%04x", x, narrow, expected);
	}
}

/* Around every half and every midpoint of two neighbours, the last one (of 65504 and 65536)
 * included: the number itself, and one ulp of a float and of a double to each side. */
static void numbers_near_every_half_are_rounded_right(void)
{
	for (int i = 0; i < 0x7C00; i++) {
		const double low = decode((hg_half)i),
		             high = i == 0x7BFF ? 65536.0 : decode((hg_half)(i + 1)),
		             point[2] = {low, (low + high) / 2};
		for (int p = 0; p < 2; p++)
			for (int sign = -1; sign <= 1; sign += 2) {
				const double x = sign * point[p];
				same(x);
				same((double)nextafterf((float)x, INFINITY));
				same((double)nextafterf((float)x, -INFINITY));
				same(nextafter(x, INFINITY));
				same(nextafter(x, -INFINITY));
			}
	}
}

/* A double that is a little above a midpoint becomes the midpoint itself as a float, and then the
 * tie is rounded in the wrong direction. A single rounding is right. */
static void doubles_are_rounded_once(void)
{
	int caught = 0;
	for (int i = 0; i < 0x7C00; i++) {
		const double low = decode((hg_half)i),
		             high = i == 0x7BFF ? 65536.0 : decode((hg_half)(i + 1)),
		             middle = (low + high) / 2;
		for (int sign = -1; sign <= 1; sign += 2) {
			const double x = middle * (1 + sign * 0x1p-40);
			same(x);
			caught += hg_half_from_float((float)x) != hg_half_from_double(x);
		}
	}
	CHECK_EQ_I(caught, 0x7C00); /* two roundings are wrong on one side of every midpoint */
}

static void overflow_begins_at_65520(void)
{
	CHECK_EQ_I(hg_half_from_float(65504.0f), 0x7BFF);
	CHECK_EQ_I(hg_half_from_float(65505.0f), 0x7BFF);
	CHECK_EQ_I(hg_half_from_float(nextafterf(65520.0f, 0)), 0x7BFF);
	CHECK_EQ_I(hg_half_from_float(65520.0f), 0x7C00);
	CHECK_EQ_I(hg_half_from_float(-65520.0f), 0xFC00);
	CHECK_EQ_I(hg_half_from_float(FLT_MAX), 0x7C00);
	CHECK_EQ_I(hg_half_from_float(-INFINITY), 0xFC00);
	CHECK_EQ_I(hg_half_from_double(nextafter(65520.0, 0)), 0x7BFF);
	CHECK_EQ_I(hg_half_from_double(65520.0), 0x7C00);
	CHECK_EQ_I(hg_half_from_double(-DBL_MAX), 0xFC00);
	CHECK_EQ_I(hg_half_from_double((double)INFINITY), 0x7C00);
}

static void underflow_keeps_the_sign(void)
{
	CHECK_EQ_I(hg_half_from_float(0x1p-25f), 0x0000); /* a tie goes to the even number */
	CHECK_EQ_I(hg_half_from_float(nextafterf(0x1p-25f, 1)), 0x0001);
	CHECK_EQ_I(hg_half_from_float(-0x1p-149f), 0x8000);
	CHECK_EQ_I(hg_half_from_float(-0.0f), 0x8000);
	CHECK_EQ_I(hg_half_from_double(nextafter(0x1p-25, 1)), 0x0001);
	CHECK_EQ_I(hg_half_from_double(-0x1p-1074), 0x8000);
	CHECK_EQ_I(hg_half_from_double(-0.0), 0x8000);
}

/* What F16C and the GPU do: they keep the sign and the ten leading bits of the payload, and set the
 * quiet bit. */
static void nan_stays_and_becomes_quiet(void)
{
	for (uint32_t payload = 1; payload < 0x800000; payload = payload * 3 + 1)
		for (uint32_t sign = 0; sign < 2; sign++) {
			const hg_half expected = (hg_half)(sign << 15 | 0x7E00 | payload >> 13);
			CHECK_EQ_I(hg_half_from_float(from_bits(sign << 31 | 0x7F800000u | payload)), expected);
		}
	const uint64_t wide = 0xFFF5400000000001u; /* signalling, negative */
	double x;
	memcpy(&x, &wide, sizeof x);
	CHECK_EQ_I(hg_half_from_double(x), 0xFE00 | 0x150);
}

static void random_numbers_are_rounded_right(void)
{
	for (int i = 0; i < 4000000; i++) {
		const float f = from_bits((uint32_t)test_u64());
		if (!isnan(f))
			same((double)f);
		same(ldexp(test_normal(), (int)test_below(60) - 40));
	}
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
__attribute__((target("f16c"))) static hg_half hardware_half(float x)
{
	return (hg_half)_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT), 0);
}

__attribute__((target("f16c"))) static float hardware_float(hg_half h)
{
	return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}

/* Bit 29 of ecx in leaf 1, because not every compiler knows its name. AVX implies that the system
 * saves the registers. */
static int has_f16c(void)
{
	unsigned a, b, c, d;
	return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1u);
}

/* Compares all bits, those of NaN included. The stride is odd and near 2^32 / golden ratio, so that
 * its multiples spread evenly over all bit patterns. */
static void hardware_gives_the_same_bits(void)
{
	if (!has_f16c())
		SKIP("this CPU has no F16C");
	for (uint32_t i = 0; i < 65536; i++)
		CHECK_EQ_I(bits(hardware_float((hg_half)i)), bits(hg_half_to_float((hg_half)i)));
	uint32_t u = 0;
	for (int i = 0; i < 1 << 24; i++, u += 2654435761u)
		CHECK_MSG(hardware_half(from_bits(u)) == hg_half_from_float(from_bits(u)), "float 0x%08x",
		          u);
}
#else
static void hardware_gives_the_same_bits(void)
{
	SKIP("no F16C on this architecture");
}
#endif

static void types_have_their_constants(void)
{
	const hg_dtype_facts *f16 = hg_dtype_get(HG_F16), *f32 = hg_dtype_get(HG_F32);
	CHECK(f16->size == 2 && f16->is_float && f16->max == decode(0x7BFF) &&
	      f16->min_normal == decode(0x0400) && f16->min_subnormal == decode(1));
	CHECK(f16->u == 0x1p-11 && f16->overflow == 65520);
	CHECK(f32->size == 4 && f32->max == (double)FLT_MAX && f32->min_normal == (double)FLT_MIN &&
	      f32->u == (double)FLT_EPSILON / 2);
	CHECK(isinf((float)f32->overflow) && !isinf((float)nextafter(f32->overflow, 0)));
	CHECK(hg_dtype_size(HG_I64) == 8 && hg_dtype_size(HG_U8) == 1 && hg_dtype_size(HG_I32) == 4);
	CHECK_STR(hg_dtype_name(HG_F16), "f16");
	CHECK(hg_dtype_get(HG_DTYPE_COUNT) == NULL && hg_dtype_get((hg_dtype)-1) == NULL &&
	      hg_dtype_size((hg_dtype)99) == 0);
	CHECK_STR(hg_dtype_name((hg_dtype)99), "unknown");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_half_is_a_float),
	    TEST(half_to_float_and_back_is_the_identity),
	    TEST(numbers_near_every_half_are_rounded_right),
	    TEST(doubles_are_rounded_once),
	    TEST(overflow_begins_at_65520),
	    TEST(underflow_keeps_the_sign),
	    TEST(nan_stays_and_becomes_quiet),
	    TEST(random_numbers_are_rounded_right),
	    TEST(hardware_gives_the_same_bits),
	    TEST(types_have_their_constants),
	};
	return RUN_TESTS(argc, argv, cases);
}
