/* Folders of the Open Graph Benchmark, written here as its loader expects them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "support.h"

enum { NODES, EDGE_COUNTS, EDGES, FEATURES, LABELS, GRAPH_LABELS, TRAIN, VALID, TEST_SET, FILES };
static const char *const names[FILES] = {
    "raw/num-node-list.csv.gz", "raw/num-edge-list.csv.gz", "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",     "raw/node-label.csv.gz",    "raw/graph-label.csv.gz",
    "split/time/train.csv.gz",  "split/time/valid.csv.gz",  "split/time/test.csv.gz"};
/* The texts of the files; NULL: there is no such file. */
struct texts {
	const char *text[FILES];
};
static const struct texts one = {{"4\n", "5\n", "0,1\n1,2\n2,0\n3,1\n0,1\n",
                                  "0.5,1\n-2,0\n3,4e1\n0,0\n", "1\n0\nnan\n2\n", NULL, "0\n1\n",
                                  "2\n", "3\n"}},
                          several = {{"2\n1\n2\n", "2\n0\n1\n", "0,1\n1,0\n1,0\n",
                                      "1\n2\n3\n4\n5\n", NULL, "1\n0\n1\n", "0\n", "1\n", "2\n"}};

static void pack(const char *path, const char *text)
{
	gzFile file = gzopen(path, "wb");
	CHECK(file != NULL && (!*text || gzputs(file, text) == (int)strlen(text)) &&
	      gzclose(file) == Z_OK);
}

/* Makes the folder ogbn_toy. */
static const char *folder_of(const struct texts *t)
{
	static const char *const folders[] = {"ogbn_toy", "ogbn_toy/raw", "ogbn_toy/split",
	                                      "ogbn_toy/split/time"};
	char path[64];
	for (int k = 0; k < 4; k++)
		(void)mkdir(scratch(1, folders[k]), 0700);
	for (int k = 0; k < FILES; k++) {
		snprintf(path, sizeof path, "ogbn_toy/%s", names[k]);
		(void)remove(scratch(1, path));
		if (t->text[k])
			pack(scratch(1, path), t->text[k]);
	}
	return scratch(1, "ogbn_toy");
}

