/* The text files of TU Dortmund, and folds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support.h"

/* The files of a set with the name "set"; NULL: there is no such file. Three graphs: a path of
 * three nodes, one node, a pair of nodes. */
struct parts {
	const char *edges, *indicator, *graph_labels, *node_labels, *attributes;
};
static const struct parts good = {"1, 2\n2, 1\n2, 3\n3, 2\n5, 6\n6,5\n2, 1\n", "1\n1\n1\n2\n3\n3\n",
                                  "1\n-1\n1\n", "7\n-2\n7\n7\n30\n7\n\n", NULL};

static const char *set_of(const struct parts *p)
{
	static const char *const names[] = {"set_graph_indicator.txt", "set_graph_labels.txt",
	                                    "set_node_labels.txt", "set_node_attributes.txt",
	                                    "set_A.txt"};
	const char *const texts[] = {p->indicator, p->graph_labels, p->node_labels, p->attributes,
	                             p->edges};
	for (int k = 0; k < 5; k++) {
		(void)remove(scratch(0, names[k]));
		if (texts[k])
			write_text(scratch(0, names[k]), texts[k]);
	}
	return scratch(0, "set_A.txt");
}

static void set_is_a_batch_of_graphs(void)
{
	static const int64_t graph_ptr[] = {0, 3, 4, 6}, rowptr[] = {0, 1, 3, 4, 4, 5, 6};
	static const int32_t col[] = {1, 0, 2, 1, 5, 4}, label[] = {1, 0, 1},
	                     kind[] = {1, 0, 1, 1, 2, 1};
	hg_dataset *d = must_import("tu", set_of(&good));
	CHECK_STR(d->name, "set");
	CHECK(d->nodes == 6 && d->edges == 6 && d->graphs == 3 && d->classes == 2 && d->features == 3);
	CHECK(memcmp(d->graph_ptr, graph_ptr, sizeof graph_ptr) == 0 &&
	      memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0);
	CHECK(memcmp(d->label, label, sizeof label) == 0 && d->weight == NULL && d->train_mask == NULL);
	CHECK(d->feat == NULL && d->feat_value == NULL && memcmp(d->feat_col, kind, sizeof kind) == 0 &&
	      d->feat_rowptr[6] == 6 && d->feat_amax == 1);
	must_write(d, scratch(1, "set.h5"));
	hg_dataset *back = must_read(scratch(1, "set.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void attributes_come_before_labels(void)
{
	static const float both[] = {0.5f, -1, 0, 1, 0, 2, 3, 1, 0, 0, 0,    0, 0, 1, 0,
	                             1,    1,  0, 1, 0, 4, 4, 0, 0, 1, 1e3f, 0, 0, 1, 0};
	struct parts p = good;
	p.attributes = "0.5, -1\r\n2,3\n0 0\n1, 1\n4,4\n1e3,0\n";
	hg_dataset *d = must_import("tu", set_of(&p));
	CHECK(d->features == 5 && d->feat_dtype == HG_F32 && d->feat_amax == 1000 &&
	      d->feat_rowptr == NULL);
	CHECK(memcmp(d->feat, both, sizeof both) == 0);
	hg_dataset_free(d);
	p.node_labels = NULL;
	d = must_import("tu", set_of(&p));
	CHECK(d->features == 2 && ((const float *)d->feat)[11] == 0 &&
	      ((const float *)d->feat)[10] == 1000);
	hg_dataset_free(d);
	p.attributes = NULL;
	d = must_import("tu", set_of(&p));
	CHECK(d->features == 0 && d->feat == NULL && d->feat_rowptr == NULL);
	hg_dataset_free(d);
}

/* A zip archive, in which the files may be in a folder, and a folder. */
static void archives_and_folders_are_read(void)
{
	static const char *const names[] = {"set_A.txt", "set_graph_indicator.txt",
	                                    "set_graph_labels.txt", "set_node_labels.txt"};
	const char *const texts[] = {good.edges, good.indicator, good.graph_labels, good.node_labels};
	char member[64], path[256];
	hg_dataset *d = must_import("tu", set_of(&good));
	for (int inside = 0; inside < 2; inside++) {
		struct npz_out *zip = npz_begin(scratch(1, "set.zip"));
		for (int k = 0; k < 4; k++) {
			snprintf(member, sizeof member, "%s%s", inside ? "SET/" : "", names[k]);
			npz_raw(zip, member, texts[k], strlen(texts[k]));
		}
		npz_raw(zip, "__MACOSX/._other_A.txt", "", 0);
		npz_raw(zip, "README.md", "a readme", 8);
		npz_end(zip, inside);
		hg_dataset *same = must_import("tu", scratch(1, "set.zip"));
		check_same(d, same);
		hg_dataset_free(same);
	}
	snprintf(path, sizeof path, "%s", test_path("set"));
	CHECK(mkdir(path, 0700) == 0);
	for (int k = 0; k < 4; k++) {
		snprintf(member, sizeof member, "set/%s", names[k]);
		write_text(scratch(1, member), texts[k]);
	}
	hg_dataset *same = must_import("tu", path);
	check_same(d, same);
	hg_dataset_free(same);
	hg_dataset_free(d);
	/* the folder above has two sets now */
	must_refuse("tu", test_path("."), HG_ERR_FORMAT, "expected one file *_A.txt");
}

static void bad_archives_are_refused(void)
{
	size_t count = 0;
	struct npz_out *zip = npz_begin(scratch(1, "bad.zip"));
	npz_raw(zip, "a/set_A.txt", "1 2\n2 x\n", 8);
	npz_raw(zip, "a/set_graph_indicator.txt", "1\n1\n", 4);
	npz_end(zip, 0);
	must_refuse("tu", scratch(1, "bad.zip"), HG_ERR_FORMAT,
	            "bad.zip/a/set_graph_labels.txt: no such member");
	zip = npz_begin(scratch(1, "bad.zip"));
	npz_raw(zip, "a/set_A.txt", "1 2\n2 x\n", 8);
	npz_raw(zip, "a/set_graph_indicator.txt", "1\n1\n", 4);
	npz_raw(zip, "a/set_graph_labels.txt", "1\n", 2);
	npz_end(zip, 1);
	must_refuse("tu", scratch(1, "bad.zip"), HG_ERR_FORMAT,
	            "bad.zip/a/set_A.txt:2: expected two node numbers, found \"2 x\"");
	unsigned char *bytes = read_bytes(scratch(1, "bad.zip"), &count);
	write_bytes(scratch(1, "cut.zip"), bytes, count / 2);
	must_refuse("tu", scratch(1, "cut.zip"), HG_ERR_FORMAT,
	            "cut.zip: not a zip archive, or a damaged one");
	for (size_t k = 0; k + 4 < count; k++) /* the checksum tells that a stored byte has changed */
		if (memcmp(bytes + k, "2 x\n", 4) == 0)
			bytes[k + 2] = '1';
	write_bytes(scratch(1, "flipped.zip"), bytes, count);
	must_refuse("tu", scratch(1, "flipped.zip"), HG_ERR_FORMAT, "flipped.zip/a/set_A.txt: at byte");
	free(bytes);
	zip = npz_begin(scratch(1, "none.zip"));
	npz_raw(zip, "A.txt", "1 2\n", 4);
	npz_end(zip, 0);
	must_refuse("tu", scratch(1, "none.zip"), HG_ERR_FORMAT,
	            "none.zip: holds no file NAME_A.txt of a TU dataset");
	must_refuse("tu", scratch(1, "absent.zip"), HG_ERR_IO, "No such file");
	CHECK_EQ_I(run_convert("--from tu @/cut.zip -o @/never.h5"), 2);
	CHECK_EQ_I(count_scratch("never.h5"), 0);
}

/* Graph attributes are targets, with or without labels. */
static void attributes_of_graphs_are_targets(void)
{
	static const float expected[] = {0.5f, -1, 2, 3, 1e3f, 0};
	hg_dataset *d;
	struct parts p = good;
	write_text(scratch(1, "set_graph_attributes.txt"), "0.5, -1\n2 3\r\n1e3,0\n");
	for (int labels = 1; labels >= 0; labels--) {
		p.graph_labels = labels ? good.graph_labels : NULL;
		d = must_import("tu", set_of(&p));
		CHECK(d->targets == 2 && d->graphs == 3 && d->classes == (labels ? 2 : 0) &&
		      (d->label != NULL) == labels);
		CHECK(memcmp(d->target, expected, sizeof expected) == 0);
		hg_dataset_free(d);
	}
	write_text(scratch(1, "set_graph_attributes.txt"), "1\n2\n");
	must_refuse("tu", set_of(&good), HG_ERR_FORMAT,
	            "set_graph_attributes.txt: 2 lines for 3 graphs");
	write_text(scratch(1, "set_graph_attributes.txt"), "1\n2\nnan\n");
	must_refuse("tu", set_of(&good), HG_ERR_FORMAT,
	            "set_graph_attributes.txt:3: expected finite numbers, found \"nan\"");
	write_text(scratch(1, "set_graph_attributes.txt"), "1\n");
	must_refuse("tu", set_of(&p), HG_ERR_FORMAT,
	            "set_graph_indicator.txt: node 4 is in graph 2, expected 1 .. 1");
	CHECK(remove(scratch(1, "set_graph_attributes.txt")) == 0);
}

static void graphs_may_be_empty(void)
{
	static const int64_t graph_ptr[] = {0, 0, 2, 2, 3, 3};
	const struct parts p = {"\n", "2\n2\n4\n", "5\n6\n7\n8\n5\n", NULL, NULL};
	hg_dataset *d = must_import("tu", set_of(&p));
	CHECK(d->graphs == 5 && d->classes == 4 && d->label[4] == 0 &&
	      memcmp(d->graph_ptr, graph_ptr, sizeof graph_ptr) == 0);
	hg_dataset_free(d);
}

static void bad_sets_are_refused(void)
{
	static const struct {
		struct parts parts;
		const char *part;
	} bad[] = {
	    {{"1 2\n", "1\n1\n", "1\n", "0\n", NULL}, "set_node_labels.txt: 1 lines for 2 nodes"},
	    {{"1 2\n", "1\n1\n", "1\n", NULL, "1\n2\n3\n"},
	     "set_node_attributes.txt: 3 lines for 2 nodes"},
	    {{"1 2\n", "1\n1\n", "1\n", NULL, "1, 2\n3\n"},
	     "set_node_attributes.txt:2: 1 attributes, expected 2 as before"},
	    {{"1 2\n", "1\n1\n", "1\n", NULL, "1\nnan\n"},
	     "set_node_attributes.txt:2: expected finite numbers, found \"nan\""},
	    {{"1 2\n", "1\n1\n", "1\n", NULL, "1\n4e38\n"},
	     "set_node_attributes.txt:2: the number is beyond float32's 3.40282e+38"},
	    {{"1 2\n", "1\n1\n", "1\n", "1\n1, 2\n", NULL},
	     "set_node_labels.txt:2: expected one whole number, found \"1, 2\""},
	    {{"1 2\n", "1\n1\n", "one\n", NULL, NULL},
	     "set_graph_labels.txt:1: expected one whole number, found \"one\""},
	    {{"1 2\n", "1\n1\n", "99999999999999999999\n", NULL, NULL},
	     "set_graph_labels.txt:1: expected a number of 64 bits"},
	    {{"1 2\n", "1\n3\n", "1\n2\n", NULL, NULL},
	     "set_graph_indicator.txt: node 2 is in graph 3, expected 1 .. 2"},
	    {{"1 2\n", "0\n1\n", "1\n2\n", NULL, NULL},
	     "set_graph_indicator.txt: node 1 is in graph 0, expected 1 .. 2"},
	    {{"1 2\n", "2\n1\n", "1\n2\n", NULL, NULL},
	     "set_graph_indicator.txt: node 2 is in graph 1, expected 2 .. 2"},
	    {{"1 2\n2 3\n", "1\n1\n", "1\n", NULL, NULL},
	     "set_A.txt:2: edge 2, 3: the nodes are 1 .. 2"},
	    {{"0 1\n", "1\n1\n", "1\n", NULL, NULL}, "set_A.txt:1: edge 0, 1: the nodes are 1 .. 2"},
	    {{"1 2 3\n", "1\n1\n", "1\n", NULL, NULL},
	     "set_A.txt:1: expected two node numbers, found \"1 2 3\""},
	    {{"1\n", "1\n1\n", "1\n", NULL, NULL},
	     "set_A.txt:1: expected two node numbers, found \"1\""},
	    {{"1 2\n", "1\n2\n", "1\n1\n", NULL, NULL}, "set_A.txt:1: edge 1, 2 joins graphs 1 and 2"},
	    {{"", "1\n1\n", "1\n", NULL, NULL}, "set_A.txt: is empty: 0 bytes"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
		must_refuse("tu", set_of(&bad[k].parts), HG_ERR_FORMAT, bad[k].part);
	const struct parts none[] = {{"1 2\n", NULL, "1\n", NULL, NULL},
	                             {"1 2\n", "1\n1\n", NULL, NULL, NULL},
	                             {NULL, "1\n1\n", "1\n", NULL, NULL}};
	static const char *const missing[] = {"set_graph_indicator.txt: No such file",
	                                      "set_graph_labels.txt: No such file",
	                                      "set_A.txt: No such file"};
	for (size_t k = 0; k < 3; k++)
		must_refuse("tu", set_of(&none[k]), HG_ERR_IO, missing[k]);
	must_refuse("tu", scratch(0, "set.txt"), HG_ERR_FORMAT,
	            "expected the file NAME_A.txt of a TU dataset");
	must_refuse("tu", scratch(0, "_A.txt"), HG_ERR_FORMAT, "expected the file NAME_A.txt");
	must_refuse("tu", "_A.txt", HG_ERR_FORMAT, "expected the file NAME_A.txt");
}

/* ---- folds ---- */

/* Every labelled row is in the test split of one fold. The validation split of a fold is the test
 * split of the next one. Classes are spread evenly over the folds, in random order. */
static void folds_test_every_row_once(void)
{
	char message[HG_DATA_MESSAGE] = "";
	int tested[100] = {0}, in_order = 0;
	uint8_t first[100], validated[100];
	hg_dataset *d = labelled_nodes(100);
	for (int64_t f = 0; f < 10; f++) {
		CHECK_OK(hg_dataset_fold(d, f, 10, message));
		CHECK_OK(hg_dataset_check(d, "folds", message));
		CHECK_MSG(f == 0 || memcmp(validated, d->test_mask, 100) == 0,
		          "fold %d is not what the one before it validated", (int)f);
		memcpy(f == 0 ? first : validated, d->test_mask, 100);
		memcpy(validated, d->val_mask, 100);
		for (int i = 0; i < 100; i++) {
			tested[i] += d->test_mask[i];
			CHECK_EQ_I(d->train_mask[i] + d->val_mask[i] + d->test_mask[i], i < 97);
			in_order += f == 0 && d->test_mask[i] && i % 10 == 0;
		}
		CHECK_EQ_I(count_masked(d->test_mask, d, 0), 6);
		CHECK_EQ_I(count_masked(d->test_mask, d, 1), 3);
		CHECK(count_masked(d->test_mask, d, 2) <= 1);
	}
	CHECK(memcmp(validated, first, 100) == 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ_I(tested[i], i < 97);
	CHECK_MSG(in_order < 9, "the deck is not shuffled");
	hg_dataset_free(d);
}

/* A node is in the same split, whatever the order of the nodes is. */
static void order_of_nodes_changes_no_fold(void)
{
	char message[HG_DATA_MESSAGE] = "";
	int32_t reversed[100];
	hg_dataset *d = labelled_nodes(100), *other = labelled_nodes(100);
	for (int32_t i = 0; i < 100; i++)
		reversed[i] = 99 - i;
	CHECK_OK(hg_dataset_permute(other, reversed, message));
	CHECK_OK(hg_dataset_fold(d, 2, 5, message));
	CHECK_OK(hg_dataset_fold(other, 2, 5, message));
	for (int i = 0; i < 100; i++)
		CHECK(d->test_mask[i] == other->test_mask[99 - i] &&
		      d->val_mask[i] == other->val_mask[99 - i]);
	hg_dataset_free(d);
	hg_dataset_free(other);
}

static void impossible_folds_are_refused(void)
{
	static const int64_t bad[][2] = {{0, 2}, {-1, 5}, {5, 5}, {0, -3}, {0, 0}};
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = labelled_nodes(100);
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		CHECK_EQ_I(hg_dataset_fold(d, bad[k][0], bad[k][1], message), HG_ERR_ARG);
		CHECK_CONTAINS(message, "expected at least 3 folds, numbered from 0");
		CHECK(d->test_mask == NULL);
	}
	free(d->label);
	d->label = NULL;
	CHECK_EQ_I(hg_dataset_fold(d, 0, 10, message), HG_ERR_STATE);
	CHECK_CONTAINS(message, "no labels");
	CHECK_EQ_I(hg_dataset_fold(NULL, 0, 10, message), HG_ERR_ARG);
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(set_is_a_batch_of_graphs),
	    TEST(attributes_come_before_labels),
	    TEST(archives_and_folders_are_read),
	    TEST(bad_archives_are_refused),
	    TEST(attributes_of_graphs_are_targets),
	    TEST(graphs_may_be_empty),
	    TEST(bad_sets_are_refused),
	    TEST(folds_test_every_row_once),
	    TEST(order_of_nodes_changes_no_fold),
	    TEST(impossible_folds_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
