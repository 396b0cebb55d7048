/* Small good files, from which mutations start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fuzz.h"
#include "pickles.h"
#include "support.h"

/* An exported dataset: number 0 has dense f16 features, 1 sparse ones, 2 is a batch. */
static int seed_exported(int k, const char *path)
{
	if (k > 2)
		return 0;
	hg_dataset *d = k == 0 ? small_dataset() : k == 1 ? small_sparse() : small_batch();
	d->order = calloc((size_t)d->nodes, sizeof *d->order);
	CHECK(d->order != NULL);
	for (int32_t i = 0; i < d->nodes; i++)
		d->order[i] = i;
	if (k == 0)
		CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, NULL));
	CHECK_OK(hg_dataset_make_folds(d, 2, 0, NULL));
	CHECK_OK(hg_dataset_write_npz(d, path, NULL, NULL));
	hg_dataset_free(d);
	return 1;
}

/* Two molecules of two atoms and one of none, as arrays of many graphs, with two targets. */
static int seed_graphs(const char *path)
{
	static const int32_t pointers[] = {0, 2, 2, 4}, ends[] = {0, 1, 0, 1}, others[] = {1, 0, 1, 0};
	static const float values[] = {1, 2, 3, 0.5f};
	struct npz_out *out = npz_begin(path);
	npz_add(out, "node_ptr", "<i4", "(4,)", pointers, sizeof pointers);
	npz_add(out, "edge_ptr", "<i4", "(4,)", pointers, sizeof pointers);
	npz_add(out, "edge_src", "<i4", "(4,)", ends, sizeof ends);
	npz_add(out, "edge_dst", "<i4", "(4,)", others, sizeof others);
	npz_add(out, "edge_label", "<i4", "(4,)", ends, sizeof ends);
	npz_add(out, "node_label", "<i4", "(4,)", ends, sizeof ends);
	npz_add(out, "node_attr", "<f4", "(4, 1)", values, sizeof values);
	npz_add(out, "y_a", "<f4", "(3,)", values, 12);
	npz_add(out, "y_b", "<f4", "(3,)", values + 1, 12);
	npz_add(out, "train_idx", "<i4", "(2,)", ends, 8);
	npz_end(out, 1);
	return 1;
}

