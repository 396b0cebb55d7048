/* Features, labels and splits for datasets that come without them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support.h"

static const char *npy_of(const char *name, const char *descr, const char *shape,
                          const void *elements, size_t count)
{
	write_npy(scratch(1, name), descr, shape, elements, count);
	return scratch(1, name);
}

static const char *text_of(const char *name, const char *text)
{
	write_text(scratch(1, name), text);
	return scratch(1, name);
}

/* A graph of 4 nodes and nothing else; with gaps its nodes are called 3, 5, 6 and 9. */
static hg_dataset *plain(int gaps)
{
	write_text(scratch(0, "plain.txt"),
	           gaps ? "3 5\n5 6\n6 9\n9 3\n3 6\n" : "0 1\n1 2\n2 3\n3 0\n0 2\n");
	return must_import("edges", scratch(0, "plain.txt"));
}

typedef hg_status (*load)(hg_dataset *, const char *, char *);

static void must_load(load from, hg_dataset *d, const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_MSG(from(d, path, message) == HG_OK, "%s", message);
	CHECK_MSG(hg_dataset_check(d, path, message) == HG_OK, "%s", message);
}

static void features_are_read(void)
{
	static const float rows[] = {1, 2, 3, 4, 5, 6, 7, -8.5f};
	static const int16_t column[] = {4, 3, 2, 1};
	hg_dataset *d = plain(0);
	must_load(hg_dataset_load_features, d, npy_of("x.npy", "<f4", "(4, 2)", rows, sizeof rows));
	CHECK(d->features == 2 && d->feat_dtype == HG_F32 && d->feat_amax == 8.5 &&
	      memcmp(d->feat, rows, sizeof rows) == 0);
	must_load(hg_dataset_load_features, d, text_of("x.csv", "a,b\n1,2\r\n3,4\n5 6\n\n7\t-8.5\n"));
	CHECK(d->features == 2 && memcmp(d->feat, rows, sizeof rows) == 0);
	must_load(hg_dataset_load_features, d, npy_of("x.npy", "<i2", "(4,)", column, sizeof column));
	CHECK(d->features == 1 && ((float *)d->feat)[0] == 4 && ((float *)d->feat)[3] == 1);
	gzFile file = gzopen(scratch(1, "x.csv.gz"), "wb");
	CHECK(file && gzputs(file, "1\n2\n3\n4e1\n") > 0 && gzclose(file) == Z_OK);
	must_load(hg_dataset_load_features, d, scratch(1, "x.csv.gz"));
	CHECK(((float *)d->feat)[3] == 40);
	hg_dataset_free(d);
}

/* A file has a row for each node, or one for each number where numbers have gaps; and a reordered
 * dataset takes the file of its source. */
static void rows_follow_the_numbers(void)
{
	static const int32_t order[] = {2, 0, 3, 1};
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = plain(1);
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "0\n1\n2\n0\n"));
	CHECK(d->label[0] == 0 && d->label[1] == 1 && d->label[2] == 2 && d->label[3] == 0);
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "9\n9\n9\n1\n9\n0\n2\n9\n9\n-5\n"));
	CHECK(d->label[0] == 1 && d->label[1] == 0 && d->label[2] == 2 && d->label[3] == -1);
	CHECK_EQ_I(hg_dataset_load_labels(d, text_of("y.csv", "0\n1\n2\n3\n4\n"), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message,
	               "y.csv: 5 rows, expected 4, one for each node, or more than the largest "
	               "node number 9");
	hg_dataset_free(d);
	d = plain(0);
	CHECK_OK(hg_dataset_permute(d, order, message));
	must_load(hg_dataset_load_features, d, text_of("x.csv", "10\n11\n12\n13\n"));
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "0\n1\n2\n3\n"));
	must_load(hg_dataset_load_split, d, text_of("s.csv", "train\nval\ntest\nnone\n"));
	for (int i = 0; i < 4; i++)
		CHECK(((float *)d->feat)[i] == (float)(10 + order[i]) && d->label[i] == order[i]);
	CHECK(d->test_mask[0] == 1 && d->train_mask[1] == 1 && d->val_mask[3] == 1 &&
	      d->train_mask[2] + d->val_mask[2] + d->test_mask[2] == 0);
	hg_dataset_free(d);
}

