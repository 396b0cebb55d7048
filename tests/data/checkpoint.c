/* Checkpoints. A run continues from its file with the same bits. A file that does not fit or cannot
 * be written is refused with a message that names it, and changes nothing. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "states.h"

static void must_save(struct small_run *r, const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_status status = hg_checkpoint_save(r->train, path, message);
	CHECK_MSG(status == HG_OK, "save: %s", message);
}

static void load_as(struct small_run *r, const char *path, hg_status expected, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_status status = hg_checkpoint_load(path, r->train, message);
	CHECK_MSG(status == expected, "load: %s: %s", hg_status_name(status), message);
	CHECK_CONTAINS(message, part);
	CHECK_MSG(strchr(message, '\n') == NULL, "more than one line");
}

static void hand_over_by_file(struct small_run *from, struct small_run *to)
{
	const char *path = scratch(0, "resume.h5");
	must_save(from, path);
	load_as(to, path, HG_OK, "");
}

static void runs_resume_from_their_files(void)
{
	for (const char *const *model = hg_model_names(); *model; model++) {
		check_resumed_run(test_context, small_config(*model, "fp32"), hand_over_by_file);
		check_resumed_run(test_context, small_config(*model, "fp16"), hand_over_by_file);
	}
}

static void states_come_back_bit_for_bit(void)
{
	hg_state *state = odd_state();
	const hg_setting text = {.name = "more.text",
	                         .kind = HG_SETTING_TEXT,
	                         .text = "\xc3\xa4 \xe2\x82\xac"},
	                 none = {.name = "more.none", .kind = HG_SETTING_TEXT},
	                 real = {.name = "more.real", .kind = HG_SETTING_REAL, .real = 0.1},
	                 seed = {.name = "more.seed", .kind = HG_SETTING_INTEGER, .integer = INT64_MIN};
	const hg_promotion node = {.op = "spmm", .layer = "a layer", .nth = INT64_MAX},
	                   second = {.op = "linear"},
	                   third = {.op = "linear", .nth = 1, .layer = "1:2 3", .shift = HG_SHIFT_MOST};
	CHECK_OK(hg_state_add_promotion(state, &node));
	CHECK_OK(hg_state_add_promotion(state, &second));
	CHECK_OK(hg_state_add_promotion(state, &third));
	state->loss_scale.applied = INT64_MAX / 4;
	state->loss_scale.steps = INT64_MAX / 4 + state->loss_scale.skipped;
	CHECK_OK(hg_state_add_setting(state, &text));
	CHECK_OK(hg_state_add_setting(state, &none));
	CHECK_OK(hg_state_add_setting(state, &real));
	CHECK_OK(hg_state_add_setting(state, &seed));
	must_write_state(state, scratch(0, "odd.h5"));
	hg_state *back = must_read_state(scratch(0, "odd.h5"));
	check_same_state(state, back, 1);
	check_same_best(state, back);
	check_same_history(state, back);
	CHECK_EQ_I(state->settings, back->settings);
	CHECK(state->best.step > 0 && state->epochs == 2);
	CHECK_STR(back->origin, scratch(0, "odd.h5"));
	hg_state_free(back);
	hg_state_free(state);
}

/* Weights that have several chunks in each direction: [3, 300000] and [300000, 3]. */
static void large_tensors_come_back(void)
{
	static const int64_t shape[2][2] = {{3, 300000}, {300000, 3}};
	hg_state *state = odd_state();
	for (int k = 0; k < 2; k++) {
		hg_state_tensor *t = NULL;
		CHECK_OK(hg_state_add_tensor(state, k ? "tall" : "wide", shape[k][0], shape[k][1], 1, &t));
		for (int64_t i = 0; i < 900000; i++)
			t->master[i] = t->moment[0][899999 - i] = (float)i * 0.5f;
	}
	must_write_state(state, scratch(0, "large.h5"));
	hg_state *back = must_read_state(scratch(0, "large.h5"));
	check_same_state(state, back, 1);
	hg_state_free(back);
	hg_state_free(state);
}

static void equal_states_are_equal_files(void)
{
	size_t count[2] = {0, 0};
	unsigned char *bytes[2];
	hg_state *state = odd_state();
	for (int k = 0; k < 2; k++) {
		must_write_state(state, scratch(0, "twice.h5"));
		bytes[k] = read_bytes(scratch(0, "twice.h5"), &count[k]);
		nanosleep(&(struct timespec){1, 100000000}, NULL);
	}
	CHECK(count[0] == count[1] && memcmp(bytes[0], bytes[1], count[0]) == 0);
	free(bytes[0]);
	free(bytes[1]);
	hg_state_free(state);
}