int seed_npz(int k, const char *path)
{
	static const int64_t shape[] = {4, 4};
	static const int32_t indptr[] = {0, 2, 3, 5, 5}, indices[] = {2, 1, 0, 3, 0},
	                     labels[] = {0, 1, -1, 1}, train[] = {0, 1};
	static const float dense[] = {1, 2, 3, 4, 5, 6, 7, 8}, data[] = {1, 0.5f, 2, 3, 4};
	if (k >= 2)
		return k < 5 ? seed_exported(k - 2, path) : k == 5 && seed_graphs(path);
	struct npz_out *out = npz_begin(path);
	npz_add(out, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(out, "adj_indptr", "<i4", "(5,)", indptr, sizeof indptr);
	npz_add(out, "adj_indices", "<i4", "(5,)", indices, sizeof indices);
	npz_add(out, "adj_data", "<f4", "(5,)", data, sizeof data);
	npz_add(out, "labels", "<i4", "(4,)", labels, sizeof labels);
	npz_add(out, "train_idx", "<i4", "(2,)", train, sizeof train);
	npz_add(out, "attr_matrix", "<f4", "(4, 2)", dense, sizeof dense);
	npz_add(out, "edge_feat", "<f4", "(5, 1)", data, sizeof data);
	npz_add(out, "edge_label", "<i4", "(5,)", indices, sizeof indices);
	npz_end(out, k == 0);
	return 1;
}

/* The first half of the text in one gzip member, the second half in another. */
static void write_gzip(const char *path, const char *text)
{
	const size_t length = strlen(text), half = length / 2;
	for (int member = 0; member < 2; member++) {
		gzFile file = gzopen(path, member ? "ab" : "wb");
		const size_t bytes = member ? length - half : half;
		CHECK(file != NULL &&
		      gzwrite(file, text + (member ? half : 0), (unsigned)bytes) == (int)bytes &&
		      gzclose(file) == Z_OK);
	}
}

int seed_text(int k, const char *path)
{
	static const char *const texts[] = {
	    "# comment\n0 1\r\n1\t2\n100 7\n",
	    "0 1 0.5\n1 0 -2e3\n",
	    "3 4\n0 1\n1 2\n2 0\n1 0\n",
	    "% METIS\n4 3 111 2\n7 9 8 2 1 3 2\n7 9 8 1 1 3 3\n7 9 8 1 2 2 3\n\n",
	    "3 3 2\n0 1 1\n1 2 1\n",
	    ("%%MatrixMarket matrix coordinate real general\n% x\n3 3 4\n"
	     "1 2 0.5\n2 1 0\n3 3 -1\n1 2 1\n"),
	    "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n",
	};
	const int count = (int)(sizeof texts / sizeof texts[0]);
	if (k >= 2 * count)
		return 0;
	if (k < count)
		write_text(path, texts[k]);
	else
		write_gzip(path, texts[k - count]);
	return 1;
}

int seed_tu(int k, const char *path)
{
	static const char *const sets[] = {
	    "1, 2\n2, 1\n4, 5\n\f1\n1\n2\n4\n4\n\f1\n-1\n1\n7\n\f0\n2\n2\n0\n9\n\f0.5, 1\n-1, 2\n3, "
	    "4e3\n0, 0\n1, 1\n\f1\n2\n3\n4\n\f0\n2\n0\n\f0.5, 1\n-1, 2\n3, 4e3\n",
	    "1 2\r\n2 3\n1 2\n\f1\n1\n1\n\f3\n\f5\n6\n7\n\f1\n2\n3\n\f0.5 -1\n\f1 2\n3 4\n1 "
	    "3\n\f1\n2\n3\n",
	};
	if (k >= (int)(sizeof sets / sizeof sets[0]))
		return 0;
	write_text(path, sets[k]);
	return 1;
}

int seed_gin(int k, const char *path)
{
	static const char *const sets[] = {
	    "3\n3 1\n7 1 1\n-2 2 0 2 \n7 1 1\r\n1 -1\n7 0\n2 1\n30 0\n7 1 0\n\f0\n\f1\n\f2\n\f1\n2\n",
	    "4\n1 0\n0 0 1.5 2\n1 0\n0 0 -1 3e3\n1 1\n1 1 0 0 0\n1 1\n0 0 1 "
	    "1\n\f0\n3\n\f1\n\f2\n\f1\n2\n",
	};
	if (k >= (int)(sizeof sets / sizeof sets[0]))
		return 0;
	write_text(path, sets[k]);
	return 1;
}

int seed_musae(int k, const char *path)
{
	static const char *const sets[] = {
	    "id,days,mature,new_id\n900,1,True,2\n901,2,False,0\n902,3,True,1\n\fa,b\n0,2\n2,1\n\f"
	    "{\"1\": [1, 5,1],\n \"0\": [],\"2\":[0]}\n",
	    "id,name,target\n1,\"a, \"\"b\"\"\",0.5\n0,c,2e3\n\fa,b\n0,1\n\f{\"1\": [7]}",
	};
	if (k >= (int)(sizeof sets / sizeof sets[0]))
		return 0;
	write_text(path, sets[k]);
	return 1;
}

int seed_ogb(int k, const char *path)
{
	static const char *const sets[] = {
	    "4\n\f5\n\f0,1\n1,2\n2,0\n3,1\n0,1\n\f0.5,1\n-2,0\n3,4e1\n0,0\n\f1\n0\nnan\n2\n"
	    "\f0,1\n2,3\n1e2,0\n-1,0\n0,2\n",
	    "2\n1\n2\n\f2\n0\n1\n\f0,1\n1,0\n1,0\n\f1\n2\n3\n4\n5\n\f0.5,\nnan,2\n1,1\n\f1\n2\n3\n",
	};
	if (k >= (int)(sizeof sets / sizeof sets[0]))
		return 0;
	write_text(path, sets[k]);
	return 1;
}

int seed_planetoid(int k, const char *path)
{
	static struct pickle out;
	FILE *file = k ? NULL : fopen(path, "wb");
	if (!file)
		return 0;
	for (int member = 0; member < PLANETOID_MEMBERS; member++) {
		planetoid_member(&planetoid_toy, member, &out);
		CHECK(fwrite(out.bytes, 1, out.count, file) == out.count);
		if (member + 1 < PLANETOID_MEMBERS)
			CHECK(fputs(FUZZ_BINARY_END, file) >= 0);
	}
	CHECK(fclose(file) == 0);
	return 1;
}

int seed_dgl_csv(int k, const char *path)
{
	static const char *const sets[] = {
	    "dataset_name: a\nedge_data:\n- file_name: edges.csv\nnode_data:\n- {file_name: nodes.csv, "
	    "node_id_field: node_id}\n\fnode_id,label,train_mask,feat\n2,1,True,\"1, 2\"\n0,,0,3 "
	    "4\n1,0,False,\"[5,6]\"\n\fsrc_id,dst_id,feat\n0,1,1\n2,0,1\n0,1,5\n",
	    "separator: ;\nedge_data: [&e {file_name: edges.csv}]\nnode_data: [{file_name: "
	    "nodes.csv}]\n"
	    "graph_data: {file_name: graphs.csv}\n\fgraph_id;node_id;feat\n7;a;1\n5;b;2\n7;0;3\n\f"
	    "graph_id;src_id;dst_id\n7;a;0\n5;b;b\n\fgraph_id;label;test_mask\n5;0.5;1\n7;-2;0\n",
	};
	if (k >= (int)(sizeof sets / sizeof sets[0]))
		return 0;
	write_text(path, sets[k]);
	return 1;
}

/* Adds a file to the set that is being written, after the separator. */
static void append(FILE *set, const void *bytes, size_t count)
{
	CHECK(fputs(FUZZ_BINARY_END, set) >= 0 && fwrite(bytes, 1, count, set) == count);
}

static void append_npy(FILE *set, const char *descr, const char *shape, const void *elements,
                       size_t bytes)
{
	size_t count = 0;
	write_npy(scratch(3, "array"), descr, shape, elements, bytes);
	unsigned char *file = read_bytes(scratch(3, "array"), &count);
	append(set, file, count);
	free(file);
}

int seed_graphbolt(int k, const char *path)
{
	static const char list[] = "0,1\n1,2\n2,2\n0,1\n",
	                  rest[] = "feature_data:\n- domain: node\n  name: feat\n  format: numpy\n  "
	                           "path: x.npy\n- {domain: edge, name: w, format: numpy, path: "
	                           "w.npy}\ntasks: [{name: t, num_classes: 2, train_set: [{data: "
	                           "[{name: seeds, format: numpy, path: train.npy}, {name: labels, "
	                           "format: numpy, path: y.npy}]}]}]\n";
	static const int64_t ends[] = {0, 1, 1, 2}, train[] = {2, 0};
	static const float x[] = {1, 2, 3, 4, 5, 6}, y[] = {0, 1};
	FILE *set = k < 2 ? fopen(path, "wb") : NULL;
	if (!set)
		return 0;
	CHECK(fprintf(set, "graph:\n  nodes: [{num: 3}]\n  edges:\n  - {format: %s, path: %s}\n%s",
	              k ? "numpy" : "csv", k ? "ends.npy" : "list.csv", rest) > 0);
	append(set, list, sizeof list - 1);
	append_npy(set, "<i8", "(2, 2)", ends, sizeof ends);
	append_npy(set, "<f4", "(3, 2)", x, sizeof x);
	append_npy(set, "<i8", "(2,)", train, sizeof train);
	append_npy(set, "<f4", k ? "(2, 1)" : "(2,)", y, sizeof y);
	append_npy(set, "<f4", k ? "(2, 2)" : "(4,)", x, 4 * sizeof *x);
	CHECK(fclose(set) == 0);
	return 1;
}

/* Members of an archive, as fuzz_zip.c packs them. */
static int seed_packed(int k, const char *path)
{
	static const char *const sets[] = {
	    "raw/num-node-list.csv.gz\n4\n" FUZZ_BINARY_END
	    "raw/num-edge-list.csv.gz\n2\n" FUZZ_BINARY_END
	    "raw/edge.csv.gz\n0,1\n3,2\n" FUZZ_BINARY_END
	    "raw/node-feat.csv.gz\n1,2\n3,4\n5,6\n7,8\n" FUZZ_BINARY_END
	    "raw/node-label.csv.gz\n0\n1\nnan\n1\n" FUZZ_BINARY_END
	    "split/time/train.csv.gz\n0\n2\n" FUZZ_BINARY_END "split/time/valid.csv.gz\n1\n",
	    "a/metadata.yaml\ngraph: {nodes: [{num: 3}], edges: [{format: csv, path: "
	    "edges/e.csv}]}\nfeature_data: []\ntasks: []\n" FUZZ_BINARY_END "a/edges/e.csv\n0,1\n1,2\n",
	    "meta.yaml\ndataset_name: a\nedge_data: [{file_name: edges.csv}]\nnode_data: [{file_name: "
	    "nodes.csv}]\n" FUZZ_BINARY_END "nodes.csv\nnode_id,label\n2,1\n0,0\n" FUZZ_BINARY_END
	    "edges.csv\nsrc_id,dst_id\n0,2\n",
	    "MUTAG/MUTAG_A.txt\n1, 2\n2, 1\n" FUZZ_BINARY_END
	    "MUTAG/MUTAG_graph_indicator.txt\n1\n1\n" FUZZ_BINARY_END
	    "MUTAG/MUTAG_graph_labels.txt\n-1\n",
	};
	if (k >= (int)(sizeof sets / sizeof sets[0]))
		return 0;
	write_text(path, sets[k]);
	return 1;
}

/* Archives of three formats, stored and deflated. */
int seed_zip(int k, const char *path)
{
	static const struct {
		const char *name[4], *text[4];
	} sets[] = {
	    {{"s/s_A.txt", "s/s_graph_indicator.txt", "s/s_graph_labels.txt", NULL},
	     {"1, 2\n2, 1\n", "1\n1\n2\n", "1\n-1\n"}},
	    {{"s/s.txt", "s/10fold_idx/test_idx-1.txt", NULL}, {"1\n2 0\n0 1 1\n0 1 0\n", "0\n"}},
	    {{"s_edges.csv", "s_target.csv", "s_features.json", NULL},
	     {"a,b\n0,1\n", "id,target\n0,1\n1,0\n", "{\"0\":[1],\"1\":[0,2]}"}}};
	if (k >= 6)
		return seed_packed(k - 6, path);
	struct npz_out *zip = npz_begin(path);
	for (int member = 0; sets[k / 2].name[member]; member++)
		npz_raw(zip, sets[k / 2].name[member], sets[k / 2].text[member],
		        strlen(sets[k / 2].text[member]));
	npz_end(zip, k % 2);
	return 1;
}

/* For fuzz_h5.c, whose input is a program of edits, every input is good: random bytes. */
int seed_h5(int k, const char *path)
{
	uint8_t bytes[256];
	if (k >= 2 * FUZZ_KINDS)
		return 0;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)test_u64();
	bytes[0] = (uint8_t)k;
	write_bytes(path, bytes, sizeof bytes);
	return 1;
}

