/* Checkpoint files that are damaged, truncated, of a later version, or changed by another
 * program. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spoil.h"
#include "states.h"

#if defined(__SANITIZE_ADDRESS__)
#define FLIP_STEP 37 /* each is read in a process of its own, which is slow under a sanitizer */
#elif !defined(FLIP_STEP)
#define FLIP_STEP 5 /* with 1 it would be every byte, which takes a minute */
#endif

/* ---- damaged files ---- */

static void dataset_format(hid_t f)
{
	put_text(f, "/", "format", "halfgraph");
}
static void newer_version(hid_t f)
{
	put_text(f, "/", "format_version", "2.0");
}
static void no_step(hid_t f)
{
	drop_attribute(f, "/", "step");
}
static void text_step(hid_t f)
{
	put_text(f, "/", "step", "10");
}
static void negative_step(hid_t f)
{
	put_integer(f, "/", "step", -1);
}
static void no_settings(hid_t f)
{
	drop(f, "settings");
}
static void long_setting(hid_t f)
{
	put_text(f, "/settings", "model.name",
	         "gcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcngcn");
}
static void long_setting_name(hid_t f)
{
	put_integer(f, "/settings", "model.dropout.of.a.layer.that.is.far.away.from.all.others", 3);
}
static void no_promoted(hid_t f)
{
	drop(f, "promoted");
}
static void promoted_twice(hid_t f)
{
	put_text(f, "/promoted", "0", "1 spmm conv0");
	put_text(f, "/promoted", "1", "1 spmm conv0");
}
static void promoted_nothing(hid_t f)
{
	put_text(f, "/promoted", "0", "spmm conv0");
}
static void promoted_without_number(hid_t f)
{
	put_text(f, "/promoted", "one", "1 spmm conv0");
}
static void promoted_by_nothing(hid_t f)
{
	put_text(f, "/promoted", "0", "0: spmm conv0");
}
static void promoted_by_too_much(hid_t f)
{
	put_text(f, "/promoted", "0", "0:15 spmm conv0");
}
static void promoted_by_a_word(hid_t f)
{
	put_text(f, "/promoted", "0", "0:3x spmm conv0");
}
static void no_loss_scale(hid_t f)
{
	drop(f, "loss_scale");
}
static void no_scale(hid_t f)
{
	drop_attribute(f, "/loss_scale", "scale");
}
static void integer_scale(hid_t f)
{
	put_integer(f, "/loss_scale", "scale", 1);
}
static void huge_tracker(hid_t f)
{
	put_integer(f, "/loss_scale", "growth_tracker", INT64_C(1) << 32);
}
static void no_skipped(hid_t f)
{
	drop_attribute(f, "/loss_scale", "skipped");
}
static void wrong_steps(hid_t f)
{
	put_integer(f, "/loss_scale", "steps", 99);
}
static void short_history(hid_t f)
{
	put_zeros(f, "loss_scale/history_scale", H5T_IEEE_F32LE, 1, 31, 0);
}
static void no_history(hid_t f)
{
	drop(f, "loss_scale/history_reason");
}
static void no_params(hid_t f)
{
	drop(f, "params");
}
static void flat_weight(hid_t f)
{
	put_zeros(f, "params/conv0.weight", H5T_IEEE_F32LE, 1, 176, 0);
}
static void empty_weight(hid_t f)
{
	put_zeros(f, "params/conv0.weight", H5T_IEEE_F32LE, 2, 0, 16);
}
static void text_weight(hid_t f)
{
	put_zeros(f, "params/conv0.weight", H5T_C_S1, 2, 11, 16);
}
static void group_weight(hid_t f)
{
	drop(f, "params/conv0.weight");
	H5Gclose(H5Gcreate2(f, "params/conv0.weight", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void linked_weight(hid_t f)
{
	drop(f, "params/conv0.weight");
	CHECK(H5Lcreate_soft("/moment1/conv0.weight", f, "params/conv0.weight", H5P_DEFAULT,
	                     H5P_DEFAULT) >= 0);
}
static void linked_params(hid_t f)
{
	drop(f, "params");
	CHECK(H5Lcreate_external("/etc/other.h5", "/params", f, "params", H5P_DEFAULT, H5P_DEFAULT) >=
	      0);
}
static void other_moment(hid_t f)
{
	put_zeros(f, "moment2/conv0.weight", H5T_IEEE_F32LE, 2, 16, 11);
}
static void orphan_moment(hid_t f)
{
	put_zeros(f, "moment1/conv7.weight", H5T_IEEE_F32LE, 2, 1, 1);
}
static void second_without_first(hid_t f)
{
	drop(f, "moment1/conv0.bias");
}
static void claims_terabytes(hid_t f)
{
	const hsize_t dim[2] = {11, INT64_C(1) << 40}, chunk[2] = {1, 1};
	const hid_t space = H5Screate_simple(2, dim, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
	drop(f, "params/conv0.weight");
	CHECK(H5Pset_chunk(plist, 2, chunk) >= 0);
	const hid_t data = H5Dcreate2(f, "params/conv0.weight", H5T_IEEE_F32LE, space, H5P_DEFAULT,
	                              plist, H5P_DEFAULT);
	CHECK(data >= 0);
	H5Dclose(data);
	H5Pclose(plist);
	H5Sclose(space);
}

static void no_best_epoch(hid_t f)
{
	drop_attribute(f, "/best", "step");
}
static void no_best_accuracy(hid_t f)
{
	drop_attribute(f, "/best", "test_right");
}
static void no_best_metric(hid_t f)
{
	drop_attribute(f, "/best", "metric");
}
static void other_best_metric(hid_t f)
{
	put_text(f, "/best", "metric", "luck");
}
static void no_best_value(hid_t f)
{
	drop_attribute(f, "/best", "val_metric");
}
static void best_epoch_zero(hid_t f)
{
	put_integer(f, "/best", "step", 0);
}
static void best_rights_too_many(hid_t f)
{
	put_integer(f, "/best", "val_right", 1000);
}
static void no_best_loss(hid_t f)
{
	drop_attribute(f, "/best", "loss");
}
static void text_best_loss(hid_t f)
{
	put_text(f, "/best", "loss", "0.5");
}
static void other_best(hid_t f)
{
	put_zeros(f, "best/conv0.weight", H5T_IEEE_F32LE, 2, 16, 11);
}
static void one_best_less(hid_t f)
{
	drop(f, "best/conv0.weight");
}
static void one_best_renamed(hid_t f)
{
	drop(f, "best/conv0.weight");
	put_zeros(f, "best/conv7.weight", H5T_IEEE_F32LE, 2, 11, 16);
}
static void no_history_step(hid_t f)
{
	drop(f, "history/step");
}
static void descending_history(hid_t f)
{
	put_zeros(f, "history/step", H5T_STD_I64LE, 1, 2, 0);
}
static void short_losses(hid_t f)
{
	put_zeros(f, "history/loss", H5T_IEEE_F64LE, 1, 1, 0);
}
static void text_losses(hid_t f)
{
	put_zeros(f, "history/loss", H5T_C_S1, 1, 2, 0);
}
static void no_plateau_best(hid_t f)
{
	drop_attribute(f, "/plateau", "best");
}
static void no_plateau_drops(hid_t f)
{
	drop_attribute(f, "/plateau", "drops");
}
static void long_plateau(hid_t f)
{
	put_integer(f, "/plateau", "waited", 8); /* in 7 evaluations */
}

static void few_deviations(hid_t f)
{
	put_reals(f, "columns/deviation", H5T_IEEE_F64LE, 2, (const double[]){1, 1});
}
static void no_deviations(hid_t f)
{
	drop(f, "columns/deviation");
}
static void negative_deviation(hid_t f)
{
	put_reals(f, "columns/deviation", H5T_IEEE_F64LE, 3, (const double[]){1, -1, 1});
}

static const struct {
	void (*spoil)(hid_t file);
	const char *part;
} damages[] = {
    {no_plateau_best, "/plateau: attribute best is missing"},
    {no_plateau_drops, "/plateau: attribute drops is missing"},
    {long_plateau, "the counts of the plateau are out of their range"},
    {dataset_format,
     "/: attribute format is halfgraph, expected halfgraph-checkpoint: not a HalfGraph checkpoint"},
    {newer_version, "format_version is 2.0; this reader knows 1.x"},
    {no_step, "/: attribute step is missing"},
    {text_step, "/: attribute step is not one integer"},
    {negative_step, "the step counter is out of its range"},
    {no_settings, "/settings: no such group"},
    {long_setting, "/settings: attribute model.name is too long a text"},
    {long_setting_name, "/settings: a name of 57 characters, expected less than 48"},
    {no_promoted, "/promoted: no such group"},
    {promoted_twice, "/promoted: attribute 1 is not \"NTH OP LAYER\""},
    {promoted_nothing, "/promoted: attribute 0 is not \"NTH OP LAYER\""},
    {promoted_without_number, "/promoted: attribute 0 is not \"NTH OP LAYER\""},
    {promoted_by_nothing,
     "/promoted: attribute 0 is not \"NTH OP LAYER\" or \"NTH:SHIFT OP LAYER\""},
    {promoted_by_too_much,
     "/promoted: attribute 0 is not \"NTH OP LAYER\" or \"NTH:SHIFT OP LAYER\""},
    {promoted_by_a_word,
     "/promoted: attribute 0 is not \"NTH OP LAYER\" or \"NTH:SHIFT OP LAYER\""},
    {no_loss_scale, "/loss_scale: no such group"},
    {no_scale, "/loss_scale: attribute scale is missing"},
    {integer_scale, "/loss_scale: attribute scale is not one number"},
    {huge_tracker, "/loss_scale: attribute growth_tracker is out of its range"},
    {no_skipped, "/loss_scale: attribute skipped is missing"},
    {wrong_steps, "steps are not the sum of applied and skipped"},
    {short_history, "/loss_scale/history_scale: has 31 elements, expected 32"},
    {no_history, "/loss_scale/history_reason: no such dataset"},
    {no_params, "/params: no such group"},
    {flat_weight, "/params/conv0.weight: has 1 dimensions, expected 2"},
    {empty_weight, "/params/conv0.weight: [0, 16]: an argument is invalid"},
    {text_weight, "/params/conv0.weight: elements are of type text (1 bytes), expected float"},
    {group_weight, "/params/conv0.weight: is not a dataset"},
    {linked_weight, "/params/conv0.weight: is a link, expected a dataset"},
    {linked_params, "/params: is a link, expected a group"},
    {other_moment, "/moment2/conv0.weight: is [16, 11], its parameter [11, 16]"},
    {orphan_moment, "/moment1: has 5 members, and 4 of them belong to a parameter"},
    {second_without_first, "/moment2: has 4 members, and 3 of them belong to a parameter"},
    {claims_terabytes, "/params/conv0.weight: declares "},
    {no_best_epoch, "/best: attribute step is missing"},
    {no_best_accuracy, "/best: attribute test_right is missing"},
    {no_best_metric, "/best: attribute metric is missing"},
    {other_best_metric, "/best: attribute metric is \"luck\", not the name of a metric"},
    {no_best_value, "/best: attribute val_metric is missing"},
    {best_epoch_zero, "/best: attribute step is below 1"},
    {best_rights_too_many, "the best epoch is out of its range"},
    {no_best_loss, "/best: attribute loss is missing"},
    {text_best_loss, "/best: attribute loss is not one number"},
    {other_best, "/best/conv0.weight: is [16, 11], its parameter [11, 16]"},
    {one_best_less, "/best: has 3 members, expected none or one for each of 4 parameters"},
    {one_best_renamed, "/best/conv0.weight: no such dataset"},
    {no_history_step, "/history/step: no such dataset"},
    {descending_history, "/history/step: value 0 at 0 is not in"},
    {short_losses, "/history/loss: has 1 elements, /history/step has 2"},
    {few_deviations, "/columns: 3 means and 2 deviations, expected as many"},
    {no_deviations, "/columns/deviation: no such dataset"},
    {negative_deviation, "/columns: a mean or deviation is not a finite number, or one of these"},
    {text_losses, "/history/loss: elements are of type text (1 bytes), expected float"},
};

static void must_not_read_state(const char *path, hg_status status, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_state *state = NULL;
	const hg_status found = hg_checkpoint_read(path, &state, message);
	CHECK_MSG(found == status, "%s: %s, expected %s (%s)", path, hg_status_name(found),
	          hg_status_name(status), message);
	CHECK_CONTAINS(message, part);
	CHECK_CONTAINS(message, path);
	CHECK_MSG(strchr(message, '\n') == NULL, "more than one line");
	CHECK(state == NULL);
}

static void each_damage_is_refused_by_name(void)
{
	hg_state *state = odd_state();
	const char *path = scratch(0, "bad.h5");
	for (size_t k = 0; k < sizeof damages / sizeof damages[0]; k++) {
		must_write_state(state, path);
		unseal(path);
		const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
		CHECK(file >= 0);
		damages[k].spoil(file);
		H5Fclose(file);
		must_not_read_state(path, HG_ERR_FORMAT, damages[k].part);
	}
	hg_state_free(state);
	hg_dataset *d = small_dataset();
	must_write(d, path);
	hg_dataset_free(d);
	must_not_read_state(path, HG_ERR_FORMAT, "not a HalfGraph checkpoint");
	must_not_read_state(scratch(0, "absent.h5"), HG_ERR_IO, "No such file or directory");
	write_text(scratch(0, "text.h5"), "this is text\n");
	must_not_read_state(scratch(0, "text.h5"), HG_ERR_FORMAT, "not an HDF5 file");
}

/* A file of version 1.0 has neither a best epoch nor a history, and does not tell how the data was
 * prepared. A run goes on from it, and does not call that a difference. */
static void files_of_the_first_version_are_read(void)
{
	static struct small_run r;
	hg_state *state = odd_state();
	char message[HG_DATA_MESSAGE] = "";
	const char *path = scratch(0, "first.h5");
	must_write_state(state, path);
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	put_text(file, "/", "format_version", "1.0");
	drop(file, "best");
	drop(file, "history");
	drop(file, "columns");
	drop(file, "class_names");
	drop(file, "groups");
	drop_attribute(file, "/params/conv1.weight", "group");
	drop_attribute(file, "/params/conv1.bias", "group");
	drop_attribute(file, "/settings", "data.rows_normalized");
	drop_attribute(file, "/settings", "data.self_loops");
	drop_attribute(file, "/settings", "data.unweighted");
	drop_attribute(file, "/settings", "data.targets");
	drop_attribute(file, "/settings", "data.standardized");
	H5Fclose(file);
	hg_state *back = must_read_state(path);
	for (int64_t i = 0; i < state->tensors; i++)
		state->tensor[i].group = 0;
	state->groups = 0;
	check_same_state(back, state, 0);
	CHECK(back->best.step == 0 && back->epochs == 0 && !back->tensor[0].best);
	hg_train_config c = small_config("gcn", "fp16");
	c.epochs = 2;
	small_open(&r, test_context(), c);
	CHECK_MSG(hg_checkpoint_load(path, r.train, message) == HG_OK, "%s", message);
	small_train(&r);
	small_close(&r);
	hg_state_free(back);
	hg_state_free(state);
}

/* A file of a later version 1.x may have settings, attributes and groups that this reader does not
 * know. */
static void unknown_members_are_ignored(void)
{
	hg_state *state = odd_state();
	const char *path = scratch(0, "later.h5");
	must_write_state(state, path);
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	put_text(file, "/", "format_version", "1.7");
	put_text(file, "/settings", "model.colour", "blue");
	put_integer(file, "/params/conv0.weight", "promoted", 1);
	H5Gclose(H5Gcreate2(file, "ensemble", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	H5Fclose(file);
	hg_state *back = must_read_state(path);
	check_same_state(state, back, 1);
	check_same_best(state, back);
	CHECK_EQ_I(back->settings, state->settings + 1);
	hg_state_free(back);
	hg_state_free(state);
}

/* A file that another program has changed is refused until its checksum is computed again. */
static void changed_weights_are_read_when_sealed(void)
{
	hg_state *state = odd_state();
	hg_state_tensor *t = &state->tensor[0];
	char name[64];
	must_write_state(state, scratch(0, "hand.h5"));
	for (int64_t i = 0; i < t->rows * t->cols; i++)
		t->master[i] = i % 3 ? (float)i : NAN;
	(void)snprintf(name, sizeof name, "params/%s", t->name);
	const hid_t file = H5Fopen(scratch(0, "hand.h5"), H5F_ACC_RDWR, H5P_DEFAULT),
	            data = H5Dopen2(file, name, H5P_DEFAULT);
	CHECK(data >= 0 &&
	      H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->master) >= 0);
	H5Dclose(data);
	H5Fclose(file);
	char message[HG_DATA_MESSAGE] = "";
	must_not_read_state(scratch(0, "hand.h5"), HG_ERR_FORMAT, "if on purpose, h5convert --seal");
	CHECK_STATUS(hg_file_seal(scratch(0, "hand.h5"), message), HG_OK);
	hg_state *back = must_read_state(scratch(0, "hand.h5"));
	check_same_state(state, back, 1);
	hg_state_free(back);
	hg_state_free(state);
}

/* A file that is cut anywhere is refused. */
static void truncated_files_are_refused(void)
{
	size_t count = 0;
	hg_state *state = odd_state();
	must_write_state(state, scratch(0, "whole.h5"));
	hg_state_free(state);
	unsigned char *bytes = read_bytes(scratch(0, "whole.h5"), &count);
	for (size_t cut = 0; cut < count; cut += 61) {
		write_bytes(scratch(1, "cut.h5"), bytes, cut);
		must_not_read_state(scratch(1, "cut.h5"), HG_ERR_FORMAT, "cut.h5: ");
	}
	free(bytes);
}

/* Reads in a process of its own. Returns 0: refused; 1: read, with the same content; 2: read, with
 * other content; 3: anything else. */
static int read_elsewhere(const char *path, const hg_state *good)
{
	int code = 0;
	const pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		char message[HG_DATA_MESSAGE] = "";
		hg_state *state = NULL;
		alarm(20);
		const hg_status status = hg_checkpoint_read(path, &state, message);
		if (status < 0)
			_exit(state || !*message ? 3 : 0);
		int same = state->tensors == good->tensors && state->settings == good->settings &&
		           state->step == good->step &&
		           memcmp(&state->loss_scale, &good->loss_scale, sizeof good->loss_scale) == 0;
		for (int64_t i = 0; same && i < good->settings; i++) {
			const hg_setting *a = &good->setting[i], *b = hg_state_find_setting(state, a->name);
			same = b && a->kind == b->kind && a->integer == b->integer &&
			       memcmp(&a->real, &b->real, sizeof a->real) == 0 && strcmp(a->text, b->text) == 0;
		}
		for (int64_t i = 0; same && i < good->tensors; i++) {
			const hg_state_tensor *a = &good->tensor[i], *b = hg_state_find_tensor(state, a->name);
			const size_t bytes = (size_t)(a->rows * a->cols) * sizeof(float);
			same = b && a->rows == b->rows && a->cols == b->cols && a->moments == b->moments &&
			       memcmp(a->master, b->master, bytes) == 0;
			for (int k = 0; same && k < a->moments; k++)
				same = memcmp(a->moment[k], b->moment[k], bytes) == 0;
		}
		_exit(same ? 1 : 2);
	}
	CHECK(waitpid(child, &code, 0) == child);
	return WIFEXITED(code) ? WEXITSTATUS(code) : 3;
}

/* With one bit flipped, in every FLIP_STEP-th byte, the file is refused, or the bit is one that the
 * reader does not use. Headers and data have checksums, so no flipped bit becomes a weight and none
 * makes HDF5 crash. */
static void flipped_bits_are_found(void)
{
	size_t count = 0;
	int found[4] = {0};
	hg_state *state = odd_state();
	must_write_state(state, scratch(0, "whole.h5"));
	unsigned char *bytes = read_bytes(scratch(0, "whole.h5"), &count);
	for (size_t at = 0; at < count; at += FLIP_STEP) {
		const unsigned char bit = (unsigned char)(1u << at / FLIP_STEP % 8);
		bytes[at] ^= bit;
		write_bytes(scratch(1, "flip.h5"), bytes, count);
		bytes[at] ^= bit;
		const int outcome = read_elsewhere(scratch(1, "flip.h5"), state);
		found[outcome]++;
		CHECK_MSG(outcome < 2, "byte %zu, bit %d: %s", at, bit,
		          outcome == 2 ? "another state was read" : "the reader did not return");
	}
	test_note("%zu bytes, %d flips refused, %d without effect", count, found[0], found[1]);
	free(bytes);
	hg_state_free(state);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(each_damage_is_refused_by_name), TEST(files_of_the_first_version_are_read),
	    TEST(unknown_members_are_ignored),    TEST(changed_weights_are_read_when_sealed),
	    TEST(truncated_files_are_refused),    TEST(flipped_bits_are_found),
	};
	return RUN_TESTS(argc, argv, cases);
}