static unsigned char *state_bytes(const hg_state *state, size_t *count)
{
	must_write_state(state, scratch(0, "order.h5"));
	return read_bytes(scratch(0, "order.h5"), count);
}

/* Reverses the order of a list. */
static void reverse(void *list, int64_t count, size_t size)
{
	unsigned char *at = list, *end = at + (size_t)count * size;
	for (; at + size < end; at += size) {
		end -= size;
		for (size_t k = 0; k < size; k++) {
			const unsigned char byte = at[k];
			at[k] = end[k];
			end[k] = byte;
		}
	}
}

/* The file of a state depends neither on the order in which tensors and settings were added, nor on
 * whether the state was read from a file. */
static void equal_states_in_any_order_are_equal_files(void)
{
	size_t count[3] = {0, 0, 0};
	hg_state *state = odd_state();
	const hg_promotion node[] = {{.op = "spmm", .layer = "conv1", .nth = 10},
	                             {.op = "spmm", .layer = "conv1", .nth = 9},
	                             {.op = "linear", .layer = "conv0", .shift = 3}};
	for (size_t k = 0; k < sizeof node / sizeof node[0]; k++)
		CHECK_OK(hg_state_add_promotion(state, &node[k]));
	unsigned char *whole = state_bytes(state, &count[0]);
	hg_state *back = must_read_state(scratch(0, "order.h5"));
	unsigned char *again = state_bytes(back, &count[1]);
	reverse(state->tensor, state->tensors, sizeof *state->tensor);
	reverse(state->setting, state->settings, sizeof *state->setting);
	unsigned char *reversed = state_bytes(state, &count[2]);
	CHECK(count[0] == count[1] && memcmp(whole, again, count[0]) == 0);
	CHECK(count[0] == count[2] && memcmp(whole, reversed, count[0]) == 0);
	free(whole);
	free(again);
	free(reversed);
	hg_state_free(back);
	hg_state_free(state);
}

/* ---- files that do not fit ---- */

/* A run that refuses a file keeps its state. */
static void refuse(const char *path, hg_train_config config, int columns, hg_status status,
                   const char *part)
{
	static struct small_run r;
	const struct small_options options = {.columns = columns};
	small_open_with(&r, test_context(), config, &options);
	hg_state *before = small_state(&r);
	load_as(&r, path, status, part);
	hg_state *after = small_state(&r);
	check_same_state(before, after, 1);
	hg_state_free(before);
	hg_state_free(after);
	small_close(&r);
}

static void misfits_are_refused_by_name(void)
{
	static struct small_run r;
	const hg_train_config c = small_config("gcn", "fp16");
	const char *path = scratch(0, "gcn.h5");
	char part[400];
	small_open(&r, test_context(), c);
	must_save(&r, path);
	small_close(&r);
	(void)snprintf(part, sizeof part, "conv0.weight is [11, 16] in %s, the model has [7, 16]",
	               path);
	refuse(path, c, 7, HG_ERR_SHAPE, part);
	hg_train_config other = c;
	other.model.hidden = 24;
	(void)snprintf(part, sizeof part, "conv0.weight is [11, 16] in %s, the model has [11, 24]",
	               path);
	refuse(path, other, SMALL_D, HG_ERR_SHAPE, part);
	other = c;
	other.model.layers = 1;
	other.model.out_features = 16; /* so that the first layer fits */
	(void)snprintf(part, sizeof part, "%s has conv1.bias and 1 more, which the model does not have",
	               path);
	refuse(path, other, SMALL_D, HG_ERR_SHAPE, part);
	other = c;
	other.model.layers = 3;
	refuse(path, other, SMALL_D, HG_ERR_SHAPE, "conv1.weight is [16, 3] in ");
	(void)snprintf(part, sizeof part, "%s lacks conv0.eps and ", path);
	refuse(path, small_config("gin", "fp16"), SMALL_D, HG_ERR_SHAPE, part);
	refuse(path, small_config("gin", "fp16"), SMALL_D, HG_ERR_SHAPE,
	       "(it is of a gcn, the run trains a gin)");
	other = c;
	other.optim.kind = HG_SGD;
	refuse(path, other, SMALL_D, HG_ERR_SHAPE, "conv0.weight has 2 moments in ");
}

