/* A process that has trained, and its children. On a CPU a child continues what it has inherited,
 * or starts from the beginning, with the same bits; where OpenMP does not let it have threads, it
 * computes in one. On a GPU its first call is an error with a message. Every child has an alarm, so
 * that a child that waits for ever is a failed test and not one that never ends. */
#define _DEFAULT_SOURCE /* fork, alarm, mmap's MAP_ANONYMOUS */
#include "graphs.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/context.h"
#include "halfgraph/group.h"
#include "halfgraph/order.h"
#include "halfgraph/train.h"
#include "kernels/cpu/backend.h"

enum { N = 700, M = 40000, D = 64, EPOCHS = 3, PATIENCE = 60 };

/* The results of a child, in memory that it shares with its parent. */
struct seen {
	double loss;
	int warnings;
	hg_status status;
	char message[512];
};

struct run {
	hg_context *ctx;
	hg_graph *graph;
	hg_tensor *x;
	hg_train *train;
	int warnings; /* those about a fork */
};

static void on_log(void *user, hg_log_level level, const char *message)
{
	struct run *run = user;
	run->warnings += level == HG_LOG_WARN && strstr(message, "is a fork of") != NULL;
}

/* A weighted graph that is large enough for several threads in every kernel. It is made in children
 * too, so a failed call returns a status instead of leaving the case. */
static hg_status data_make(struct run *run)
{
	static float x[N * D];
	struct coo list = coo_empty(N, N);
	for (int e = 0; e < M; e++)
		coo_add_weighted(&list, e * 7 % N, (e * 31 + e / 11) % N, 0.5f + (float)(e % 5) / 8);
	for (int i = 0; i < N * D; i++)
		x[i] = (float)(i * 17 % 23) / 16 - 0.5f;
	hg_status status = coo_build(run->ctx, &list, &run->graph);
	coo_free(&list);
	if (status == HG_OK)
		status = hg_tensor_create(run->ctx, HG_F16, N, D, &run->x);
	return status == HG_OK ? hg_tensor_upload(run->x, x, HG_F32) : status;
}

static hg_status train_make(struct run *run)
{
	static int32_t label[N];
	hg_train_config config = hg_train_config_default("gcn");
	hg_train_data data = HG_TRAIN_DATA_INIT;
	for (int i = 0; i < N; i++)
		label[i] = i % 4;
	config.epochs = EPOCHS;
	data.input.graph = run->graph;
	data.input.x = run->x;
	data.labels = label;
	return hg_train_create(run->ctx, &config, &data, &run->train);
}

static hg_status train_run(struct run *run, double *loss)
{
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	const hg_status status = hg_train_run(run->train, &report);
	*loss = report.final_loss;
	return status;
}

static hg_context_config config_of(struct run *run)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = HG_DEVICE_CPU;
	config.threads = 2;
	config.seed = test_seed();
	config.log = on_log;
	config.log_user = run;
	return config;
}

static void run_free(struct run *run)
{
	hg_train_free(run->train);
	hg_tensor_free(run->x);
	hg_graph_free(run->graph);
	hg_context_free(run->ctx);
}

/* Trains a run from the beginning, on two threads of the CPU. isa NULL: the fastest kernels. */
static hg_status run_whole(const struct hg__cpu_isa *isa, struct seen *seen)
{
	struct run run = {0};
	struct hg__backend backend;
	const hg_context_config config = config_of(&run);
	hg_status status = hg_context_create(&config, &run.ctx);
	if (status == HG_OK && isa) {
		backend = *run.ctx->backend;
		backend.kernels = isa->kernels;
		run.ctx->backend = &backend;
	}
	if (status == HG_OK)
		status = data_make(&run);
	if (status == HG_OK)
		status = train_make(&run);
	if (status == HG_OK)
		status = train_run(&run, &seen->loss);
	seen->warnings = run.warnings;
	seen->status = status;
	run_free(&run);
	return status;
}

/* ---- children ---- */

static struct seen *shared_make(void)
{
	struct seen *seen =
	    mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(seen != MAP_FAILED);
	return seen;
}

/* Calls work(user) in a child. No check may fail in there, since it would return into the child's
 * copy of the harness; the parent checks the child's results. */
