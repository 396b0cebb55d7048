/* The text format of the graph isomorphism network, and its folds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support.h"

/* Three graphs: a path of three nodes, one node, a pair that only one of them lists. */
static const char good[] = "3\n3 1\n7 1 1\n-2 2 0 2 \n7 1 1\r\n1 -1\n7 0\n2 1\n30 0\n7 1 0\n";

static void set_is_a_batch_of_graphs(void)
{
	static const int64_t graph_ptr[] = {0, 3, 4, 6}, rowptr[] = {0, 1, 3, 4, 4, 5, 6};
	static const int32_t col[] = {1, 0, 2, 1, 5, 4}, label[] = {1, 0, 1},
	                     kind[] = {1, 0, 1, 1, 2, 1};
	write_text(scratch(0, "toy.txt"), good);
	hg_dataset *d = must_import("gin", scratch(0, "toy.txt"));
	CHECK_STR(d->name, "toy");
	CHECK(d->nodes == 6 && d->edges == 6 && d->graphs == 3 && d->classes == 2 && d->features == 3);
	CHECK(memcmp(d->graph_ptr, graph_ptr, sizeof graph_ptr) == 0 &&
	      memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0);
	CHECK(memcmp(d->label, label, sizeof label) == 0 && d->weight == NULL && d->train_mask == NULL);
	CHECK(d->feat == NULL && d->feat_value == NULL && memcmp(d->feat_col, kind, sizeof kind) == 0);
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("--from gin @/toy.txt -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "toy.txt: 1 edges are listed by one of their nodes only");
}

static void attributes_follow_the_neighbours(void)
{
	static const float expected[] = {0.5f, -1, 1, 0, 2e3f, 3, 0, 1};
	write_text(scratch(0, "toy.txt"), "1\n2 0\n0 1 1 0.5 -1\n4 1 0 2e3 3\n");
	hg_dataset *d = must_import("gin", scratch(0, "toy.txt"));
	CHECK(d->features == 4 && memcmp(d->feat, expected, sizeof expected) == 0);
	hg_dataset_free(d);
	write_text(scratch(0, "toy.txt"), "0\n");
	d = must_import("gin", scratch(0, "toy.txt"));
	CHECK(d->graphs == 0 && d->nodes == 0);
	hg_dataset_free(d);
	write_text(scratch(0, "toy.txt"), "2\n0 5\n1 5\n9 1 0\n");
	d = must_import("gin", scratch(0, "toy.txt"));
	CHECK(d->graphs == 2 && d->nodes == 1 && d->edges == 1 && d->graph_ptr[1] == 0);
	hg_dataset_free(d);
}

static void bad_texts_are_refused(void)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
	    {"", "bad.txt: is empty: 0 bytes"},
	    {"\n\n", "bad.txt:2: expected the number of graphs"},
	    {"x\n", "bad.txt:1: expected the number of graphs, found \"x\""},
	    {"1 1\n", "bad.txt:1: expected the number of graphs, found \"1 1\""},
	    {"-1\n", "bad.txt:1: expected the number of graphs"},
	    {"99999999999999999999\n", "bad.txt:1: expected the number of graphs"},
	    {"2\n1 0\n0 0\n", "bad.txt: ends after 1 graphs, 2 are declared"},
	    {"1\n1 0\n0 0\n1 0\n", "bad.txt:4: a line after the 1 declared graphs"},
	    {"1\n2 0\n0 0\n", "bad.txt: ends in graph 0, after 1 of its 2 nodes"},
	    {"1\n1\n0 0\n", "bad.txt:2: expected \"nodes label\" of a graph, found \"1\""},
	    {"1\n1 nan\n0 0\n", "bad.txt:2: expected \"nodes label\" of a graph"},
	    {"1\n-1 0\n", "bad.txt:2: expected \"nodes label\" of a graph"},
	    {"1\n2147483648 0\n0 0\n", "bad.txt:2: expected at most 2147483647 nodes in all graphs"},
	    {"1\n2147483647 0\n0 0\n", "bad.txt: ends in graph 0, after 1 of its 2147483647 nodes"},
	    {"1\n2 0\n0 1 2\n0 0\n", "bad.txt:3: neighbour 2: the nodes of this graph are 0 .. 1"},
	    {"1\n2 0\n0 1 -1\n0 0\n", "bad.txt:3: neighbour -1: the nodes of this graph are 0 .. 1"},
	    {"1\n2 0\n0 2 1\n0 0\n", "bad.txt:3: expected \"tag m v1 ... vm\", found \"0 2 1\""},
	    {"1\n2 0\n0 -1 1\n0 0\n", "bad.txt:3: expected \"tag m v1 ... vm\""},
	    {"1\n2 0\n0.5 0\n0 0\n", "bad.txt:3: expected \"tag m v1 ... vm\", found \"0.5 0\""},
	    {"1\n2 0\n0 0\n0 1 0 1\n",
	     "bad.txt:4: 1 numbers after the neighbours, expected 0 attributes as before"},
	    {"1\n2 0\n0 0 1.5\n0 1 0 nan\n",
	     "bad.txt:4: expected finite attributes after the neighbours, found \"0 1 0 nan\""},
	    {"1\n1 0\n0 0 1e39\n", "bad.txt:3: the number is beyond float32's 3.40282e+38"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		write_text(scratch(0, "bad.txt"), bad[k].text);
		must_refuse("gin", scratch(0, "bad.txt"), HG_ERR_FORMAT, bad[k].part);
	}
	CHECK_EQ_I(run_convert("--from gin @/bad.txt -o @/never.h5"), 2);
	CHECK_EQ_I(count_scratch("never.h5"), 0);
	must_refuse("gin", scratch(0, "absent.txt"), HG_ERR_IO, "No such file or directory");
	must_refuse("gin", scratch(0, "absent.zip"), HG_ERR_IO, "No such file or directory");
	struct npz_out *zip = npz_begin(scratch(1, "two.zip"));
	npz_raw(zip, "README.txt", "x", 1);
	npz_end(zip, 0);
	must_refuse("gin", scratch(1, "two.zip"), HG_ERR_FORMAT, "holds no text NAME.txt with graphs");
	zip = npz_begin(scratch(1, "two.zip"));
	npz_raw(zip, "a.txt", good, sizeof good - 1);
	npz_raw(zip, "b.txt", good, sizeof good - 1);
	npz_end(zip, 0);
	must_refuse("gin", scratch(1, "two.zip"), HG_ERR_FORMAT,
	            "holds a.txt and b.txt, expected one text with graphs");
}

