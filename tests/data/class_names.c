/* Names of classes: where they come from, that every file keeps them, and what is refused. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "states.h"

static void check_names(const hg_dataset *d, int count, const char *const *names)
{
	CHECK_EQ_I(d->classes, count);
	for (int c = 0; c < count; c++) {
		const char *name = hg_dataset_class_name(d, c);
		CHECK_MSG(name != NULL, "class %d has no name", c);
		CHECK_STR(name, names[c]);
	}
	CHECK(!hg_dataset_class_name(d, count) && !hg_dataset_class_name(d, -1));
}

static void classes_are_named_by_calls(void)
{
	static const char *const names[] = {"", "two words",
	                                    "\xc3\xa4\xff\xed\xa0\x80z\xf4\x90\x80\x80"};
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_name_classes(d, names, 3, message));
	check_names(d, 3, (const char *const[]){"", "two words", "\xc3\xa4????z????"});
	CHECK_OK(hg_dataset_check(d, NULL, message));
	CHECK_STATUS(hg_dataset_name_classes(d, names, 2, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "2 names of classes, the dataset has 3 classes");
	CHECK_STATUS(hg_dataset_name_classes(d, (const char *const[]){"a", NULL, "c"}, 3, message),
	             HG_ERR_ARG);
	CHECK_CONTAINS(message, "the name of class 1 is NULL");
	CHECK_STATUS(hg_dataset_name_classes(d, NULL, 3, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_name_classes(NULL, names, 3, message), HG_ERR_ARG);
	CHECK_STR(hg_dataset_class_name(d, 1), "two words"); /* a failure changes nothing */
	CHECK_OK(hg_dataset_name_classes(d, NULL, 0, message));
	CHECK(!d->class_name && d->class_name_bytes == 0 && !hg_dataset_class_name(d, 0));
	CHECK(!hg_dataset_class_name(NULL, 0));
	hg_dataset_free(d);
}

static void spoilt_names_are_refused(void)
{
	static const struct {
		const char *names;
		int64_t bytes;
		const char *part;
	} rows[] = {
	    {"a\0b\0c", 5, "names of classes: there are 0, expected 3"}, /* the last one has no end */
	    {"a\0b\0", 4, "names of classes: there are 2, expected 3"},
	    {"a\0b\0c\0d\0", 8, "names of classes: there are 4, expected 3"},
	    {"a\0\xc3\0c\0", 6, "names of classes: byte 2 is not UTF-8"},
	    {"a\0\xc0\x80\0c\0", 7, "names of classes: byte 2 is not UTF-8"},
	    {NULL, 3, "names of classes: there are 0"},
	    {"a", -1, "names of classes: -1 bytes"},
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = small_dataset();
		char *names = d->class_name;
		d->class_name = (char *)(uintptr_t)rows[k].names;
		d->class_name_bytes = rows[k].bytes;
		CHECK_STATUS(hg_dataset_check(d, "x", message), HG_ERR_FORMAT);
		CHECK_CONTAINS(message, rows[k].part);
		d->class_name = names;
		hg_dataset_free(d);
	}
}