int seed_h5ad(int k, const char *path)
{
	return k < 8 && seed_h5(k % FUZZ_KINDS, path);
}

/* A file of options; the lines of a run, of which the last has options, too. */
int seed_config(int k, const char *path)
{
	static const char *const texts[] = {
	    "{\"flag\": true, \"text\": \"a\\u00e9\\n\", \"word\": \"mean\", \"name\": \"gin\",\n "
	    "\"choice\": "
	    "\"fp32\", \"explain\": \"full\", \"epochs\": 10, \"lr\": 1e-3, \"order\": \"rcm\"}\n",
	    "{\"explain\": false, \"lr\": 1, \"flag\": false}",
	    "{\"event\":\"epoch\",\"seed\":1,\"epoch\":0,\"step\":0,\"loss\":1.5,\"train_metric\":0.5,"
	    "\"val_metric\":0.25,\"test_metric\":null,\"loss_scale\":65536,\"epoch_ms\":1.25,"
	    "\"applied\":"
	    "false,\"outcome\":\"overflow\"}\n{\"event\":\"epoch\",\"seed\":1,\"epoch\":1,\"step\":1,"
	    "\"loss\":1e-3,\"val_metric\":0.75,\"applied\":true}\n{\"event\":\"summary\",\"seeds\":[{"
	    "\"seed\":1,\"epochs\":2,\"best_epoch\":1,\"skipped\":1,\"val_metric\":0.75,\"test_"
	    "metric\":0."
	    "5,\"final_loss\":0.001}],\"data\":\"a\",\"model\":\"gcn\",\"metric\":\"accuracy\","
	    "\"settings\":"
	    "{\"train.epochs\":2,\"optim.lr\":0.01,\"a\":true,\"b\":\"x\"},\"loss_finite\":true,"
	    "\"learnt\":"
	    "true,\"test_metric_mean\":0.5,\"test_metric_std\":0,\"epoch_ms_median\":1,\"peak_bytes\":"
	    "4096,"
	    "\"steps_skipped\":1,\"config\":{\"epochs\":2,\"text\":\"x\"}}\n"};
	if (k >= (int)(sizeof texts / sizeof texts[0]))
		return 0;
	write_text(path, texts[k]);
	return 1;
}

