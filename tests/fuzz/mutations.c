/* Hundreds of thousands of damaged HDF5 files, each read in a process that may crash or not end.
 *
 *     mutations sealed|plain RUNS [SEED]
 *
 * Makes RUNS files with one flipped bit and RUNS with several mutations, of a dataset and of the
 * checkpoints of a GIN and a GAT. `sealed`: as HalfGraph writes them, with a checksum; every file
 * that is not refused is a failure. `plain`: without a checksum, like files of others; what libhdf5
 * does with damaged metadata is counted only. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hash.h"
#include "mutate.h"
#include "small_run.h"
#include "support.h"

/* Seconds that a reader may take. A good file takes a millisecond. */
#define PATIENCE 5

static int64_t how_many = 300; /* as many as ctest has time for */
static uint64_t first_seed = 1;

enum outcome { REFUSED, SAME, DIFFERENT, CRASHED, HUNG, OUTCOMES };

/* Memory that is shared with the process that reads. */
struct board {
	int64_t run; /* the run whose file is being read */
	int64_t count[OUTCOMES];
};

struct original {
	const char *name;
	int is_checkpoint;
	unsigned char *bytes;
	size_t size;
	uint64_t content;
};

static void add(struct hg__hash *h, const void *bytes, size_t count)
{
	const char present = bytes != NULL;
	hg__hash_add(h, &present, 1);
	if (bytes && count > 0)
		hg__hash_add(h, bytes, count);
}

static uint64_t content_of_dataset(const hg_dataset *d)
{
	struct hg__hash h;
	const int64_t n = d->nodes, rows = d->graph_ptr ? d->graphs : n;
	const int64_t size[] = {
	    n,          d->edges,         d->graphs,      d->features, d->feat_dtype,
	    d->classes, d->edge_features, d->edge_classes};
	const int64_t stored = d->feat_rowptr ? d->feat_rowptr[n] : 0;
	const struct {
		const void *bytes;
		int64_t count;
		size_t size;
	} array[] = {{d->rowptr, n + 1, 8},
	             {d->col, d->edges, 4},
	             {d->weight, d->edges, 4},
	             {d->graph_ptr, d->graphs + 1, 8},
	             {d->feat, n * d->features, hg_dtype_size(d->feat_dtype)},
	             {d->feat_rowptr, n + 1, 8},
	             {d->feat_col, stored, 4},
	             {d->feat_value, stored, 4},
	             {d->label, rows, 4},
	             {d->train_mask, rows, 1},
	             {d->val_mask, rows, 1},
	             {d->test_mask, rows, 1},
	             {d->fold, rows, 4},
	             {d->orig_id, n, 8},
	             {d->order, n, 4},
	             {d->edge_feat, d->edges * d->edge_features, 4},
	             {d->edge_label, d->edges, 4}};
	hg__hash_begin(&h);
	add(&h, size, sizeof size);
	add(&h, d->name, d->name ? strlen(d->name) : 0);
	for (size_t k = 0; k < sizeof array / sizeof array[0]; k++)
		add(&h, array[k].bytes, (size_t)array[k].count * array[k].size);
	return hg__hash_end(&h);
}

static uint64_t content_of_state(const hg_state *s)
{
	struct hg__hash h;
	const int64_t size[] = {s->tensors, s->settings, s->promotions, s->step};
	hg__hash_begin(&h);
	add(&h, size, sizeof size);
	add(&h, &s->loss_scale, sizeof s->loss_scale);
	for (int64_t i = 0; i < s->settings; i++) {
		const hg_setting *a = &s->setting[i];
		add(&h, a->name, strlen(a->name));
		add(&h, &a->integer, sizeof a->integer);
		add(&h, &a->real, sizeof a->real);
		add(&h, a->text, strlen(a->text));
	}
	for (int64_t i = 0; i < s->promotions; i++) {
		const hg_promotion *p = &s->promotion[i];
		const int64_t number[] = {p->nth, p->shift};
		add(&h, number, sizeof number);
		add(&h, p->op, strlen(p->op));
		add(&h, p->layer, strlen(p->layer));
	}
	for (int64_t i = 0; i < s->tensors; i++) {
		const hg_state_tensor *t = &s->tensor[i];
		const size_t bytes = (size_t)(t->rows * t->cols) * sizeof *t->master;
		add(&h, t->name, strlen(t->name));
		add(&h, &t->reach, sizeof t->reach);
		add(&h, t->master, bytes);
		for (int k = 0; k < t->moments; k++)
			add(&h, t->moment[k], bytes);
	}
	return hg__hash_end(&h);
}

/* The status of the reader, and a hash of what it has read. */
static hg_status read_content(int is_checkpoint, const char *path, uint64_t *content)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	hg_state *s = NULL;
	const hg_status status =
	    is_checkpoint ? hg_checkpoint_read(path, &s, message) : hg_dataset_read(path, &d, message);
	CHECK((status == HG_OK) == (d || s) && (status == HG_OK || *message));
	*content = d ? content_of_dataset(d) : s ? content_of_state(s) : 0;
	hg_dataset_free(d);
	hg_state_free(s);
	return status;
}

/* ---- one run ---- */

static int is_same(const struct original *o, const uint8_t *bytes, size_t count)
{
	return count == o->size && memcmp(bytes, o->bytes, count) == 0;
}

