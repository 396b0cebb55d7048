/* A CPU computes what it computes in any floating-point mode of its caller, with any number of
 * threads, and the caller has its mode back. */
#include <fenv.h>
#include <omp.h>
#include <pthread.h>
#include <string.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "halfgraph/train.h"
#include "harness.h"
#include "precision/half.h"

/* Large enough for teams of several threads (kernels/cpu/team.h). */
enum { N = 3000, M = 60000, D = 32, C = 5, EPOCHS = 4 };

struct data {
	int32_t dst[M], src[M], label[N];
	float x[N][D];
};

static void make_data(struct data *d)
{
	test_reseed(11);
	for (int e = 0; e < M; e++) {
		d->dst[e] = (int32_t)test_below(e % 3 ? N : 40); /* hubs among them */
		d->src[e] = (int32_t)test_below(N);
	}
	for (int i = 0; i < N; i++) {
		d->label[i] = i % C;
		for (int c = 0; c < D; c++)
			d->x[i][c] = (float)test_normal();
	}
}

struct run {
	const struct data *data;
	const char *model;
	hg_policy policy;
	int threads;
	unsigned (*enter)(
	    void);     /* the mode of the caller, while it trains; gives back what mode_now gives */
	uint64_t hash; /* of logits and loss */
	int kept;      /* its mode was what it was */
};

static unsigned mode_now(void)
{
#ifdef __SSE2__
	return _mm_getcsr() & 0xFFC0u;
#else
	return (unsigned)fegetround();
#endif
}

static unsigned nearest(void)
{
	return mode_now();
}
static unsigned upward(void)
{
	fesetround(FE_UPWARD);
	return mode_now();
}
static unsigned towards_zero(void)
{
	fesetround(FE_TOWARDZERO);
	return mode_now();
}
#ifdef __SSE2__
static unsigned flushed(void)
{
	_mm_setcsr(_mm_getcsr() | 0x8040u); /* as programs that are linked with -ffast-math begin */
	return mode_now();
}
#endif

static uint64_t mix(uint64_t hash, uint32_t bits)
{
	return (hash ^ bits) * 0x100000001B3ull;
}

/* What the host itself computes, weights to begin with, is made before the mode changes. */
static void train(struct run *r)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	hg_graph *graph = NULL;
	hg_tensor *x = NULL;
	hg_train *train = NULL;
	hg_train_data in = HG_TRAIN_DATA_INIT;
	hg_train_config c = hg_train_config_default(r->model);
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	config.device = HG_DEVICE_CPU;
	config.threads = r->threads;
	CHECK_OK(hg_context_create(&config, &ctx));
	CHECK_OK(hg_graph_from_coo(ctx, N, N, M, r->data->dst, r->data->src, NULL, NULL, &graph));
	CHECK_OK(hg_tensor_create(ctx, r->policy.state, N, D, &x));
	CHECK_OK(hg_tensor_upload(x, r->data->x, HG_F32));
	in.input.graph = graph;
	in.input.x = x;
	in.labels = r->data->label;
	c.policy = r->policy;
	c.epochs = EPOCHS;
	CHECK_OK(hg_train_create(ctx, &c, &in, &train));
	const unsigned mode = r->enter();
	const hg_status status = hg_train_run(train, &report);
	r->kept = mode_now() == mode;
	fesetenv(FE_DFL_ENV);
	CHECK_MSG(status >= 0, "%s", hg_context_error(ctx));
	static float logits[N][C];
	static int32_t prediction[N];
	CHECK_OK(hg_train_predict(train, prediction, &logits[0][0]));
	r->hash = mix(0, hg__float_bits((float)report.final_loss));
	for (int i = 0; i < N; i++)
		for (int k = 0; k < C; k++)
			r->hash = mix(r->hash, hg__float_bits(logits[i][k]));
	hg_train_free(train);
	hg_tensor_free(x);
	hg_graph_free(graph);
	hg_context_free(ctx);
}

static void bits_do_not_depend_on_the_callers_mode(void)
{
	static struct data data;
	static unsigned (*const modes[])(void) = {
	    nearest,
	    upward,
	    towards_zero,
#ifdef __SSE2__
	    flushed,
#endif
	};
	static const char *const models[] = {"gcn", "gin", "gat"};
	const hg_policy policies[] = {hg_policy_fp16(), hg_policy_fp32()};
	make_data(&data);
	for (int m = 0; m < 3; m++)
		for (int p = 0; p < 2; p++) {
			uint64_t expected = 0;
			for (int threads = 1; threads <= 4; threads += 3)
				for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
					struct run r = {&data, models[m], policies[p], threads, modes[k], 0, 0};
					train(&r);
					expected = expected ? expected : r.hash;
					CHECK_MSG(r.hash == expected, "%s, %s, %d threads, mode %zu: other bits",
					          models[m], policies[p].name, threads, k);
					CHECK_MSG(r.kept, "%s: mode %zu is not what it was", models[m], k);
				}
		}
}

/* A thread of the program whose team was made in another mode. */
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

static void bits_do_not_depend_on_who_made_the_threads(void)
{
	static struct data data;
	make_data(&data);
	struct run alone = {&data, "gin", hg_policy_fp16(), 1, nearest, 0, 0};
	struct run beside = {&data, "gin", hg_policy_fp16(), 4, nearest, 0, 0};
	pthread_t thread;
	train(&alone);
	CHECK(pthread_create(&thread, NULL, train_with_a_team_of_another_mode, &beside) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(alone.hash == beside.hash);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(bits_do_not_depend_on_the_callers_mode),
	    TEST(bits_do_not_depend_on_who_made_the_threads),
	};
	return RUN_TESTS(argc, argv, cases);
}