/* Tables of 4 rows, one for each node; of 2, for graphs; of 7, for the numbers of nodes. */
int seed_attach(int k, const char *path)
{
	static const char *const texts[] = {"# rows\n1 0.5 2\n-1 0 3e2\n0 0 0\n7 8 9\n",
	                                    "label\n0\n2\n1\n-1\n",
	                                    "0,1\r\n1,0\r\n",
	                                    "0\n1\n2\n-1\n0\n1\n2\n",
	                                    "split\ntrain\nval\ntest\nnone\n",
	                                    "a,b\n0.5,1\n1,2\n3,4\n5,6\n"};
	static const int64_t codes[] = {0, 1, 2, -1};
	static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const int count = (int)(sizeof texts / sizeof texts[0]);
	if (k < count)
		write_text(path, texts[k]);
	else if (k == count)
		write_npy(path, "<i8", "(4,)", codes, sizeof codes);
	else if (k == count + 1)
		write_npy(path, "<f4", "(4, 2)", x, sizeof x);
	else if (k == count + 2)
		write_gzip(path, texts[1]);
	else
		return 0;
	return 1;
}

int seed_recognise(int k, const char *path)
{
	static const char *const texts[] = {
	    "a.txt\n2\n1 0\n0 0\n1 0\n0 0\n", "b\n%%MatrixMarket matrix coordinate\n",
	    "c.h5ad\n\211HDF\r\n\032\n", "ind.x.graph\n", "set_A.txt\n1"};
	const int count = (int)(sizeof texts / sizeof texts[0]);
	if (k < count) {
		write_text(path, texts[k]);
		return 1;
	}
	if (!seed_zip(k - count, scratch(3, "archive")) || k - count >= 6)
		return 0;
	size_t size = 0;
	unsigned char *bytes = read_bytes(scratch(3, "archive"), &size);
	FILE *file = fopen(path, "wb");
	CHECK(file && fputs("d.zip\n", file) >= 0 && fwrite(bytes, 1, size, file) == size &&
	      fclose(file) == 0);
	free(bytes);
	return 1;
}