/* Five graphs of one node each, and folds with these texts; NULL: there is no such file. */
struct folds {
	const char *test[4], *train[4];
};
static const struct folds three = {{"0\n1\n", "2\n", "3\n4\n", NULL},
                                   {"2\n3\n4\n", "0\n1\n3\n4\n", "0\n1\n2\n", NULL}};

static const char *archive_of(const struct folds *f)
{
	static const char text[] = "5\n1 0\n0 0\n1 0\n0 0\n1 1\n0 0\n1 1\n0 0\n1 1\n0 0\n";
	char member[64];
	struct npz_out *zip = npz_begin(scratch(0, "folds.zip"));
	npz_raw(zip, "toy/toy.txt", text, sizeof text - 1);
	for (int k = 0; k < 4; k++)
		for (int train = 0; train < 2; train++) {
			const char *lines = train ? f->train[k] : f->test[k];
			snprintf(member, sizeof member, "toy/10fold_idx/%s_idx-%d.txt",
			         train ? "train" : "test", k + 1);
			if (lines)
				npz_raw(zip, member, lines, strlen(lines));
		}
	npz_end(zip, 0);
	return scratch(0, "folds.zip");
}

static hg_status import_fold(const char *path, int64_t fold, int64_t folds, hg_dataset **d,
                             char *message)
{
	size_t count = 0, k = 0;
	const hg_importer *table = hg_importers(&count);
	hg_import_config config = HG_IMPORT_CONFIG_INIT;
	config.fold = fold;
	config.folds = folds;
	while (k < count && strcmp(table[k].name, "gin") != 0)
		k++;
	return table[k].import(&path, 1, &config, d, message);
}

