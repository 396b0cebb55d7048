/* Attributes and labels of edges in the formats that have them: TU Dortmund, npz archives, OGB. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "support.h"

/* ---- TU Dortmund ---- */

/* Two graphs of three and two nodes. The lines of a file are in no order, and the two directions of
 * the edge between nodes 4 and 5 have data of their own. */
static const char tu_edges[] = "3, 2\n1, 2\n5, 4\n2, 1\n4, 5\n2, 3\n";

/* Writes a set with these files of edges; NULL: there is none. */
static const char *tu_set(const char *edges, const char *labels, const char *attributes)
{
	static const char *const names[] = {"set_edge_labels.txt", "set_edge_attributes.txt"};
	const char *const texts[] = {labels, attributes};
	write_text(scratch(0, "set_graph_indicator.txt"), "1\n1\n1\n2\n2\n");
	write_text(scratch(0, "set_graph_labels.txt"), "0\n1\n");
	for (int k = 0; k < 2; k++) {
		(void)remove(scratch(0, names[k]));
		if (texts[k])
			write_text(scratch(0, names[k]), texts[k]);
	}
	write_text(scratch(0, "set_A.txt"), edges);
	return scratch(0, "set_A.txt");
}

/* In the order of the file: edges to nodes 1, 0, 3, 0, 4 and 2; by rows: */
static const int64_t tu_rowptr[] = {0, 1, 3, 4, 5, 6};
static const int32_t tu_col[] = {1, 0, 2, 1, 4, 3};

static void check_graph(const hg_dataset *d)
{
	CHECK(d->edges == 6 && memcmp(d->rowptr, tu_rowptr, sizeof tu_rowptr) == 0 &&
	      memcmp(d->col, tu_col, sizeof tu_col) == 0 && !d->weight);
}

