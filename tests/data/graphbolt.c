/* GraphBolt's datasets on disk. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support.h"

static const char metadata[] =
    "# written by hand\n"
    "dataset_name: bolt-toy\n"
    "graph:\n"
    "  nodes:\n"
    "  - num: 5\n"
    "  edges:\n"
    "    - format: csv\n"
    "      path: edges/list.csv\n"
    "feature_data:\n"
    "  - {domain: edge, type: null, name: w, format: numpy, path: w.npy}\n"
    "  - domain: node\n"
    "    name: year\n"
    "    format: torch\n"
    "    path: year.pt\n"
    "  - domain: node\n"
    "    type:\n"
    "    name: feat\n"
    "    format: numpy\n"
    "    in_memory: false\n"
    "    path: \"x.npy\"\n"
    "tasks:\n"
    "  - name: link_prediction\n"
    "    train_set:\n"
    "      - data: [{name: seeds, format: numpy, path: pairs.npy}]\n"
    "  - name: node_classification\n"
    "    num_classes: 4\n"
    "    train_set:\n"
    "      - data:\n"
    "          - {name: seeds, format: numpy, path: train.npy}\n"
    "          - {name: labels, format: numpy, path: train_y.npy}\n"
    "    validation_set:\n"
    "      - type: ~\n"
    "        data:\n"
    "          - {name: seed_nodes, format: numpy, path: val.npy}\n"
    "          - {name: labels, format: numpy, path: val_y.npy}\n"
    "    test_set: []\n"
    "  - train_set:\n"
    "      - data: [{name: seeds, format: numpy, path: train.npy}]\n";

/* The metadata with `from`, which occurs, replaced by `to`. */
static void write_metadata(const char *from, const char *to)
{
	char text[sizeof metadata + 512];
	const char *found = strstr(metadata, from);
	CHECK_MSG(found != NULL, "the metadata have no \"%s\"", from);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(found - metadata), metadata, to,
	         found + strlen(from));
	write_text(scratch(0, "bolt/metadata.yaml"), text);
}

#define ARRAY(name, descr, shape, array) \
	write_npy(scratch(0, "bolt/" name), descr, shape, array, sizeof(array))

/* Makes the folder bolt. */
static const char *folder_of(void)
{
	static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, -10}, w[] = {0.5f, 1, 2, 3, 4};
	static const int64_t pairs[] = {0, 1, 1, 2}, train[] = {3, 0}, labels[] = {2, 1};
	static const int32_t ends[] = {0, 1, 4, 0, 0, 1, 2, 3, 0, 1};
	static const int16_t val[] = {4};
	static const float val_labels[] = {3};
	(void)mkdir(scratch(0, "bolt"), 0700);
	(void)mkdir(scratch(0, "bolt/edges"), 0700);
	write_metadata("", "");
	write_text(scratch(0, "bolt/edges/list.csv"), "0,1\n1,2\r\n\n4, 3\n0,0\n0,1\n");
	ARRAY("ends.npy", "<i4", "(2, 5)", ends);
	ARRAY("x.npy", "<f4", "(5, 2)", x);
	ARRAY("w.npy", "<f4", "(5,)", w);
	ARRAY("pairs.npy", "<i8", "(2, 2)", pairs);
	ARRAY("train.npy", "<i8", "(2,)", train);
	ARRAY("train_y.npy", "<i8", "(2, 1)", labels);
	ARRAY("val.npy", "<i2", "(1, 1)", val);
	ARRAY("val_y.npy", "<f4", "(1,)", val_labels);
	return scratch(0, "bolt");
}