/* A heading that begins with an id: rows in any order, also where the dataset has another one. */
static void rows_follow_their_ids(void)
{
	static const int32_t order[] = {2, 0, 3, 1};
	static const int ids[] = {3, 5, 6, 9};
	char message[HG_DATA_MESSAGE];
	for (int reordered = 0; reordered < 2; reordered++) {
		hg_dataset *d = plain(1);
		if (reordered)
			CHECK_OK(hg_dataset_permute(d, order, message));
		must_load(hg_dataset_load_labels, d,
		          text_of("y.csv", "node_id,label\n9,0\n3,1\r\n\n6,-7\n5,2\n"));
		must_load(hg_dataset_load_features, d,
		          text_of("x.csv", "ID\ta b\n6\t6.5 1\n# note\n9 9.5 2\n3 3.5 3\n5 5.5 4\n"));
		must_load(hg_dataset_load_split, d,
		          text_of("s.csv", "\"new_id\",\"split\"\n5,test\n3,train\n9,none\n6,1\n"));
		CHECK(d->classes == 3 && d->features == 2 && !d->target);
		for (int i = 0; i < 4; i++) {
			static const int label[] = {1, 2, -1, 0};
			static const float second[] = {3, 4, 1, 2};
			const int k = reordered ? order[i] : i;
			const float *x = (const float *)d->feat + 2 * i;
			CHECK_EQ_I(hg_dataset_node(d, i), ids[k]);
			CHECK_EQ_I(d->label[i], label[k]);
			CHECK(x[0] == (float)ids[k] + 0.5f && x[1] == second[k]);
			CHECK(d->train_mask[i] == (k == 0) && d->test_mask[i] == (k == 1) &&
			      d->val_mask[i] == (k == 2));
		}
		must_load(hg_dataset_load_labels, d,
		          text_of("y.csv", "Node_Id,a,b\n9,9,1\n6,6,1\n5,5,1\n3,3,1\n"));
		CHECK(d->targets == 2);
		for (int i = 0; i < 4; i++)
			CHECK(d->target[2 * i] == (float)ids[reordered ? order[i] : i]);
		hg_dataset_free(d);
	}
	/* without numbers of its own a node's id is its row in the source; of a batch a graph's */
	hg_dataset *d = plain(0);
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "id label\n3 0\n2 1\n1 0\n0 1\n"));
	CHECK(d->label[0] == 1 && d->label[1] == 0 && d->label[2] == 1 && d->label[3] == 0);
	hg_dataset_free(d);
	d = small_batch();
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "graph_id,y\n1,0.5\n0,2.5\n"));
	CHECK(d->targets == 1 && d->target[0] == 2.5f && d->target[1] == 0.5f);
	must_load(hg_dataset_load_split, d, text_of("s.csv", "graph_id,split\n1,train\n0,val\n"));
	CHECK(d->train_mask[1] == 1 && d->val_mask[0] == 1 && !d->test_mask[0] && !d->test_mask[1]);
	must_load(hg_dataset_load_features, d,
	          text_of("x.csv", "node_id,x\n5,5\n0,0\n1,1\n2,2\n4,4\n3,3\n"));
	for (int i = 0; i < 6; i++)
		CHECK(((float *)d->feat)[i] == (float)i);
	hg_dataset_free(d);
}

