/* Padded batches that a thread puts together are those that the caller would. Built with
 * HG_SANITIZE_THREAD this is the test of that thread for ThreadSanitizer, so it has one OpenMP
 * thread. */
#define _POSIX_C_SOURCE 200809L
#include "nn/train_stager.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/many_graphs.h"

enum { PER_BATCH = 5, EPOCHS = 20 };

/* The bytes of all batches of the epochs, one behind the other. */
struct bytes {
	unsigned char *at;
	size_t count;
};

static void append(struct bytes *to, const void *from, size_t count)
{
	to->at = realloc(to->at, to->count + count);
	CHECK(to->at);
	memcpy(to->at + to->count, from, count);
	to->count += count;
}

/* Two blocks in turn: batch k is read while batch k + 1 is put together. */
static void stage_epoch(hg_context *ctx, const struct hg__padded *padded, hg_batches *all,
                        int64_t epoch, int threaded, struct bytes *bytes)
{
	struct hg__stager stager = {.threaded = 0};
	struct hg__buffer block[2] = {{0}};
	struct hg__staging staging[2];
	const int64_t batches = hg_batches_count(all);
	if (threaded)
		hg__stager_begin(&stager);
	CHECK(!threaded || stager.threaded);
	for (int64_t k = 0; k <= batches; k++) {
		struct hg__staging *next = &staging[k % 2];
		const struct hg__staging *done = &staging[(k + 1) % 2];
		hg__stager_wait(&stager);
		if (k < batches) {
			int64_t graphs;
			const int64_t *graph = hg__batches_of_epoch(all, epoch, k, &graphs);
			next->padded = padded;
			next->graph = graph;
			next->shape = hg__padded_shape(padded, graph, graphs);
			hg__buffer_free(ctx, &block[k % 2]);
			CHECK_OK(hg__buffer_pinned(ctx, hg__padded_filled(padded, &next->shape), "block",
			                           &block[k % 2]));
			memset(block[k % 2].data, 0, block[k % 2].bytes);
			next->block = block[k % 2].data;
			hg__stager_ask(&stager, next);
		}
		if (k > 0)
			append(bytes, done->block, hg__padded_filled(padded, &done->shape));
	}
	hg__stager_end(&stager);
	hg__stager_end(&stager); /* there is none any more */
	hg__buffer_free(ctx, &block[0]);
	hg__buffer_free(ctx, &block[1]);
}

static void a_thread_gives_the_same_blocks(void)
{
	static struct many_graphs g;
	hg_context *ctx = test_cpu_context(1);
	many_graphs_make(&g, 0, 1);
	for (int variant = 0; variant < MG_VARIANTS; variant++) {
		hg_batches_config c = HG_BATCHES_CONFIG_INIT;
		struct many_device d;
		struct hg__padded padded;
		struct bytes bytes[2] = {{NULL, 0}, {NULL, 0}};
		hg_batches *all;
		hg_batch batch = HG_BATCH_INIT;
		CHECK_OK(many_open(ctx, &g, variant, &d));
		c.input = many_input(&d);
		c.row[0] = d.label;
		c.graphs = PER_BATCH;
		CHECK_OK(hg_batches_create(ctx, &c, &all));
		CHECK_OK(hg_batches_load(all, 0, 0, &batch));
		CHECK_OK(hg__padded_init(&padded, all, all->batch_graph, variant & MG_F32 ? HG_F32 : HG_F16,
		                         0, -1));
		for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
			for (int threaded = 0; threaded < 2; threaded++)
				stage_epoch(ctx, &padded, all, epoch, threaded, &bytes[threaded]);
		CHECK(bytes[0].count > 0 && bytes[0].count == bytes[1].count);
		CHECK(memcmp(bytes[0].at, bytes[1].at, bytes[0].count) == 0);
		free(bytes[0].at);
		free(bytes[1].at);
		hg__padded_fini(&padded);
		hg_batches_free(all);
		many_close(&d);
	}
	hg_context_free(ctx);
}

static volatile sig_atomic_t taken;

static void take(int number)
{
	(void)number;
	taken = 1;
}

/* Those of this process: some builds of OpenBLAS start one as soon as they are loaded. */
static int threads_that_run(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;
	for (const struct dirent *entry = tasks ? readdir(tasks) : NULL; entry; entry = readdir(tasks))
		count += entry->d_name[0] != '.';
	if (tasks)
		closedir(tasks);
	return count;
}

/* A signal to the process waits until a thread of the host program wants it. */
static void the_thread_takes_no_signals(void)
{
	struct hg__stager stager = {.threaded = 0};
	struct sigaction action, old;
	sigset_t one, before, after;
	if (threads_that_run() > 1)
		SKIP("a library has threads of its own, which may take the signal");
	memset(&action, 0, sizeof action);
	action.sa_handler = take;
	CHECK(sigaction(SIGUSR1, &action, &old) == 0);
	CHECK(sigemptyset(&one) == 0 && sigaddset(&one, SIGUSR1) == 0);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
	hg__stager_begin(&stager);
	CHECK(stager.threaded);
	CHECK(pthread_sigmask(SIG_BLOCK, &one, &before) == 0);
	CHECK(sigismember(&before, SIGUSR1) == 0); /* the mask of who starts it is as it was */
	CHECK(kill(getpid(), SIGUSR1) == 0);
	hg__stager_end(&stager); /* the thread ran since */
	CHECK(!taken && sigpending(&after) == 0 && sigismember(&after, SIGUSR1) == 1);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
	CHECK(taken == 1);
	CHECK(sigaction(SIGUSR1, &old, NULL) == 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(a_thread_gives_the_same_blocks),
	                                         TEST(the_thread_takes_no_signals)};
	return RUN_TESTS(argc, argv, cases);
}
