/* The floating-point mode of the caller (rounding direction, flushing of subnormal numbers) changes
 * no result of the CPU backend, with any number of threads, and the caller's mode is restored. */
#include <fenv.h>
#include <omp.h>
#include <pthread.h>
#include <string.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "planted.h"
#include "precision/half.h"

/* Large enough for teams of several threads (kernels/cpu/team.h). */
enum {
	N = TEST_SHARE(3000, 1500),
	M = TEST_SHARE(60000, 20000),
	D = 32,
	C = 5,
	EPOCHS = TEST_SHARE(4, 1)
};

static struct planted make_task(void)
{
	test_reseed(11);
	const struct planted_features features = {.noise = 1.0};
	return planted_make(coo_hubs(N, M, 3, 40), D, C, features);
}

struct run {
	const struct planted *task;
	const char *model;
	hg_policy policy;
	int threads;
	/* Sets the caller's mode in which the run trains, and returns what mode_now returns then. */
	unsigned (*enter)(void);
	/* Results: a hash of logits and loss, and whether the run left the mode as it was. */
	uint64_t hash;
	int kept;
};

static unsigned mode_now(void)
{
#ifdef __SSE2__
	return _mm_getcsr() & 0xFFC0u;
#else
	return (unsigned)fegetround();
#endif
}

static unsigned round_to_nearest(void)
{
	return mode_now();
}
static unsigned round_upward(void)
{
	fesetround(FE_UPWARD);
	return mode_now();
}
static unsigned round_towards_zero(void)
{
	fesetround(FE_TOWARDZERO);
	return mode_now();
}
#ifdef __SSE2__
static unsigned flush_subnormals(void)
{
	/* A program that is linked with -ffast-math starts in this mode. */
	_mm_setcsr(_mm_getcsr() | 0x8040u);
	return mode_now();
}
#endif

static uint64_t mix(uint64_t hash, uint32_t bits)
{
	return (hash ^ bits) * 0x100000001B3ull;
}

/* The mode changes only after the features and the initial weights are made: the host computes
 * those in the mode of the caller. */
static void train(struct run *r)
{
	struct planted_run run;
	hg_train_config c = hg_train_config_default(r->model);
	c.policy = r->policy;
	c.epochs = EPOCHS;
	planted_open(&run, test_cpu_context(r->threads), r->task, r->policy.state, 0);
	planted_begin(&run, &c);
	const unsigned mode = r->enter();
	const hg_status status = hg_train_run(run.train, &run.report);
	r->kept = mode_now() == mode;
	fesetenv(FE_DFL_ENV);
	CHECK_MSG(status >= 0, "%s", hg_context_error(run.ctx));
	static float logits[N][C];
	static int32_t prediction[N];
	CHECK_OK(hg_train_predict(run.train, prediction, &logits[0][0]));
	r->hash = mix(0, hg__float_bits((float)run.report.final_loss));
	for (int i = 0; i < N; i++)
		for (int k = 0; k < C; k++)
			r->hash = mix(r->hash, hg__float_bits(logits[i][k]));
	planted_close(&run);
}

static void bits_do_not_depend_on_the_mode_of_the_caller(void)
{
	struct planted task = make_task();
	static unsigned (*const modes[])(void) = {
	    round_to_nearest,
	    round_upward,
	    round_towards_zero,
#ifdef __SSE2__
	    flush_subnormals,
#endif
	};
	const hg_policy policies[] = {hg_policy_fp16(), hg_policy_fp32()};
	for (const char *const *name = hg_model_names(); *name; name++)
		for (int p = 0; p < 2; p++) {
			uint64_t expected = 0;
			for (int threads = 1; threads <= 4; threads += 3)
				for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
					struct run r = {&task, *name, policies[p], threads, modes[k], 0, 0};
					train(&r);
					expected = expected ? expected : r.hash;
					CHECK_MSG(r.hash == expected, "%s, %s, %d threads, mode %zu: other bits", *name,
					          policies[p].name, threads, k);
					CHECK_MSG(r.kept, "%s: mode %zu is not what it was", *name, k);
				}
		}
	planted_free(&task);
}

/* A thread of the program that has started its OpenMP team in another mode than it trains in. */
static void *train_with_a_team_of_another_mode(void *user)
{
	struct run *r = user;
	int sum = 0;
	fesetround(FE_UPWARD);
#pragma omp parallel num_threads(4) reduction(+ : sum)
	sum += fegetround() == FE_UPWARD;
	fesetround(FE_TONEAREST);
	CHECK(sum > 0);
	train(r);
	return NULL;
}

static void bits_do_not_depend_on_the_mode_of_a_team(void)
{
	struct planted task = make_task();
	struct run alone = {&task, "gin", hg_policy_fp16(), 1, round_to_nearest, 0, 0};
	struct run beside = {&task, "gin", hg_policy_fp16(), 4, round_to_nearest, 0, 0};
	pthread_t thread;
	train(&alone);
	CHECK(pthread_create(&thread, NULL, train_with_a_team_of_another_mode, &beside) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(alone.hash == beside.hash);
	planted_free(&task);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(bits_do_not_depend_on_the_mode_of_the_caller),
	    TEST(bits_do_not_depend_on_the_mode_of_a_team),
	};
	return RUN_TESTS(argc, argv, cases);
}
