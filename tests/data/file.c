/* The HDF5 layout. A dataset that is written can be read, the file is what FORMAT.md says, and the
 * spellings of other writers are read, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static void round_trip(hg_dataset *d)
{
	const char *path = scratch(0, "round.h5");
	must_write(d, path);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void dense_f32_is_read_back(void)
{
	round_trip(small_dataset());
}

static void dense_f16_is_read_back(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, message));
	CHECK_EQ_I(d->feat_dtype, HG_F16);
	round_trip(d);
}

static void sparse_is_read_back(void)
{
	round_trip(small_sparse());
	hg_dataset *d = small_sparse();
	free(d->feat_value);
	d->feat_value = NULL;
	d->feat_amax = 1;
	round_trip(d);
}

static void batch_is_read_back(void)
{
	round_trip(small_batch());
}

static void bare_graph_is_read_back(void)
{
	hg_dataset *d = small_dataset();
	void **optional[] = {(void **)&d->weight,        &d->feat,
	                     (void **)&d->label,         (void **)&d->train_mask,
	                     (void **)&d->val_mask,      (void **)&d->orig_id,
	                     (void **)&d->name,          (void **)&d->edge_feat,
	                     (void **)&d->edge_label,    (void **)&d->feat_mean,
	                     (void **)&d->feat_deviation};
	for (size_t k = 0; k < sizeof optional / sizeof optional[0]; k++) {
		free(*optional[k]);
		*optional[k] = NULL;
	}
	d->features = 0;
	d->edge_features = 0;
	d->edge_classes = 0;
	d->feat_amax = 0;
	round_trip(d);
}

static void mask_of_255(hg_dataset *d)
{
	d->val_mask[2] = 255;
}
static void mask_of_2(hg_dataset *d)
{
	d->train_mask[0] = 2;
}
static void no_name(hg_dataset *d)
{
	d->name[0] = 0;
}
static void long_name(hg_dataset *d)
{
	free(d->name);
	d->name = malloc((1 << 20) + 2);
	CHECK(d->name != NULL);
	memset(d->name, 'x', (1 << 20) + 1);
	d->name[(1 << 20) + 1] = 0;
}
static void longest_name(hg_dataset *d)
{
	long_name(d);
	d->name[1 << 20] = 0;
}
static void odd_name(hg_dataset *d)
{
	memcpy(d->name, "\xff\x01\n", 4);
}
static void most_classes(hg_dataset *d)
{
	CHECK_OK(hg_dataset_name_classes(d, NULL, 0, NULL));
	d->classes = INT32_MAX;
	d->label[0] = INT32_MAX - 1;
}
static void no_classes(hg_dataset *d)
{
	CHECK_OK(hg_dataset_name_classes(d, NULL, 0, NULL));
	d->classes = 0;
	for (int i = 0; i < 6; i++)
		d->label[i] = -1;
}
static void least_label(hg_dataset *d)
{
	d->label[0] = INT32_MIN;
}
static void far_ids(hg_dataset *d)
{
	d->orig_id[0] = INT64_MIN;
	d->orig_id[1] = INT64_MAX;
}
static void weights_of_one(hg_dataset *d)
{
	for (int e = 0; e < 11; e++)
		d->weight[e] = 1;
}
static void no_columns(hg_dataset *d)
{
	d->features = 0;
}
static void no_feature_type(hg_dataset *d)
{
	free(d->feat);
	d->feat = NULL;
	d->features = 0;
	d->feat_dtype = HG_F16;
}
static void unknown_type(hg_dataset *d)
{
	d->feat_dtype = (hg_dtype)77;
}
static void infinite_feature(hg_dataset *d)
{
	((float *)d->feat)[3] = -(float)HUGE_VAL;
}

/* A dataset that can be written can be read, and is the same. One that could not be read is not
 * written. */