static void set_is_read(void)
{
	static const int64_t rowptr[] = {0, 1, 2, 3, 4, 4};
	static const int32_t col[] = {0, 0, 1, 4}, label[] = {1, -1, -1, 2, 3};
	static const float w[] = {3, 0.5f, 1, 2};
	static const uint8_t train[] = {1, 0, 0, 1, 0}, val[] = {0, 0, 0, 0, 1};
	hg_dataset *d = must_import("graphbolt", folder_of());
	CHECK_STR(d->name, "bolt-toy");
	CHECK(d->nodes == 5 && d->edges == 4 && d->features == 2 && d->classes == 4 && !d->weight &&
	      !d->target && !d->graph_ptr && !d->test_mask && d->feat_amax == 10);
	CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0);
	CHECK(memcmp(d->label, label, sizeof label) == 0 && ((float *)d->feat)[9] == -10);
	CHECK(memcmp(d->train_mask, train, sizeof train) == 0 &&
	      memcmp(d->val_mask, val, sizeof val) == 0);
	CHECK(d->edge_features == 1 && memcmp(d->edge_feat, w, sizeof w) == 0 && !d->edge_label);
	CHECK_EQ_I(run_convert("@/bolt -o @/bolt.h5"), 0);
	CHECK_CONTAINS(convert_err, "bolt: read as graphbolt\n");
	CHECK_CONTAINS(convert_err, "bolt/edges/list.csv: 1 of 5 edges repeat an earlier edge");
	CHECK_CONTAINS(convert_err, "list.csv: 1 of the edges that were merged had other labels or "
	                            "attributes than the first, whose stay");
	CHECK_CONTAINS(convert_err, "metadata.yaml: the node features year are not read: of several, "
	                            "those that are called feat are\n");
	CHECK_CONTAINS(convert_err,
	               "task 1 (link_prediction) is not read: it is not about single nodes");
	CHECK_CONTAINS(convert_err, "task 3 (without a name) is not read: one is enough");
	hg_dataset *back = must_read(scratch(1, "bolt.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

/* The file itself, what GraphBolt adds to the folder, and an archive give the same. */
static void file_and_archive_are_read(void)
{
	static const char *const names[] = {"w.npy",       "metadata.yaml", "edges/list.csv",
	                                    "x.npy",       "pairs.npy",     "train.npy",
	                                    "train_y.npy", "val.npy",       "val_y.npy"};
	hg_dataset *d = must_import("graphbolt", folder_of());
	struct npz_out *zip = npz_begin(scratch(1, "bolt.zip"));
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
		char member[64];
		size_t count = 0;
		snprintf(member, sizeof member, "bolt/%s", names[k]);
		unsigned char *bytes = read_bytes(scratch(2, member), &count);
		npz_raw(zip, member, bytes, count);
		free(bytes);
	}
	npz_end(zip, 0);
	(void)mkdir(scratch(2, "bolt/preprocessed"), 0700);
	write_text(scratch(2, "bolt/preprocessed/metadata.yaml"), metadata);
	const char *const inputs[] = {"bolt", "bolt/metadata.yaml", "bolt.zip"};
	for (size_t k = 0; k < 3; k++) {
		const hg_importer *importer = NULL;
		CHECK_OK(hg_import_recognise(scratch(1, inputs[k]), &importer, NULL));
		CHECK_STR(importer->name, "graphbolt");
		hg_dataset *same = must_import("graphbolt", scratch(1, inputs[k]));
		check_same(d, same);
		hg_dataset_free(same);
	}
	hg_dataset_free(d);
}

/* Edges of an array, in both orders of its memory; the name of the folder; one list of features. */
static void arrays_of_edges_are_read(void)
{
	static const int32_t pairs[] = {0, 1, 1, 2, 4, 3, 0, 0, 0, 1};
	(void)folder_of();
	write_metadata("dataset_name: bolt-toy\ngraph:\n",
	               "graph:\n  feature_data: [{domain: node, name: time}]\n");
	hg_dataset *d = must_import("graphbolt", scratch(0, "bolt"));
	CHECK_STR(d->name, "bolt");
	CHECK_EQ_I(run_convert("@/bolt -o @/bolt.h5"), 0);
	CHECK_CONTAINS(convert_err, "the feature_data of the graph, for sampling, are not read");
	char text[sizeof metadata];
	snprintf(text, sizeof text, "%s",
	         "graph: {nodes: [{num: 5}], edges: [{format: numpy, path: "
	         "ends.npy}]}\nfeature_data:\n- domain: node\n  name: z\n  "
	         "format: numpy\n  path: z.npy\n");
	for (int fortran = 0; fortran < 2; fortran++) {
		static const float z[] = {1, 2, 3, 4, 5};
		(void)folder_of();
		write_text(scratch(0, "bolt/metadata.yaml"), text);
		ARRAY("z.npy", "<f4", "(5,)", z);
		if (fortran) {
			size_t count = 0;
			ARRAY("ends.npy", "<i4", "(2, 5)", pairs);
			unsigned char *bytes = read_bytes(scratch(0, "bolt/ends.npy"), &count);
			char *order = strstr((char *)bytes + 10, "False");
			CHECK(order != NULL);
			memcpy(order, "True ", 5);
			write_bytes(scratch(0, "bolt/ends.npy"), bytes, count);
			free(bytes);
		}
		hg_dataset *same = must_import("graphbolt", scratch(0, "bolt"));
		CHECK(same->edges == d->edges && memcmp(same->col, d->col, 4 * sizeof *d->col) == 0 &&
		      memcmp(same->rowptr, d->rowptr, 6 * sizeof *d->rowptr) == 0 && !same->label &&
		      same->features == 1 && ((float *)same->feat)[4] == 5);
		hg_dataset_free(same);
	}
	hg_dataset_free(d);
}

/* Numbers that are no classes, or several columns, are targets; without num_classes the labels
 * count them. */
static void labels_may_be_targets(void)
{
	static const float real[] = {0.5f, -2}, last[] = {7}, two[] = {1, 0, 0, 1}, one[] = {1, 1};
	static const int64_t few[] = {1, 0}, none[] = {0};
	(void)folder_of();
	write_metadata("    num_classes: 4\n", "");
	ARRAY("train_y.npy", "<f4", "(2,)", real);
	ARRAY("val_y.npy", "<f4", "(1,)", last);
	hg_dataset *d = must_import("graphbolt", scratch(0, "bolt"));
	CHECK(!d->label && d->targets == 1 && d->target[3] == 0.5f && d->target[0] == -2 &&
	      isnan(d->target[1]) && d->target[4] == 7);
	hg_dataset_free(d);
	ARRAY("train_y.npy", "<f4", "(2, 2)", two);
	ARRAY("val_y.npy", "<f4", "(1, 2)", one);
	d = must_import("graphbolt", scratch(0, "bolt"));
	CHECK(!d->label && d->targets == 2 && d->target[6] == 1 && d->target[1] == 1);
	hg_dataset_free(d);
	ARRAY("train_y.npy", "<i8", "(2,)", few);
	ARRAY("val_y.npy", "<i8", "(1,)", none);
	d = must_import("graphbolt", scratch(0, "bolt"));
	CHECK(d->classes == 2 && d->label[3] == 1 && d->label[4] == 0 && d->label[1] == -1);
	hg_dataset_free(d);
}

static void bad_metadata_are_refused(void)
{
	static char deep[1100];
	static const struct {
		const char *from, *to, *part;
	} bad[] = {
	    {"graph:\n", "graph_topology: {type: FusedCSCSamplingGraph, path: g.pt}\ngraph: null\nx:\n",
	     "metadata.yaml:3: graph_topology is a file of torch, a pickle, which is not read"},
	    {"graph:\n", "grape:\n", "metadata.yaml:2: expected the key graph"},
	    {"graph:\n", "graph: 3\nx:\n", "metadata.yaml:3: graph: expected a mapping"},
	    {metadata, "- 1\n", "metadata.yaml:1: expected a mapping with the key dataset_name"},
	    {metadata, "# nothing\n", "metadata.yaml:1: expected a mapping with the key"},
	    {metadata, "graph: [\n", "metadata.yaml:2: is not YAML: did not find expected node"},
	    {metadata, deep, "metadata.yaml: lists are nested more than 1000 deep"},
	    {metadata, "a: b: c\n", "metadata.yaml:1: is not YAML: mapping values are not allowed"},
	    {metadata, "a: \xff\n", "is not YAML: invalid leading UTF-8 octet"},
	    {metadata, "dataset_name: \"a\\0b\"\n", "dataset_name: holds zero bytes"},
	    {metadata, "dataset_name: [a]\n", "dataset_name: expected a text or number"},
	    {"  - num: 5\n", "  - num: 5\n  - num: 6\n",
	     "metadata.yaml:5: nodes: expected one type, found 2: sets with several types"},
	    {"  - num: 5\n", "  - 5\n", "metadata.yaml:5: expected a mapping with the key num"},
	    {"  - num: 5\n", "  - num: five\n", "metadata.yaml:5: num: expected a whole number from 0"},
	    {"  - num: 5\n", "  - num: 3000000000\n", "num: 3000000000 nodes, at most 2147483647"},
	    {"  - num: 5\n", "  - num: 2000000\n", "num: 2000000 nodes for 5 edges: not a graph"},
	    {"  - num: 5\n", "  - num: 4\n", "list.csv:4: node 4, expected 0 .. 3"},
	    {"  - num: 5\n", "  - num: 6\n", "x.npy: has 5 rows, but the graph has 6 nodes"},
	    {"  nodes:\n  - num: 5\n", "  nodes: 5\n", "metadata.yaml:4: nodes: expected a list"},
	    {"format: csv", "format: parquet",
	     "metadata.yaml:7: format: expected csv or numpy, found \"parquet\""},
	    {"format: csv\n", "formal: csv\n", "metadata.yaml:7: expected the key format"},
	    {"edges/list.csv", "../bolt/edges/list.csv",
	     "metadata.yaml:7: path: expected a file in the folder, found \"../bolt/edges/list.csv\""},
	    {"edges/list.csv", "/etc/hostname", "path: expected a file in the folder"},
	    {"edges/list.csv", "edges/../x", "path: expected a file in the folder"},
	    {"edges/list.csv", "edges/..", "path: expected a file in the folder"},
	    {"format: csv\n      path: edges/list.csv", "format: numpy\n      path: x.npy",
	     "x.npy: has 5 rows, expected 2: sources and destinations"},
	    {"format: csv\n      path: edges/list.csv", "format: numpy\n      path: train.npy",
	     "train.npy: has 1 dimension, expected 2: sources and destinations"},
	    {"format: csv\n      path: edges/list.csv", "format: numpy\n      path: edges/list.csv",
	     "list.csv: is not an .npy array"},
	    {"    in_memory: false\n    path: \"x.npy\"", "    path: train.npy",
	     "train.npy: has 2 rows, but the graph has 5 nodes"},
	    {"    type:\n    name: feat\n    format: numpy", "    name: feat\n    format: torch",
	     "format: expected numpy, found \"torch\", which is a pickle: save the array with numpy"},
	    {"path: w.npy", "path: train.npy", "train.npy: has 2 rows, but there are 5 edges"},
	    {"    name: year\n", "", "metadata.yaml:11: expected the key name"},
	    {"seeds, format: numpy, path: train.npy}", "seeds, format: torch, path: train.pt}",
	     "format: expected numpy, found \"torch\""},
	    {"path: train.npy", "path: val.npy", "train_y.npy: has 2 rows, but the set has 1 nodes"},
	    {"path: val.npy", "path: pairs.npy",
	     "pairs.npy: has 2 columns, expected 1: one node in each row"},
	    {"path: val_y.npy", "path: train_y.npy",
	     "train_y.npy: has 2 rows, but the set has 1 nodes"},
	    {"domain: node", "domain: nodes", "domain: expected node or edge, found \"nodes\""},
	    {"num_classes: 4", "num_classes: 3", "node 4 has label 3, but there are 3 classes"},
	    {"num_classes: 4", "num_classes: -4", "num_classes: expected a whole number from 0"},
	    {"num_classes: 4", "num_classes: 99999999999", "at most 16777216 are possible"},
	    {"num_classes: 4", "num_labels: 4", "which makes 4 classes of 3 labelled nodes"},
	    {"    test_set: []", "    test_set: [1, 2]",
	     "test_set: expected one type of nodes, found 2"},
	    {"    test_set: []", "    test_set: [1]", "expected a mapping with the key data"},
	    {"    test_set: []", "    test_set: yes", "test_set: expected a list"},
	    {"    test_set: []",
	     "    test_set: [{data: [{name: seeds, format: numpy, path: train.npy}]}]",
	     "splits: node 0 is in train and in test"},
	};
	memset(deep, '[', sizeof deep - 1);
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		(void)folder_of();
		write_metadata(bad[k].from, bad[k].to);
		must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT, bad[k].part);
	}
}