static void tu_lines_belong_to_their_edges(void)
{
	static const int32_t label[] = {3, 1, 0, 3, 2, 0};
	static const float feat[] = {4, -4, 2, -2, 1, -1, 6, -6, 3, -3, 5, -5};
	/* line 4 is the edge to node 0; lines 2 and 1 those to node 1 from nodes 0 and 2, and so on */
	hg_dataset *d = must_import(
	    "tu", tu_set(tu_edges, "0\n1\n2\n3\n0\n3\n", "1, -1\n2 -2\r\n3,-3\n4,-4\n5,-5\n6,-6\n\n"));
	check_graph(d);
	CHECK(d->edge_classes == 4 && memcmp(d->edge_label, label, sizeof label) == 0);
	CHECK(d->edge_features == 2 && memcmp(d->edge_feat, feat, sizeof feat) == 0);
	must_write(d, scratch(1, "set.h5"));
	hg_dataset *back = must_read(scratch(1, "set.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
	d = must_import("tu", tu_set(tu_edges, "0\n1\n2\n3\n0\n3\n", NULL));
	CHECK(!d->edge_feat && !d->edge_features && memcmp(d->edge_label, label, sizeof label) == 0);
	hg_dataset_free(d);
	d = must_import("tu", tu_set(tu_edges, NULL, "1 -1\n2 -2\n3,-3\n4,-4\n5,-5\n6,-6\n"));
	CHECK(!d->edge_label && !d->edge_classes && memcmp(d->edge_feat, feat, sizeof feat) == 0);
	hg_dataset_free(d);
	d = must_import("tu", tu_set(tu_edges, NULL, NULL));
	CHECK(!d->edge_label && !d->edge_feat && d->edges == 6);
	hg_dataset_free(d);
	d = must_import("tu", tu_set("\n", "\n", "\n"));
	CHECK(!d->edge_label && !d->edge_feat && d->edges == 0);
	hg_dataset_free(d);
}

/* Labels are numbered by rank, and a note says it where that changes them. */
static void tu_labels_are_numbered_by_rank(void)
{
	static const int32_t label[] = {2, 0, 1, 0, 1, 2};
	(void)tu_set(tu_edges, "7\n-3\n7\n9000000000\n9000000000\n-3\n", NULL);
	CHECK_EQ_I(run_convert("@/set_A.txt -o @/set.h5"), 0);
	CHECK_CONTAINS(convert_err, "set_edge_labels.txt: the 3 labels of edges, -3 to 9000000000, are "
	                            "numbered from 0 in this order\n");
	hg_dataset *d = must_read(scratch(1, "set.h5"));
	CHECK(d->edge_classes == 3 && memcmp(d->edge_label, label, sizeof label) == 0);
	hg_dataset_free(d);
	(void)tu_set(tu_edges, "1\n0\n1\n0\n1\n0\n", NULL);
	CHECK_EQ_I(run_convert("@/set_A.txt -o @/set.h5"), 0);
	CHECK(!strstr(convert_err, "numbered") && !strstr(convert_err, "merged"));
}

/* Of merged edges the first stays, and a note counts those that had something else. */
static void tu_merged_edges_keep_the_first(void)
{
	static const int32_t label[] = {1, 0};
	(void)tu_set("2 1\n1 2\n2 1\n2 1\n2 1\n", "0\n1\n0\n1\n0\n", "5\n6\n5\n5\n7\n");
	CHECK_EQ_I(run_convert("@/set_A.txt -o @/set.h5"), 0);
	CHECK_CONTAINS(convert_err, "set_A.txt: 3 of 5 edges repeat an earlier edge and were merged");
	CHECK_CONTAINS(convert_err, "set_A.txt: 2 of the edges that were merged had other labels or "
	                            "attributes than the first, whose stay\n");
	hg_dataset *d = must_read(scratch(1, "set.h5"));
	CHECK(d->edges == 2 && d->edge_label[0] == label[1] && d->edge_label[1] == label[0] &&
	      d->edge_feat[0] == 5 && d->edge_feat[1] == 6);
	hg_dataset_free(d);
	(void)tu_set("2 1\n2 1\n", "0\n0\n", "5\n5\n");
	CHECK_EQ_I(run_convert("@/set_A.txt -o @/set.h5"), 0);
	CHECK_CONTAINS(convert_err, "1 of 2 edges repeat an earlier edge");
	CHECK(!strstr(convert_err, "had other"));
}

static void tu_several_labels_become_attributes(void)
{
	static const float behind[] = {0.5f, 1, -2, 0.25f, 3, 16777216}, alone[] = {1, -2, 3, 16777216};
	(void)tu_set("2 1\n1 2\n", "1, -2\n3, 16777216\n", "0.5\n0.25\n");
	CHECK_EQ_I(run_convert("@/set_A.txt -o @/set.h5"), 0);
	CHECK_CONTAINS(convert_err, "set_edge_labels.txt: has 2 labels for each edge, which become "
	                            "attributes of edges\n");
	hg_dataset *d = must_read(scratch(1, "set.h5"));
	CHECK(!d->edge_label && d->edge_features == 3 &&
	      memcmp(d->edge_feat, behind, sizeof behind) == 0);
	hg_dataset_free(d);
	d = must_import("tu", tu_set("2 1\n1 2\n", "1, -2\n3, 16777216\n", NULL));
	CHECK(d->edge_features == 2 && memcmp(d->edge_feat, alone, sizeof alone) == 0);
	hg_dataset_free(d);
}

static void tu_damage_is_refused_by_name(void)
{
	static const struct {
		const char *labels, *attributes;
		hg_status status;
		const char *part;
	} bad[] = {
	    {"0\n1\n", NULL, HG_ERR_FORMAT, "set_edge_labels.txt: 2 lines for 3 edges"},
	    {"0\n1\n1\n1\n", NULL, HG_ERR_FORMAT, "set_edge_labels.txt: 4 lines for 3 edges"},
	    {"\n", NULL, HG_ERR_FORMAT, "set_edge_labels.txt: 0 lines for 3 edges"},
	    {"0\n1\nx\n", NULL, HG_ERR_FORMAT,
	     "set_edge_labels.txt:3: expected whole numbers, found \"x\""},
	    {"0\n1.5\n1\n", NULL, HG_ERR_FORMAT,
	     "set_edge_labels.txt:2: expected whole numbers, found \"1.5\""},
	    {"0\n99999999999999999999\n1\n", NULL, HG_ERR_FORMAT,
	     "set_edge_labels.txt:2: expected numbers of 64 bits"},
	    {"0\n1, 2\n1\n", NULL, HG_ERR_FORMAT,
	     "set_edge_labels.txt:2: 2 labels, expected 1 as before"},
	    {"0 1\n1 16777217\n1 1\n", NULL, HG_ERR_RANGE,
	     "set_edge_labels.txt: label 16777217 of edge 2 is beyond 2^24"},
	    {"", NULL, HG_ERR_FORMAT, "set_edge_labels.txt: is empty: 0 bytes"},
	    {NULL, "1\n2\n", HG_ERR_FORMAT, "set_edge_attributes.txt: 2 lines for 3 edges"},
	    {NULL, "1\n2\nnan\n", HG_ERR_FORMAT,
	     "set_edge_attributes.txt:3: expected finite numbers, found \"nan\""},
	    {NULL, "1\n2\n4e38\n", HG_ERR_FORMAT,
	     "set_edge_attributes.txt:3: the number is beyond float32's 3.40282e+38"},
	    {NULL, "1\n2 3\n4\n", HG_ERR_FORMAT,
	     "set_edge_attributes.txt:2: 2 attributes, expected 1 as before"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
		must_refuse("tu", tu_set("1 2\n2 1\n1 2\n", bad[k].labels, bad[k].attributes),
		            bad[k].status, bad[k].part);
}

/* ---- numpy archives ---- */

/* An archive of three nodes, with the rows in no order and the edge 2 -> 1 twice. */
static const char *npz_set(const char *feat_type, const char *feat_shape, const void *feat,
                           size_t bytes, const int32_t *label, const int64_t *classes)
{
	static const int64_t shape[] = {3, 3}, indptr[] = {0, 2, 5, 5};
	static const int32_t indices[] = {2, 1, 2, 0, 2};
	struct npz_out *npz = npz_begin(scratch(0, "edges.npz"));
	npz_add(npz, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(npz, "adj_indptr", "<i8", "(4,)", indptr, sizeof indptr);
	npz_add(npz, "adj_indices", "<i4", "(5,)", indices, sizeof indices);
	if (feat)
		npz_add(npz, "edge_feat", feat_type, feat_shape, feat, bytes);
	if (label)
		npz_add(npz, "edge_label", "<i4", "(5,)", label, 5 * sizeof *label);
	if (classes)
		npz_add(npz, "num_edge_classes", "<i8", "()", classes, sizeof *classes);
	npz_end(npz, 0);
	return scratch(0, "edges.npz");
}

static void npz_rows_belong_to_their_edges(void)
{
	static const double feat[] = {1, -1, 2, -2, 3, -3, 4, -4, 5, -5};
	static const int32_t label[] = {2, 0, 1, -1, 1}, sorted_col[] = {1, 2, 0, 2},
	                     sorted_label[] = {0, 2, -1, 1};
	static const float sorted[] = {2, -2, 1, -1, 4, -4, 3, -3};
	static const int64_t classes = 9;
	for (int declared = 0; declared < 2; declared++) {
		hg_dataset *d = must_import(
		    "npz", npz_set("<f8", "(5, 2)", feat, sizeof feat, label, declared ? &classes : NULL));
		CHECK(d->edges == 4 && memcmp(d->col, sorted_col, sizeof sorted_col) == 0);
		CHECK(d->edge_features == 2 && memcmp(d->edge_feat, sorted, sizeof sorted) == 0);
		CHECK(d->edge_classes == (declared ? 9 : 3) &&
		      memcmp(d->edge_label, sorted_label, sizeof sorted_label) == 0);
		hg_dataset_free(d);
	}
	CHECK_EQ_I(run_convert("@/edges.npz -o @/edges.h5"), 0);
	CHECK_CONTAINS(convert_err, "edges.npz: 1 of the edges that were merged had other labels or "
	                            "attributes than the first, whose stay\n");
	CHECK(!strstr(convert_err, "not read"));
	(void)npz_set(NULL, NULL, NULL, 0, NULL, &classes);
	CHECK_EQ_I(run_convert("@/edges.npz -o @/edges.h5"), 0);
	CHECK_CONTAINS(convert_err, "not read: num_edge_classes.npy\n");
}

static void npz_damage_is_refused_by_name(void)
{
	static const float feat[] = {1, 2, 3, 4, 5, 6, 7, (float)NAN, 9, 10};
	static const int32_t label[] = {0, 0, 7, 0, 0};
	static const int64_t few = 7, none = -1;
	must_refuse("npz", npz_set("<f4", "(2, 5)", feat, sizeof feat, NULL, NULL), HG_ERR_FORMAT,
	            "edge_feat.npy: has 2 rows, expected 5, one for each edge");
	must_refuse("npz", npz_set("<f4", "(5,)", feat, 20, NULL, NULL), HG_ERR_FORMAT,
	            "edge_feat.npy: has 1 dimensions, expected 2");
	must_refuse("npz", npz_set("<f4", "(5, 2)", feat, sizeof feat, NULL, NULL), HG_ERR_RANGE,
	            "edge features: the edge from node 0 to node 1 has nan in column 1");
	must_refuse("npz", npz_set(NULL, NULL, NULL, 0, label, NULL), HG_ERR_FORMAT,
	            "edges.npz: edge labels: edge 3 has label 7, which makes 8 labels of 4 labelled "
	            "edges; if that is intended, add num_edge_classes to the archive");
	must_refuse("npz", npz_set(NULL, NULL, NULL, 0, label, &few), HG_ERR_FORMAT,
	            "edge labels: the edge from node 2 to node 1 has label 7, but there are 7");
	must_refuse("npz", npz_set(NULL, NULL, NULL, 0, label, &none), HG_ERR_FORMAT,
	            "num_edge_classes.npy: value -1 at 0 is not in [0, 2147483647]");
}

/* ---- OGB ---- */

static void pack(const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "ogb_toy/raw/%s", name);
	if (!text) {
		(void)remove(scratch(1, path));
		return;
	}
	gzFile file = gzopen(scratch(1, path), "wb");
	CHECK(file != NULL && gzputs(file, text) == (int)strlen(text) && gzclose(file) == Z_OK);
}

/* Two graphs; the second of three nodes has an edge twice. */
static const char *ogb_set(const char *features)
{
	static const char *const folders[] = {"ogb_toy", "ogb_toy/raw"};
	for (int k = 0; k < 2; k++)
		(void)mkdir(scratch(1, folders[k]), 0700);
	pack("num-node-list.csv.gz", "2\n3\n");
	pack("num-edge-list.csv.gz", "1\n4\n");
	pack("edge.csv.gz", "0,1\n2,0\n0,1\n2,1\n2,0\n");
	pack("edge-feat.csv.gz", features);
	return scratch(1, "ogb_toy");
}

static const char ogb_features[] = "0,5\n3,1\n1,0\n-2,0.5\n3,2\n";

static void check_ogb(const hg_dataset *d)
{
	static const int64_t rowptr[] = {0, 0, 1, 2, 4, 4};
	static const int32_t col[] = {0, 4, 2, 4};
	static const float feat[] = {0, 5, 3, 1, 1, 0, -2, 0.5f};
	CHECK(d->edges == 4 && memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 &&
	      memcmp(d->col, col, sizeof col) == 0);
	CHECK(d->edge_features == 2 && !d->edge_label && memcmp(d->edge_feat, feat, sizeof feat) == 0);
}

static void ogb_features_of_edges_are_read(void)
{
	hg_dataset *d = must_import("ogb", ogb_set(ogb_features));
	check_ogb(d);
	hg_dataset_free(d);
	pack("edge_reltype.csv.gz", "0\n1\n0\n0\n0\n");
	pack("node_year.csv.gz", "1\n1\n1\n1\n1\n");
	CHECK_EQ_I(run_convert("@/ogb_toy --symmetrize -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "ogb_toy: 1 of the edges that were merged had other labels or "
	                            "attributes than the first, whose stay\n");
	CHECK_CONTAINS(convert_err, "ogb_toy: raw/edge_reltype.csv.gz is not read\n");
	CHECK_CONTAINS(convert_err, "ogb_toy: raw/node_year.csv.gz is not read\n");
	pack("edge_reltype.csv.gz", NULL);
	pack("node_year.csv.gz", NULL);
	d = must_read(scratch(0, "toy.h5"));
	CHECK(d->edges == 8 && d->edge_feat[0] == 0 && d->edge_feat[1] == 5 && d->edge_feat[2] == 0 &&
	      d->edge_feat[3] == 5);
	hg_dataset_free(d);
	d = must_import("ogb", ogb_set(NULL));
	CHECK(d->edges == 4 && !d->edge_feat);
	hg_dataset_free(d);
	must_refuse("ogb", ogb_set("1\n2\n3\n4\n"), HG_ERR_FORMAT,
	            "raw/edge-feat.csv.gz: 4 rows, expected 5, one for each edge");
	must_refuse("ogb", ogb_set("1\n2\n3\n4\n5,6\n"), HG_ERR_FORMAT,
	            "raw/edge-feat.csv.gz:5: 2 attributes, expected 1 as before");
	must_refuse("ogb", ogb_set("1\n2\n3\n4\ninf\n"), HG_ERR_FORMAT,
	            "raw/edge-feat.csv.gz:5: expected finite numbers");
}

static void ogb_arrays_are_read(void)
{
	static const int64_t pairs[] = {0, 2, 0, 2, 2, 1, 0, 1, 1, 0}, nodes[] = {2, 3},
	                     edges[] = {1, 4};
	static const double feat[] = {0, 5, 3, 1, 1, 0, -2, 0.5, 3, 2};
	static const int64_t whole[] = {0, 5, 3, 1, 1, 0, -2, 0, 3, 2};
	static const struct {
		const char *type, *shape, *part;
		const void *values;
	} forms[] = {{"<f8", "(5, 2)", NULL, feat},
	             {"<i8", "(5, 2)", NULL, whole},
	             {"<i8", "(5, 0)", NULL, whole},
	             {"<f8", "(2, 5)", "edge_feat: 2 rows, expected 5, one for each edge", feat},
	             {"<f8", "(10,)", "edge_feat.npy: has 1 dimensions, expected 2", feat}};
	(void)ogb_set(NULL);
	pack("edge.csv.gz", NULL);
	for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
		struct npz_out *npz = npz_begin(scratch(0, "ogb_toy/raw/data.npz"));
		npz_add(npz, "edge_index", "<i8", "(2, 5)", pairs, sizeof pairs);
		npz_add(npz, "num_nodes_list", "<i8", "(2,)", nodes, sizeof nodes);
		npz_add(npz, "num_edges_list", "<i8", "(2,)", edges, sizeof edges);
		npz_add(npz, "node_year", "<i8", "(2,)", edges, sizeof edges);
		npz_add(npz, "edge_feat", forms[k].type, forms[k].shape, forms[k].values,
		        k == 2 ? 0 : sizeof feat);
		npz_end(npz, 1);
		if (forms[k].part) {
			must_refuse("ogb", scratch(1, "ogb_toy"), HG_ERR_FORMAT, forms[k].part);
			continue;
		}
		CHECK_EQ_I(run_convert("@/ogb_toy -o @/toy.h5"), 0);
		CHECK_CONTAINS(convert_err, "ogb_toy/raw/data.npz: node_year.npy is not read\n");
		CHECK(!strstr(convert_err, "feat.npy is not"));
		hg_dataset *d = must_import("ogb", scratch(1, "ogb_toy"));
		if (k == 1)
			d->edge_feat[7] = 0.5f;
		if (k < 2)
			check_ogb(d);
		else
			CHECK(!d->edge_feat && d->edge_features == 0);
		hg_dataset_free(d);
	}
	CHECK(remove(scratch(0, "ogb_toy/raw/data.npz")) == 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(tu_lines_belong_to_their_edges),
	    TEST(tu_labels_are_numbered_by_rank),
	    TEST(tu_merged_edges_keep_the_first),
	    TEST(tu_several_labels_become_attributes),
	    TEST(npz_rows_belong_to_their_edges),
	    TEST(npz_damage_is_refused_by_name),
	    TEST(tu_damage_is_refused_by_name),
	    TEST(ogb_features_of_edges_are_read),
	    TEST(ogb_arrays_are_read),
	};
	return RUN_TESTS(argc, argv, cases);
}
