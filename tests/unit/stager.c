/* Padded batches that threads put together are those that the caller would. Built with
 * HG_SANITIZE_THREAD this is the test of those threads for ThreadSanitizer, so it has one OpenMP
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
                        int64_t epoch, int threads, struct bytes *bytes)
{
	struct hg__stager stager = {.threads = 0};
	struct hg__buffer block[2] = {{0}};
	struct hg__staging staging[2];
	const int64_t batches = hg_batches_count(all);
	if (threads)
		hg__stager_begin(&stager, threads);
	CHECK(stager.threads == threads);
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

/* A graph whose tapes have asked for all that they can ask for. Only that is read of it. */
static hg_graph with_all_arrays(const hg_graph *of)
{
	hg_graph probe = *of;
	struct hg__buffer *const arrays[] = {&probe.rowptr_t,    &probe.col_t,       &probe.edge_t,
	                                     &probe.inverse_row, &probe.inverse_col, &probe.root_row,
	                                     &probe.root_col,    &probe.bin_first};
	for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
		arrays[i]->bytes = 1;
	if (of->weight.data)
		probe.weight_f16.bytes = 1;
	return probe;
}

static void threads_give_the_same_blocks(void)
{
	enum { COUNTS = 4 };
	static const int threads[COUNTS] = {0, 1, 3, HG__STAGER_MOST};
	static struct many_graphs g;
	hg_context *ctx = test_cpu_context(1);
	many_graphs_make(&g, 0, 1);
	for (int variant = 0; variant < MG_VARIANTS; variant++) {
		hg_batches_config c = HG_BATCHES_CONFIG_INIT;
		struct many_device d;
		struct hg__padded padded;
		struct bytes bytes[COUNTS] = {{NULL, 0}};
		hg_batches *all;
		hg_batch batch = HG_BATCH_INIT;
		CHECK_OK(many_open(ctx, &g, variant, &d));
		c.input = many_input(&d);
		c.row[0] = d.label;
		c.graphs = PER_BATCH;
		CHECK_OK(hg_batches_create(ctx, &c, &all));
		CHECK_OK(hg_batches_load(all, 0, 0, &batch));
		const hg_graph probe = with_all_arrays(all->batch_graph);
		CHECK_OK(hg__padded_init(&padded, all, &probe, variant & MG_F32 ? HG_F32 : HG_F16, 0, -1));
		for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
			for (int i = 0; i < COUNTS; i++)
				stage_epoch(ctx, &padded, all, epoch, threads[i], &bytes[i]);
		CHECK(bytes[0].count > 0);
		for (int i = 1; i < COUNTS; i++) {
			CHECK(bytes[i].count == bytes[0].count);
			CHECK_MSG(memcmp(bytes[0].at, bytes[i].at, bytes[0].count) == 0,
			          "variant %d: %d threads give another block", variant, threads[i]);
		}
		for (int i = 0; i < COUNTS; i++)
			free(bytes[i].at);
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
static void the_threads_take_no_signals(void)
{
	struct hg__stager stager = {.threads = 0};
	struct sigaction action, old;
	sigset_t one, before, after;
	if (threads_that_run() > 1)
		SKIP("a library has threads of its own, which may take the signal");
	memset(&action, 0, sizeof action);
	action.sa_handler = take;
	CHECK(sigaction(SIGUSR1, &action, &old) == 0);
	CHECK(sigemptyset(&one) == 0 && sigaddset(&one, SIGUSR1) == 0);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
	hg__stager_begin(&stager, 2);
	CHECK(stager.threads == 2);
	CHECK(pthread_sigmask(SIG_BLOCK, &one, &before) == 0);
	CHECK(sigismember(&before, SIGUSR1) == 0); /* the mask of who starts it is as it was */
	CHECK(kill(getpid(), SIGUSR1) == 0);
	hg__stager_end(&stager); /* the threads ran since */
	CHECK(!taken && sigpending(&after) == 0 && sigismember(&after, SIGUSR1) == 1);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
	CHECK(taken == 1);
	CHECK(sigaction(SIGUSR1, &old, NULL) == 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(threads_give_the_same_blocks),
	                                         TEST(the_threads_take_no_signals)};
	return RUN_TESTS(argc, argv, cases);
}