static void bad_ids_are_refused(void)
{
	static const struct {
		load from;
		const char *text, *part;
	} bad[] = {
	    {hg_dataset_load_labels, "node_id,label\n3,0\n5,0\n9,1\n",
	     "bad: no row has the id 6 of a node; 1 of 4 nodes have no row"},
	    {hg_dataset_load_labels, "node_id,label\n3,0\n5,0\n6,1\n7,1\n9,1\n",
	     "bad:5: no node has the id 7"},
	    {hg_dataset_load_labels, "node_id,label\n3,0\n5,0\n6,1\n5,1\n",
	     "bad:5: the id 5 occurs again, it is already in line 3"},
	    {hg_dataset_load_labels, "node_id,label\nx,0\n",
	     "bad:2: expected a whole number as the id, found \"x,0\""},
	    {hg_dataset_load_labels, "node_id,label\n3.5,0\n",
	     "bad:2: expected a whole number as the id, found \"3.5,0\""},
	    {hg_dataset_load_labels, "node_id,label\n99999999999999999999,0\n",
	     "bad:2: expected an id of 64 bits"},
	    {hg_dataset_load_labels, "node_id\n3\n5\n6\n9\n",
	     "bad:2: there is nothing after the id, found \"3\""},
	    {hg_dataset_load_labels, "graph_id,label\n3,0\n5,0\n6,1\n9,1\n",
	     "bad:1: the first column is graph_id, expected id or the ids of nodes"},
	    {hg_dataset_load_features, "id,a,b\n3,1,2\n5,1,2\n6,1\n9,1,2\n",
	     "bad:4: 1 numbers, expected 2 as before"},
	    {hg_dataset_load_features, "id,a\n3,1\n-5,1\n6,1\n9,1\n", "bad:3: no node has the id -5"},
	    {hg_dataset_load_features, "id,a\n", "bad: no row has the id 3 of a node; 4 of 4 nodes"},
	    {hg_dataset_load_split, "node_id,split\n3,train\n5,val\n5,test\n9,test\n",
	     "bad:4: the id 5 occurs again, it is already in line 3"},
	    {hg_dataset_load_split, "node_id,split\n3,train\n5,other\n",
	     "bad:3: expected train, val, test, none or 0, 1, 2, -1, found \"other\""},
	    {hg_dataset_load_split, "node_id,split\n3,train\n5\n", "bad:3: there is nothing after"},
	};
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = plain(1);
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		CHECK_STATUS(bad[k].from(d, text_of("bad", bad[k].text), message), HG_ERR_FORMAT);
		CHECK_CONTAINS(message, bad[k].part);
		CHECK(!d->feat && !d->label && !d->train_mask && !d->target);
	}
	hg_dataset_free(d);
	d = small_batch();
	CHECK_EQ_I(hg_dataset_load_labels(d, text_of("bad", "node_id,label\n0,0\n1,1\n"), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "bad:1: the first column is node_id, expected id or the ids of graphs");
	CHECK_EQ_I(hg_dataset_load_labels(d, text_of("bad", "id,label\n0,0\n2,1\n"), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "bad:3: no graph has the id 2");
	/* every graph of a batch may number its nodes by itself */
	d->orig_id = calloc(6, sizeof *d->orig_id);
	CHECK(d->orig_id != NULL);
	for (int i = 0; i < 6; i++)
		d->orig_id[i] = i % 3;
	CHECK_EQ_I(hg_dataset_load_features(d, text_of("bad", "id,x\n0,0\n1,1\n2,1\n"), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "bad:1: has a column of ids, but several nodes of the dataset have the "
	                        "id 0");
	hg_dataset_free(d);
}

static void labels_and_targets_are_told_apart(void)
{
	static const int64_t labels[] = {2, -1, 0, 1};
	static const double targets[] = {0.5, 1, 2, (double)NAN};
	hg_dataset *d = plain(0);
	must_load(hg_dataset_load_labels, d, npy_of("y.npy", "<i8", "(4, 1)", labels, sizeof labels));
	CHECK(d->classes == 3 && d->label[0] == 2 && d->label[1] == -1 && !d->target);
	must_load(hg_dataset_load_labels, d, npy_of("y.npy", "<f8", "(4,)", targets, sizeof targets));
	CHECK(d->targets == 1 && d->target[0] == 0.5f && isnan(d->target[3]) && d->classes == 3);
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "label\n0\n0\n1\n1.5\n"));
	CHECK(d->targets == 1 && d->target[2] == 1 && d->target[3] == 1.5f);
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "0,1\n0,2\n1,3\n4,5\n"));
	CHECK(d->targets == 2 && d->target[7] == 5);
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "0\n3\n3\n0\n")); /* a gap is no fault */
	CHECK(d->classes == 4 && d->label[1] == 3);
	hg_dataset_free(d);
}

