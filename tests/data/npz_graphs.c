/* Numpy archives of many small graphs, and the names of their targets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* A path of three atoms, a single one, none, and a pair; the edges of a graph in any order. */
static const int32_t node_ptr[] = {0, 3, 4, 4, 6}, edge_ptr[] = {0, 4, 4, 4, 6};
static const uint16_t edge_src[] = {0, 1, 2, 1, 0, 1}, edge_dst[] = {1, 0, 1, 2, 1, 0};
static const uint8_t edge_label[] = {0, 0, 3, 3, 1, 1};
static const int16_t node_label[] = {6, 8, 6, -1, 6, 6};
static const int8_t node_attr[] = {1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const float mass[] = {0.5f, 1, (float)NAN, -2};
static const double gap[] = {1, 2, 3, 4};
static const int32_t train[] = {3, 0}, val[] = {1}, test[] = {2};

/* One array; those of a case replace those of the same key. */
struct array {
	const char *key, *descr, *shape;
	const void *values;
	size_t bytes;
};
#define ARRAY(name, descr, shape)              \
	{                                          \
#name, descr, shape, name, sizeof name \
	}
static const struct array good[] = {
    ARRAY(node_ptr, "<i4", "(5,)"),
    ARRAY(edge_ptr, "<i4", "(5,)"),
    ARRAY(edge_src, "<u2", "(6,)"),
    ARRAY(edge_dst, "<u2", "(6,)"),
    ARRAY(edge_label, "|u1", "(6,)"),
    ARRAY(node_label, "<i2", "(6,)"),
    ARRAY(node_attr, "|i1", "(6, 2)"),
    {"y_mass", "<f4", "(4,)", mass, sizeof mass},
    {"vocabulary", "|i1", "(6, 2)", node_attr, sizeof node_attr},
    {"y_gap", "<f8", "(4,)", gap, sizeof gap},
    {"train_idx", "<i4", "(2,)", train, sizeof train},
    {"val_idx", "<i4", "(1,)", val, sizeof val},
    {"test_idx", "<i4", "(1,)", test, sizeof test},
};
enum { ARRAYS = sizeof good / sizeof good[0] };

/* Writes the archive; `other` (NULL: none) replaces an array, or, without values, is left out. */
static const char *archive_of(const struct array *other)
{
	struct npz_out *out = npz_begin(scratch(0, "mols.npz"));
	for (int k = 0; k < ARRAYS; k++) {
		const struct array *a = other && strcmp(good[k].key, other->key) == 0 ? other : &good[k];
		if (a->values)
			npz_add(out, a->key, a->descr, a->shape, a->values, a->bytes);
	}
	npz_end(out, 0);
	return scratch(0, "mols.npz");
}

static void graphs_are_read(void)
{
	static const int64_t graph_ptr[] = {0, 3, 4, 4, 6}, rowptr[] = {0, 1, 3, 4, 4, 5, 6};
	static const int32_t col[] = {1, 0, 2, 1, 5, 4}, bond[] = {0, 0, 3, 3, 1, 1};
	/* the attributes, then a column for each of the labels -1, 6 and 8 */
	static const float feat[] = {1, -2, 0, 1, 0, 3, 4,  0, 0, 1, 5,  6,  0, 1, 0,
	                             7, 8,  1, 0, 0, 9, 10, 0, 1, 0, 11, 12, 0, 1, 0};
	static const float target[] = {0.5f, 1, 1, 2, (float)NAN, 3, -2, 4};
	static const uint8_t trains[] = {1, 0, 0, 1}, vals[] = {0, 1, 0, 0}, tests[] = {0, 0, 1, 0};
	hg_dataset *d = must_import("npz", archive_of(NULL));
	CHECK_STR(d->name, "mols");
	CHECK(d->nodes == 6 && d->edges == 6 && d->graphs == 4 && d->features == 5 && d->targets == 2);
	CHECK(memcmp(d->graph_ptr, graph_ptr, sizeof graph_ptr) == 0 &&
	      memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0);
	CHECK(d->edge_classes == 4 && memcmp(d->edge_label, bond, sizeof bond) == 0 && !d->edge_feat);
	CHECK(memcmp(d->feat, feat, sizeof feat) == 0 && d->feat_amax == 12 && !d->label);
	CHECK(memcmp(d->target, target, sizeof target) == 0);
	CHECK_STR(d->target_names, "mass\ngap");
	CHECK(memcmp(d->train_mask, trains, 4) == 0 && memcmp(d->val_mask, vals, 4) == 0 &&
	      memcmp(d->test_mask, tests, 4) == 0 && !d->weight);
	CHECK_EQ_I(run_convert("@/mols.npz -o @/mols.h5"), 0);
	CHECK_CONTAINS(convert_err, "mols.npz: read as npz\n");
	CHECK_CONTAINS(convert_err, "mols.npz: the targets of the graphs are mass (0), gap (1)\n");
	CHECK_CONTAINS(convert_err, "mols.npz: not read: vocabulary.npy\n");
	hg_dataset *back = must_read(scratch(0, "mols.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	CHECK_EQ_I(run_convert("--quiet --export npz @/mols.h5 @/back.npz"), 0);
	back = must_import("npz", scratch(0, "back.npz"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

/* The same graphs as a TU dataset give the same features, edges and labels of edges. */
static void features_are_those_of_tu(void)
{
	hg_dataset *d = must_import("npz", archive_of(NULL));
	write_text(scratch(0, "mols_A.txt"), "2,1\n1,2\n2,3\n3,2\n6,5\n5,6\n");
	write_text(scratch(0, "mols_edge_labels.txt"), "0\n0\n3\n3\n1\n1\n");
	write_text(scratch(0, "mols_graph_indicator.txt"), "1\n1\n1\n2\n4\n4\n");
	write_text(scratch(0, "mols_node_labels.txt"), "6\n8\n6\n-1\n6\n6\n");
	write_text(scratch(0, "mols_node_attributes.txt"), "1,-2\n3,4\n5,6\n7,8\n9,10\n11,12\n");
	write_text(scratch(0, "mols_graph_attributes.txt"), "0.5,1\n1,2\n3,3\n-2,4\n");
	hg_dataset *tu = must_import("tu", scratch(0, "mols_A.txt"));
	CHECK(tu->nodes == d->nodes && tu->edges == d->edges && tu->features == d->features);
	CHECK(memcmp(tu->feat, d->feat, (size_t)(d->nodes * d->features) * sizeof(float)) == 0);
	CHECK(memcmp(tu->col, d->col, (size_t)d->edges * sizeof *d->col) == 0);
	/* TU's labels are numbered by their rank: 0, 1, 3 become 0, 1, 2 */
	for (int64_t e = 0; e < d->edges; e++)
		CHECK_EQ_I(tu->edge_label[e], d->edge_label[e] == 3 ? 2 : d->edge_label[e]);
	hg_dataset_free(tu);
	hg_dataset_free(d);
}

static void parts_may_be_missing(void)
{
	static const char *const keys[] = {"edge_label", "node_label", "node_attr", "y_mass",
	                                   "train_idx"};
	for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
		hg_dataset *d = must_import("npz", archive_of(&(struct array){.key = keys[k]}));
		CHECK(d->graphs == 4 && (d->edge_label != NULL) == (k != 0) &&
		      d->features == (k == 1   ? 2
		                      : k == 2 ? 3
		                               : 5) &&
		      (d->feat != NULL) == (k != 2) && d->targets == (k == 3 ? 1 : 2) &&
		      (d->train_mask != NULL) == (k != 4));
		CHECK_STR(d->target_names, k == 3 ? "gap" : "mass\ngap");
		hg_dataset_free(d);
	}
}

static void damage_is_refused_by_name(void)
{
	static const int32_t late[] = {1, 3, 4, 4, 6}, falling[] = {0, 3, 2, 4, 6},
	                     few[] = {0, 4, 4, 6}, small[] = {0, 3, 4, 4, 5};
	static const int64_t many[] = {0, 3, 4, 4, INT64_C(1) << 31};
	static const uint16_t beyond[] = {0, 1, 2, 1, 0, 2};
	static const int64_t huge[] = {0, 1, 2, 1, 0, INT64_C(1) << 31}, below[] = {0, 1, 2, 1, 0, -1};
	static const float nan[] = {1, 2, 3, (float)NAN, 5, 6}, inf[] = {1, 2, 3, (float)INFINITY};
	static const int32_t fourth[] = {4};
	static const struct {
		struct array array;
		const char *part;
	} bad[] = {
	    {{.key = "node_ptr"}, "mols.npz: no member node_ptr.npy"},
	    {{.key = "edge_ptr"}, "mols.npz: no member edge_ptr.npy"},
	    {{.key = "edge_src"}, "mols.npz: no member edge_src.npy"},
	    {{.key = "edge_dst"}, "mols.npz: no member edge_dst.npy"},
	    {{"node_ptr", "<i4", "(5,)", late, sizeof late},
	     "member node_ptr.npy: pointers start at 1, expected 0"},
	    {{"node_ptr", "<i4", "(5,)", falling, sizeof falling},
	     "member node_ptr.npy: pointers decrease after row 1: 2 after 3"},
	    {{"node_ptr", "<i8", "(5,)", many, sizeof many},
	     "member node_ptr.npy: 2147483648 nodes, at most 2147483647 are possible"},
	    {{"node_ptr", "<i4", "(0,)", few, 0}, "node_ptr.npy: is empty, expected graphs + 1"},
	    {{"edge_ptr", "<i4", "(4,)", few, sizeof few},
	     "member edge_ptr.npy: has 4 rows, but there are 5 graphs + 1"},
	    {{"edge_ptr", "<i4", "(5,)", small, sizeof small},
	     "member edge_src.npy: has 6 rows, but there are 5 edges by edge_ptr"},
	    {{"edge_src", "<u2", "(6,)", beyond, sizeof beyond},
	     "member edge_src.npy: value 2 at 5, in graph 3, which has 2 nodes"},
	    {{"edge_dst", "<u2", "(6,)", beyond, sizeof beyond},
	     "member edge_dst.npy: value 2 at 5, in graph 3, which has 2 nodes"},
	    {{"edge_dst", "<i8", "(6,)", huge, sizeof huge},
	     "member edge_dst.npy: value 2147483648 at 5 is not in [0, 2147483647]"},
	    {{"edge_dst", "<i8", "(6,)", below, sizeof below},
	     "member edge_dst.npy: value -1 at 5 is not in [0, 2147483647]"},
	    {{"edge_dst", "<f4", "(6,)", nan, sizeof nan}, "edge_dst.npy: holds floats"},
	    {{"edge_label", "|u1", "(5,)", edge_label, 5},
	     "edge_label.npy: has 5 rows, expected 6, one for each edge"},
	    {{"node_label", "<i2", "(5,)", node_label, 10},
	     "node_label.npy: has 5 rows, but there are 6 nodes"},
	    {{"node_attr", "<f4", "(6, 1)", nan, sizeof nan},
	     "member node_attr.npy: row 3, column 0 is nan, not a finite number"},
	    {{"node_attr", "<f4", "(6,)", nan, sizeof nan},
	     "node_attr.npy: has 1 dimensions, expected 2"},
	    {{"y_gap", "<f4", "(3,)", inf, 12}, "y_gap.npy: has 3 rows, but there are 4 graphs"},
	    {{"y_gap", "<f4", "(4,)", inf, 16}, "targets: row 3, column 1 is infinite"},
	    {{"test_idx", "<i4", "(1,)", fourth, 4}, "test_idx.npy: value 4 at 0 is not in [0, 3]"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		(void)archive_of(&bad[k].array);
		CHECK_EQ_I(run_convert("@/mols.npz -o @/no.h5"), 2);
		CHECK_CONTAINS(convert_err, bad[k].part);
		CHECK(!file_exists(scratch(0, "no.h5")));
	}
}

/* A few bytes that declare 2^31 - 1 nodes must not cost their memory. */
static void many_nodes_need_bytes(void)
{
	static const int64_t nodes[] = {0, INT32_MAX}, none[] = {0, 0};
	for (int empty = 0; empty < 2; empty++) {
		struct npz_out *out = npz_begin(scratch(0, "many.npz"));
		npz_add(out, "node_ptr", "<i8", "(2,)", nodes, sizeof nodes);
		npz_add(out, "edge_ptr", "<i8", "(2,)", none, sizeof none);
		npz_add(out, "edge_src", "<i4", "(0,)", none, 0);
		npz_add(out, "edge_dst", "<i4", "(0,)", none, 0);
		if (empty)
			npz_add(out, "node_attr", "<f4", "(2147483647, 0)", none, 0);
		npz_end(out, 0);
		must_refuse("npz", scratch(0, "many.npz"), HG_ERR_FORMAT,
		            "node_ptr.npy: declares 2147483647 nodes, but there are only 0 edges");
	}
}

/* ---- one target ---- */

static void one_target_is_kept(void)
{
	static const struct {
		const char *option, *name;
		int column;
	} kept[] = {{"mass", "mass", 0}, {"gap", "gap", 1}, {"0", "mass", 0}, {"1", "gap", 1}};
	static const float values[2][4] = {{0.5f, 1, (float)NAN, -2}, {1, 2, 3, 4}};
	(void)archive_of(NULL);
	for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++) {
		char arguments[96];
		snprintf(arguments, sizeof arguments, "@/mols.npz --target %s --quiet -o @/one.h5",
		         kept[k].option);
		CHECK_EQ_I(run_convert(arguments), 0);
		hg_dataset *d = must_read(scratch(0, "one.h5"));
		CHECK_EQ_I(d->targets, 1);
		CHECK_STR(d->target_names, kept[k].name);
		CHECK(memcmp(d->target, values[kept[k].column], sizeof values[0]) == 0);
		hg_dataset_free(d);
	}
	CHECK_EQ_I(run_convert("--inspect @/one.h5"), 0);
	CHECK_CONTAINS(convert_out, "targets    1 real number for each graph: gap\n");
	CHECK_CONTAINS(convert_out, "split      train 2, val 1, test 1\n");
	CHECK_EQ_I(run_convert("--inspect @/one.h5 --json"), 0);
	CHECK_CONTAINS(convert_out, "\"targets\":1,\"target_names\":[\"gap\"],");
	static const struct {
		const char *arguments, *part;
	} bad[] = {
	    {"@/mols.npz --target sa -o @/no.h5",
	     "mols has no target \"sa\", expected mass, gap, or a number from 0 to 1"},
	    {"@/mols.npz --target 2 -o @/no.h5", "mols has no target \"2\""},
	    {"@/mols.npz --target -1 -o @/no.h5", "mols has no target \"-1\""},
	    {"@/mols.npz --target 1x -o @/no.h5", "mols has no target \"1x\""},
	    {"@/plain.txt --target 0 -o @/no.h5", "plain has no real targets"},
	};
	write_text(scratch(0, "plain.txt"), "0 1\n1 2\n");
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		CHECK_MSG(run_convert(bad[k].arguments) == 2, "%s", bad[k].arguments);
		CHECK_CONTAINS(convert_err, bad[k].part);
		CHECK(!file_exists(scratch(0, "no.h5")));
	}
}

/* A name may look like a number: the name goes first. */
static void targets_are_kept_in_c(void)
{
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = small_batch();
	CHECK_OK(hg_dataset_keep_target(d, "0", message)); /* the only one, and without a name */
	CHECK(d->targets == 1 && !d->target_names && d->target[0] == 2.5f && d->label != NULL);
	CHECK_EQ_I(hg_dataset_keep_target(d, "1", message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "the dataset has no target \"1\", expected a number from "
	                        "0 to 0");
	CHECK_EQ_I(hg_dataset_keep_target(NULL, "1", message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_keep_target(d, NULL, message), HG_ERR_ARG);
	hg_dataset_free(d);
	d = small_dataset();
	free(d->target_names);
	d->target_names = strdup("1\nenergy");
	CHECK_OK(hg_dataset_check(d, "names", message));
	CHECK_OK(hg_dataset_keep_target(d, "1", message));
	CHECK_STR(d->target_names, "1");
	CHECK(d->targets == 1 && d->target[0] == 0.5f && d->target[5] == 10);
	CHECK_OK(hg_dataset_check(d, "names", message));
	hg_dataset_free(d);
}

static void names_belong_to_their_columns(void)
{
	static const char *const bad[] = {"", "a", "a\n", "\nb", "a\nb\nc", "a\n\nb"};
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = small_dataset();
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		free(d->target_names);
		d->target_names = strdup(bad[k]);
		CHECK_EQ_I(hg_dataset_check(d, "names", message), HG_ERR_FORMAT);
		CHECK_CONTAINS(message, "names: targets: ");
		CHECK_CONTAINS(message, "for 2 columns, expected one each");
	}
	free(d->target_names);
	d->target_names = strdup("a\nb");
	/* the largest component has them still, and other targets have none */
	CHECK_OK(hg_dataset_largest_component(d, message));
	CHECK_STR(d->target_names, "a\nb");
	write_text(scratch(0, "y.csv"), "0.5\n1\n2\n3\n4\n");
	CHECK_EQ_I(d->nodes, 5);
	CHECK_OK(hg_dataset_load_labels(d, scratch(0, "y.csv"), message));
	CHECK(d->targets == 1 && !d->target_names);
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(graphs_are_read),       TEST(features_are_those_of_tu),
	    TEST(parts_may_be_missing),  TEST(damage_is_refused_by_name),
	    TEST(many_nodes_need_bytes), TEST(one_target_is_kept),
	    TEST(targets_are_kept_in_c), TEST(names_belong_to_their_columns),
	};
	return RUN_TESTS(argc, argv, cases);
}
