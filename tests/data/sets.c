#include "sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "pickles.h"

const char *small_set_path(const char *file)
{
	char name[128];
	snprintf(name, sizeof name, "set%s%s", *file ? "/" : "", file);
	return scratch(3, name);
}

/* ---- texts ---- */

/* The text with id and x in the places of $I and $X. */
static const char *filled(const char *text, const char *id, const char *x)
{
	static char out[1024];
	size_t used = 0;
	for (const char *c = text; *c; c++) {
		const char *word = c[0] == '$' && c[1] == 'I' ? id : c[0] == '$' && c[1] == 'X' ? x : NULL;
		used += (size_t)(word ? snprintf(out + used, sizeof out - used, "%s", word)
		                      : snprintf(out + used, sizeof out - used, "%c", *c));
		c += word != NULL;
		CHECK(used < sizeof out);
	}
	return out;
}

static void put(const char *file, const char *text, const char *id, const char *x)
{
	write_text(small_set_path(file), filled(text, id, x));
}

static void put_packed(const char *file, const char *text, const char *id, const char *x)
{
	const char *content = filled(text, id, x);
	gzFile out = gzopen(small_set_path(file), "wb");
	CHECK(out != NULL && gzputs(out, content) == (int)strlen(content) && gzclose(out) == Z_OK);
}

static void folder(const char *name)
{
	CHECK(mkdir(small_set_path(name), 0755) == 0);
}

static void make_tu(const char *id, const char *x)
{
	put("DS_A.txt", "1, 2\n2, $I\n", id, x);
	put("DS_graph_indicator.txt", "1\n1\n2\n", id, x);
	put("DS_graph_labels.txt", "0\n1\n", id, x);
	put("DS_node_attributes.txt", "1\n$X\n2\n", id, x);
}

static void make_gin(const char *id, const char *x)
{
	put("g.txt", "2\n2 0\n0 1 1 $X\n0 1 $I 1\n1 1\n1 0 2\n", id, x);
}

static void make_musae(const char *id, const char *x)
{
	put("toy_edges.csv", "id_1,id_2\n0,1\n1,$I\n", id, x);
	put("toy_features.json", "{\"0\":[$X],\"1\":[0],\"2\":[1]}\n", id, x);
	put("toy_target.csv", "new_id,mature\n0,True\n1,False\n2,True\n", id, x);
}

static void make_ogb(const char *id, const char *x)
{
	folder("raw");
	put_packed("raw/num-node-list.csv.gz", "3\n", id, x);
	put_packed("raw/num-edge-list.csv.gz", "2\n", id, x);
	put_packed("raw/edge.csv.gz", "0,1\n1,$I\n", id, x);
	put_packed("raw/node-feat.csv.gz", "1\n$X\n2\n", id, x);
}

static void make_edges(const char *id, const char *x)
{
	put("g.txt", "0 1 1\n1 $I $X\n", id, x);
}

static void make_mtx(const char *id, const char *x)
{
	put("g.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n2 $I $X\n", id, x);
}

static void make_metis(const char *id, const char *x)
{
	put("g.graph", "3 2 1\n2 1\n1 1 $I $X\n2 $X\n", id, x);
}

static void make_dgl(const char *id, const char *x)
{
	put("meta.yaml",
	    "dataset_name: toy\nedge_data:\n- file_name: edges.csv\nnode_data:\n- file_name: "
	    "nodes.csv\n",
	    id, x);
	put("edges.csv", "src_id,dst_id\n0,1\n1,$I\n", id, x);
	put("nodes.csv", "node_id,feat\n0,1\n1,$X\n2,2\n", id, x);
}

/* ---- numpy and pickles ---- */