static void graphs_of_a_batch_have_labels(void)
{
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = small_batch();
	must_load(hg_dataset_load_labels, d, text_of("y.csv", "0\n1\n"));
	CHECK(d->label[0] == 0 && d->label[1] == 1);
	must_load(hg_dataset_load_split, d, text_of("s.csv", "split\nTEST\nTrain\n"));
	CHECK(d->test_mask[0] == 1 && d->train_mask[1] == 1);
	must_load(hg_dataset_load_features, d, text_of("x.csv", "0\n1\n2\n3\n4\n5\n"));
	CHECK(d->features == 1 && ((float *)d->feat)[5] == 5);
	CHECK_EQ_I(hg_dataset_load_labels(d, text_of("y.csv", "0\n1\n0\n"), message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "y.csv: 3 rows, expected 2, one for each graph");
	CHECK_EQ_I(hg_dataset_load_features(d, text_of("x.csv", "0\n1\n"), message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "x.csv: 2 rows, expected 6, one for each node");
	hg_dataset_free(d);
}

static void bad_files_are_refused(void)
{
	static const struct {
		load from;
		const char *text, *part;
		hg_status status;
	} bad[] = {
	    {hg_dataset_load_features, "", "bad: is empty: 0 bytes", HG_ERR_FORMAT},
	    {hg_dataset_load_features, "1\n2\n3\n", "bad: 3 rows, expected 4, one for each node",
	     HG_ERR_FORMAT},
	    {hg_dataset_load_features, "1 2\n1 2\n1\n1 2\n", "bad:3: 1 numbers, expected 2 as before",
	     HG_ERR_FORMAT},
	    {hg_dataset_load_features, "1\n2\nx\n4\n", "bad:3: expected finite numbers, found \"x\"",
	     HG_ERR_FORMAT},
	    {hg_dataset_load_features, "1\n2\nnan\n4\n",
	     "bad:3: expected finite numbers, found \"nan\"", HG_ERR_FORMAT},
	    {hg_dataset_load_features, "nan\n2\n3\n4\n",
	     "bad:1: expected finite numbers, found \"nan\"", HG_ERR_FORMAT},
	    {hg_dataset_load_features, "1\n1e39\n3\n4\n",
	     "bad:2: the number is beyond float32's 3.40282e+38", HG_ERR_FORMAT},
	    {hg_dataset_load_labels, "1\n2\n3\n", "bad: 3 rows, expected 4", HG_ERR_FORMAT},
	    {hg_dataset_load_labels, "1\n2\n3\n2147483647\n",
	     "bad: row 3 is 2147483647, expected a label of at most 2147483646", HG_ERR_FORMAT},
	    {hg_dataset_load_labels, "1\n2\n3\n2000\n", "which makes 2001 classes of 4 labelled nodes",
	     HG_ERR_FORMAT},
	    {hg_dataset_load_labels, "1\n2\n3\n99999999999999999999\n",
	     "bad:4: expected a number of 64 bits", HG_ERR_FORMAT},
	    {hg_dataset_load_labels, "1\n2\n3\nx\n", "bad:4: expected finite numbers, found \"x\"",
	     HG_ERR_FORMAT},
	    {hg_dataset_load_split, "train\nval\n", "bad: 2 rows, expected 4", HG_ERR_FORMAT},
	    {hg_dataset_load_split, "train\nval\ntest\nother\n",
	     "bad:4: expected train, val, test, none or 0, 1, 2, -1, found \"other\"", HG_ERR_FORMAT},
	    {hg_dataset_load_split, "0\n1\n2\n3\n", "bad:4: expected train, val", HG_ERR_FORMAT},
	};
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = small_dataset(), *before = small_dataset();
	hg_dataset *four = plain(0);
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		CHECK_STATUS(bad[k].from(four, text_of("bad", bad[k].text), message), bad[k].status);
		CHECK_CONTAINS(message, bad[k].part);
		CHECK(!four->feat && !four->label && !four->train_mask && !four->target);
		CHECK(bad[k].from(d, scratch(1, "bad"), message) < 0);
		check_same(d, before);
	}
	static const load loads[] = {hg_dataset_load_features, hg_dataset_load_labels,
	                             hg_dataset_load_split};
	for (int k = 0; k < 3; k++) {
		CHECK_EQ_I(loads[k](four, scratch(1, "absent"), message), HG_ERR_IO);
		CHECK_CONTAINS(message, "No such file or directory");
		CHECK_EQ_I(loads[k](four, test_path("."), message), HG_ERR_IO);
		CHECK_CONTAINS(message, "is a directory");
		CHECK_EQ_I(loads[k](NULL, "x", message), HG_ERR_ARG);
		CHECK_EQ_I(loads[k](four, NULL, message), HG_ERR_ARG);
	}
	hg_dataset_free(before);
	hg_dataset_free(four);
	hg_dataset_free(d);
}

static void bad_arrays_are_refused(void)
{
	static const float nan[] = {1, 2, (float)NAN, 4};
	static const int8_t codes[] = {0, 1, 2, 3};
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = plain(0);
	CHECK_EQ_I(
	    hg_dataset_load_features(d, npy_of("n.npy", "<f4", "(4,)", nan, sizeof nan), message),
	    HG_ERR_RANGE);
	CHECK_CONTAINS(message, "n.npy: features: row 2, column 0 is nan, not a finite number");
	CHECK_EQ_I(hg_dataset_load_features(d, npy_of("n.npy", "<f4", "(4,)", nan, 12), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "n.npy: header promises 4 elements of 4 bytes, but 12 bytes follow");
	CHECK_EQ_I(
	    hg_dataset_load_features(d, npy_of("n.npy", "<f4", "(9999999999,)", nan, 16), message),
	    HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "header promises 9999999999 elements");
	CHECK_EQ_I(hg_dataset_load_features(d, npy_of("n.npy", "|O", "(4,)", nan, 16), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "holds pickled Python objects, which are refused");
	CHECK_EQ_I(hg_dataset_load_features(d, npy_of("n.npy", "<f4", "()", nan, 4), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "n.npy: has no dimensions, expected 1 or 2");
	CHECK_EQ_I(hg_dataset_load_split(d, npy_of("n.npy", "|i1", "(4,)", codes, 4), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "n.npy: row 3 is 3, expected 0 (train), 1 (validate), 2 (test) or -1");
	CHECK_EQ_I(hg_dataset_load_split(d, npy_of("n.npy", "<f4", "(4,)", nan, 16), message),
	           HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "n.npy: expected one column of whole numbers");
	hg_dataset_free(d);
}

static void features_are_made(void)
{
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = small_dataset(); /* 2 3 2 2 2 0 edges end at its nodes */
	CHECK_OK(hg_dataset_make_features(d, HG_MADE_DEGREE, message));
	CHECK(d->features == 1 && ((float *)d->feat)[1] == 3 && ((float *)d->feat)[5] == 0 &&
	      d->feat_amax == 3);
	CHECK_OK(hg_dataset_make_features(d, HG_MADE_ONE_HOT_DEGREE, message));
	CHECK(d->features == 3 && !d->feat && d->feat_col[0] == 1 && d->feat_col[1] == 2 &&
	      d->feat_col[5] == 0 && d->feat_rowptr[6] == 6 && d->feat_amax == 1);
	CHECK_OK(hg_dataset_check(d, "made", message));
	CHECK_OK(hg_dataset_make_features(d, HG_MADE_CONSTANT, message));
	CHECK(d->features == 1 && ((float *)d->feat)[5] == 1 && !d->feat_rowptr);
	CHECK_OK(hg_dataset_check(d, "made", message));
	CHECK_EQ_I(hg_dataset_make_features(d, (hg_made_features)3, message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_make_features(NULL, HG_MADE_CONSTANT, message), HG_ERR_ARG);
	hg_dataset_free(d);
}

/* ---- drawn splits ---- */

static void random_splits_are_drawn(void)
{
	static const double parts[] = {0.6, 0.2, 0.2}, some[] = {0.1, 0, 0.25};
	char message[HG_DATA_MESSAGE];
	int32_t reversed[1000];
	hg_dataset *d = labelled_nodes(1000), *other = labelled_nodes(1000);
	CHECK_OK(hg_dataset_split_random(d, parts, 0, message));
	CHECK(count_masked(d->train_mask, d, ANY_CLASS) == 598 &&
	      count_masked(d->val_mask, d, ANY_CLASS) == 200 &&
	      count_masked(d->test_mask, d, ANY_CLASS) == 199);
	CHECK(count_masked(d->train_mask, d, -1) + count_masked(d->val_mask, d, -1) +
	          count_masked(d->test_mask, d, -1) ==
	      0);
	/* 360 of 600 are expected in class 0, with a standard deviation of 8 */
	CHECK(count_masked(d->train_mask, d, 0) > 310 && count_masked(d->train_mask, d, 0) < 410);
	CHECK_OK(hg_dataset_check(d, "split", message));
	/* the order of the nodes does not matter, the seed does */
	for (int32_t i = 0; i < 1000; i++)
		reversed[i] = 999 - i;
	CHECK_OK(hg_dataset_permute(other, reversed, message));
	CHECK_OK(hg_dataset_split_random(other, parts, 0, message));
	for (int i = 0; i < 1000; i++)
		CHECK(d->train_mask[i] == other->train_mask[999 - i] &&
		      d->test_mask[i] == other->test_mask[999 - i]);
	hg_dataset_free(other);
	other = labelled_nodes(1000);
	CHECK_OK(hg_dataset_split_random(other, parts, 1, message));
	CHECK(memcmp(d->train_mask, other->train_mask, 1000) != 0);
	CHECK_OK(hg_dataset_split_random(d, some, 0, message));
	CHECK(count_masked(d->train_mask, d, ANY_CLASS) == 100 &&
	      count_masked(d->val_mask, d, ANY_CLASS) == 0 &&
	      count_masked(d->test_mask, d, ANY_CLASS) == 249);
	free(d->label);
	d->label = NULL;
	CHECK_OK(hg_dataset_split_random(d, some, 0, message));
	CHECK(count_masked(d->train_mask, d, ANY_CLASS) == 100 &&
	      count_masked(d->test_mask, d, ANY_CLASS) == 250);
	hg_dataset_free(other);
	hg_dataset_free(d);
}

static void classes_are_split_evenly(void)
{
	static const int64_t usual[] = {20, 30, -1}, all[] = {-1, 0, 5};
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = labelled_nodes(1000);
	CHECK_OK(hg_dataset_split_per_class(d, usual, 0, message));
	for (int32_t c = 0; c < 3; c++)
		CHECK(count_masked(d->train_mask, d, c) == 20 && count_masked(d->val_mask, d, c) == 30);
	CHECK(count_masked(d->test_mask, d, ANY_CLASS) == 997 - 150 &&
	      count_masked(d->test_mask, d, -1) == 0);
	CHECK_OK(hg_dataset_check(d, "split", message));
	CHECK_OK(hg_dataset_split_per_class(d, all, 0, message));
	CHECK(count_masked(d->train_mask, d, 2) == 92 && count_masked(d->test_mask, d, 2) == 5 &&
	      count_masked(d->val_mask, d, ANY_CLASS) == 0);
	hg_dataset_free(d);
}

static void impossible_splits_are_refused(void)
{
	static const double more[] = {0.6, 0.3, 0.2}, negative[] = {-0.1, 0.2, 0.2},
	                    nan[] = {(double)NAN, 0, 0};
	static const int64_t large[] = {50, 50, -1}, two[] = {-1, -1, 5}, below[] = {-2, 0, 0};
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = labelled_nodes(1000), *before = labelled_nodes(1000);
	CHECK_EQ_I(hg_dataset_split_random(d, more, 0, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "split 0.6/0.3/0.2: expected fractions from 0, at most 1");
	CHECK_EQ_I(hg_dataset_split_random(d, negative, 0, message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_split_random(d, nan, 0, message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_split_random(NULL, more, 0, message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_split_per_class(d, large, 0, message), HG_ERR_STATE);
	CHECK_CONTAINS(message, "class 2 has 97 rows, expected at least 100");
	CHECK_EQ_I(hg_dataset_split_per_class(d, two, 0, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "split -1/-1/5: expected numbers from 0");
	CHECK_EQ_I(hg_dataset_split_per_class(d, below, 0, message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_split_per_class(NULL, two, 0, message), HG_ERR_ARG);
	check_same(d, before);
	free(d->label);
	d->label = NULL;
	CHECK_EQ_I(hg_dataset_split_per_class(d, large, 0, message), HG_ERR_STATE);
	CHECK_CONTAINS(message, "the dataset has no labels");
	hg_dataset_free(before);
	hg_dataset_free(d);
}

/* ---- the command line ---- */

static void tool_attaches(void)
{
	write_text(scratch(0, "g.txt"), "0 1\n1 2\n2 0\n2 3\n5 6\n");
	write_text(scratch(0, "x.csv"), "1,2\n3,4\n5,6\n7,8\n9,10\n11,12\n");
	write_text(scratch(0, "y.csv"), "0\n1\n0\n1\n1\n0\n");
	write_text(scratch(0, "s.csv"), "train\ntrain\nval\ntest\nnone\nnone\n");
	CHECK_EQ_I(run_convert("@/g.txt --features @/x.csv --labels @/y.csv --split @/s.csv "
	                       "--largest-component --quiet -o @/a.h5"),
	           0);
	hg_dataset *d = must_read(scratch(0, "a.h5"));
	CHECK(d->nodes == 4 && d->features == 2 && ((float *)d->feat)[7] == 8 && d->classes == 2 &&
	      d->label[3] == 1 && d->train_mask[1] == 1 && d->test_mask[3] == 1);
	hg_dataset_free(d);
	/* degrees are those of the symmetric graph without the loops that are added */
	CHECK_EQ_I(run_convert("@/g.txt --features degree --symmetrize --self-loops --quiet -o @/b.h5"),
	           0);
	d = must_read(scratch(0, "b.h5"));
	CHECK(((float *)d->feat)[2] == 3 && ((float *)d->feat)[5] == 1);
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("@/g.txt --features one-hot-degree --labels @/y.csv --split "
	                       "per-class:1/1/rest:7 --quiet -o @/c.h5"),
	           0);
	d = must_read(scratch(0, "c.h5"));
	CHECK(d->feat_rowptr && count_masked(d->train_mask, d, 0) == 1 &&
	      count_masked(d->test_mask, d, ANY_CLASS) == 2);
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("@/g.txt --features constant --split random:.5/rest/0.25 --quiet -o "
	                       "@/d.h5"),
	           0);
	d = must_read(scratch(0, "d.h5"));
	CHECK(count_masked(d->train_mask, d, ANY_CLASS) == 3 &&
	      count_masked(d->val_mask, d, ANY_CLASS) == 2 &&
	      count_masked(d->test_mask, d, ANY_CLASS) == 1);
	hg_dataset_free(d);
	write_text(scratch(0, "ids.csv"), "node_id,y\n6,1\n5,1\n4,1\n2,1\n1,1\n0,1\n");
	write_text(scratch(0, "named.csv"), "node_id,y\n6,1\n5,0\n3,0\n2,1\n1,1\n0,1\n");
	CHECK_EQ_I(run_convert("@/g.txt --labels @/named.csv --quiet -o @/e.h5"), 0);
	d = must_read(scratch(0, "e.h5"));
	CHECK(d->targets == 0 && d->classes == 2 && d->label[3] == 0 && d->label[4] == 0 &&
	      d->label[5] == 1);
	hg_dataset_free(d);
	/* --seed is the seed of a split, where there is no planted graph */
	static const char *const drawn[] = {"random:0.5/0.2/0.3", "per-class:1/1/rest", "folds:3"};
	for (int k = 0; k < 3; k++) {
		char arguments[160];
		int differ = 0;
		for (int seed = 1; seed <= 4; seed++) {
			snprintf(arguments, sizeof arguments,
			         "@/g.txt --labels @/y.csv --split %s:%d --quiet -o @/f.h5", drawn[k], seed);
			CHECK_EQ_I(run_convert(arguments), 0);
			snprintf(arguments, sizeof arguments,
			         "--seed %d @/g.txt --labels @/y.csv --split %s --quiet -o @/s.h5", seed,
			         drawn[k]);
			CHECK_EQ_I(run_convert(arguments), 0);
			hg_dataset *named = must_read(scratch(0, "f.h5")),
			           *same = must_read(scratch(0, "s.h5"));
			check_same(named, same);
			snprintf(arguments, sizeof arguments,
			         "@/g.txt --labels @/y.csv --split %s --quiet -o @/s.h5", drawn[k]);
			CHECK_EQ_I(run_convert(arguments), 0);
			hg_dataset *other = must_read(scratch(0, "s.h5"));
			differ += k < 2 ? memcmp(named->train_mask, other->train_mask, 6) != 0
			                : memcmp(named->fold, other->fold, 6 * sizeof *other->fold) != 0;
			hg_dataset_free(other);
			hg_dataset_free(named);
			hg_dataset_free(same);
		}
		CHECK_MSG(differ > 0, "%s: no seed draws another", drawn[k]);
	}
	static const struct {
		const char *arguments, *part;
	} bad[] = {
	    {"@/g.txt --seed 1 -o @/n.h5",
	     "--seed belongs to --synthetic planted, or to --split random, per-class or folds"},
	    {"@/g.txt --split @/s.csv --seed 1 -o @/n.h5", "--seed belongs to --synthetic planted"},
	    {"@/g.txt --split random:0.5/0.2/0.3:4 --seed 1 -o @/n.h5",
	     "--split \"random:0.5/0.2/0.3:4\" names a seed already"},
	    {"@/g.txt --split random:0.6/0.2 -o @/n.h5", "--split is \"random:0.6/0.2\", expected"},
	    {"@/g.txt --split random:0.6/0.3/0.2 -o @/n.h5", "fractions of at most 1 in sum"},
	    {"@/g.txt --split random:0.6/0.3/0.1x -o @/n.h5", "--split is"},
	    {"@/g.txt --split random:0,6/0.3/0.1 -o @/n.h5", "--split is"},
	    {"@/g.txt --split random:rest/rest/0.1 -o @/n.h5", "--split is"},
	    {"@/g.txt --split per-class:2.5/1/1 -o @/n.h5", "--split is"},
	    {"@/g.txt --split per-class:1/1/1: -o @/n.h5", "--split is"},
	    {"@/g.txt --split per-class:1/1/1 --fold 0/3 -o @/n.h5",
	     "--split and --fold exclude each other"},
	    {"@/g.txt --split per-class:1/1/1 -o @/n.h5",
	     "--split per-class:1/1/1: the dataset has no labels"},
	    {"@/g.txt --features @/y.csv --labels @/absent.csv -o @/n.h5", "No such file or directory"},
	    {"@/g.txt --features @/g.txt -o @/n.h5", "g.txt: 5 rows, expected 6"},
	    {"@/g.txt --features @/n.h5 -o @/n.h5", "n.h5"},
	    {"@/g.txt --labels @/ids.csv -o @/n.h5", "ids.csv:4: no node has the id 4"},
	    {"@/g.txt --split @/ids.csv -o @/n.h5", "ids.csv:4: no node has the id 4"},
	    {"@/g.txt --features @/ids.csv -o @/n.h5", "ids.csv:4: no node has the id 4"},
	    {"--synthetic planted --features many -o @/n.h5",
	     "--features is \"many\", expected a whole number from 0"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		CHECK_MSG(run_convert(bad[k].arguments) == 2, "%s: %s", bad[k].arguments, convert_err);
		CHECK_CONTAINS(convert_err, bad[k].part);
		CHECK(!file_exists(scratch(0, "n.h5")));
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(features_are_read),
	    TEST(rows_follow_the_numbers),
	    TEST(rows_follow_their_ids),
	    TEST(bad_ids_are_refused),
	    TEST(labels_and_targets_are_told_apart),
	    TEST(graphs_of_a_batch_have_labels),
	    TEST(bad_files_are_refused),
	    TEST(bad_arrays_are_refused),
	    TEST(features_are_made),
	    TEST(random_splits_are_drawn),
	    TEST(classes_are_split_evenly),
	    TEST(impossible_splits_are_refused),
	    TEST(tool_attaches),
	};
	return RUN_TESTS(argc, argv, cases);
}