/* The pickles of a Planetoid dataset, one each, and one of protocol 0. */
int seed_pickle(int k, const char *path)
{
	static struct pickle out;
	if (k > PLANETOID_PICKLES)
		return 0;
	if (k < PLANETOID_PICKLES) {
		planetoid_member(&planetoid_toy, k, &out);
	} else {
		out.count = 0;
		pickle_text(&out, "(dp0\nI0\n(lp1\nI1\naI2\nasI1\n(lp2\nI0\nas.");
	}
	write_bytes(path, out.bytes, out.count);
	return 1;
}

/* The weights of a GIN with the names of PyTorch Geometric, and with names as they are. */
int seed_safetensors(int k, const char *path)
{
	hg_context *ctx = NULL;
	hg_params *params = NULL;
	hg_model *model = NULL;
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_model_config c = hg_model_config_default("gin");
	if (k >= 2)
		return 0;
	config.device = HG_DEVICE_CPU;
	c.in_features = 3;
	c.out_features = 2;
	c.hidden = 2;
	CHECK_OK(hg_context_create(&config, &ctx));
	CHECK_OK(hg_params_create(ctx, NULL, &params));
	CHECK_OK(hg_model_create(params, &c, &model));
	CHECK_OK(hg_params_export(params, k ? NULL : &c, path, NULL));
	hg_model_free(model);
	hg_params_free(params);
	hg_context_free(ctx);
	return 1;
}
