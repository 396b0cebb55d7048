/* DGL's CSVDataset. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "support.h"

enum { META, NODES, EDGES, GRAPHS, FILES };
static const char *const names[FILES] = {"dgl/meta.yaml", "dgl/nodes.csv", "dgl/edges.csv",
                                         "dgl/graphs.csv"};
/* The texts of the files; NULL: there is no such file. */
struct texts {
	const char *text[FILES];
};
static const struct texts
    one = {{"dataset_name: dgl-toy\nedge_data:\n- file_name: edges.csv\nnode_data:\n- file_name: "
            "nodes.csv\n",
            "node_id,label,train_mask,val_mask,test_mask,feat,year\n"
            "2,1,False,True,False,\"0.5, -1\",1999\n"
            "0,0,True,False,False,\"[1, 2]\",2000\r\n\n"
            "1,2, true ,0,FALSE,\" (3,4) \",2001\n"
            "3,-1,0,0,1,\"5 6e1\",2002\n",
            "src_id,dst_id,weight,feat\n0,1,2,\"1, 2\"\n1,2,3,\"3,4\"\n3,0,1,\"[5,6]\"\n"
            "0,1,4,\"7,8\"\n2, 2,0,\"9,10\"\n",
            NULL}},
    batch = {{"version: 1.0.0\nedge_data: [{file_name: edges.csv, etype: [_V, _E, _V]}]\n"
              "node_data: [{file_name: nodes.csv, ntype: _V}]\n"
              "graph_data: {file_name: graphs.csv}\n",
              "graph_id,node_id,feat,label\n7,1,3,9\n7,0,2,9\n5,0,1,9\n",
              "graph_id,src_id,dst_id\n7,0,1\n7,1,1\n5,0,0\n",
              "label,train_mask,graph_id,feat\n1,True,7,\"1,2\"\n0,False,6,\"3,4\"\n"
              "1,False,5,\"5,6\"\n"}};

/* Makes the folder dgl. */
static const char *folder_of(const struct texts *t)
{
	(void)mkdir(scratch(0, "dgl"), 0700);
	for (int k = 0; k < FILES; k++) {
		(void)remove(scratch(0, names[k]));
		if (t->text[k])
			write_text(scratch(0, names[k]), t->text[k]);
	}
	return scratch(0, "dgl");
}

