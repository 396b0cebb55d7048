#ifndef HG_TESTS_HARNESS_H
#define HG_TESTS_HARNESS_H

#include <stdint.h>

#include "halfgraph/context.h"

/* A test program is a table of cases and one call:
 *
 *     static void half_rounds_to_even(void) { CHECK(...); CHECK_STATUS(call, HG_OK); }
 *     int main(int argc, char **argv) { static const struct test_case cases[] =
 *     {TEST(half_rounds_to_even)}; return RUN_TESTS(argc, argv, cases); }
 *
 * Options: --list, --seed S, NAME... Every run prints its seed. Exit code 0 passed, 1 failed, 77
 * all skipped (ctest shows "Skipped"). A case fails at its first failing check and the next case
 * runs. */
struct test_case {
	const char *name;
	void (*run)(void);
	/* Where one function serves many cases: it is called with `item`, and run is NULL. */
	void (*run_item)(const void *item);
	const void *item;
};
#define TEST(function)            \
	{                             \
#function, function, 0, 0 \
	}
#define RUN_TESTS(argc, argv, cases) \
	test_main(argc, argv, cases, (int)(sizeof(cases) / sizeof((cases)[0])))
int test_main(int argc, char **argv, const struct test_case *cases, int count);

/* A check that fails leaves the case (longjmp). So checks are for the thread that runs the case. */
#define CHECK(condition) ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_MSG(condition, ...) \
	((condition) ? (void)0 : test_fail(__FILE__, __LINE__, __VA_ARGS__))
#define CHECK_STATUS(call, expected) test_status(__FILE__, __LINE__, #call, (call), (expected))
#define CHECK_OK(call) CHECK_STATUS(call, HG_OK)
#define CHECK_EQ_I(a, b) test_eq_i(__FILE__, __LINE__, #a, #b, (int64_t)(a), (int64_t)(b))
#define CHECK_STR(a, b) test_eq_s(__FILE__, __LINE__, #a, (a), (b))
#define CHECK_CONTAINS(text, part) test_contains(__FILE__, __LINE__, (text), (part))
/* |a - b| <= bound, in f64. NaN never passes. */
#define CHECK_WITHIN(a, b, bound) \
	test_within(__FILE__, __LINE__, #a, #b, (double)(a), (double)(b), (double)(bound))
/* Leaves the case, which is then reported as skipped. */
#define SKIP(...) test_skip(__VA_ARGS__)

_Noreturn void test_fail(const char *file, int line, const char *format, ...) HG_PRINTF(3, 4);
_Noreturn void test_skip(const char *format, ...) HG_PRINTF(1, 2);
void test_status(const char *file, int line, const char *call, hg_status found, hg_status expected);
void test_eq_i(const char *file, int line, const char *a, const char *b, int64_t x, int64_t y);
void test_eq_s(const char *file, int line, const char *a, const char *x, const char *y);
void test_contains(const char *file, int line, const char *text, const char *part);
void test_within(const char *file, int line, const char *a, const char *b, double x, double y,
                 double bound);
void test_note(const char *format, ...) HG_PRINTF(1, 2);

/* How large a test is: `full`, but `sanitized` in a build with sanitizers. A step takes ten times
 * as long there, and such a build looks for faults of memory and undefined behaviour, which a few
 * epochs or cases show as well as many. What is left out may be repetitions, never a kernel, a
 * model or a precision; and what needs full length to hold, such as an accuracy, is checked in
 * other builds. The result is a constant, so that arrays may have this size. */
#if defined(HG_SANITIZED)
#define TEST_SHARE(full, sanitized) (sanitized)
#else
#define TEST_SHARE(full, sanitized) (full)
#endif

/* Seeded random numbers of the harness (xoshiro256**), independent of the library's. */
uint64_t test_seed(void);
void test_reseed(uint64_t salt); /* at a case's start: seed + salt */
uint64_t test_u64(void);
double test_uniform(void); /* [0, 1) */
double test_normal(void);
int64_t test_below(int64_t n);
void test_shuffle(int64_t n, int32_t *order); /* a random order of 0 .. n-1 */

/* A context for this test run. HG_TEST_DEVICE (cpu | cuda; default cpu) says on which device. Skips
 * the case if that device is absent. */
hg_context *test_context(void);
/* The same with a configuration, of which device and seed are overwritten. */
hg_context *test_context_with(hg_context_config config);
/* A context of the CPU with this number of threads, whatever device the run is for. */
hg_context *test_cpu_context(int threads);
/* Directory of real datasets from HG_DATA. Skips the case, with a message, where it is not set. */
const char *test_data(void);
/* A fresh path in a scratch directory that is removed at exit. */
const char *test_path(const char *name);

#endif