static void put_names(hid_t file, hid_t type, hsize_t count, const void *values)
{
	CHECK(H5Ldelete(file, "class_names", H5P_DEFAULT) >= 0);
	const hid_t space = H5Screate_simple(1, &count, NULL),
	            data = H5Dcreate2(file, "class_names", type, space, H5P_DEFAULT, H5P_DEFAULT,
	                              H5P_DEFAULT);
	CHECK(data >= 0 && H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
	H5Dclose(data);
	H5Sclose(space);
}

static void damaged_files_are_refused(void)
{
	static const struct {
		const char *names;
		hsize_t count;
		const char *part;
	} rows[] = {{"a\0b", 3, "names of classes: there are 0, expected 3"},
	            {"a\0b\0\xff\0", 6, "names of classes: byte 4 is not UTF-8"}};
	const char *path = scratch(0, "bad.h5");
	hg_dataset *d = small_dataset();
	for (size_t k = 0; k < 3; k++) {
		must_write(d, path);
		unseal(path);
		const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
		if (k < 2)
			put_names(file, H5T_NATIVE_UINT8, rows[k].count, rows[k].names);
		else
			put_names(file, H5T_NATIVE_INT, 2, (const int[]){97, 256});
		H5Fclose(file);
		must_not_read(path, HG_ERR_FORMAT,
		              k < 2 ? rows[k].part : "/class_names: value 256 at 1 is not in [0, 255]");
	}
	hg_dataset_free(d);
	hg_state *state = odd_state();
	hg_state *back = NULL;
	char message[HG_DATA_MESSAGE] = "";
	must_write_state(state, path);
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	put_names(file, H5T_NATIVE_UINT8, 3, "a\0b");
	H5Fclose(file);
	CHECK_STATUS(hg_checkpoint_read(path, &back, message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "bad.h5: the names of its classes do not end");
	hg_state_free(state);
}

/* ---- from other formats ---- */

static void tu(const char *folder, const char *labels)
{
	char path[64];
	static const char *const names[] = {"A", "graph_indicator", "graph_labels"};
	const char *const texts[] = {"1, 2\n2, 1\n", "1\n1\n2\n3\n", labels};
	for (int k = 0; k < 3; k++) {
		(void)snprintf(path, sizeof path, "%s_%s.txt", folder, names[k]);
		write_text(scratch(1, path), texts[k]);
	}
}

static void raw_labels_become_names(void)
{
	tu("signed", "1\n-1\n1\n");
	hg_dataset *d = must_import("tu", scratch(0, "signed_A.txt"));
	CHECK(d->label[0] == 1 && d->label[1] == 0);
	check_names(d, 2, (const char *const[]){"-1", "1"});
	hg_dataset_free(d);
	tu("plain", "2\n0\n1\n"); /* names would tell nothing */
	d = must_import("tu", scratch(0, "plain_A.txt"));
	CHECK(d->classes == 3 && !d->class_name);
	hg_dataset_free(d);
	write_text(scratch(0, "set.txt"), "2\n1 7\n0 0\n1 5\n0 0\n");
	d = must_import("gin", scratch(0, "set.txt"));
	CHECK(d->label[0] == 1 && d->label[1] == 0);
	check_names(d, 2, (const char *const[]){"5", "7"});
	/* other labels have other names */
	char message[HG_DATA_MESSAGE] = "";
	write_text(scratch(1, "labels.csv"), "1\n0\n");
	CHECK_OK(hg_dataset_load_labels(d, scratch(1, "labels.csv"), message));
	CHECK(d->classes == 2 && !d->class_name);
	hg_dataset_free(d);
}

static void words_become_names(void)
{
	write_text(scratch(0, "toy_edges.csv"), "id_1,id_2\n0,1\n1,2\n");
	write_text(scratch(0, "toy_features.json"), "{\"0\": [0], \"1\": [1], \"2\": []}");
	write_text(scratch(0, "toy_target.csv"), "id,page_type\n0,tvshow\n1,company\n2,politician\n");
	hg_dataset *d = must_import("musae", scratch(0, "toy_edges.csv"));
	CHECK(d->label[0] == 2 && d->label[1] == 0);
	check_names(d, 3, (const char *const[]){"company", "politician", "tvshow"});
	hg_dataset_free(d);
}

/* Code points of numpy's texts, in both byte orders. */
static void texts_of_numpy_become_names(void)
{
	static const int64_t indptr[] = {0, 1, 2, 2}, shape[] = {3, 3};
	static const int32_t indices[] = {1, 0}, label[] = {0, 1, 1};
	static const char one[] = "A\0\0\0\xe4\0\0\0"
	                          "\x22\xf4\x01\0\0\0\0\0",
	                  other[] = "\0\0\0A\0\0\0\xe4"
	                            "\0\x01\xf4\x22\0\0\0\0";
	static const struct {
		const char *descr, *dims, *bytes;
		size_t count;
		int named;
	} rows[] = {{"<U2", "(2,)", one, 16, 1},
	            {">U2", "(2,)", other, 16, 1},
	            {"<U1", "(4,)", one, 16, 0}, /* four names of two classes */
	            {"|S8", "(2,)", one, 16, 0},
	            {"<U2", "(2, 1)", one, 16, 0}};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		const char *path = scratch(0, "names.npz");
		struct npz_out *out = npz_begin(path);
		npz_add(out, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
		npz_add(out, "adj_indptr", "<i8", "(4,)", indptr, sizeof indptr);
		npz_add(out, "adj_indices", "<i4", "(2,)", indices, sizeof indices);
		npz_add(out, "labels", "<i4", "(3,)", label, sizeof label);
		npz_add(out, "class_names", rows[k].descr, rows[k].dims, rows[k].bytes, rows[k].count);
		npz_end(out, 0);
		hg_dataset *d = must_import("npz", path);
		CHECK_MSG(!d->class_name == !rows[k].named, "%s %s", rows[k].descr, rows[k].dims);
		if (rows[k].named)
			check_names(d, 2, (const char *const[]){"A\xc3\xa4", "\xf0\x9f\x90\xa2"});
		hg_dataset_free(d);
		CHECK_EQ_I(run_convert("@/names.npz -o @/named.h5"), 0);
		CHECK((strstr(convert_err, "not read: class_names.npy") == NULL) == rows[k].named);
	}
}

static void names_are_shown(void)
{
	hg_dataset *d = small_dataset();
	must_write(d, scratch(0, "named.h5"));
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("--inspect @/named.h5"), 0);
	CHECK_CONTAINS(convert_out, "\n  called     red, \xc3\xa4, \"quoted\", \xf0\x9f\x90\xa2\n");
	CHECK_EQ_I(run_convert("--inspect @/named.h5 --json"), 0);
	CHECK_CONTAINS(convert_out,
	               "\"class_names\":[\"red\",\"\xc3\xa4, \\\"quoted\\\"\",\"\xf0\x9f\x90\xa2\"]");
	CHECK_EQ_I(
	    run_convert("--synthetic planted --nodes 600 --hubs 2 --hub-degree 100 -o @/plain.h5"), 0);
	CHECK_EQ_I(run_convert("--inspect @/plain.h5 --json"), 0);
	CHECK_CONTAINS(convert_out, "\"class_names\":null");
	/* transforms keep them */
	CHECK_EQ_I(run_convert("@/named.h5 --symmetrize --largest-component --self-loops --clip "
	                       "--reorder rcm -o @/moved.h5"),
	           0);
	d = must_read(scratch(0, "moved.h5"));
	check_names(d, 3, (const char *const[]){"red", "\xc3\xa4, \"quoted\"", "\xf0\x9f\x90\xa2"});
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(classes_are_named_by_calls),
	    TEST(spoilt_names_are_refused),
	    TEST(damaged_files_are_refused),
	    TEST(raw_labels_become_names),
	    TEST(words_become_names),
	    TEST(texts_of_numpy_become_names),
	    TEST(names_are_shown),
	};
	return RUN_TESTS(argc, argv, cases);
}