static void written_datasets_can_be_read(void)
{
	static const struct {
		void (*change)(hg_dataset *d);
		const char *refused; /* NULL: it can be written */
	} table[] = {
	    {mask_of_255, "splits: val of node 2 is 255, neither 0 nor 1"},
	    {mask_of_2, "splits: train of node 0 is 2, neither 0 nor 1"},
	    {no_name, NULL},
	    {long_name, "name: it is longer than 1048576 bytes"},
	    {longest_name, NULL},
	    {odd_name, NULL},
	    {most_classes, NULL},
	    {no_classes, NULL},
	    {least_label, NULL},
	    {far_ids, NULL},
	    {weights_of_one, NULL},
	    {no_columns, NULL},
	    {no_feature_type, NULL},
	    {unknown_type, "features: type 77 is neither f16 nor f32"},
	    {infinite_feature, "features: row 1, column 0 is -inf"},
	};
	const char *path = scratch(0, "written.h5");
	for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = small_dataset(), *back = NULL;
		table[k].change(d);
		const hg_status status = hg_dataset_write(d, path, message);
		CHECK_MSG((status == HG_OK) == !table[k].refused, "%d: %s", (int)k, message);
		if (table[k].refused)
			CHECK_CONTAINS(message, table[k].refused);
		if (status == HG_OK) {
			const hg_status again = hg_dataset_read(path, &back, message);
			CHECK_MSG(again == HG_OK, "%d: %s", (int)k, message);
			CHECK(strcmp(d->name, back->name) == 0 && d->classes == back->classes);
			CHECK(memcmp(d->label, back->label, 6 * sizeof *d->label) == 0);
			CHECK(memcmp(d->orig_id, back->orig_id, 6 * sizeof *d->orig_id) == 0);
			CHECK(d->features == back->features);
		}
		hg_dataset_free(back);
		hg_dataset_free(d);
	}
}

static unsigned char *written(const hg_dataset *d, size_t *count)
{
	must_write(d, scratch(0, "equal.h5"));
	return read_bytes(scratch(0, "equal.h5"), count);
}

/* A file that is read and written again is the same file. So is that of a dataset with equal values
 * in another form: weights that are all 1 or absent, a type of features where there are none. */
static void equal_values_are_equal_files(void)
{
	static void (*const changes[])(hg_dataset * d) = {weights_of_one, no_columns, no_feature_type,
	                                                  most_classes};
	hg_dataset *start[] = {small_dataset(), small_sparse(),  small_batch(),  small_dataset(),
	                       small_dataset(), small_dataset(), small_dataset()};
	for (size_t k = 0; k < sizeof start / sizeof start[0]; k++) {
		size_t count[2] = {0, 0};
		if (k >= 3)
			changes[k - 3](start[k]);
		unsigned char *first = written(start[k], &count[0]);
		hg_dataset *back = must_read(scratch(0, "equal.h5"));
		unsigned char *second = written(back, &count[1]);
		CHECK_MSG(count[0] == count[1] && memcmp(first, second, count[0]) == 0, "case %d", (int)k);
		free(first);
		free(second);
		hg_dataset_free(back);
		hg_dataset_free(start[k]);
	}
}

/* The file is as FORMAT.md says: little-endian types, binary16 with fields 15, 10, 5, 0, 10 and
 * bias 15, the text of the descriptor. */
static void layout_is_as_specified(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	const char *path = scratch(0, "layout.h5");
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, message));
	must_write(d, path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT),
	            feat = H5Dopen2(file, "/nodes/feat", H5P_DEFAULT), type = H5Dget_type(feat);
	size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
	CHECK(H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0);
	CHECK(sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 &&
	      mantissa_bits == 10);
	CHECK_EQ_I(H5Tget_size(type), 2);
	CHECK_EQ_I(H5Tget_ebias(type), 15);
	CHECK_EQ_I(H5Tget_order(type), H5T_ORDER_LE);
	CHECK(H5Aexists(feat, "amax") > 0);
	const hid_t attribute = H5Aopen_by_name(file, "/graph", "binsparse", H5P_DEFAULT, H5P_DEFAULT),
	            text_type = H5Aget_type(attribute);
	char *text = NULL;
	CHECK(H5Tis_variable_str(text_type) > 0 && H5Tget_cset(text_type) == H5T_CSET_UTF8);
	CHECK(H5Aread(attribute, text_type, &text) >= 0);
	CHECK_CONTAINS(text, "\"version\":\"0.1\"");
	CHECK_CONTAINS(text, "\"format\":\"CSR\"");
	CHECK_CONTAINS(text, "\"shape\":[6,6]");
	CHECK_CONTAINS(text, "\"number_of_stored_values\":11");
	CHECK_CONTAINS(text, "\"row\":\"destination node\"");
	H5free_memory(text);
	H5Tclose(text_type);
	H5Aclose(attribute);
	H5Tclose(type);
	H5Dclose(feat);
	H5Fclose(file);
	hg_dataset_free(d);
}

