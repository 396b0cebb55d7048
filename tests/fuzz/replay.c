/* Runs a fuzz target where there is no libFuzzer: on the inputs that once were findings, and on
 * seeded mutations of good files, which ctest does with every compiler.
 *
 *     replay_NAME              both
 *     replay_NAME --seeds DIR  writes the good files to DIR, from which libFuzzer starts
 *     replay_NAME --run FILE   runs one input, such as one that libFuzzer has found, and prints
 *                              what the last import said of it
 *
 * REPLAY_NAME names the target, REPLAY_SEED the function that makes its good files, REPLAY_RUNS the
 * number of mutations of each, REPLAY_CORPUS the folder of the findings of all targets. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"
#include "mutate.h"
#include "support.h"

/* Inputs are of the exact size, so that a sanitizer finds the first access beyond it. */
static void run(const unsigned char *input, size_t size, int times)
{
	size_t count = size;
	uint8_t *bytes = malloc(size);
	CHECK(bytes != NULL || size == 0);
	if (size > 0)
		memcpy(bytes, input, size);
	for (; times > 0 && count > 0; times--)
		mutate_once(bytes, &count);
	LLVMFuzzerTestOneInput(bytes, count);
	free(bytes);
}

static void run_file(const char *path)
{
	size_t size = 0;
	unsigned char *bytes = read_bytes(path, &size);
	run(bytes, size, 0);
	free(bytes);
}

/* ---- findings ---- */

/* README.md says of each what was wrong. */
static void findings_are_survived(void)
{
	char path[1024];
	size_t size = 0;
	int count = 0;
	unsigned char *notes = read_bytes(REPLAY_CORPUS "/README.md", &size);
	DIR *folder = opendir(REPLAY_CORPUS "/" REPLAY_NAME);
	for (const struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder)) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof path, "`" REPLAY_NAME "/%s`", e->d_name);
		CHECK_MSG(memmem(notes, size, path, strlen(path)), "%s is not in README.md", path);
		(void)snprintf(path, sizeof path, "%s/%s", REPLAY_CORPUS "/" REPLAY_NAME, e->d_name);
		run_file(path);
		count++;
	}
	if (folder)
		CHECK(closedir(folder) == 0);
	free(notes);
	test_note("%d inputs", count);
}

/* ---- mutations ---- */

static void replay_seed(const char *path, int runs)
{
	size_t size = 0;
	unsigned char *good = read_bytes(path, &size);
	run(good, size, 0);
	for (int k = 0; k < runs; k++)
		run(good, size, (int)(1 + test_below(4)));
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

/* ---- by hand ---- */

static const char *argument;

static void seeds_are_written(void)
{
	char path[1024];
	int k = 0;
	do
		(void)snprintf(path, sizeof path, "%s/" REPLAY_NAME "-%d", argument, k);
	while (REPLAY_SEED(k++, path));
	test_note("%d files in %s", k - 1, argument);
}

static void one_input_is_survived(void)
{
	run_file(argument);
	test_note("%s", fuzz_said());
}

int main(int argc, char **argv)
{
	static const struct test_case replay[] = {TEST(findings_are_survived),
	                                          TEST(mutations_are_survived)},
	                              seeds[] = {TEST(seeds_are_written)},
	                              one[] = {TEST(one_input_is_survived)};
	argument = argc == 3 ? argv[2] : NULL;
	if (argument && strcmp(argv[1], "--seeds") == 0)
		return RUN_TESTS(1, argv, seeds);
	if (argument && strcmp(argv[1], "--run") == 0)
		return RUN_TESTS(1, argv, one);
	return RUN_TESTS(argc, argv, replay);
}
