/* numpy archives: which ones are read, and which are refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* The members of a small good archive. Each test leaves some out or adds others. */
enum { SHAPE = 1, INDPTR = 2, INDICES = 4, LABELS = 8, SPLIT = 16, ATTR = 32, ALL = 63 };

static struct npz_out *begin(const char *path, int members)
{
	static const int64_t shape[] = {4, 4}, attr_shape[] = {4, 3};
	static const int32_t indptr[] = {0, 2, 3, 5, 5}, indices[] = {2, 1, 0, 3, 0},
	                     labels[] = {0, 1, -1, 1}, train[] = {0}, val[] = {1}, test[] = {3, 3};
	static const int32_t attr_indptr[] = {0, 1, 1, 3, 4}, attr_indices[] = {2, 0, 1, 1};
	static const float attr_data[] = {1, 0.5f, -2, 4};
	struct npz_out *out = npz_begin(path);
	if (members & SHAPE)
		npz_add(out, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	if (members & INDPTR)
		npz_add(out, "adj_indptr", "<i4", "(5,)", indptr, sizeof indptr);
	if (members & INDICES)
		npz_add(out, "adj_indices", "<i4", "(5,)", indices, sizeof indices);
	if (members & LABELS)
		npz_add(out, "labels", "<i4", "(4,)", labels, sizeof labels);
	if (members & SPLIT) {
		npz_add(out, "train_idx", "<i4", "(1,)", train, sizeof train);
		npz_add(out, "val_idx", "<i4", "(1,)", val, sizeof val);
		npz_add(out, "test_idx", "<i4", "(2,)", test, sizeof test);
	}
	if (members & ATTR) {
		npz_add(out, "attr_shape", "<i8", "(2,)", attr_shape, sizeof attr_shape);
		npz_add(out, "attr_indptr", "<i4", "(5,)", attr_indptr, sizeof attr_indptr);
		npz_add(out, "attr_indices", "<i4", "(4,)", attr_indices, sizeof attr_indices);
		npz_add(out, "attr_data", "<f4", "(4,)", attr_data, sizeof attr_data);
	}
	return out;
}

static void check_small(const char *path)
{
	static const int64_t rowptr[] = {0, 2, 3, 5, 5};
	static const int32_t col[] = {1, 2, 0, 0, 3};
	hg_dataset *d = must_import("npz", path);
	CHECK_EQ_I(d->nodes, 4);
	CHECK_EQ_I(d->edges, 5);
	CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0);
	CHECK(d->weight == NULL);
	CHECK_EQ_I(d->classes, 2);
	CHECK_EQ_I(d->label[2], -1);
	CHECK(d->train_mask[0] == 1 && d->val_mask[1] == 1 && d->test_mask[3] == 1 &&
	      d->test_mask[0] == 0);
	CHECK_EQ_I(d->features, 3);
	CHECK(d->feat == NULL && d->feat_rowptr[4] == 4 && d->feat_value[2] == -2 && d->feat_amax == 4);
	hg_dataset_free(d);
}

static void stored_and_deflated_archives_are_read(void)
{
	for (int stored = 0; stored < 2; stored++) {
		const char *path = scratch(0, "small.npz");
		npz_end(begin(path, ALL), stored);
		check_small(path);
	}
}

/* The same numbers with other widths, signs and byte orders. */
static void other_types_are_read(void)
{
	static const unsigned char shape[] = {0, 4, 0, 4}, indptr[] = {0, 2, 3, 5, 5};
	static const int16_t labels[] = {0, 1, -1, 1};
	/* 1, 0.5, -2, 4 */
	static const unsigned char half[] = {0x00, 0x3C, 0x00, 0x38, 0x00, 0xC0, 0x00, 0x44};
	const char *path = scratch(0, "types.npz");
	struct npz_out *out = begin(path, ALL);
	npz_add(out, "adj_shape", ">u2", "(2,)", shape, sizeof shape);
	npz_add(out, "adj_indptr", "|u1", "(5,)", indptr, sizeof indptr);
	npz_add(out, "labels", "<i2", "(4,)", labels, sizeof labels);
	npz_add(out, "attr_data", "<f2", "(4L,)", half, sizeof half);
	/* a member that is not needed is not read */
	npz_add(out, "attr_names", "<U2", "(2,)", "aaaabbbbaaaabbbb", 16);
	npz_end(out, 0);
	check_small(path);
}