/* Replaces /PARENT/name by an array of another type and content. */
static void replace(const char *path, const char *name, hid_t file_type, hid_t memory_type,
                    int rank, const hsize_t *dim, const void *values)
{
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0);
	if (H5Lexists(file, name, H5P_DEFAULT) > 0)
		CHECK(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
	const hid_t space = H5Screate_simple(rank, dim, NULL),
	            data =
	                H5Dcreate2(file, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(data >= 0 && H5Dwrite(data, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
	H5Dclose(data);
	H5Sclose(space);
	H5Fclose(file);
}

static void other_integer_types_are_read(void)
{
	hg_dataset *d = small_dataset();
	const char *path = scratch(0, "narrow.h5");
	const hsize_t n = 6, n1 = 7, m = 11;
	must_write(d, path);
	unseal(path);
	replace(path, "/graph/pointers_to_1", H5T_STD_U8BE, H5T_NATIVE_INT64, 1, &n1, d->rowptr);
	replace(path, "/graph/indices_1", H5T_STD_U64BE, H5T_NATIVE_INT32, 1, &m, d->col);
	replace(path, "/graph/values", H5T_IEEE_F64BE, H5T_NATIVE_FLOAT, 1, &m, d->weight);
	replace(path, "/nodes/label", H5T_STD_I8LE, H5T_NATIVE_INT32, 1, &n, d->label);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void booleans_and_index_lists_are_splits(void)
{
	hg_dataset *d = small_dataset();
	const char *path = scratch(0, "splits.h5");
	const hsize_t n = 6, one = 1, two = 2;
	const int32_t valid[] = {2}, test[] = {5, 4};
	signed char no = 0, yes = 1;
	must_write(d, path);
	unseal(path);
	const hid_t boolean = H5Tenum_create(H5T_STD_I8LE);
	CHECK(H5Tenum_insert(boolean, "FALSE", &no) >= 0 && H5Tenum_insert(boolean, "TRUE", &yes) >= 0);
	replace(path, "/nodes/train_mask", boolean, boolean, 1, &n, d->train_mask);
	H5Tclose(boolean);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT),
	            group = H5Gcreate2(file, "/split", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(group >= 0 && H5Ldelete(file, "/nodes/val_mask", H5P_DEFAULT) >= 0 &&
	      H5Ldelete(file, "/nodes/test_mask", H5P_DEFAULT) >= 0);
	H5Gclose(group);
	H5Fclose(file);
	replace(path, "/split/valid", H5T_STD_I64LE, H5T_NATIVE_INT32, 1, &one, valid);
	replace(path, "/split/test", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, &two, test);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void doubles_become_f32(void)
{
	hg_dataset *d = small_dataset();
	const char *path = scratch(0, "double.h5");
	const hsize_t dim[2] = {6, 3};
	must_write(d, path);
	unseal(path);
	replace(path, "/nodes/feat", H5T_IEEE_F64LE, H5T_NATIVE_FLOAT, 2, dim, d->feat);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(back);
	double large[18] = {0};
	large[7] = 1e300;
	replace(path, "/nodes/feat", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, dim, large);
	must_not_read(path, HG_ERR_RANGE, "/nodes/feat: row 2, column 1 is 1e+300, too large for f32");
	hg_dataset_free(d);
}

/* Counts of words, for example. */
static void integer_features_become_f32(void)
{
	static const uint8_t counts[18] = {0, 255, 3};
	hg_dataset *d = small_dataset();
	const char *path = scratch(0, "counts.h5");
	must_write(d, path);
	unseal(path);
	hg_dataset_free(d);
	replace(path, "/nodes/feat", H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, (const hsize_t[]){6, 3},
	        counts);
	d = must_read(path);
	CHECK(d->feat_dtype == HG_F32 && ((float *)d->feat)[1] == 255 && ((float *)d->feat)[2] == 3 &&
	      d->feat_amax == 255);
	hg_dataset_free(d);
}

/* Older binsparse files have the descriptor in a string of fixed size. */
static void fixed_size_descriptor_is_read(void)
{
	static const char text[] = "{\"binsparse\": {\"version\": \"0.1\", \"format\": \"CSR\", "
	                           "\"shape\": [6, 6], \"number_of_stored_values\": 11, "
	                           "\"data_types\": {\"pointers_to_1\": \"uint64\", \"indices_1\": "
	                           "\"uint32\", \"values\": \"float32\"}}, \"more\": [1, 2]}";
	hg_dataset *d = small_dataset();
	const char *path = scratch(0, "fixed.h5");
	must_write(d, path);
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT),
	            group = H5Gopen2(file, "/graph", H5P_DEFAULT), space = H5Screate(H5S_SCALAR),
	            type = H5Tcopy(H5T_C_S1);
	CHECK(H5Tset_size(type, sizeof text) >= 0 && H5Adelete(group, "binsparse") >= 0);
	const hid_t attribute = H5Acreate2(group, "binsparse", type, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0 && H5Awrite(attribute, type, text) >= 0);
	H5Aclose(attribute);
	H5Tclose(type);
	H5Sclose(space);
	H5Gclose(group);
	H5Fclose(file);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

/* After a call, failed or not, HDF5 prints errors as it did for the caller before. */
static void error_printing_is_restored(void)
{
	H5E_auto2_t before = NULL, after = NULL;
	void *data_before = NULL, *data_after = NULL;
	hg_dataset *d = NULL;
	char message[HG_DATA_MESSAGE] = "";
	CHECK(H5Eget_auto2(H5E_DEFAULT, &before, &data_before) >= 0 && before != NULL);
	write_text(scratch(0, "junk.h5"), "junk");
	CHECK_STATUS(hg_dataset_read(scratch(0, "junk.h5"), &d, message), HG_ERR_FORMAT);
	CHECK(H5Eget_auto2(H5E_DEFAULT, &after, &data_after) >= 0 && after == before &&
	      data_after == data_before);
}

/* Another reader, h5py, reads the same. */
static void h5py_reads_it(void)
{
	if (system("python3 -c 'import h5py' >/dev/null 2>&1") != 0)
		SKIP("python3 with h5py is not here: no cross-check");
	char message[HG_DATA_MESSAGE] = "", command[1024];
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, message));
	must_write(d, scratch(0, "cross.h5"));
	snprintf(command, sizeof command, "python3 '%s' '%s' '%s'", HG_H5PY_SCRIPT,
	         scratch(0, "cross.h5"), scratch(1, "cross2.h5"));
	CHECK(system(command) == 0);
	hg_dataset *back = must_read(scratch(1, "cross2.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(dense_f32_is_read_back),
	    TEST(dense_f16_is_read_back),
	    TEST(sparse_is_read_back),
	    TEST(batch_is_read_back),
	    TEST(bare_graph_is_read_back),
	    TEST(written_datasets_can_be_read),
	    TEST(equal_values_are_equal_files),
	    TEST(layout_is_as_specified),
	    TEST(other_integer_types_are_read),
	    TEST(booleans_and_index_lists_are_splits),
	    TEST(doubles_become_f32),
	    TEST(integer_features_become_f32),
	    TEST(fixed_size_descriptor_is_read),
	    TEST(error_printing_is_restored),
	    TEST(h5py_reads_it),
	};
	return RUN_TESTS(argc, argv, cases);
}