static void node_set_is_read(void)
{
	static const int64_t rowptr[] = {0, 1, 3, 4, 4};
	static const int32_t col[] = {2, 0, 3, 1}, label[] = {1, 0, -1, 2};
	static const float feat[] = {0.5f, 1, -2, 0, 3, 40, 0, 0};
	static const uint8_t train[] = {1, 1, 0, 0}, val[] = {0, 0, 1, 0}, test[] = {0, 0, 0, 1};
	hg_dataset *d = must_import("ogb", folder_of(&one));
	CHECK_STR(d->name, "ogbn_toy");
	CHECK(d->nodes == 4 && d->edges == 4 && d->features == 2 && d->classes == 3 && !d->graph_ptr);
	CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0);
	CHECK(memcmp(d->feat, feat, sizeof feat) == 0 && d->feat_amax == 40);
	CHECK(memcmp(d->label, label, sizeof label) == 0 && memcmp(d->train_mask, train, 4) == 0 &&
	      memcmp(d->val_mask, val, 4) == 0 && memcmp(d->test_mask, test, 4) == 0);
	CHECK_EQ_I(run_convert("@/ogbn_toy -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "ogbn_toy: read as ogb\n");
	CHECK_CONTAINS(convert_err, "1 of 5 edges repeat an earlier edge");
	hg_dataset *back = must_read(scratch(0, "toy.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void graph_sets_are_batches(void)
{
	static const int64_t graph_ptr[] = {0, 2, 3, 5}, rowptr[] = {0, 1, 2, 2, 3, 3};
	static const int32_t col[] = {1, 0, 4}, label[] = {1, 0, 1};
	hg_dataset *d = must_import("ogb", folder_of(&several));
	CHECK(d->nodes == 5 && d->edges == 3 && d->graphs == 3 && d->features == 1 && d->classes == 2);
	CHECK(memcmp(d->graph_ptr, graph_ptr, sizeof graph_ptr) == 0 &&
	      memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0 &&
	      memcmp(d->label, label, sizeof label) == 0);
	CHECK(d->train_mask[0] == 1 && d->val_mask[1] == 1 && d->test_mask[2] == 1);
	hg_dataset_free(d);
	struct texts t = several;
	t.text[GRAPH_LABELS] = "0.5\n\n-1\n"; /* an empty line is no row */
	must_refuse("ogb", folder_of(&t), HG_ERR_FORMAT,
	            "raw/graph-label.csv.gz: 2 rows, expected 3, one for each graph");
	t.text[GRAPH_LABELS] = "0,,1\nnan,1,NaN\n1,0,0\n";
	d = must_import("ogb", folder_of(&t));
	CHECK(d->targets == 3 && !d->label && d->target[0] == 0 && isnan(d->target[1]) &&
	      isnan(d->target[3]) && d->target[4] == 1 && isnan(d->target[5]));
	hg_dataset_free(d);
	t.text[GRAPH_LABELS] = "0.5\n2\n-1\n";
	d = must_import("ogb", folder_of(&t));
	CHECK(d->targets == 1 && d->target[0] == 0.5f);
	hg_dataset_free(d);
	for (int k = FEATURES; k < FILES; k++)
		t.text[k] = NULL;
	d = must_import("ogb", folder_of(&t));
	CHECK(!d->feat && !d->label && !d->target && !d->train_mask);
	hg_dataset_free(d);
}

/* papers100M's form, with the pairs in both orders. */
static void arrays_are_read(void)
{
	static const int64_t rows[] = {0, 1, 2, 3, 0, 1, 2, 0, 1, 1}, nodes[] = {4}, edges[] = {5};
	static const float feat[] = {0.5f, 1, -2, 0, 3, 40, 0, 0}, label[] = {1, 0, (float)NAN, 2};
	struct texts t = {{NULL}};
	t.text[TRAIN] = one.text[TRAIN];
	t.text[VALID] = one.text[VALID];
	t.text[TEST_SET] = one.text[TEST_SET];
	hg_dataset *expected = must_import("ogb", folder_of(&one));
	(void)folder_of(&t);
	struct npz_out *npz = npz_begin(scratch(0, "ogbn_toy/raw/data.npz"));
	npz_add(npz, "edge_index", "<i8", "(2, 5)", rows, sizeof rows);
	npz_add(npz, "num_nodes_list", "<i8", "(1,)", nodes, sizeof nodes);
	npz_add(npz, "num_edges_list", "<i8", "(1,)", edges, sizeof edges);
	npz_add(npz, "node_feat", "<f4", "(4, 2)", feat, sizeof feat);
	npz_end(npz, 1);
	npz = npz_begin(scratch(0, "ogbn_toy/raw/node-label.npz"));
	npz_add(npz, "node_label", "<f4", "(4, 1)", label, sizeof label);
	npz_end(npz, 1);
	hg_dataset *d = must_import("ogb", scratch(1, "ogbn_toy"));
	check_same(expected, d);
	hg_dataset_free(d);
	hg_dataset_free(expected);
	static const struct {
		const char *shape;
		int64_t nodes, edges;
		const char *part;
	} bad[] = {
	    {"(5, 2)", 4, 5, "edge_index.npy: has 5 rows, expected 2: sources and destinations"},
	    {"(2, 5)", 3, 5, "edge_index.npy: edge 3 has node 3, graph 0 has 3 nodes, from 0"},
	    {"(2, 5)", 4, 4, "edge_index.npy: more edges than num_edges_list counts"},
	    {"(2, 5)", 4, 6, "edge_index.npy: fewer edges than num_edges_list counts"},
	    {"(10,)", 4, 5, "edge_index.npy: has 1 dimensions, expected 2"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		npz = npz_begin(scratch(0, "ogbn_toy/raw/data.npz"));
		npz_add(npz, "edge_index", "<i8", bad[k].shape, rows, sizeof rows);
		npz_add(npz, "num_nodes_list", "<i8", "(1,)", &bad[k].nodes, 8);
		npz_add(npz, "num_edges_list", "<i8", "(1,)", &bad[k].edges, 8);
		npz_end(npz, 0);
		must_refuse("ogb", scratch(1, "ogbn_toy"), HG_ERR_FORMAT, bad[k].part);
	}
	npz = npz_begin(scratch(0, "ogbn_toy/raw/data.npz"));
	npz_add(npz, "num_nodes_list", "<i8", "(1,)", nodes, sizeof nodes);
	npz_end(npz, 0);
	must_refuse("ogb", scratch(1, "ogbn_toy"), HG_ERR_FORMAT, "no member num_edges_list.npy");
	write_text(scratch(0, "ogbn_toy/raw/data.npz"), "no zip");
	must_refuse("ogb", scratch(1, "ogbn_toy"), HG_ERR_FORMAT, "data.npz: not a zip archive");
	CHECK(remove(scratch(0, "ogbn_toy/raw/data.npz")) == 0 &&
	      remove(scratch(0, "ogbn_toy/raw/node-label.npz")) == 0);
}

static void bad_folders_are_refused(void)
{
	static const struct {
		int file;
		const char *text, *part;
	} bad[] = {
	    {NODES, "", "raw/num-node-list.csv.gz: is empty: 0 bytes"},
	    {NODES, "4\n1\n", "are those of 2 graphs, the numbers of edges those of 1"},
	    {NODES, "-4\n", "raw: graph 0 has -4 nodes and 5 edges"},
	    {NODES, "2147483648\n", "more than 2147483647 nodes up to graph 0"},
	    {NODES, "four\n", "raw/num-node-list.csv.gz:1: expected one whole number, found \"four\""},
	    {NODES, NULL, "num-node-list.csv.gz: No such file"},
	    {EDGE_COUNTS, "4\n", "raw/edge.csv.gz:5: more edges than num-edge-list counts"},
	    {EDGE_COUNTS, "6\n", "raw/edge.csv.gz: ends after 5 of 6 edges of graph 0"},
	    {EDGES, "0,4\n", "raw/edge.csv.gz:1: node 4, graph 0 has 4 nodes, from 0"},
	    {EDGES, "-1,0\n", "raw/edge.csv.gz:1: node -1, graph 0"},
	    {EDGES, "0\n", "raw/edge.csv.gz:1: expected two node numbers, found \"0\""},
	    {EDGES, "0,1,2\n", "raw/edge.csv.gz:1: expected two node numbers"},
	    {EDGES, "a,b\n", "raw/edge.csv.gz:1: expected two node numbers"},
	    {FEATURES, "1\n2\n3\n", "raw/node-feat.csv.gz: 3 rows, expected 4, one for each node"},
	    {FEATURES, "1,2\n3\n", "raw/node-feat.csv.gz:2: 1 attributes, expected 2 as before"},
	    {FEATURES, "1\nnan\n", "raw/node-feat.csv.gz:2: expected finite numbers"},
	    {LABELS, "1\n2\n3\n", "raw/node-label.csv.gz: 3 rows, expected 4, one for each node"},
	    {LABELS, "1\n2\n3\n9\n", "which makes 10 classes of 4 labelled nodes"},
	    {LABELS, "1\nx\n",
	     "raw/node-label.csv.gz:2: expected finite numbers, nan or nothing, found \"x\""},
	    {LABELS, "1\n1,2\n", "raw/node-label.csv.gz:2: 2 columns, expected 1 as before"},
	    {LABELS, "1\n1e39\n", "raw/node-label.csv.gz:2: expected finite numbers"},
	    {TRAIN, "4\n", "split/time/train.csv.gz: row 0 names 4, expected 0 .. 3"},
	    {TRAIN, "3\n", "splits: node 3 is in train and in test"},
	    {TRAIN, "x\n", "split/time/train.csv.gz:1: expected one whole number"},
	    {VALID, NULL, "split/time/valid.csv.gz: No such file"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		struct texts t = one;
		t.text[bad[k].file] = bad[k].text;
		must_refuse("ogb", folder_of(&t), bad[k].text ? HG_ERR_FORMAT : HG_ERR_IO, bad[k].part);
	}
	struct texts t = one;
	t.text[EDGES] = NULL;
	must_refuse("ogb", folder_of(&t), HG_ERR_FORMAT, "holds no raw/edge.csv.gz or raw/data.npz");
	must_refuse("ogb", scratch(0, "absent"), HG_ERR_IO, "No such file");
	size_t count = 0;
	(void)folder_of(&one);
	unsigned char *bytes = read_bytes(scratch(0, "ogbn_toy/raw/edge.csv.gz"), &count);
	write_bytes(scratch(0, "ogbn_toy/raw/edge.csv.gz"), bytes, count - 6);
	free(bytes);
	must_refuse("ogb", scratch(1, "ogbn_toy"), HG_ERR_FORMAT, "raw/edge.csv.gz: at byte");
	CHECK_EQ_I(run_convert("--from ogb @/ogbn_toy -o @/never.h5"), 2);
	CHECK_EQ_I(count_scratch("never.h5"), 0);
}

/* Several splits: none is taken. An archive is read, too. */
static void archives_are_read(void)
{
	hg_dataset *d = must_import("ogb", folder_of(&one));
	char name[64];
	for (int splits = 1; splits <= 2; splits++) {
		struct npz_out *zip = npz_begin(scratch(0, "toy.zip"));
		for (int k = 0; k < FILES; k++) {
			size_t count = 0;
			snprintf(name, sizeof name, "ogbn_toy/%s", names[k]);
			if (!one.text[k])
				continue;
			unsigned char *bytes = read_bytes(scratch(1, name), &count);
			npz_raw(zip, name, bytes, count);
			if (splits == 2 && k == TRAIN)
				npz_raw(zip, "ogbn_toy/split/other/train.csv.gz", bytes, count);
			free(bytes);
		}
		npz_end(zip, 1);
		hg_dataset *same = must_import("ogb", scratch(0, "toy.zip"));
		if (splits == 1)
			check_same(d, same);
		else
			CHECK(same->edges == d->edges && !same->train_mask);
		hg_dataset_free(same);
	}
	CHECK_EQ_I(run_convert("@/toy.zip --split random:0.5/0.25/0.25 -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "holds the splits split/other/train.csv.gz and "
	                            "split/time/train.csv.gz: none is taken");
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(node_set_is_read), TEST(graph_sets_are_batches),
	                                         TEST(arrays_are_read), TEST(bad_folders_are_refused),
	                                         TEST(archives_are_read)};
	return RUN_TESTS(argc, argv, cases);
}
