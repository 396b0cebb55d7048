/* Names of nodes: texts by which the source knows them. */
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "halfgraph/prediction.h"
#include "spoil.h"
#include "support.h"

/* ---- in datasets ---- */

static void less_names(hg_dataset *d)
{
	d->node_name_bytes -= 5;
}
static void more_names(hg_dataset *d)
{
	memcpy(d->node_name + 3, "\0", 1);
}
static void endless_name(hg_dataset *d)
{
	d->node_name_bytes -= 6;
	d->node_name[d->node_name_bytes - 1] = 'x';
}
static void lost_names(hg_dataset *d)
{
	free(d->node_name);
	d->node_name = NULL;
}
static void negative_bytes(hg_dataset *d)
{
	d->node_name_bytes = -1;
}

static const struct {
	void (*spoil)(hg_dataset *d);
	const char *part;
} rules[] = {
    {less_names, "here: names of nodes: there are 5, expected 6, each with a terminating 0"},
    {more_names, "here: names of nodes: there are 7, expected 6"},
    {endless_name, "here: names of nodes: there are 0, expected 6"},
    {lost_names, "here: names of nodes: there are 0, expected 6"},
    {negative_bytes, "here: names of nodes: there are 0, expected 6"},
};

static void each_node_has_a_name(void)
{
	for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = small_dataset();
		rules[k].spoil(d);
		CHECK_STATUS(hg_dataset_check(d, "here", message), HG_ERR_FORMAT);
		CHECK_CONTAINS(message, rules[k].part);
		hg_dataset_free(d);
	}
}

static void names_move_with_their_nodes(void)
{
	static const int32_t order[] = {5, 3, 0, 1, 4, 2};
	static const char *const expected[] = {"last", "\xc3\xa4", "a", "", "\xff raw", "b, \"c\""};
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_permute(d, order, message));
	for (int i = 0; i < 6; i++)
		CHECK_STR(hg_dataset_node_name(d, i), expected[i]);
	/* the node that becomes "last" is alone */
	CHECK_OK(hg_dataset_largest_component(d, message));
	CHECK_OK(hg_dataset_check(d, "component", message));
	for (int i = 0; i < 5; i++)
		CHECK_STR(hg_dataset_node_name(d, i), expected[i + 1]);
	hg_dataset_free(d);
}

/* ---- in files ---- */

static void refuse_after(void (*spoil)(hid_t file), const char *part)
{
	const char *path = scratch(0, "bad.h5");
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset(), *back = NULL;
	must_write(d, path);
	hg_dataset_free(d);
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0);
	spoil(file);
	H5Fclose(file);
	CHECK_MSG(hg_dataset_read(path, &back, message) == HG_ERR_FORMAT, "%s", part);
	CHECK_CONTAINS(message, part);
}