static void another_seed_is_reported(void)
{
	static struct small_run r;
	hg_context *ctx = NULL;
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	const char *path = scratch(0, "seed.h5");
	char part[400];
	small_open(&r, test_context(), small_config("gat", "fp16"));
	must_save(&r, path);
	hg_state *saved = small_state(&r);
	config.device = hg_context_device(r.ctx);
	config.seed = hg_context_seed(r.ctx) + 7;
	(void)snprintf(part, sizeof part, "seed is %lld in %s, the run has %lld",
	               (long long)hg_context_seed(r.ctx), path, (long long)config.seed);
	small_close(&r);
	CHECK_OK(hg_context_create(&config, &ctx));
	small_open(&r, ctx, small_config("gat", "fp16"));
	load_as(&r, path, HG_INFO_DIFFERS, part);
	hg_state *loaded = small_state(&r);
	check_same_state(saved, loaded, 0);
	hg_state_free(saved);
	hg_state_free(loaded);
	small_close(&r);
}

/* ---- places that cannot be written ---- */

static void must_not_write(const hg_state *state, const char *path, hg_status status,
                           const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_STATUS(hg_checkpoint_write(state, path, message), status);
	CHECK_CONTAINS(message, part);
	CHECK_EQ_I(count_scratch(".tmp"), 0);
}

static void unwritable_places_are_errors(void)
{
	hg_state *state = odd_state();
	must_not_write(state, scratch(0, "no/such/folder.h5"), HG_ERR_IO, "No such file or directory");
	CHECK(mkdir(scratch(1, "folder.h5"), 0700) == 0);
	must_not_write(state, scratch(1, "folder.h5"), HG_ERR_IO, "not a regular file");
	must_not_write(state, "/dev/full", HG_ERR_IO, "not a regular file");
	must_not_write(state, "/proc/checkpoint.h5", HG_ERR_IO,
	               "/proc/checkpoint.h5: cannot be written");
	CHECK(mkdir(scratch(2, "locked"), 0500) == 0);
	if (access(scratch(2, "locked"), W_OK) != 0) /* root can write everywhere */
		must_not_write(state, scratch(3, "locked/cp.h5"), HG_ERR_IO, "Permission denied");
	state->loss_scale.scale = NAN;
	must_not_write(state, scratch(0, "nan.h5"), HG_ERR_ARG,
	               "the loss scale is not a finite number above 0");
	state->loss_scale.scale = 1;
	CHECK_OK(hg_state_add_tensor(state, "a/b", 1, 1, 0, NULL));
	must_not_write(state, scratch(0, "name.h5"), HG_ERR_ARG, "a parameter is called \"a/b\"");
	CHECK(!file_exists(scratch(0, "name.h5")) && !file_exists(scratch(0, "nan.h5")));
	hg_state_free(state);
}

/* The disk is full after so many bytes, for many numbers of bytes. The old file stays as it is, and
 * no other file is left. */
static void full_disk_leaves_the_old_file(void)
{
	struct rlimit before;
	struct stat info;
	size_t count = 0, again = 0;
	hg_state *state = odd_state();
	const char *path = scratch(0, "full.h5");
	char message[HG_DATA_MESSAGE];
	must_write_state(state, path);
	unsigned char *bytes = read_bytes(path, &count);
	state->step++;
	CHECK(stat(path, &info) == 0 && getrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	for (off_t limit = 0; limit < info.st_size; limit += info.st_size / 40 + 1) {
		const struct rlimit small = {(rlim_t)limit, before.rlim_max};
		CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
		const hg_status status = hg_checkpoint_write(state, path, message);
		CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
		CHECK_MSG(status == HG_ERR_IO, "limit %lld: %s", (long long)limit, hg_status_name(status));
		CHECK_CONTAINS(message, "File too large");
		unsigned char *now = read_bytes(path, &again);
		CHECK(again == count && memcmp(bytes, now, count) == 0 && count_scratch(".tmp") == 0);
		free(now);
	}
	free(bytes);
	must_write_state(state, path);
	hg_state *back = must_read_state(path);
	check_same_state(state, back, 1);
	hg_state_free(back);
	hg_state_free(state);
}

static void null_arguments_are_refused(void)
{
	char message[HG_DATA_MESSAGE];
	hg_state *state = NULL;
	CHECK_STATUS(hg_checkpoint_save(NULL, "x", message), HG_ERR_ARG);
	CHECK_STATUS(hg_checkpoint_load("x", NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_checkpoint_write(NULL, "x", NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_checkpoint_read(NULL, &state, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "path is NULL");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(runs_resume_from_their_files),
	    TEST(states_come_back_bit_for_bit),
	    TEST(large_tensors_come_back),
	    TEST(equal_states_are_equal_files),
	    TEST(equal_states_in_any_order_are_equal_files),
	    TEST(misfits_are_refused_by_name),
	    TEST(another_seed_is_reported),
	    TEST(unwritable_places_are_errors),
	    TEST(full_disk_leaves_the_old_file),
	    TEST(null_arguments_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