static void weights_of_duplicates_are_added(void)
{
	static const int32_t indptr[] = {0, 4, 4, 5, 5}, indices[] = {2, 1, 2, 2, 3};
	static const double data[] = {1, 0, 2, 0.5, 1};
	const char *path = scratch(0, "weights.npz");
	struct npz_out *out = begin(path, SHAPE);
	npz_add(out, "adj_indptr", "<i4", "(5,)", indptr, sizeof indptr);
	npz_add(out, "adj_indices", "<i4", "(5,)", indices, sizeof indices);
	npz_add(out, "adj_data", "<f8", "(5,)", data, sizeof data);
	npz_end(out, 0);
	hg_dataset *d = must_import("npz", path);
	CHECK_EQ_I(d->edges, 3);
	CHECK(d->col[0] == 1 && d->weight[0] == 0 && d->col[1] == 2 && d->weight[1] == 3.5f &&
	      d->weight[2] == 1);
	CHECK(d->label == NULL && d->features == 0);
	hg_dataset_free(d);
}

static void dense_features_in_both_orders_are_read(void)
{
	static const float columns[] = {1, 2, 3, 4, 5, 6, 7, 8}; /* [4, 2], column by column */
	static const char header[] = "{'shape': (4, 2), 'fortran_order': True, 'descr': '<f4'}";
	unsigned char member[256];
	const char *path = scratch(0, "dense.npz");
	struct npz_out *out = begin(path, ALL & ~ATTR);
	memcpy(member, "\x93NUMPY\x02\x00", 8);
	memcpy(member + 8, (const unsigned char[]){(unsigned char)(sizeof header - 1), 0, 0, 0}, 4);
	memcpy(member + 12, header, sizeof header - 1);
	memcpy(member + 12 + sizeof header - 1, columns, sizeof columns);
	npz_raw(out, "attr_matrix.npy", member, 12 + sizeof header - 1 + sizeof columns);
	npz_end(out, 1);
	hg_dataset *d = must_import("npz", path);
	CHECK_EQ_I(d->features, 2);
	CHECK(((float *)d->feat)[0] == 1 && ((float *)d->feat)[1] == 5 && ((float *)d->feat)[6] == 4 &&
	      ((float *)d->feat)[7] == 8);
	hg_dataset_free(d);
}