static void run_in_child(const char *what, void (*work)(void *), void *user)
{
	fflush(stdout);
	fflush(stderr);
	const pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(PATIENCE);
		work(user);
		_exit(0);
	}
	int status = 0;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_MSG(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "%s: waited for ever", what);
	CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: ended with status %x", what,
	          (unsigned)status);
}

struct child {
	struct run *run;
	const struct hg__cpu_isa *isa;
	struct seen *seen;
};

static void continue_run(void *user)
{
	const struct child *o = user;
	o->seen->status = train_run(o->run, &o->seen->loss);
	o->seen->warnings = o->run->warnings;
	(void)snprintf(o->seen->message, sizeof o->seen->message, "%s", hg_context_error(o->run->ctx));
	run_free(o->run);
}

static void begin_run(void *user)
{
	const struct child *o = user;
	(void)run_whole(o->isa, o->seen);
}

static void *begin_run_thread(void *user)
{
	begin_run(user);
	return NULL;
}

static void begin_run_in_a_thread(void *user)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, begin_run_thread, user) != 0 ||
	    pthread_join(thread, NULL) != 0)
		_exit(3);
}

static void begin_run_in_a_grandchild(void *user)
{
	const pid_t child = fork();
	int status = 0;
	if (child == 0) {
		alarm(PATIENCE);
		begin_run(user);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		_exit(4);
}

/* ---- cases ---- */

static struct run run_begun(hg_context *ctx)
{
	struct run run = {.ctx = ctx};
	double loss;
	CHECK_OK(data_make(&run));
	CHECK_OK(train_make(&run));
	CHECK_OK(train_run(&run, &loss));
	return run;
}

static void child_continues_the_run_of_its_parent(void)
{
	static struct run run; /* the log function points to it */
	const hg_context_config config = config_of(&run);
	hg_context *ctx = NULL;
	CHECK_OK(hg_context_create(&config, &ctx));
	run = run_begun(ctx);
	struct child o = {.run = &run, .seen = shared_make()};
	double loss;
	run_in_child("the child of a parent that has trained", continue_run, &o);
	CHECK_OK(train_run(&run, &loss)); /* the parent still has its threads */
	CHECK_MSG(o.seen->status == HG_OK, "%s: %s", hg_status_name(o.seen->status), o.seen->message);
	CHECK_MSG(memcmp(&o.seen->loss, &loss, sizeof loss) == 0, "loss %.17g, of the parent %.17g",
	          o.seen->loss, loss);
	CHECK_EQ_I(o.seen->warnings, 1);
	CHECK_EQ_I(run.warnings, 0);
	run_free(&run);
}

static void child_begins_its_own_run(void)
{
	static const struct {
		const char *name;
		void (*work)(void *);
		int warnings;
	} ways[] = {{"in the child", begin_run, 1},
	            {"in a thread of the child", begin_run_in_a_thread, 0},
	            {"in a grandchild", begin_run_in_a_grandchild, 1}};
	size_t count;
	const struct hg__cpu_isa *isas = hg__cpu_isas(&count);
	struct child o = {.seen = shared_make()};
	for (size_t i = 0; i < count; i++) {
		struct seen here = {0};
		if (!isas[i].runs_here())
			continue;
		CHECK_OK(run_whole(&isas[i], &here));
		CHECK_EQ_I(here.warnings, 0);
		o.isa = &isas[i];
		for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
			memset(o.seen, 0, sizeof *o.seen);
			run_in_child(ways[k].name, ways[k].work, &o);
			CHECK_MSG(o.seen->status == HG_OK &&
			              memcmp(&o.seen->loss, &here.loss, sizeof here.loss) == 0,
			          "%s, %s: %s, loss %.17g, not %.17g", ways[k].name, isas[i].name,
			          hg_status_name(o.seen->status), o.seen->loss, here.loss);
			CHECK_MSG(o.seen->warnings == ways[k].warnings, "%s: %d warnings", ways[k].name,
			          o.seen->warnings);
		}
	}
}

/* The thread that forks is the only thread of the child. Threads that another thread of the parent
 * has started do not matter to it. */
static void *fork_thread(void *user)
{
	run_in_child("forked from another thread", begin_run, user);
	return NULL;
}