/* Makes the file of run number `run`, which does not depend on the runs before it. */
static size_t make(const struct original *o, int64_t run, int several, uint8_t *bytes)
{
	size_t count = o->size;
	memcpy(bytes, o->bytes, count);
	test_reseed(first_seed + (uint64_t)run * 2 + (uint64_t)several);
	if (!several) {
		const size_t bit = (size_t)test_below(8 * (int64_t)count);
		bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
	} else {
		for (int64_t k = 1 + test_below(6); count > 0 && (k > 0 || is_same(o, bytes, count)); k--)
			mutate_once(bytes, &count);
	}
	return count;
}

static void read_runs(const struct original *o, int64_t runs, int several, struct board *board)
{
	const int in_memory = access("/dev/shm", W_OK) == 0;
	char path[64];
	(void)snprintf(path, sizeof path, "%s/hg-mutation-XXXXXX", in_memory ? "/dev/shm" : "/tmp");
	const int fd = mkstemp(path);
	uint8_t *bytes = malloc(o->size);
	CHECK(fd >= 0 && bytes != NULL);
	for (; board->run < runs; board->run++) {
		uint64_t content = 0;
		const size_t count = make(o, board->run, several, bytes);
		CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, count, 0) == (ssize_t)count);
		(void)alarm(PATIENCE);
		const hg_status status = read_content(o->is_checkpoint, path, &content);
		(void)alarm(0);
		board->count[status < 0 ? REFUSED : content == o->content ? SAME : DIFFERENT]++;
	}
	free(bytes);
	CHECK(close(fd) == 0 && unlink(path) == 0);
}

/* A process reads file after file until it crashes. The next process continues after the run that
 * crashed it. */
static void count_runs(const struct original *o, int64_t runs, int several, struct board *board)
{
	memset(board, 0, sizeof *board);
	while (board->run < runs) {
		int code = 0;
		(void)fflush(stdout);
		const pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			(void)signal(SIGALRM, SIG_DFL);
			if (!freopen("/dev/null", "w", stderr))
				_exit(1);
			read_runs(o, runs, several, board);
			_exit(0);
		}
		CHECK(waitpid(child, &code, 0) == child);
		if (board->run >= runs && WIFEXITED(code) && WEXITSTATUS(code) == 0)
			break;
		board->count[WIFSIGNALED(code) && WTERMSIG(code) == SIGALRM ? HUNG : CRASHED]++;
		board->run++;
	}
}

/* ---- originals ---- */

static void make_dataset(const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	hg_dataset *d = NULL;
	config.nodes = 90;
	config.features = 5;
	config.hubs = 2;
	config.hub_degree = 20;
	config.degree = 6;
	CHECK_MSG(hg_dataset_planted(&config, &d, message) == HG_OK, "%s", message);
	must_write(d, path);
	hg_dataset_free(d);
}

static void make_checkpoint(const char *model, const char *path)
{
	static struct small_run run;
	char message[HG_DATA_MESSAGE] = "";
	hg_train_config config = small_config(model, "fp16");
	config.epochs = 2;
	small_open(&run, test_context(), config);
	small_train(&run);
	CHECK_STATUS(hg_checkpoint_save(run.train, path, message), HG_OK);
	small_close(&run);
}

static struct original original(const char *name, int is_plain)
{
	struct original o = {.name = name, .is_checkpoint = strcmp(name, "dataset") != 0};
	const char *path = scratch(0, "original.h5");
	if (o.is_checkpoint)
		make_checkpoint(name, path);
	else
		make_dataset(path);
	if (is_plain)
		unseal(path);
	o.bytes = read_bytes(path, &o.size);
	CHECK_STATUS(read_content(o.is_checkpoint, path, &o.content), HG_OK);
	return o;
}

/* Returns the runs that were not refused. */
static int64_t damage_all(int is_plain)
{
	static const char *const names[] = {"dataset", "gin", "gat"};
	struct board *board =
	    mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t bad = 0;
	CHECK(board != MAP_FAILED);
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		for (int several = 0; several < 2; several++) {
			const struct original o = original(names[k], is_plain);
			count_runs(&o, how_many, several, board);
			const int64_t *c = board->count;
			test_note("%-7s %6zu bytes, %lld x %-13s %lld refused, %lld same, %lld different, "
			          "%lld crashed, %lld hung",
			          o.name, o.size, (long long)how_many,
			          several ? "1 to 6 damages:" : "one bit:", (long long)c[REFUSED],
			          (long long)c[SAME], (long long)c[DIFFERENT], (long long)c[CRASHED],
			          (long long)c[HUNG]);
			CHECK_EQ_I(c[REFUSED] + c[SAME] + c[DIFFERENT] + c[CRASHED] + c[HUNG], how_many);
			bad += c[SAME] + c[DIFFERENT] + c[CRASHED] + c[HUNG];
			free(o.bytes);
		}
	CHECK(munmap(board, sizeof *board) == 0);
	return bad;
}

static void sealed_files_are_refused(void)
{
	CHECK_EQ_I(damage_all(0), 0);
}

static void plain_files_are_counted(void)
{
	(void)damage_all(1);
}

int main(int argc, char **argv)
{
	const int is_plain = argc > 1 && strcmp(argv[1], "plain") == 0;
	static const struct test_case sealed[] = {TEST(sealed_files_are_refused)};
	static const struct test_case plain[] = {TEST(plain_files_are_counted)};
	if (argc > 2)
		how_many = strtoll(argv[2], NULL, 10);
	if (argc > 3)
		first_seed = strtoull(argv[3], NULL, 10);
	return is_plain ? RUN_TESTS(1, argv, plain) : RUN_TESTS(1, argv, sealed);
}