static void folds_become_splits(void)
{
	static const uint8_t test[3][5] = {{1, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 1}},
	                     train[3][5] = {{0, 0, 0, 1, 1}, {1, 1, 0, 0, 0}, {0, 0, 1, 0, 0}};
	char message[HG_DATA_MESSAGE] = "";
	const char *path = archive_of(&three);
	for (int64_t fold = 0; fold < 3; fold++) {
		hg_dataset *d = NULL;
		CHECK_OK(import_fold(path, fold, 3, &d, message));
		CHECK(memcmp(d->test_mask, test[fold], 5) == 0 &&
		      memcmp(d->val_mask, test[(fold + 1) % 3], 5) == 0 &&
		      memcmp(d->train_mask, train[fold], 5) == 0);
		hg_dataset_free(d);
	}
	hg_dataset *d = must_import("gin", path);
	CHECK(d->test_mask == NULL && d->val_mask == NULL && d->train_mask == NULL);
	static const int32_t own[5] = {0, 0, 1, 2, 2};
	CHECK(d->folds == 3 && d->fold && memcmp(d->fold, own, sizeof own) == 0);
	hg_dataset_free(d);
	CHECK_EQ_I(import_fold(path, 3, 3, &d, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "config.fold is 3 of 3, expected folds from 0");
	/* on the command line */
	CHECK_EQ_I(run_convert("--from gin @/folds.zip -o @/folds.h5"), 0);
	CHECK_CONTAINS(convert_err, "has 3 folds of its own; fold 0 of 3 (h5convert: --fold 0/3)");
	CHECK_EQ_I(run_convert("--from gin @/folds.zip --fold 1/3 -o @/folds.h5"), 0);
	CHECK_CONTAINS(convert_err, "fold 1 of its own 3 is taken: test_idx-2.txt tests");
	d = must_read(scratch(1, "folds.h5"));
	CHECK(memcmp(d->test_mask, test[1], 5) == 0);
	hg_dataset_free(d);
	/* another number of folds is dealt out */
	CHECK_EQ_I(run_convert("--from gin @/folds.zip --fold 0/4 -o @/folds.h5"), 0);
	CHECK_CONTAINS(convert_err, "its own 3 folds are not 4: not taken");
	d = must_read(scratch(1, "folds.h5"));
	CHECK(d->test_mask && d->val_mask && d->train_mask);
	hg_dataset_free(d);
}

/* Graphs that are in no test set, but in all training sets, are in no fold. Sets that are no folds
 * are not kept. */
static void odd_folds(void)
{
	static const struct {
		struct folds sets;
		const int32_t fold[5]; /* of graph 0: -2 where none are kept */
	} odd[] = {
	    {{{"0\n", "2\n", "3\n4\n", NULL}, {"1\n2\n3\n4\n", "0\n1\n3\n4\n", "0\n1\n2\n", NULL}},
	     {0, -1, 1, 2, 2}},
	    {{{"0\n1\n", "1\n", "3\n4\n", NULL}, {"2\n3\n4\n", "0\n2\n3\n4\n", "0\n1\n2\n", NULL}},
	     {-2}}, /* graph 1 is in two */
	    {{{"0\n1\n", "2\n", "3\n4\n", NULL}, {"2\n3\n4\n", "0\n1\n3\n", "0\n1\n2\n", NULL}},
	     {-2}}, /* the second training set lacks graph 4 */
	};
	for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = NULL;
		CHECK_OK(import_fold(archive_of(&odd[k].sets), 0, 0, &d, message));
		if (odd[k].fold[0] == -2)
			CHECK(!d->fold && !d->folds);
		else
			CHECK(d->folds == 3 && memcmp(d->fold, odd[k].fold, sizeof odd[k].fold) == 0);
		hg_dataset_free(d);
	}
}

static void bad_folds_are_refused(void)
{
	char message[HG_DATA_MESSAGE];
	static const struct {
		int fold, train;
		const char *text, *part;
	} bad[] = {
	    {0, 0, "0\n5\n", "test_idx-1.txt:2: graph 5, expected each of 0 .. 4 at most once"},
	    {0, 0, "-1\n", "test_idx-1.txt:1: graph -1, expected each"},
	    {0, 0, "1\n1\n", "test_idx-1.txt:2: graph 1 again, expected each of 0 .. 4"},
	    {0, 0, "one\n", "test_idx-1.txt:1: expected the number of a graph, found \"one\""},
	    {0, 0, "1 2\n", "test_idx-1.txt:1: expected the number of a graph, found \"1 2\""},
	    {0, 0, "", "test_idx-1.txt: is empty: 0 bytes"},
	    {0, 1, NULL, "train_idx-1.txt: no such member"},
	    {0, 1, "0\n", "splits: graph 0 is in train and in test"},
	    {1, 0, "1\n2\n", "splits: graph 1 is in val and in test"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		struct folds f = three;
		hg_dataset *d = NULL;
		(bad[k].train ? f.train : f.test)[bad[k].fold] = bad[k].text;
		CHECK_EQ_I(import_fold(archive_of(&f), 0, 3, &d, message), HG_ERR_FORMAT);
		CHECK_CONTAINS(message, bad[k].part);
		CHECK(d == NULL);
	}
}

static void real_sets_are_read(void)
{
	static const struct {
		const char *file;
		int64_t graphs, nodes, edges, features;
		int classes;
	} sets[] = {{"MUTAG", 188, 3371, 7442, 7, 2},
	            {"PROTEINS", 1113, 43471, 162088, 3, 2},
	            {"COLLAB", 5000, 372474, 24574995, 1, 3}};
	char path[512];
	for (size_t k = 0; k < sizeof sets / sizeof sets[0]; k++) {
		snprintf(path, sizeof path, "%s/raw/tu_gin/%s.zip", test_data(), sets[k].file);
		if (!file_exists(path))
			SKIP("%s is not there", path);
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = NULL;
		CHECK_MSG(import_fold(path, 9, 10, &d, message) == HG_OK, "%s", message);
		CHECK_STR(d->name, sets[k].file);
		CHECK(d->graphs == sets[k].graphs && d->nodes == sets[k].nodes &&
		      d->edges == sets[k].edges && d->features == sets[k].features &&
		      d->classes == sets[k].classes && d->test_mask && d->folds == 10);
		hg_dataset_free(d);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(set_is_a_batch_of_graphs),
	    TEST(attributes_follow_the_neighbours),
	    TEST(bad_texts_are_refused),
	    TEST(folds_become_splits),
	    TEST(odd_folds),
	    TEST(bad_folds_are_refused),
	    TEST(real_sets_are_read),
	};
	return RUN_TESTS(argc, argv, cases);
}
