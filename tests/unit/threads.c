/* Contexts in different threads are independent: runs beside each other give the bits that each
 * gives alone. Built with HG_SANITIZE_THREAD this is the test for ThreadSanitizer. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dlpack_abi.h"
#include "halfgraph/train.h"
#include "harness.h"

enum { N = 120, M = 900, D = 8, C = 3, JOBS = 6, ROUNDS = 2 };

/* What all jobs read and none writes. */
static int32_t dst[M], src[M], label[N];
static float x[N][D];
static uint8_t train_mask[N];

/* A job has its own context and its own results. No check may fail in its thread (harness.h), so it
 * keeps the first error. */
struct job {
	const char *model;
	uint64_t seed;
	hg_status status;
	char error[512], create_error[512];
	double loss;
	int32_t classes[N];
	float logits[N][C];
};

/* libgomp synchronises in ways that ThreadSanitizer does not see, so there each job has one
 * thread. */
#ifdef HG_SANITIZED_THREAD
#define TEAM 1
#else
#define TEAM 2
#endif

static int passes(struct job *job, hg_context *ctx, hg_status status)
{
	if (status < 0 && job->status >= 0) {
		job->status = status;
		(void)snprintf(job->error, sizeof job->error, "%s: %s", job->model, hg_context_error(ctx));
	}
	return status >= 0;
}

static void train_on(struct job *job, hg_context *ctx, hg_graph *graph, hg_tensor *features)
{
	hg_train_config config = hg_train_config_default(job->model);
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	hg_train *run = NULL;
	config.epochs = TEST_SHARE(12, 3);
	config.model.hidden = 8;
	data.input.graph = graph;
	data.input.x = features;
	data.labels = label;
	data.train_mask = train_mask;
	if (passes(job, ctx, hg_train_create(ctx, &config, &data, &run)) &&
	    passes(job, ctx, hg_train_run(run, &report)) &&
	    passes(job, ctx, hg_train_predict(run, job->classes, &job->logits[0][0])))
		job->loss = report.final_loss;
	hg_train_free(run);
}

/* The message of a failed creation belongs to the thread: each job asks for another number. */
static void fail_to_create(struct job *job)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	config.threads = -1 - (int)job->seed;
	if (hg_context_create(&config, &ctx) < 0)
		(void)snprintf(job->create_error, sizeof job->create_error, "%s", hg_context_error(NULL));
	hg_context_free(ctx);
}

static void *work(void *item)
{
	struct job *job = item;
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	hg_graph *graph = NULL, *looped = NULL;
	hg_tensor *features = NULL;
	config.device = HG_DEVICE_CPU;
	config.threads = TEAM;
	config.seed = job->seed;
	job->status = HG_OK;
	fail_to_create(job);
	if (!passes(job, NULL, hg_context_create(&config, &ctx)))
		return NULL;
	if (passes(job, ctx, hg_graph_from_coo(ctx, N, N, M, dst, src, NULL, NULL, &graph)) &&
	    passes(job, ctx, hg_graph_add_self_loops(graph, &looped)) &&
	    passes(job, ctx, hg_tensor_create(ctx, HG_F16, N, D, &features)) &&
	    passes(job, ctx, hg_tensor_upload(features, x, HG_F32)))
		train_on(job, ctx, looped, features);
	hg_tensor_free(features);
	hg_graph_free(looped);
	hg_graph_free(graph);
	hg_context_free(ctx);
	return NULL;
}

static void draw_data(void)
{
	for (int e = 0; e < M; e++) {
		dst[e] = (int32_t)test_below(N);
		src[e] = (int32_t)test_below(N);
	}
	for (int i = 0; i < N; i++) {
		label[i] = i % C;
		train_mask[i] = i % 2 == 0;
		for (int c = 0; c < D; c++)
			x[i][c] = (float)(c % C == label[i]) + (float)test_uniform();
	}
}

static void contexts_in_threads_give_the_bits_they_give_alone(void)
{
	static const char *const models[JOBS] = {"gcn", "gin", "gat", "sage", "gt", "gcn"};
	static struct job alone[JOBS], beside[JOBS];
	pthread_t thread[JOBS];
	draw_data();
	for (int k = 0; k < JOBS; k++) {
		alone[k] = (struct job){.model = models[k], .seed = (uint64_t)k};
		(void)work(&alone[k]);
		CHECK_MSG(alone[k].status >= 0, "%s", alone[k].error);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int k = 0; k < JOBS; k++) {
			beside[k] = (struct job){.model = models[k], .seed = (uint64_t)k};
			CHECK(pthread_create(&thread[k], NULL, work, &beside[k]) == 0);
		}
		for (int k = 0; k < JOBS; k++)
			CHECK(pthread_join(thread[k], NULL) == 0);
		for (int k = 0; k < JOBS; k++) {
			char expected[64];
			(void)snprintf(expected, sizeof expected, "threads is %d", -1 - k);
			CHECK_MSG(beside[k].status >= 0, "%s", beside[k].error);
			CHECK_CONTAINS(beside[k].create_error, expected);
			CHECK_MSG(memcmp(alone[k].logits, beside[k].logits, sizeof alone[k].logits) == 0 &&
			              alone[k].loss == beside[k].loss,
			          "%s has other bits beside other threads", models[k]);
		}
		CHECK(memcmp(beside[0].logits, beside[JOBS - 1].logits, sizeof beside[0].logits) != 0);
	}
}

static void *release(void *loan)
{
	struct DLManagedTensorVersioned *managed = loan;
	managed->deleter(managed);
	return NULL;
}

/* The last loan closes its context, here on a thread that never called the library. */
static void last_loan_closes_its_context_on_any_thread(void)
{
	hg_context *ctx = test_cpu_context(TEAM);
	struct DLManagedTensorVersioned *loan;
	hg_tensor *tensor;
	pthread_t thread;
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 4, 8, &tensor));
	CHECK_OK(hg_tensor_to_dlpack(tensor, NULL, &loan));
	hg_tensor_free(tensor);
	hg_context_free(ctx);
	CHECK(pthread_create(&thread, NULL, release, loan) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(contexts_in_threads_give_the_bits_they_give_alone),
	    TEST(last_loan_closes_its_context_on_any_thread),
	};
	return RUN_TESTS(argc, argv, cases);
}
