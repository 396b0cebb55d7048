/* Runs a fuzz target on seeded mutations of good files, which ctest does with every compiler.
 * REPLAY_SEED names the seed files, REPLAY_RUNS the number of mutations of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"
#include "mutate.h"
#include "support.h"

static void replay_seed(const char *path, int runs)
{
	size_t size = 0;
	unsigned char *good = read_bytes(path, &size);
	LLVMFuzzerTestOneInput(good, size);
	for (int k = 0; k < runs; k++) {
		size_t count = size;
		/* of the exact size, so that a sanitizer finds the first access beyond it */
		uint8_t *bytes = malloc(size);
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
	test_note("%d mutations of each of %d files, %.0f s", REPLAY_RUNS, seeds,
	          difftime(time(NULL), began));
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(mutations_are_survived)};
	return RUN_TESTS(argc, argv, cases);
}
