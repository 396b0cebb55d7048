/* The thread that runs ahead does its work in time, and schedules epochs of batches as its caller
 * would. Built with HG_SANITIZE_THREAD this is the test of that thread for ThreadSanitizer, so it
 * has one OpenMP thread. */
#define _POSIX_C_SOURCE 200809L
#include "core/ahead.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "unit/batches_padded.h"

enum { PER_BATCH = 5, EPOCHS = 50 };

static void add_one(void *user)
{
	++*(int *)user;
}

/* With a thread and without one. */
static void work_is_done_once(void)
{
	for (int with = 0; with < 2; with++) {
		struct hg__ahead ahead = {.runs = 0};
		int done = 0;
		if (with)
			hg__ahead_begin(&ahead);
		CHECK(ahead.runs == with);
		hg__ahead_wait(&ahead); /* for nothing */
		for (int k = 1; k <= 1000; k++) {
			hg__ahead_ask(&ahead, add_one, &done);
			hg__ahead_wait(&ahead);
			CHECK(done == k);
		}
		hg__ahead_ask(&ahead, add_one, &done);
		hg__ahead_end(&ahead); /* it waits, too */
		CHECK(done == 1001);
		hg__ahead_end(&ahead); /* there is none any more */
	}
}

struct turn {
	struct hg__schedule *schedule;
	int64_t epoch;
};

static void schedule(void *user)
{
	const struct turn *turn = user;
	hg__schedule_make(turn->schedule, turn->epoch);
}

static void check_same(const struct hg__schedule *a, const struct hg__schedule *b)
{
	CHECK(a->epoch == b->epoch && a->batches == b->batches);
	for (int64_t k = 0; k < a->batches; k++) {
		const struct hg__batch_list x = hg__schedule_list(a, k, a->lists.data),
		                            y = hg__schedule_list(b, k, b->lists.data);
		const size_t graphs = (size_t)x.graphs;
		CHECK(memcmp(hg__scheduled(a, k), hg__scheduled(b, k), sizeof(struct hg__scheduled)) == 0);
		CHECK(x.graphs == y.graphs && x.bins == y.bins);
		CHECK(memcmp(x.graph, y.graph, graphs * sizeof *x.graph) == 0);
		CHECK(memcmp(x.row, y.row, (graphs + 1) * sizeof *x.row) == 0);
		CHECK(memcmp(x.edge, y.edge, (graphs + 1) * sizeof *x.edge) == 0);
		CHECK(memcmp(x.bin, y.bin, (size_t)x.bins * sizeof *x.bin) == 0);
	}
}

/* While one schedule is read the thread makes the next one. */
static void epochs_are_scheduled_ahead(void)
{
	static struct many_graphs g;
	hg_context *ctx = test_cpu_context(1);
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	struct many_device d;
	struct hg__padded padded;
	struct hg__schedule two[2], alone;
	struct hg__ahead ahead;
	struct turn turn;
	hg_batches *all;
	hg_batch batch = HG_BATCH_INIT;
	many_graphs_make(&g, 0, 1);
	CHECK_OK(many_open(ctx, &g, 0, &d));
	c.input = many_input(&d);
	c.row[0] = d.label;
	c.graphs = PER_BATCH;
	CHECK_OK(hg_batches_create(ctx, &c, &all));
	CHECK_OK(hg_batches_load(all, 0, 0, &batch));
	const hg_graph probe = padded_probe(batch.input.graph);
	CHECK_OK(hg__padded_init(&padded, all, &c, &probe, HG_F16, 0, -1));
	for (int k = 0; k < 2; k++)
		CHECK_OK(hg__schedule_init(&two[k], &padded));
	CHECK_OK(hg__schedule_init(&alone, &padded));
	hg__ahead_begin(&ahead);
	hg__schedule_make(&two[0], 0);
	for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
		turn = (struct turn){&two[(epoch + 1) % 2], epoch + 1};
		hg__ahead_ask(&ahead, schedule, &turn);
		hg__schedule_make(&alone, epoch);
		check_same(&two[epoch % 2], &alone);
		hg__ahead_wait(&ahead);
	}
	hg__ahead_end(&ahead);
	for (int k = 0; k < 2; k++)
		hg__schedule_fini(&two[k]);
	hg__schedule_fini(&alone);
	hg__padded_fini(&padded);
	hg_batches_free(all);
	many_close(&d);
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
	struct hg__ahead ahead;
	struct sigaction action, old;
	sigset_t one, before, after;
	if (threads_that_run() > 1)
		SKIP("a library has threads of its own, which may take the signal");
	memset(&action, 0, sizeof action);
	action.sa_handler = take;
	CHECK(sigaction(SIGUSR1, &action, &old) == 0);
	CHECK(sigemptyset(&one) == 0 && sigaddset(&one, SIGUSR1) == 0);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
	hg__ahead_begin(&ahead);
	CHECK(ahead.runs);
	CHECK(pthread_sigmask(SIG_BLOCK, &one, &before) == 0);
	CHECK(sigismember(&before, SIGUSR1) == 0); /* the mask of who starts it is as it was */
	CHECK(kill(getpid(), SIGUSR1) == 0);
	hg__ahead_end(&ahead); /* the thread ran since */
	CHECK(!taken && sigpending(&after) == 0 && sigismember(&after, SIGUSR1) == 1);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
	CHECK(taken == 1);
	CHECK(sigaction(SIGUSR1, &old, NULL) == 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(work_is_done_once),
	                                         TEST(epochs_are_scheduled_ahead),
	                                         TEST(the_thread_takes_no_signals)};
	return RUN_TESTS(argc, argv, cases);
}