static void child_of_a_thread_that_has_not_trained_has_threads(void)
{
	struct seen here = {0};
	struct child o = {.seen = shared_make()};
	pthread_t thread;
	CHECK_OK(run_whole(NULL, &here));
	CHECK(pthread_create(&thread, NULL, fork_thread, &o) == 0 && pthread_join(thread, NULL) == 0);
	CHECK(o.seen->status == HG_OK && memcmp(&o.seen->loss, &here.loss, sizeof here.loss) == 0);
	CHECK_EQ_I(o.seen->warnings, 0);
}

/* A search for an order uses a second thread from a million edges on. */
enum { RING = 30000, NEAR = 40 };
static int64_t ring_ptr[RING + 1];
static int32_t ring_id[RING * NEAR], ring_order[RING];

static void find_order(void *user)
{
	hg_order_config config = HG_ORDER_CONFIG_INIT;
	config.method = "community";
	*(hg_status *)user = hg_order_find(&config, RING, ring_ptr, ring_id, ring_order, NULL);
	if (*(hg_status *)user != HG_OK)
		_exit(5);
}

static void child_finds_an_order(void)
{
	hg_status status = HG_ERR_INTERNAL;
	for (int i = 0; i < RING; i++) {
		ring_ptr[i + 1] = ring_ptr[i] + NEAR;
		for (int k = 0; k < NEAR; k++)
			ring_id[i * NEAR + k] =
			    (i + (k < NEAR / 2 ? k - NEAR / 2 : k - NEAR / 2 + 1) + RING) % RING;
	}
	find_order(&status);
	CHECK_OK(status);
	run_in_child("an order", find_order, &status);
}

struct together {
	hg_group *group;
	hg_step *step[2];
	struct seen *seen;
};

static hg_status group_run(const struct together *t, double *loss)
{
	const hg_status status = hg_group_run(t->group, EPOCHS);
	return status == HG_OK ? hg_step_read(t->step[1], 0, loss, NULL) : status;
}

static void continue_group(void *user)
{
	struct together *t = user;
	t->seen->status = group_run(t, &t->seen->loss);
	hg_group_free(t->group);
}

/* The threads of a group are its parent's; in the child the caller runs all models. */
static void child_goes_on_with_a_group(void)
{
	static struct run run, second;
	const hg_context_config config = config_of(&run);
	hg_context *ctx = NULL;
	CHECK_OK(hg_context_create(&config, &ctx));
	run = run_begun(ctx);
	second = run;
	CHECK_OK(train_make(&second));
	struct together t = {.step = {hg_train_step(run.train), hg_train_step(second.train)},
	                     .seen = shared_make()};
	double loss;
	CHECK_OK(hg_group_create(ctx, t.step, 2, NULL, &t.group));
	CHECK_OK(group_run(&t, &loss));
	run_in_child("the child of a parent with a group", continue_group, &t);
	CHECK_OK(group_run(&t, &loss)); /* the parent still has its threads */
	CHECK_OK(t.seen->status);
	CHECK_MSG(memcmp(&t.seen->loss, &loss, sizeof loss) == 0, "loss %.17g, of the parent %.17g",
	          t.seen->loss, loss);
	hg_group_free(t.group);
	hg_train_free(second.train);
	run_free(&run);
}

static void gpu_is_refused_in_a_child(void)
{
	hg_context *ctx = test_context();
	if (hg_context_device(ctx) != HG_DEVICE_CUDA) {
		hg_context_free(ctx);
		SKIP("there is no GPU in this run");
	}
	struct run run = run_begun(ctx);
	struct child o = {.run = &run, .seen = shared_make()};
	double loss;
	run_in_child("the child of a parent that has trained on a GPU", continue_run, &o);
	CHECK_EQ_I(o.seen->status, HG_ERR_STATE);
	CHECK_CONTAINS(o.seen->message, "a GPU does not survive a fork");
	CHECK_OK(train_run(&run, &loss));
	run_free(&run);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(child_continues_the_run_of_its_parent),
	    TEST(child_begins_its_own_run),
	    TEST(child_of_a_thread_that_has_not_trained_has_threads),
	    TEST(child_finds_an_order),
	    TEST(child_goes_on_with_a_group),
	    TEST(gpu_is_refused_in_a_child),
	};
	return RUN_TESTS(argc, argv, cases);
}