static void bad_files_are_refused(void)
{
	static const int64_t out[] = {3, 5}, five[] = {0, 1, 2, 3, 5, 0, 0, 0, 0, 0};
	static const float two[] = {1, 0};
	static const int64_t same[] = {3, 3};
	static const unsigned char mask[] = {1, 0, 0, 1, 0};
	(void)folder_of();
	write_text(scratch(0, "bolt/edges/list.csv"), "src,dst\n0,1\n");
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT,
	            "list.csv:1: expected two node numbers, without a header, found \"src,dst\"");
	write_text(scratch(0, "bolt/edges/list.csv"), "0,1,2\n");
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT, "list.csv:1: expected two node");
	CHECK(remove(scratch(0, "bolt/edges/list.csv")) == 0);
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_IO, "list.csv: No such file");
	(void)folder_of();
	ARRAY("train.npy", "<i8", "(2,)", out);
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT,
	            "train.npy: value 5 at 1 is not in [0, 4]");
	(void)folder_of();
	ARRAY("train.npy", "|b1", "(5,)", mask);
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT,
	            "train.npy: holds True and False, expected numbers of nodes");
	(void)folder_of();
	ARRAY("train.npy", "<i8", "(2,)", same);
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT,
	            "train_y.npy: node 3 has the label 1, but 2 in an earlier row or set");
	(void)folder_of();
	ARRAY("val_y.npy", "<f4", "(1, 2)", two);
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT,
	            "val_y.npy: has 2 columns, expected 1 as in the set before");
	(void)folder_of();
	write_metadata("format: csv\n      path: edges/list.csv",
	               "format: numpy\n      path: ends.npy");
	ARRAY("ends.npy", "<i8", "(2, 5)", five);
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT,
	            "ends.npy: value 5 at 4 is not in [0, 4]");
	CHECK(remove(scratch(0, "bolt/metadata.yaml")) == 0);
	must_refuse("graphbolt", scratch(0, "bolt/metadata.yaml"), HG_ERR_IO, "No such file");
	(void)mkdir(scratch(0, "bare"), 0700);
	must_refuse("graphbolt", scratch(0, "bare"), HG_ERR_FORMAT, "bare: holds no metadata.yaml");
	(void)mkdir(scratch(0, "bare/a"), 0700);
	(void)mkdir(scratch(0, "bare/b"), 0700);
	write_text(scratch(0, "bare/a/metadata.yaml"), "x: 1\n");
	write_text(scratch(0, "bare/b/metadata.yaml"), "x: 1\n");
	must_refuse("graphbolt", scratch(0, "bare"), HG_ERR_FORMAT,
	            "bare: holds a/metadata.yaml and b/metadata.yaml, expected one");
}

