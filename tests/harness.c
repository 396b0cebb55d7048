#define _POSIX_C_SOURCE 200809L /* mkdtemp */

#include "harness.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum outcome { PASSED = 0, FAILED = 1, SKIPPED = 2 };

static struct {
	jmp_buf leave;
	char message[1024];
	uint64_t seed, state[4];
	char scratch[64];
} harness = {.seed = 20261120};

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9E3779B97F4A7C15u);
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

uint64_t test_seed(void)
{
	return harness.seed;
}

void test_reseed(uint64_t salt)
{
	uint64_t x = harness.seed + salt;
	for (int i = 0; i < 4; i++)
		harness.state[i] = splitmix(&x);
}

uint64_t test_u64(void)
{
	uint64_t *s = harness.state;
	const uint64_t r = s[1] * 5, result = ((r << 7) | (r >> 57)) * 9, t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return result;
}

double test_uniform(void)
{
	return (double)(test_u64() >> 11) * 0x1p-53;
}

double test_normal(void)
{
	const double u = 1.0 - test_uniform(), v = test_uniform();
	return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

int64_t test_below(int64_t n)
{
	return n > 0 ? (int64_t)(test_u64() % (uint64_t)n) : 0;
}

void test_shuffle(int64_t n, int32_t *order)
{
	for (int64_t i = 0; i < n; i++)
		order[i] = (int32_t)i;
	for (int64_t i = n - 1; i > 0; i--) {
		const int64_t k = test_below(i + 1);
		const int32_t x = order[i];
		order[i] = order[k];
		order[k] = x;
	}
}

void test_fail(const char *file, int line, const char *format, ...)
{
	char text[800];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	const char *slash = strrchr(file, '/');
	snprintf(harness.message, sizeof harness.message, "%s:%d: %s", slash ? slash + 1 : file, line,
	         text);
	longjmp(harness.leave, 1 + FAILED);
}

void test_skip(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(harness.message, sizeof harness.message, format, args);
	va_end(args);
	longjmp(harness.leave, 1 + SKIPPED);
}

void test_note(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("#   ", stdout);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
}

void test_status(const char *file, int line, const char *call, hg_status found, hg_status expected)
{
	if (found != expected)
		test_fail(file, line, "%s gave %s, expected %s", call, hg_status_name(found),
		          hg_status_name(expected));
}

void test_eq_i(const char *file, int line, const char *a, const char *b, int64_t x, int64_t y)
{
	if (x != y)
		test_fail(file, line, "%s = %" PRId64 ", but %s = %" PRId64, a, x, b, y);
}

void test_eq_s(const char *file, int line, const char *a, const char *x, const char *y)
{
	if (strcmp(x, y) != 0)
		test_fail(file, line, "%s = \"%s\", expected \"%s\"", a, x, y);
}

void test_contains(const char *file, int line, const char *text, const char *part)
{
	if (!strstr(text, part))
		test_fail(file, line, "\"%s\" does not contain \"%s\"", text, part);
}

void test_within(const char *file, int line, const char *a, const char *b, double x, double y,
                 double bound)
{
	if (!(fabs(x - y) <= bound))
		test_fail(file, line, "|%s - %s| = |%.17g - %.17g| = %.3g exceeds %.3g", a, b, x, y,
		          fabs(x - y), bound);
}

hg_context *test_context(void)
{
	const hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	return test_context_with(config);
}

hg_context *test_context_with(hg_context_config config)
{
	const char *name = getenv("HG_TEST_DEVICE");
	const int cuda = name && strcmp(name, "cuda") == 0;
	config.device = cuda ? HG_DEVICE_CUDA : HG_DEVICE_CPU;
	config.seed = harness.seed;
	hg_context *ctx = NULL;
	const hg_status status = hg_context_create(&config, &ctx);
	if (status == HG_ERR_UNSUPPORTED && cuda)
		test_skip("no CUDA device: %s", hg_context_error(NULL));
	if (status != HG_OK)
		test_fail(__FILE__, __LINE__, "hg_context_create gave %s: %s", hg_status_name(status),
		          hg_context_error(NULL));
	return ctx;
}

hg_context *test_cpu_context(int threads)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	config.device = HG_DEVICE_CPU;
	config.seed = harness.seed;
	config.threads = threads;
	const hg_status status = hg_context_create(&config, &ctx);
	if (status != HG_OK)
		test_fail(__FILE__, __LINE__, "hg_context_create gave %s: %s", hg_status_name(status),
		          hg_context_error(NULL));
	return ctx;
}

const char *test_data(void)
{
	const char *path = getenv("HG_DATA");
	if (!path || !*path)
		test_skip("HG_DATA is not set: real datasets are not here");
	return path;
}

const char *test_path(const char *name)
{
	static char path[256];
	if (!harness.scratch[0]) {
		snprintf(harness.scratch, sizeof harness.scratch, "/tmp/hg-test-XXXXXX");
		if (!mkdtemp(harness.scratch))
			test_fail(__FILE__, __LINE__, "cannot make a scratch directory");
	}
	snprintf(path, sizeof path, "%s/%s", harness.scratch, name);
	return path;
}

static enum outcome run_case(const struct test_case *test)
{
	harness.message[0] = 0;
	test_reseed(0);
	const int left = setjmp(harness.leave);
	if (left == 0) {
		if (test->run_item)
			test->run_item(test->item);
		else
			test->run();
		return PASSED;
	}
	return (enum outcome)(left - 1);
}

static void remove_scratch(void)
{
	if (!harness.scratch[0])
		return;
	char command[96];
	snprintf(command, sizeof command, "rm -rf '%s'", harness.scratch);
	if (system(command) != 0)
		fprintf(stderr, "could not remove %s\n", harness.scratch);
}

int test_main(int argc, char **argv, const struct test_case *cases, int count)
{
	static const char *const word[] = {"ok", "FAILED", "SKIPPED"};
	int tally[3] = {0, 0, 0}, named = 0;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--list") == 0) {
			for (int c = 0; c < count; c++)
				puts(cases[c].name);
			return 0;
		}
		if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			harness.seed = strtoull(argv[++i], NULL, 0);
		else
			named = 1;
	}
	printf("# seed %" PRIu64 "\n", harness.seed);
	for (int c = 0; c < count; c++) {
		int wanted = !named;
		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], cases[c].name) == 0;
		if (!wanted)
			continue;
		fflush(stdout);
		const enum outcome outcome = run_case(&cases[c]);
		tally[outcome]++;
		printf("%-8s %s%s%s\n", word[outcome], cases[c].name, harness.message[0] ? ": " : "",
		       harness.message);
	}
	printf("# %d passed, %d failed, %d skipped\n", tally[PASSED], tally[FAILED], tally[SKIPPED]);
	remove_scratch();
	return tally[FAILED] ? 1 : tally[PASSED] == 0 && tally[SKIPPED] ? 77 : 0;
}
