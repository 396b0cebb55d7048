#include "core/rng.h"

#include <math.h>

#include "harness.h"

/* Known answers of Philox4x32-10: zeros, ones, and the digits of pi, as its authors published
 * them. */
static void published_numbers_are_reproduced(void)
{
	static const struct {
		uint32_t counter[4];
		uint64_t key;
		uint32_t out[4];
	} known[] = {
	    {{0, 0, 0, 0}, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
	    {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
	     0xffffffffffffffffu,
	     {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
	    {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
	     0x299f31d0a4093822u,
	     {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		const uint32_t *c = known[i].counter;
		const struct hg__rng4 x = hg__philox(known[i].key, c[0], c[1], c[2], c[3]);
		for (int k = 0; k < 4; k++)
			CHECK_EQ_I(x.w[k], known[i].out[k]);
	}
}

static void uniforms_lie_in_the_unit_interval(void)
{
	CHECK(hg__rng_uniform(0) == 0.0f);
	CHECK(hg__rng_uniform(0xFFFFFFFFu) == 1.0f - 0x1p-24f);
	double sum = 0, squares = 0;
	const int64_t rows = 100000;
	for (int64_t row = 0; row < rows; row++) {
		const struct hg__rng4 x = hg__rng_quad(hg__rng_key(7, 3), row, 1, 5);
		for (int k = 0; k < 4; k++) {
			const double u = (double)hg__rng_uniform(x.w[k]);
			sum += u;
			squares += u * u;
		}
	}
	const double n = 4.0 * (double)rows;
	CHECK_WITHIN(sum / n, 0.5, 5 / sqrt(12 * n));
	CHECK_WITHIN(squares / n, 1.0 / 3, 5 * sqrt(4.0 / 45 / n));
}

/* A change of seed, stream, row, quad or step changes the numbers. */
static void every_coordinate_changes_the_numbers(void)
{
	const uint64_t key = hg__rng_key(1, 2);
	const uint32_t here = hg__rng_quad(key, 3, 4, 5).w[0];
	CHECK(here != hg__rng_quad(hg__rng_key(2, 2), 3, 4, 5).w[0]);
	CHECK(here != hg__rng_quad(hg__rng_key(1, 3), 3, 4, 5).w[0]);
	CHECK(here != hg__rng_quad(key, 4, 4, 5).w[0]);
	CHECK(here != hg__rng_quad(key, 3 + ((int64_t)1 << 32), 4, 5).w[0]);
	CHECK(here != hg__rng_quad(key, 3, 5, 5).w[0]);
	CHECK(here != hg__rng_quad(key, 3, 4, 6).w[0]);
	CHECK(here == hg__rng_quad(key, 3, 4, 5).w[0]);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(published_numbers_are_reproduced),
	                                         TEST(uniforms_lie_in_the_unit_interval),
	                                         TEST(every_coordinate_changes_the_numbers)};
	return RUN_TESTS(argc, argv, cases);
}