/* No rows of 2^62 columns have no bytes, and the bytes of a row overflow to 0. */
static void wide_arrays_without_rows_are_refused(void)
{
	static const char wide[] = "(0, 4611686018427387904)",
	                  text[] =
	                      "graph: {nodes: [{num: 0}], edges: [{format: numpy, path: e.npy}]}\n"
	                      "feature_data:\n- {domain: node, name: a, format: numpy, path: x.npy}\n"
	                      "- {domain: edge, name: b, format: numpy, path: w.npy}\n";
	(void)folder_of();
	write_text(scratch(0, "bolt/metadata.yaml"), text);
	write_npy(scratch(0, "bolt/e.npy"), "<i4", "(2, 0)", "", 0);
	write_npy(scratch(0, "bolt/x.npy"), "<f4", wide, "", 0);
	write_npy(scratch(0, "bolt/w.npy"), "<f4", wide, "", 0);
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT,
	            "edge features: 4611686018427387904 columns need a matrix");
}

/* A file that is no description: it is not parsed as a whole. */
static void large_files_are_refused(void)
{
	const size_t count = (1 << 20) + 1;
	char *text = malloc(count);
	CHECK(text != NULL);
	memset(text, '#', count);
	(void)folder_of();
	write_bytes(scratch(0, "bolt/metadata.yaml"), text, count);
	must_refuse("graphbolt", scratch(0, "bolt"), HG_ERR_FORMAT, "is longer than 1048576 bytes");
	free(text);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(set_is_read),
	    TEST(file_and_archive_are_read),
	    TEST(arrays_of_edges_are_read),
	    TEST(labels_may_be_targets),
	    TEST(bad_metadata_are_refused),
	    TEST(bad_files_are_refused),
	    TEST(wide_arrays_without_rows_are_refused),
	    TEST(large_files_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