static void few_names(hid_t f)
{
	put_zeros(f, "nodes/names", H5T_STD_U8LE, 1, 5, 0);
}
static void wide_names(hid_t f)
{
	const int64_t values[] = {0, 0, 0, 256, 0, 0};
	const hsize_t n = 6;
	drop(f, "nodes/names");
	const hid_t space = H5Screate_simple(1, &n, NULL),
	            data = H5Dcreate2(f, "nodes/names", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT,
	                              H5P_DEFAULT);
	CHECK(data >= 0 &&
	      H5Dwrite(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
	H5Dclose(data);
	H5Sclose(space);
}
static void two_dimensions(hid_t f)
{
	put_zeros(f, "nodes/names", H5T_STD_U8LE, 2, 6, 1);
}
static void real_names(hid_t f)
{
	put_zeros(f, "nodes/names", H5T_IEEE_F32LE, 1, 6, 0);
}

static void damaged_names_are_refused(void)
{
	refuse_after(few_names, "names of nodes: there are 5, expected 6");
	refuse_after(wide_names, "/nodes/names: value 256 at 3 is not in [0, 255]");
	refuse_after(two_dimensions, "/nodes/names: has 2 dimensions, expected 1");
	refuse_after(real_names, "/nodes/names: elements are of type float");
}

/* The version says that a reader of 1.0 leaves something out. */
static void files_with_names_are_of_version_1_1(void)
{
	char version[8] = "";
	hg_dataset *d = small_batch();
	d->node_name = calloc((size_t)d->nodes, 1);
	d->node_name_bytes = d->nodes;
	CHECK(d->node_name != NULL);
	must_write(d, scratch(0, "named.h5"));
	hg_dataset_free(d);
	const hid_t file = H5Fopen(scratch(0, "named.h5"), H5F_ACC_RDONLY, H5P_DEFAULT),
	            at = H5Aopen(file, "format_version", H5P_DEFAULT), type = H5Aget_type(at);
	char *text = NULL;
	CHECK(H5Aread(at, type, H5Tis_variable_str(type) > 0 ? (void *)&text : version) >= 0);
	CHECK_STR(text ? text : version, "1.1");
	H5free_memory(text);
	H5Tclose(type);
	H5Aclose(at);
	H5Fclose(file);
}

static void archives_with_other_names_are_refused(void)
{
	static const int64_t adj_shape[] = {2, 2}, indptr[] = {0, 1, 2}, one = 1;
	static const int32_t indices[] = {1, 0};
	static const float weights[] = {1, 1};
	for (int k = 0; k < 2; k++) {
		struct npz_out *out = npz_begin(scratch(0, "names.npz"));
		npz_add(out, "halfgraph", "<i8", "()", &one, sizeof one);
		npz_add(out, "adj_shape", "<i8", "(2,)", adj_shape, sizeof adj_shape);
		npz_add(out, "adj_indptr", "<i8", "(3,)", indptr, sizeof indptr);
		npz_add(out, "adj_indices", "<i4", "(2,)", indices, sizeof indices);
		npz_add(out, "adj_data", "<f4", "(2,)", weights, sizeof weights);
		npz_add(out, "node_names", "|u1", k ? "(4,)" : "(3,)", k ? "a\0b\0" : "a\0b", k ? 4 : 3);
		npz_end(out, 1);
		if (!k) {
			must_refuse("npz", scratch(0, "names.npz"), HG_ERR_FORMAT,
			            "names of nodes: there are 0, expected 2");
			continue;
		}
		hg_dataset *d = must_import("npz", scratch(0, "names.npz"));
		CHECK_STR(hg_dataset_node_name(d, 1), "b");
		hg_dataset_free(d);
	}
}

/* ---- in predictions ---- */

static hg_prediction prediction(void)
{
	static int64_t id[] = {0, 1};
	static int32_t label[] = {1, 0};
	static float share[] = {0.25f, 0.75f, 1.0f, 0.0f};
	static char names[] = "x, \"y\"\0\xc3\xa4";
	return (hg_prediction){.loss = HG_LOSS_CROSS_ENTROPY,
	                       .rows = 2,
	                       .cols = 2,
	                       .id = id,
	                       .label = label,
	                       .logits = share,
	                       .probability = share,
	                       .node_name = names,
	                       .node_name_bytes = sizeof names};
}

static void predictions_have_the_names(void)
{
	static const char expected[] = "id,class,p0,p1\n\"x, \"\"y\"\"\",1,0.25,0.75\n"
	                               "\xc3\xa4,0,1,0\n";
	hg_prediction p = prediction();
	size_t count = 0;
	int code = 0;
	CHECK_OK(hg_prediction_write(&p, scratch(0, "p.csv"), NULL));
	unsigned char *text = read_bytes(scratch(0, "p.csv"), &count);
	CHECK(count == strlen(expected) && memcmp(text, expected, count) == 0);
	free(text);
	CHECK_OK(hg_prediction_write(&p, scratch(0, "p.npz"), NULL));
	zip_t *zip = zip_open(scratch(0, "p.npz"), ZIP_RDONLY | ZIP_CHECKCONS, &code);
	CHECK(zip != NULL);
	char found[256];
	zip_file_t *member = zip_fopen(zip, "node_names.npy", 0);
	CHECK(member != NULL);
	CHECK_EQ_I(zip_fread(member, found, sizeof found), 128 + p.node_name_bytes);
	CHECK_CONTAINS(found + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (10,), }");
	CHECK(memcmp(found + 128, p.node_name, (size_t)p.node_name_bytes) == 0);
	CHECK(zip_fclose(member) == 0 && zip_close(zip) == 0);
	CHECK_OK(hg_prediction_write(&p, scratch(0, "p.h5"), NULL));
	const hid_t file = H5Fopen(scratch(0, "p.h5"), H5F_ACC_RDONLY, H5P_DEFAULT),
	            data = H5Dopen2(file, "node_names", H5P_DEFAULT);
	CHECK(data >= 0 && H5Dread(data, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
	CHECK(memcmp(found, p.node_name, (size_t)p.node_name_bytes) == 0);
	H5Dclose(data);
	H5Fclose(file);
}

/* Rows of a table that are graphs have numbers, also where the embedding's nodes have names. */
static void graphs_have_numbers(void)
{
	static const char expected[] = "id,class,p0,p1\n0,1,0.25,0.75\n1,0,1,0\n";
	hg_prediction p = prediction();
	size_t count = 0;
	p.of_graphs = 1;
	CHECK_OK(hg_prediction_write(&p, scratch(0, "g.csv"), NULL));
	unsigned char *text = read_bytes(scratch(0, "g.csv"), &count);
	CHECK(count == strlen(expected) && memcmp(text, expected, count) == 0);
	free(text);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(each_node_has_a_name),
	    TEST(names_move_with_their_nodes),
	    TEST(damaged_names_are_refused),
	    TEST(files_with_names_are_of_version_1_1),
	    TEST(archives_with_other_names_are_refused),
	    TEST(predictions_have_the_names),
	    TEST(graphs_have_numbers),
	};
	return RUN_TESTS(argc, argv, cases);
}
