/* Seeded mutations of good files through a fuzz target: what ctest runs with any compiler. REPLAY_SEED names the seed files, REPLAY_RUNS how many mutations each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"
#include "support.h"

/* Numbers at which lengths and indices break. */
static const uint64_t edges[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, INT64_MAX, UINT64_MAX};

static void mutate_once(uint8_t *bytes, size_t *count)
{
	const size_t at = (size_t)test_below((int64_t)*count);
	const uint64_t value = edges[test_below((int64_t)(sizeof edges / sizeof edges[0]))];
	const size_t width = (size_t)1 << test_below(4);
	switch (test_below(6)) {
	case 0:
		bytes[at] = (uint8_t)(bytes[at] ^ (1u << test_below(8)));
		break;
	case 1:
		bytes[at] = (uint8_t)test_u64();
		break;
	case 2: /* a number, little-endian */
		for (size_t k = 0; k < width && at + k < *count; k++)
			bytes[at + k] = (uint8_t)(value >> 8 * k);
		break;
	case 3: /* a piece of the file over another */
		memmove(bytes + at, bytes + test_below((int64_t)(*count - (*count - at) / 2)), (*count - at) / 2 < 64 ? (*count - at) / 2 : 64);
		break;
	case 4: /* a piece taken out */
		memmove(bytes + at, bytes + at + (*count - at) / 4, *count - at - (*count - at) / 4);
		*count -= (*count - at) / 4;
		break;
	default:
		*count = at + 1;
	}
}

static void replay_seed(const char *path, int runs)
{
	size_t size = 0;
	unsigned char *good = read_bytes(path, &size);
	LLVMFuzzerTestOneInput(good, size);
	for (int k = 0; k < runs; k++) {
		size_t count = size;
		uint8_t *bytes = malloc(size); /* of the exact size, so that a sanitizer sees the first byte too far */
		CHECK(bytes != NULL);
		memcpy(bytes, good, size);
		for (int64_t times = 1 + test_below(4); times > 0 && count > 0; times--)
			mutate_once(bytes, &count);
		LLVMFuzzerTestOneInput(bytes, count);
		free(bytes);
	}
	free(good);
}

static void mutations_are_survived(void)
{
	int seeds = 0;
	const time_t began = time(NULL);
	while (REPLAY_SEED(seeds, scratch(0, "seed")))
		replay_seed(scratch(0, "seed"), REPLAY_RUNS), seeds++;
	test_note("%d mutations of each of %d files, %.0f s", REPLAY_RUNS, seeds, difftime(time(NULL), began));
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(mutations_are_survived)};
	return RUN_TESTS(argc, argv, cases);
}