static void make_npz(const char *id, const char *x)
{
	const int64_t shape[] = {3, 3}, pointers[] = {0, 1, 2, 2},
	              indices[] = {1, strtoll(id, NULL, 10)};
	const float features[] = {1, strtof(x, NULL), 2};
	struct npz_out *out = npz_begin(small_set_path("g.npz"));
	npz_add(out, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(out, "adj_indptr", "<i8", "(4,)", pointers, sizeof pointers);
	npz_add(out, "adj_indices", "<i8", "(2,)", indices, sizeof indices);
	npz_add(out, "attr_matrix", "<f4", "(3, 1)", features, sizeof features);
	npz_end(out, 0);
}

static void make_graphbolt(const char *id, const char *x)
{
	const int64_t ends[] = {0, 1, 1, strtoll(id, NULL, 10)};
	const float features[] = {1, strtof(x, NULL), 2};
	put("metadata.yaml",
	    "graph:\n  nodes:\n  - num: 3\n  edges:\n  - {format: numpy, path: edges.npy}\n"
	    "feature_data:\n- {domain: node, name: feat, format: numpy, path: x.npy}\n",
	    id, x);
	write_npy(small_set_path("edges.npy"), "<i8", "(2, 2)", ends, sizeof ends);
	write_npy(small_set_path("x.npy"), "<f4", "(3, 1)", features, sizeof features);
}

static void make_planetoid(const char *id, const char *x)
{
	static struct pickle out;
	struct small_planetoid set = planetoid_toy;
	char graph[128], test[64], name[64];
	/* pickles of the graph have 32-bit numbers here, and test.index is a text */
	const int wide = strlen(id) > 9;
	snprintf(graph, sizeof graph, "0: 1 2 1\n1: 0\n2: 0 2\n3: 4\n4: 3 %s\n5:\n6: 4\n",
	         wide ? "6" : id);
	snprintf(test, sizeof test, "%s\n4\n", wide ? id : "6");
	set.graph = graph;
	set.test = test;
	set.allx.data[0] = strtof(x, NULL);
	for (int k = 0; k < PLANETOID_MEMBERS; k++) {
		snprintf(name, sizeof name, "ind.toy.%s", planetoid_members[k]);
		planetoid_member(&set, k, &out);
		write_bytes(small_set_path(name), out.bytes, out.count);
	}
}

/* ---- HDF5 ---- */

static void put_array(hid_t parent, const char *name, hid_t type, int rank, hsize_t rows,
                      const void *values)
{
	const hsize_t dim[2] = {rows, 1};
	const hid_t space = H5Screate_simple(rank, dim, NULL);
	const hid_t data = H5Dcreate2(parent, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(data >= 0 && H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
	H5Dclose(data);
	H5Sclose(space);
}

static void put_text(hid_t object, const char *name, const char *text)
{
	const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
	CHECK(H5Tset_size(type, strlen(text) + 1) >= 0);
	const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0 && H5Awrite(attribute, type, text) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
	H5Tclose(type);
}

static void put_shape(hid_t object)
{
	static const int64_t shape[2] = {3, 3};
	const hsize_t two = 2;
	const hid_t space = H5Screate_simple(1, &two, NULL);
	const hid_t attribute =
	    H5Acreate2(object, "shape", H5T_NATIVE_INT64, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT64, shape) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
}

static void make_h5ad(const char *id, const char *x)
{
	static const int64_t pointers[] = {0, 1, 2, 2};
	static const float data[] = {1, 1};
	static const int8_t codes[] = {1, 0, 1};
	const int64_t indices[] = {1, strtoll(id, NULL, 10)};
	const float features[] = {1, strtof(x, NULL), 2};
	const hid_t file = H5Fcreate(small_set_path("g.h5ad"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(file >= 0);
	put_text(file, "encoding-type", "anndata");
	const hid_t obsp = H5Gcreate2(file, "obsp", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
	            graph = H5Gcreate2(obsp, "knn", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_text(graph, "encoding-type", "csr_matrix");
	put_shape(graph);
	put_array(graph, "indptr", H5T_NATIVE_INT64, 1, 4, pointers);
	put_array(graph, "indices", H5T_NATIVE_INT64, 1, 2, indices);
	put_array(graph, "data", H5T_NATIVE_FLOAT, 1, 2, data);
	H5Gclose(graph);
	H5Gclose(obsp);
	put_array(file, "X", H5T_NATIVE_FLOAT, 2, 3, features);
	const hid_t obs = H5Gcreate2(file, "obs", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
	            kind = H5Gcreate2(obs, "kind", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_text(kind, "encoding-type", "categorical");
	put_array(kind, "codes", H5T_NATIVE_INT8, 1, 3, codes);
	H5Gclose(kind);
	H5Gclose(obs);
	H5Fclose(file);
}

/* The writer checks what it writes, so other values are put into a file without a checksum. */
static void make_h5(const char *id, const char *x)
{
	static const int64_t pointers[] = {0, 1, 2, 2};
	static const int32_t columns[] = {1, 0};
	static const float values[] = {1, 0.5f, 2};
	const int64_t indices[] = {1, strtoll(id, NULL, 10)};
	const float features[] = {1, strtof(x, NULL), 2};
	hg_dataset d = {.nodes = 3,
	                .edges = 2,
	                .graphs = 1,
	                .features = 1,
	                .feat_dtype = HG_F32,
	                .rowptr = (int64_t *)pointers,
	                .col = (int32_t *)columns,
	                .feat = (float *)values};
	char path[256];
	snprintf(path, sizeof path, "%s", small_set_path("g.h5"));
	must_write(&d, path);
	if (strcmp(id, "0") == 0 && strcmp(x, "0.5") == 0)
		return;
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0 && H5Ldelete(file, "graph/indices_1", H5P_DEFAULT) >= 0 &&
	      H5Ldelete(file, "nodes/feat", H5P_DEFAULT) >= 0);
	put_array(file, "graph/indices_1", H5T_NATIVE_INT64, 1, 2, indices);
	put_array(file, "nodes/feat", H5T_NATIVE_FLOAT, 2, 3, features);
	H5Fclose(file);
}

/* ---- the table ---- */

/* clang-format off: one row each */
const struct small_set small_sets[] = {
    {"npz", "g.npz", {"g.npz"}, 1, make_npz, "0", "0.5"},
    {"tu",
     "DS_A.txt",
     {"DS_A.txt", "DS_graph_indicator.txt", "DS_graph_labels.txt"},
     3,
     make_tu,
     "1",
     "0.5"},
    {"gin", "g.txt", {"g.txt"}, 1, make_gin, "0", "0.5"},
    {"musae", "toy_edges.csv", {"toy_edges.csv", "toy_target.csv"}, 2, make_musae, "2", "1"},
    {"ogb",
     "",
     {"raw/edge.csv.gz", "raw/num-node-list.csv.gz", "raw/num-edge-list.csv.gz"},
     3,
     make_ogb,
     "2",
     "0.5"},
    {"edges", "g.txt", {"g.txt"}, 1, make_edges, "2", "0.5"},
    {"mtx", "g.mtx", {"g.mtx"}, 1, make_mtx, "3", "0.5"},
    {"planetoid",
     "ind.toy.graph",
     {"ind.toy.graph", "ind.toy.test.index", "ind.toy.x", "ind.toy.y", "ind.toy.tx", "ind.toy.ty",
      "ind.toy.ally"},
     7,
     make_planetoid,
     "6",
     "1"},
    {"metis", "g.graph", {"g.graph"}, 1, make_metis, "3", "0.5"},
    {"h5ad", "g.h5ad", {"g.h5ad"}, 1, make_h5ad, "0", "0.5"},
    {"graphbolt", "", {"edges.npy", "x.npy", "metadata.yaml"}, 3, make_graphbolt, "2", "0.5"},
    {"dgl-csv", "", {"edges.csv", "nodes.csv", "meta.yaml"}, 3, make_dgl, "2", "0.5"},
    {"h5", "g.h5", {"g.h5"}, 1, make_h5, "0", "0.5"},
};
/* clang-format on */
const int small_set_count = sizeof small_sets / sizeof small_sets[0];

void small_set_make(const struct small_set *set, const char *id, const char *x)
{
	char command[320];
	snprintf(command, sizeof command, "rm -rf \"%s\"", small_set_path(""));
	CHECK(system(command) == 0);
	CHECK(mkdir(small_set_path(""), 0755) == 0);
	set->make(id ? id : set->id, x ? x : set->x);
}

void small_set_pack(const struct small_set *set, const char *name, int left_out)
{
	struct npz_out *out = npz_begin(scratch(2, name));
	for (int k = 0; k < set->count; k++) {
		size_t count = 0;
		if (k == left_out)
			continue;
		unsigned char *bytes = read_bytes(small_set_path(set->files[k]), &count);
		npz_raw(out, set->files[k], bytes, count);
		free(bytes);
	}
	npz_end(out, 0);
}