static void graph_is_read(void)
{
	static const int64_t rowptr[] = {0, 1, 2, 4, 4};
	static const int32_t col[] = {3, 0, 1, 2}, label[] = {0, 2, 1, -1};
	static const float feat[] = {1, 2, 3, 4, 0.5f, -1, 5, 60};
	static const float edge_feat[] = {5, 6, 1, 2, 3, 4, 9, 10};
	static const uint8_t train[] = {1, 1, 0, 0}, val[] = {0, 0, 1, 0}, test[] = {0, 0, 0, 1};
	hg_dataset *d = must_import("dgl-csv", folder_of(&one));
	CHECK_STR(d->name, "dgl-toy");
	CHECK(d->nodes == 4 && d->edges == 4 && d->features == 2 && d->classes == 3 && !d->orig_id &&
	      !d->weight && !d->graph_ptr && d->feat_amax == 60);
	CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0 &&
	      memcmp(d->label, label, sizeof label) == 0 && memcmp(d->feat, feat, sizeof feat) == 0);
	CHECK(memcmp(d->train_mask, train, 4) == 0 && memcmp(d->val_mask, val, 4) == 0 &&
	      memcmp(d->test_mask, test, 4) == 0);
	CHECK(d->edge_features == 2 && memcmp(d->edge_feat, edge_feat, sizeof edge_feat) == 0 &&
	      !d->edge_label);
	CHECK_EQ_I(run_convert("@/dgl -o @/dgl.h5"), 0);
	CHECK_CONTAINS(convert_err, "dgl: read as dgl-csv\n");
	CHECK_CONTAINS(convert_err, "dgl/nodes.csv: not read: year\n");
	CHECK_CONTAINS(convert_err, "dgl/edges.csv: not read: weight\n");
	CHECK_CONTAINS(convert_err, "dgl/edges.csv: 1 of the edges that were merged had other labels");
	CHECK_CONTAINS(convert_err, "dgl/edges.csv: 1 of 5 edges repeat an earlier edge");
	hg_dataset *back = must_read(scratch(1, "dgl.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

/* A table with many columns that are not read: the note names the first. */
static void many_columns_are_noted(void)
{
	struct texts wide = one;
	char header[400] = "";
	for (int k = 0; k < 60; k++)
		snprintf(header + strlen(header), sizeof header - strlen(header), "col%d,", k);
	snprintf(header + strlen(header), sizeof header - strlen(header), "node_id\n");
	wide.text[NODES] = header;
	wide.text[EDGES] = "src_id,dst_id\n";
	CHECK_STR(folder_of(&wide), scratch(0, "dgl"));
	CHECK_EQ_I(run_convert("@/dgl -o @/wide.h5"), 0);
	CHECK_CONTAINS(convert_err, "col1, col2, ");
	CHECK_CONTAINS(convert_err, " and more\n");
}

/* The graphs are in the order of their table, and their labels and splits count. */
static void batch_is_read(void)
{
	static const int64_t graph_ptr[] = {0, 2, 2, 3}, rowptr[] = {0, 0, 2, 3};
	static const int32_t col[] = {0, 1, 2}, label[] = {1, 0, 1};
	static const float feat[] = {2, 3, 1};
	static const uint8_t train[] = {1, 0, 0};
	hg_dataset *d = must_import("dgl-csv", folder_of(&batch));
	CHECK_STR(d->name, "dgl");
	CHECK(d->nodes == 3 && d->graphs == 3 && d->classes == 2 && d->features == 1 && !d->orig_id &&
	      !d->val_mask && !d->test_mask);
	CHECK(memcmp(d->graph_ptr, graph_ptr, sizeof graph_ptr) == 0 &&
	      memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0 &&
	      memcmp(d->label, label, sizeof label) == 0 && memcmp(d->feat, feat, sizeof feat) == 0 &&
	      memcmp(d->train_mask, train, sizeof train) == 0);
	CHECK_EQ_I(run_convert("@/dgl/meta.yaml -o @/dgl.h5"), 0);
	CHECK_CONTAINS(convert_err, "nodes.csv: not read: label (labels and splits are those of the "
	                            "graphs)\n");
	CHECK_CONTAINS(convert_err, "graphs.csv: not read: feat\n");
	hg_dataset_free(d);
}

static void archives_are_read(void)
{
	hg_dataset *d = must_import("dgl-csv", folder_of(&one));
	/* a table that is compressed has the name of the plain one */
	CHECK(remove(scratch(1, names[NODES])) == 0);
	gzFile file = gzopen(scratch(1, "dgl/nodes.csv.gz"), "wb");
	CHECK(file && gzputs(file, one.text[NODES]) > 0 && gzclose(file) == Z_OK);
	struct npz_out *zip = npz_begin(scratch(1, "dgl.zip"));
	for (int k = 0; k < FILES; k++)
		if (one.text[k])
			npz_raw(zip, names[k], one.text[k], strlen(one.text[k]));
	npz_end(zip, 0);
	const char *const inputs[] = {"dgl", "dgl/meta.yaml", "dgl.zip"};
	for (size_t k = 0; k < 3; k++) {
		const hg_importer *importer = NULL;
		CHECK_OK(hg_import_recognise(scratch(1, inputs[k]), &importer, NULL));
		CHECK_STR(importer->name, "dgl-csv");
		hg_dataset *same = must_import("dgl-csv", scratch(1, inputs[k]));
		check_same(d, same);
		hg_dataset_free(same);
	}
	CHECK(remove(scratch(1, "dgl/nodes.csv.gz")) == 0);
	hg_dataset_free(d);
}

/* Numbers with gaps are kept as the ids of the source. */
static void ids_may_have_gaps(void)
{
	static const int64_t kept[] = {-3, 5, 10};
	static const int32_t gaps[] = {2, 0};
	struct texts t = one;
	t.text[NODES] = "node_id\n10\n-3\n5\n";
	t.text[EDGES] = "dst_id,src_id\n-3,10\n5,-3\n";
	hg_dataset *d = must_import("dgl-csv", folder_of(&t));
	CHECK(d->nodes == 3 && memcmp(d->orig_id, kept, sizeof kept) == 0 &&
	      memcmp(d->col, gaps, sizeof gaps) == 0 && d->rowptr[1] == 1 && d->rowptr[2] == 2 &&
	      !d->feat && !d->label && !d->node_name);
	hg_dataset_free(d);
}

/* Texts number the nodes in the order of their table and are kept as names: byte by byte, but for
 * blanks around them. 07 is no way to write 7, so it makes all ids of its table texts. */
static void ids_may_be_texts(void)
{
	static const char named[] = "7\0b, c\0"
	                            "10\0\xc3\xa4\xff\0"
	                            "07";
	static const int64_t rowptr[] = {0, 1, 1, 2, 3, 3};
	static const int32_t col[] = {4, 0, 1};
	static const float feat[] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f};
	struct texts t = one;
	t.text[NODES] = "node_id,feat\n7,0.5\n\"b, c\",1.5\n 10 ,2.5\n\xc3\xa4\xff,3.5\n07,4.5\n";
	t.text[EDGES] = "src_id,dst_id\n7,10\n\"b, c\",\xc3\xa4\xff\n07,7\n";
	hg_dataset *d = must_import("dgl-csv", folder_of(&t));
	CHECK(d->nodes == 5 && !d->orig_id && memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 &&
	      memcmp(d->col, col, sizeof col) == 0 && memcmp(d->feat, feat, sizeof feat) == 0);
	CHECK(d->node_name_bytes == sizeof named && memcmp(d->node_name, named, sizeof named) == 0);
	CHECK_STR(hg_dataset_node_name(d, 1), "b, c");
	CHECK_STR(hg_dataset_node_name(d, 4), "07");
	CHECK(!hg_dataset_node_name(d, 5) && !hg_dataset_node_name(d, -1) &&
	      !hg_dataset_node_name(NULL, 0));
	/* the file, the archive and back */
	CHECK_EQ_I(run_convert("@/dgl -o @/dgl.h5"), 0);
	CHECK_EQ_I(run_convert("--export npz @/dgl.h5 @/dgl.npz"), 0);
	CHECK_EQ_I(run_convert("@/dgl.npz -o @/again.h5"), 0);
	static const char *const files[] = {"dgl.h5", "again.h5"};
	for (int k = 0; k < 2; k++) {
		hg_dataset *back = must_read(scratch(1, files[k]));
		check_same(d, back);
		hg_dataset_free(back);
	}
	CHECK_EQ_I(run_convert("--inspect @/dgl.h5"), 0);
	CHECK_CONTAINS(convert_out, "named      7, b, c, 10, ");
	hg_dataset_free(d);
}

/* The nodes of a batch are in the order of the graphs and, in each, of their table. Two graphs may
 * have nodes of the same name. */
static void ids_of_a_batch_may_be_texts(void)
{
	static const char named[] = "z\0a\0z";
	static const int64_t graph_ptr[] = {0, 2, 2, 3}, rowptr[] = {0, 1, 1, 2};
	static const int32_t col[] = {1, 2};
	static const float feat[] = {3, 2, 1};
	struct texts t = batch;
	t.text[NODES] = "graph_id,node_id,feat\n7,z,3\nfive,z,1\n7,a,2\n";
	t.text[EDGES] = "graph_id,src_id,dst_id\n7,a,z\nfive,z,z\n";
	t.text[GRAPHS] = "graph_id,label\n7,1\n6,0\nfive,1\n";
	hg_dataset *d = must_import("dgl-csv", folder_of(&t));
	CHECK(d->nodes == 3 && d->graphs == 3 && !d->orig_id &&
	      memcmp(d->graph_ptr, graph_ptr, sizeof graph_ptr) == 0 &&
	      memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0 &&
	      memcmp(d->feat, feat, sizeof feat) == 0);
	CHECK(d->node_name_bytes == sizeof named && memcmp(d->node_name, named, sizeof named) == 0);
	hg_dataset_free(d);
}

/* The fields of meta.yaml that rename columns, and another separator. */
static void columns_may_be_renamed(void)
{
	const struct texts t = {
	    {"dataset_name: x\nseparator: \"\\t\"\n"
	     "edge_data: [{file_name: edges.csv, src_id_field: from, dst_id_field: to}]\n"
	     "node_data: [{file_name: nodes.csv, node_id_field: name, graph_id_field: g}]\n",
	     "g\tname\tfeat\n0\t0\t1,2\n0\t1\t3,4\n", "from\tto\tgraph_id\n0\t1\t0\n", NULL}};
	hg_dataset *d = must_import("dgl-csv", folder_of(&t));
	CHECK(d->nodes == 2 && d->edges == 1 && d->col[0] == 0 && d->features == 2 &&
	      ((float *)d->feat)[3] == 4);
	hg_dataset_free(d);
}

static void labels_may_be_targets(void)
{
	struct texts t = one;
	t.text[NODES] = "node_id,label\n1,0.5\n0,-2\n2,nan\n3,\n";
	hg_dataset *d = must_import("dgl-csv", folder_of(&t));
	CHECK(!d->label && d->targets == 1 && d->target[0] == -2 && d->target[1] == 0.5f &&
	      isnan(d->target[2]) && isnan(d->target[3]));
	hg_dataset_free(d);
	t.text[NODES] = "node_id,label\n0,\"[0, 1]\"\n1,\"[1, 1]\"\n2,\"[0, 0]\"\n3,\"[1, 0]\"\n";
	d = must_import("dgl-csv", folder_of(&t));
	CHECK(!d->label && d->targets == 2 && d->target[3] == 1 && d->target[4] == 0);
	hg_dataset_free(d);
}

static void bad_sets_are_refused(void)
{
	static const struct {
		int of_batch, file;
		const char *text, *part;
	} bad[] = {
	    {0, META, "edge_data: [{file_name: edges.csv}]\n", "expected the key node_data"},
	    {0, META, "node_data: [{file_name: nodes.csv}]\n", "expected the key edge_data"},
	    {0, META, "node_data: nodes.csv\n", "node_data: expected a list"},
	    {0, META,
	     "node_data: [{file_name: nodes.csv}, {file_name: b.csv}]\nedge_data: [{file_name: e}]\n",
	     "meta.yaml:1: node_data: expected one type, found 2: sets with several types"},
	    {0, META, "node_data: [{}]\nedge_data: [{file_name: edges.csv}]\n",
	     "meta.yaml:1: expected the key file_name"},
	    {0, META, "node_data: [{file_name: ../x}]\nedge_data: [{file_name: edges.csv}]\n",
	     "file_name: expected a file in the folder, found \"../x\""},
	    {0, META, "version: 2.0.0\n", "version: expected 1.0.0, found \"2.0.0\""},
	    {0, META, "separator: ab\n", "separator: expected one character, found \"ab\""},
	    {0, META, "separator: '\"'\n", "separator: expected one character"},
	    {0, META, "a: [\n", "meta.yaml:2: is not YAML"},
	    {0, NODES, "id,label\n0,1\n", "nodes.csv:1: expected the column node_id"},
	    {0, NODES, "node_id\n0\n1\n0\n2\n3\n", "nodes.csv: node 0 again, expected every id once"},
	    {0, NODES, "node_id\na\n1\n1\n", "nodes.csv: node 1 again, expected every id once"},
	    {0, NODES, "node_id\nb\na\nb\n", "nodes.csv: node b again, expected every id once"},
	    {0, NODES, "node_id,label\na,1\n ,1\n", "nodes.csv:3: expected an id, found \"\""},
	    {0, NODES, "node_id,label\n,1\n", "nodes.csv:2: expected an id, found \"\""},
	    {0, NODES, "node_id\na\nb\n", "edges.csv:2: expected nodes of node_data, found \"0\""},
	    {0, NODES, "node_id,label\n0\n", "nodes.csv:2: 1 fields, expected 2 as in the header"},
	    {0, NODES, "node_id,label\n0,one\n",
	     "nodes.csv:2: expected finite numbers, nan or nothing, found \"one\""},
	    {0, NODES, "node_id,label\n0,1\n1,\"1,2\"\n",
	     "nodes.csv:3: 2 columns, expected 1 as before"},
	    {0, NODES, "node_id,feat\n0,\"1,2\"\n1,3\n",
	     "nodes.csv:3: 1 attributes, expected 2 as before"},
	    {0, NODES, "node_id,feat\n0,nan\n", "nodes.csv:2: expected finite numbers, found \"nan\""},
	    {0, NODES, "node_id,feat\n0,\"[1\"\n",
	     "nodes.csv:2: expected finite numbers, found \"[1\""},
	    {0, NODES, "node_id,feat\n0,\"1\n", "nodes.csv:2: a quoted field does not end"},
	    {0, NODES, "node_id,train_mask\n0,yes\n",
	     "nodes.csv:2: expected True or False, found \"yes\""},
	    {0, NODES, "node_id,train_mask,val_mask\n0,1,0\n1,1,1\n2,0,0\n3,0,0\n",
	     "splits: node 1 is in train and in val"},
	    {0, NODES, "node_id,graph_id\n0,1\n",
	     "nodes.csv:2: expected graph 0: meta.yaml names no graph_data, found \"1\""},
	    {0, NODES, "node_id,label\n0,7\n1,\n2,\n3,\n", "which makes 8 classes of 1 labelled nodes"},
	    {0, NODES, "", "nodes.csv: is empty: 0 bytes"},
	    {0, EDGES, "src_id\n0\n", "edges.csv:1: expected the column dst_id"},
	    {0, EDGES, "src_id,dst_id\n0,4\n", "edges.csv:2: expected nodes of node_data, found \"4\""},
	    {0, EDGES, "src_id,dst_id\n0,\n", "edges.csv:2: expected nodes of node_data, found \"\""},
	    {0, EDGES, "src_id,dst_id,feat\n0,1,a\n", "edges.csv:2: expected finite numbers, found"},
	    {0, EDGES, "src_id,dst_id,feat\n0,1,1\n1,2,\n",
	     "edges.csv:3: 0 attributes, expected 1 as before"},
	    {0, EDGES, "src_id,dst_id\nx,1\n", "edges.csv:2: expected nodes of node_data, found \"x\""},
	    {1, GRAPHS, "label\n1\n", "graphs.csv:1: expected the column graph_id"},
	    {1, GRAPHS, "graph_id\n5\n7\n5\n", "graphs.csv: graph 5 again"},
	    {1, GRAPHS, "graph_id\n5\n", "nodes.csv:2: expected a graph of graph_data, found \"7\""},
	    {1, NODES, "node_id\n0\n", "nodes.csv:1: expected the column graph_id"},
	    {1, NODES, "graph_id,node_id\n7,0\n7,1\n7,1\n", "nodes.csv: node 1 again"},
	    {1, NODES, "graph_id,node_id\n7,a\n5,a\n7,a\n", "nodes.csv: node a again"},
	    {1, GRAPHS, "graph_id\n5\n\"\"\n", "graphs.csv:3: expected an id"},
	    {1, EDGES, "src_id,dst_id\n0,0\n", "edges.csv:1: expected the column graph_id"},
	    {1, EDGES, "graph_id,src_id,dst_id\n8,0,0\n",
	     "edges.csv:2: expected a graph of graph_data, found \"8\""},
	    {1, EDGES, "graph_id,src_id,dst_id\n5,0,1\n",
	     "edges.csv:2: expected nodes of the graph, found \"1\""},
	    {1, META, "graph_data: []\nnode_data: [{file_name: n}]\nedge_data: [{file_name: e}]\n",
	     "graph_data: expected a mapping"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		struct texts t = bad[k].of_batch ? batch : one;
		t.text[bad[k].file] = bad[k].text;
		must_refuse("dgl-csv", folder_of(&t), HG_ERR_FORMAT, bad[k].part);
	}
	for (int file = NODES; file <= GRAPHS; file++) {
		struct texts t = batch;
		char part[64];
		t.text[file] = NULL;
		snprintf(part, sizeof part, "%s: No such file", names[file]);
		must_refuse("dgl-csv", folder_of(&t), HG_ERR_IO, part);
	}
	must_refuse("dgl-csv", scratch(0, "dgl/graphs.csv"), HG_ERR_IO, "No such file");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(graph_is_read),
	    TEST(many_columns_are_noted),
	    TEST(batch_is_read),
	    TEST(archives_are_read),
	    TEST(ids_may_have_gaps),
	    TEST(ids_may_be_texts),
	    TEST(ids_of_a_batch_may_be_texts),
	    TEST(columns_may_be_renamed),
	    TEST(labels_may_be_targets),
	    TEST(bad_sets_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