static void one_hot_labels_are_read(void)
{
	static const int64_t shape[] = {4, 3};
	static const int32_t indptr[] = {0, 1, 1, 2, 3}, indices[] = {2, 0, 1};
	const char *path = scratch(0, "onehot.npz");
	struct npz_out *out = begin(path, SHAPE | INDPTR | INDICES);
	npz_add(out, "labels_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(out, "labels_indptr", "<i4", "(5,)", indptr, sizeof indptr);
	npz_add(out, "labels_indices", "<i4", "(3,)", indices, sizeof indices);
	npz_end(out, 0);
	hg_dataset *d = must_import("npz", path);
	CHECK(d->classes == 3 && d->label[0] == 2 && d->label[1] == -1 && d->label[2] == 0 &&
	      d->label[3] == 1);
	hg_dataset_free(d);
}

/* Four nodes, and a label that would make more classes than that: only if the archive says so. And
 * classes that no label has. */
static void archive_may_declare_classes(void)
{
	static const int64_t shape[] = {4, 6}, meant[] = {9};
	static const int32_t indptr[] = {0, 1, 1, 2, 3}, indices[] = {2, 0, 1},
	                     labels[] = {0, 8, -1, 1};
	const char *path = scratch(0, "classes.npz");
	struct npz_out *out = begin(path, SHAPE | INDPTR | INDICES);
	npz_add(out, "labels", "<i4", "(4,)", labels, sizeof labels);
	npz_add(out, "num_classes", "<i8", "()", meant, sizeof meant);
	npz_end(out, 0);
	hg_dataset *d = must_import("npz", path);
	CHECK(d->classes == 9 && d->label[1] == 8);
	hg_dataset_free(d);
	out = begin(path, SHAPE | INDPTR | INDICES);
	npz_add(out, "labels_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(out, "labels_indptr", "<i4", "(5,)", indptr, sizeof indptr);
	npz_add(out, "labels_indices", "<i4", "(3,)", indices, sizeof indices);
	npz_end(out, 0);
	d = must_import("npz", path);
	CHECK_EQ_I(d->classes, 6);
	hg_dataset_free(d);
}

static void array(struct npz_out *out, const char *key, const char *descr, const char *shape,
                  const void *bytes, size_t count)
{
	npz_add(out, key, descr, shape, bytes, count);
}

static void bad_index(struct npz_out *o)
{
	array(o, "adj_indices", "<i4", "(5,)", (const int32_t[]){2, 1, 4, 3, 0}, 20);
}
static void negative_index(struct npz_out *o)
{
	array(o, "adj_indices", "<i4", "(5,)", (const int32_t[]){2, 1, -3, 3, 0}, 20);
}
static void falling(struct npz_out *o)
{
	array(o, "adj_indptr", "<i4", "(5,)", (const int32_t[]){0, 3, 2, 5, 5}, 20);
}
static void late(struct npz_out *o)
{
	array(o, "adj_indptr", "<i4", "(5,)", (const int32_t[]){1, 3, 3, 5, 5}, 20);
}
static void few(struct npz_out *o)
{
	array(o, "adj_indices", "<i4", "(4,)", (const int32_t[]){2, 1, 0, 3}, 16);
}
static void short_indptr(struct npz_out *o)
{
	array(o, "adj_indptr", "<i4", "(4,)", (const int32_t[]){0, 2, 3, 5}, 16);
}
static void not_square(struct npz_out *o)
{
	array(o, "adj_shape", "<i8", "(2,)", (const int64_t[]){4, 5}, 16);
}
static void float_index(struct npz_out *o)
{
	array(o, "adj_indices", "<f4", "(5,)", (const float[]){2, 1, 0, 3, 0}, 20);
}
static void objects(struct npz_out *o)
{
	array(o, "labels", "|O", "(4,)", "\x80\x02]q\x01.", 6);
}
static void text_labels(struct npz_out *o)
{
	array(o, "labels", "<U1", "(4,)", "a\0\0\0b\0\0\0c\0\0\0d\0\0\0", 16);
}
static void complex_data(struct npz_out *o)
{
	array(o, "attr_data", "<c8", "(4,)", (const float[8]){0}, 32);
}
static void split_range(struct npz_out *o)
{
	array(o, "val_idx", "<i8", "(1,)", (const int64_t[]){4}, 8);
}
static void split_mask(struct npz_out *o)
{
	array(o, "val_idx", "|b1", "(4,)", "\0\1\0", 4);
}
static void split_overlap(struct npz_out *o)
{
	array(o, "val_idx", "<i8", "(2,)", (const int64_t[]){1, 0}, 16);
}
static void label_count(struct npz_out *o)
{
	array(o, "labels", "<i4", "(3,)", (const int32_t[]){0, 1, 0}, 12);
}
static void label_wide(struct npz_out *o)
{
	array(o, "labels", "<u8", "(4,)", (const uint64_t[]){0, UINT64_MAX, 0, 1}, 32);
}
static void label_far(struct npz_out *o)
{
	array(o, "labels", "<i4", "(4,)", (const int32_t[]){0, 1000000000, -1, 1}, 16);
}
static void too_few_classes(struct npz_out *o)
{
	array(o, "num_classes", "<i8", "()", (const int64_t[]){1}, 8);
}
static void many_class_counts(struct npz_out *o)
{
	array(o, "num_classes", "<i8", "(2,)", (const int64_t[]){2, 2}, 16);
}
static void feature_nan(struct npz_out *o)
{
	array(o, "attr_data", "<f4", "(4,)", (const float[]){1, NAN, 1, 1}, 16);
}
static void feature_huge(struct npz_out *o)
{
	array(o, "attr_data", "<f8", "(4,)", (const double[]){1, 1, 1e200, 1}, 32);
}
static void short_member(struct npz_out *o)
{
	array(o, "labels", "<i4", "(4,)", (const int32_t[]){0, 1, 0}, 12);
}
static void long_member(struct npz_out *o)
{
	array(o, "labels", "<i4", "(4,)", (const int32_t[]){0, 1, 0, 1, 1}, 20);
}
static void cube(struct npz_out *o)
{
	array(o, "labels", "<i4", "(2, 2, 1)", (const int32_t[]){0, 1, 0, 1}, 16);
}
static void matrix_labels(struct npz_out *o)
{
	array(o, "labels", "<i4", "(2, 2)", (const int32_t[]){0, 1, 0, 1}, 16);
}
static void endless_shape(struct npz_out *o)
{
	array(o, "labels", "<i4", "(99999999999999999999,)", "", 0);
}
static void overflowing_shape(struct npz_out *o)
{
	array(o, "labels", "<i4", "(4611686018427387904, 4)", "", 0);
}
static void records(struct npz_out *o)
{
	npz_raw(o, "labels.npy",
	        "\x93NUMPY\x01\x00\x45\x00{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': "
	        "(4,), }    \n",
	        79);
}
static void no_array(struct npz_out *o)
{
	npz_raw(o, "labels.npy", "not an array at all", 19);
}
static void no_header(struct npz_out *o)
{
	npz_raw(o, "labels.npy", "\x93NUMPY\x01\x00\x10\x00{'descr': '<i4'}", 26);
}
static void new_version(struct npz_out *o)
{
	npz_raw(o, "labels.npy", "\x93NUMPY\x09\x00\x10\x00{'descr': '<i4'}", 26);
}
static void header_too_long(struct npz_out *o)
{
	npz_raw(o, "labels.npy", "\x93NUMPY\x02\x00\xFF\xFF\xFF\x7F{'descr': '<i4'}", 28);
}

static const struct {
	void (*spoil)(struct npz_out *);
	hg_status status;
	const char *part;
} table[] = {
    {bad_index, HG_ERR_FORMAT, "member adj_indices.npy: value 4 at 2 is not in [0, 3]"},
    {negative_index, HG_ERR_FORMAT, "member adj_indices.npy: value -3 at 2 is not in [0, 3]"},
    {falling, HG_ERR_FORMAT, "adj_indptr: pointers decrease after row 1: 2 after 3"},
    {late, HG_ERR_FORMAT, "adj_indptr: pointers start at 1, expected 0"},
    {few, HG_ERR_FORMAT, "member adj_indices.npy: has 4 elements, expected 5"},
    {short_indptr, HG_ERR_FORMAT, "member adj_indptr.npy: has 4 elements, expected 5"},
    {not_square, HG_ERR_FORMAT, "member adj_shape.npy: 4 x 5, expected as many rows as columns"},
    {float_index, HG_ERR_FORMAT, "member adj_indices.npy: holds floats, expected integers"},
    {objects, HG_ERR_FORMAT,
     "member labels.npy: holds pickled Python objects, which are refused and never executed"},
    {text_labels, HG_ERR_FORMAT, "member labels.npy: dtype <U1 is not supported"},
    {complex_data, HG_ERR_FORMAT, "member attr_data.npy: dtype <c8 is not supported"},
    {split_range, HG_ERR_FORMAT, "member val_idx.npy: value 4 at 0 is not in [0, 3]"},
    {split_mask, HG_ERR_FORMAT, "member val_idx.npy: is of booleans, expected integers"},
    {split_overlap, HG_ERR_FORMAT, "splits: node 0 is in train and in val"},
    {label_count, HG_ERR_FORMAT, "member labels.npy: has 3 rows, but the graph has 4 nodes"},
    {label_wide, HG_ERR_FORMAT, "member labels.npy: value 18446744073709551615 at 1 is not in"},
    {label_far, HG_ERR_FORMAT,
     "labels: node 1 has label 1000000000, which makes 1000000001 classes of 3 labelled nodes; if "
     "that is intended, add num_classes to the archive"},
    {too_few_classes, HG_ERR_FORMAT, "labels: node 1 has label 1, but there are 1 classes"},
    {many_class_counts, HG_ERR_FORMAT, "member num_classes.npy: has 1 dimensions, expected 0"},
    {feature_nan, HG_ERR_RANGE, "features: row 2, column 0 is nan"},
    {feature_huge, HG_ERR_RANGE, "is 1e+200, too large for f32"},
    {short_member, HG_ERR_FORMAT,
     "member labels.npy: header promises 4 elements of 4 bytes, but 12 bytes follow"},
    {long_member, HG_ERR_FORMAT,
     "member labels.npy: header promises 4 elements of 4 bytes, but 20 bytes follow"},
    {cube, HG_ERR_FORMAT, "member labels.npy: has more than 2 dimensions"},
    {matrix_labels, HG_ERR_FORMAT, "member labels.npy: has 2 dimensions, expected 1"},
    {endless_shape, HG_ERR_FORMAT, "member labels.npy: its shape is impossibly large"},
    {overflowing_shape, HG_ERR_FORMAT, "member labels.npy: its shape is impossibly large"},
    {records, HG_ERR_FORMAT, "member labels.npy: records (a structured dtype) are not supported"},
    {no_array, HG_ERR_FORMAT, "member labels.npy: is not an .npy array"},
    {no_header, HG_ERR_FORMAT, "member labels.npy: its header lacks descr, fortran_order or shape"},
    {new_version, HG_ERR_FORMAT, "member labels.npy: .npy version 9 is not known"},
    {header_too_long, HG_ERR_FORMAT,
     "member labels.npy: header of 2147483647 bytes in a member of 28"},
};

static void each_fault_is_refused_by_name(void)
{
	for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
		const char *path = scratch(0, "bad.npz");
		struct npz_out *out = begin(path, ALL);
		table[k].spoil(out);
		npz_end(out, (int)(k & 1));
		must_refuse("npz", path, table[k].status, table[k].part);
	}
}

static void missing_members_are_refused(void)
{
	static const struct {
		int without;
		const char *part;
	} missing[] = {{SHAPE, "no member adj_shape.npy"},
	               {INDPTR, "no member adj_indptr.npy"},
	               {INDICES, "no member adj_indices.npy"}};
	for (int k = 0; k < 3; k++) {
		npz_end(begin(scratch(0, "missing.npz"), ALL & ~missing[k].without), 0);
		must_refuse("npz", scratch(0, "missing.npz"), HG_ERR_FORMAT, missing[k].part);
	}
	struct npz_out *out = npz_begin(scratch(0, "pickle.npz"));
	npz_add(out, "adj_matrix", "|O", "()", "\x80\x02]q\x01.", 6);
	npz_end(out, 0);
	must_refuse(
	    "npz", scratch(0, "pickle.npz"), HG_ERR_FORMAT,
	    "member adj_matrix.npy holds pickled Python objects, which are refused and never executed");
}

static void files_that_are_no_archives_are_refused(void)
{
	must_refuse("npz", scratch(0, "absent.npz"), HG_ERR_IO, "No such file or directory");
	write_text(scratch(0, "text.npz"), "no zip");
	must_refuse("npz", scratch(0, "text.npz"), HG_ERR_FORMAT, "not a zip archive");
	write_text(scratch(0, "nothing.npz"), "");
	must_refuse("npz", scratch(0, "nothing.npz"), HG_ERR_FORMAT, "");
	size_t count = 0;
	npz_end(begin(scratch(0, "whole.npz"), ALL), 0);
	unsigned char *bytes = read_bytes(scratch(0, "whole.npz"), &count);
	for (size_t cut = 0; cut < count; cut += 31) {
		write_bytes(scratch(1, "cut.npz"), bytes, cut);
		must_refuse("npz", scratch(1, "cut.npz"), HG_ERR_FORMAT, "cut.npz");
	}
	free(bytes);
}

/* Finds the entry of `name` in the directory of the zip file. Returns the offset of its declared
 * size, bytes 24 to 27 of the entry; its name begins at byte 46. */
static size_t directory_size_field(const unsigned char *bytes, size_t count, const char *name)
{
	for (size_t at = 0; at + 46 + strlen(name) < count; at++)
		if (memcmp(bytes + at, "PK\x01\x02", 4) == 0 &&
		    memcmp(bytes + at + 46, name, strlen(name)) == 0)
			return at + 24;
	test_fail(__FILE__, __LINE__, "no directory entry of %s", name);
}

/* A zip bomb declares a wrong size: more than the stored bytes can hold, or less than they give. */
static void declared_sizes_are_checked(void)
{
	size_t count = 0;
	npz_end(begin(scratch(0, "honest.npz"), ALL), 0);
	unsigned char *bytes = read_bytes(scratch(0, "honest.npz"), &count);
	const size_t at = directory_size_field(bytes, count, "labels.npy");
	unsigned char was[4];
	memcpy(was, bytes + at, 4);
	memcpy(bytes + at, (const unsigned char[]){0, 0, 0, 0x7F}, 4);
	write_bytes(scratch(1, "bomb.npz"), bytes, count);
	must_refuse("npz", scratch(1, "bomb.npz"), HG_ERR_FORMAT,
	            "member labels.npy: declares 2130706432 bytes out of");
	memcpy(bytes + at, was, 4);
	/* 4 bytes fewer than there are, with a header that agrees */
	bytes[at] = (unsigned char)(bytes[at] - 4);
	write_bytes(scratch(1, "bomb.npz"), bytes, count);
	must_refuse("npz", scratch(1, "bomb.npz"), HG_ERR_FORMAT, "member labels.npy");
	free(bytes);
}

/* 64 MiB of zeros in 64 KiB are a legal zip file, but the array's header declares less. */
static void compressed_padding_is_not_unpacked(void)
{
	const size_t size = 64u << 20;
	unsigned char *zeros = calloc(size, 1);
	CHECK(zeros != NULL);
	memcpy(
	    zeros,
	    "\x93NUMPY\x01\x00\x3E\x00{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }    \n",
	    72);
	struct npz_out *out = begin(scratch(0, "zeros.npz"), ALL);
	npz_raw(out, "labels.npy", zeros, size);
	npz_end(out, 0);
	free(zeros);
	must_refuse("npz", scratch(0, "zeros.npz"), HG_ERR_FORMAT,
	            "member labels.npy: header promises 4 elements of 4 bytes, but 67108");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(stored_and_deflated_archives_are_read),
	    TEST(other_types_are_read),
	    TEST(weights_of_duplicates_are_added),
	    TEST(dense_features_in_both_orders_are_read),
	    TEST(one_hot_labels_are_read),
	    TEST(archive_may_declare_classes),
	    TEST(each_fault_is_refused_by_name),
	    TEST(missing_members_are_refused),
	    TEST(files_that_are_no_archives_are_refused),
	    TEST(declared_sizes_are_checked),
	    TEST(compressed_padding_is_not_unpacked),
	};
	return RUN_TESTS(argc, argv, cases);
}
