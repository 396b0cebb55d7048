/* AnnData's files, written here as anndata writes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static void text_attribute(hid_t object, const char *name, const char *text)
{
	const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
	CHECK(H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0);
	const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0 && H5Awrite(attribute, type, &text) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
	H5Tclose(type);
}

static void array(hid_t group, const char *name, hid_t type, int rank, hsize_t rows, hsize_t cols,
                  const void *values)
{
	const hsize_t dim[2] = {rows, cols};
	const hid_t space = H5Screate_simple(rank, dim, NULL);
	const hid_t data = H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(data >= 0 && H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
	H5Dclose(data);
	H5Sclose(space);
}

/* A sparse matrix; `major` pointers follow one another. */
struct sparse {
	const char *encoding;
	int64_t shape[2], pointers[6];
	int32_t indices[8];
	float data[8];
	int major, stored;
};
/* 0 <- 1 (1), 1 <- 0 (1), 1 <- 2 (0.5), 3 <- 3 (2) */
static const struct sparse
    by_row = {"csr_matrix", {4, 4}, {0, 1, 3, 3, 4}, {1, 2, 0, 3}, {1, 0.5f, 1, 2}, 4, 4},
    by_column = {"csc_matrix", {4, 4}, {0, 1, 2, 3, 4}, {1, 0, 1, 3}, {1, 1, 0.5f, 2}, 4, 4},
    counts = {"csr_matrix", {4, 3}, {0, 2, 2, 3, 3}, {0, 2, 1}, {3, 1, 7}, 4, 3};

static void sparse(hid_t parent, const char *name, const struct sparse *m)
{
	const hsize_t two = 2;
	const hid_t group = H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
	            space = H5Screate_simple(1, &two, NULL);
	CHECK(group >= 0);
	if (m->encoding)
		text_attribute(group, "encoding-type", m->encoding);
	const hid_t shape =
	    H5Acreate2(group, "shape", H5T_NATIVE_INT64, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(shape >= 0 && H5Awrite(shape, H5T_NATIVE_INT64, m->shape) >= 0);
	H5Aclose(shape);
	H5Sclose(space);
	array(group, "indptr", H5T_NATIVE_INT64, 1, (hsize_t)m->major + 1, 0, m->pointers);
	array(group, "indices", H5T_NATIVE_INT32, 1, (hsize_t)m->stored, 0, m->indices);
	array(group, "data", H5T_NATIVE_FLOAT, 1, (hsize_t)m->stored, 0, m->data);
	H5Gclose(group);
}

static void categories(hid_t obs, const char *name, const int8_t *codes, int count, int texts)
{
	const hid_t group = H5Gcreate2(obs, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	text_attribute(group, "encoding-type", "categorical");
	array(group, "codes", H5T_NATIVE_INT8, 1, (hsize_t)count, 0, codes);
	if (texts) {
		const hsize_t n = 3; /* the last one has no node */
		const char *const text[] = {"B cell", "T cell", "none"};
		const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &n, NULL);
		CHECK(H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0);
		const hid_t data =
		    H5Dcreate2(group, "categories", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		CHECK(data >= 0 && H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
		H5Dclose(data);
		H5Sclose(space);
		H5Tclose(type);
	} else {
		array(group, "categories", H5T_NATIVE_INT8, 1, 2, 0, codes);
	}
	H5Gclose(group);
}

/* What a file holds. */
struct content {
	const struct sparse *graph, *other; /* other: a second matrix of obsp, "distances" */
	const char *graph_name;
	const struct sparse *sparse_x;
	int dense_rows;
	int codes, second; /* lengths of columns of categories */
	int texts;         /* the first are texts, not numbers */
};
static const struct content plain = {
    .graph = &by_row, .graph_name = "knn", .sparse_x = &counts, .codes = 4};

static const char *file_of(const struct content *c)
{
	static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	static const int8_t codes[] = {1, 0, -1, 1, 0};
	static const double numbers[] = {0.5, 1, 2, 3};
	const char *path = scratch(0, "toy.h5ad");
	const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(file >= 0);
	text_attribute(file, "encoding-type", "anndata");
	if (c->graph) {
		const hid_t obsp = H5Gcreate2(file, "obsp", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		sparse(obsp, c->graph_name, c->graph);
		if (c->other)
			sparse(obsp, "distances", c->other);
		H5Gclose(obsp);
	}
	if (c->sparse_x)
		sparse(file, "X", c->sparse_x);
	if (c->dense_rows)
		array(file, "X", H5T_NATIVE_FLOAT, 2, (hsize_t)c->dense_rows, 2, x);
	const hid_t obs = H5Gcreate2(file, "obs", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	array(obs, "score", H5T_NATIVE_DOUBLE, 1, 4, 0, numbers);
	if (c->codes)
		categories(obs, "kind", codes, c->codes, c->texts);
	if (c->second)
		categories(obs, "batch", codes, c->second, 0);
	H5Gclose(obs);
	H5Fclose(file);
	return path;
}

static void file_is_read(void)
{
	static const int64_t rowptr[] = {0, 1, 3, 3, 4}, feat[] = {0, 2, 2, 3, 3};
	static const int32_t col[] = {1, 0, 2, 3}, feat_col[] = {0, 2, 1}, label[] = {1, 0, -1, 1};
	static const float weight[] = {1, 1, 0.5f, 2}, value[] = {3, 1, 7};
	hg_dataset *d = must_import("h5ad", file_of(&plain));
	CHECK_STR(d->name, "toy");
	CHECK(d->nodes == 4 && d->edges == 4 && d->features == 3 && d->classes == 2);
	CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0 &&
	      memcmp(d->weight, weight, sizeof weight) == 0);
	CHECK(memcmp(d->feat_rowptr, feat, sizeof feat) == 0 &&
	      memcmp(d->feat_col, feat_col, sizeof feat_col) == 0 &&
	      memcmp(d->feat_value, value, sizeof value) == 0 && d->feat_amax == 7);
	CHECK(memcmp(d->label, label, sizeof label) == 0 && !d->class_name);
	struct content c = plain;
	c.texts = 1;
	hg_dataset *named = must_import("h5ad", file_of(&c));
	CHECK(named->classes == 2 && named->class_name_bytes == sizeof "B cell\0T cell");
	CHECK_STR(hg_dataset_class_name(named, 0), "B cell");
	CHECK_STR(hg_dataset_class_name(named, 1), "T cell");
	hg_dataset_free(named);
	c.texts = 0;
	c.graph = &by_column;
	c.graph_name = "connectivities";
	c.other = &by_row;
	hg_dataset *same = must_import("h5ad", file_of(&c));
	check_same(d, same);
	hg_dataset_free(same);
	CHECK_EQ_I(run_convert("@/toy.h5ad -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "toy.h5ad: read as h5ad\n");
	CHECK_CONTAINS(convert_err, "of the 2 matrices in /obsp, connectivities is the graph\n");
	CHECK_CONTAINS(convert_err, "the categories of /obs/kind are the labels\n");
	same = must_read(scratch(1, "toy.h5"));
	check_same(d, same);
	hg_dataset_free(same);
	hg_dataset_free(d);
	c = plain;
	c.sparse_x = NULL;
	c.dense_rows = 4;
	c.second = 4;
	d = must_import("h5ad", file_of(&c));
	CHECK(d->features == 2 && ((float *)d->feat)[7] == 8 && !d->label);
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("@/toy.h5ad -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "/obs has 2 columns of categories");
	c.dense_rows = c.codes = c.second = 0;
	d = must_import("h5ad", file_of(&c));
	CHECK(d->features == 0 && !d->label);
	hg_dataset_free(d);
}

static void bad_files_are_refused(void)
{
	struct content c = plain;
	struct sparse m = by_row;
	c.graph = &m;
#define REFUSED(change, part)                                    \
	do {                                                         \
		m = by_row;                                              \
		change;                                                  \
		must_refuse("h5ad", file_of(&c), HG_ERR_FORMAT, (part)); \
	} while (0)
	REFUSED(m.encoding = "array", "/obsp/knn: encoding-type is array, expected csr_matrix or");
	REFUSED(m.encoding = NULL, "/obsp/knn: encoding-type is missing, expected csr_matrix or");
	REFUSED(m.shape[1] = 5, "/obsp/knn: is 4 x 5, expected as many rows as columns");
	REFUSED(m.shape[0] = 5, "/obsp/knn/indptr: has 5 elements, expected 6");
	REFUSED(m.shape[0] = INT64_C(1) << 31, "at most 2147483647 rows and columns are possible");
	REFUSED(m.shape[0] = -1, "/obsp/knn: is -1 x 4");
	REFUSED(m.pointers[1] = 4, "/obsp/knn: pointers decrease after row 1: 3 after 4");
	REFUSED(m.pointers[0] = 1, "/obsp/knn: pointers start at 1, expected 0");
	REFUSED(m.pointers[4] = 5, "/obsp/knn: has 4 indices and 4 data, expected 5 by indptr");
	REFUSED(m.indices[2] = 4, "/obsp/knn/indices: value 4 at 2");
	REFUSED(m.indices[2] = -1, "/obsp/knn/indices: value -1 at 2");
	m = by_row;
	struct sparse x = counts;
	x.shape[0] = 3;
	x.major = 3;
	c.sparse_x = &x;
	must_refuse("h5ad", file_of(&c), HG_ERR_FORMAT, "/X: has 3 rows, but there are 4 nodes");
	c = plain;
	c.sparse_x = NULL;
	c.dense_rows = 5;
	must_refuse("h5ad", file_of(&c), HG_ERR_FORMAT, "/X: has 5 rows, but there are 4 nodes");
	c = plain;
	c.codes = 5;
	must_refuse("h5ad", file_of(&c), HG_ERR_FORMAT,
	            "/obs/kind/codes: has 5 rows, but there are 4 nodes");
	c = plain;
	c.other = &by_row;
	must_refuse("h5ad", file_of(&c), HG_ERR_FORMAT,
	            "/obsp: holds 2 matrices, expected one, or one that is called connectivities");
	c.graph = NULL;
	must_refuse("h5ad", file_of(&c), HG_ERR_FORMAT, "/obsp: no such group");
	write_text(scratch(0, "text.h5ad"), "no HDF5");
	must_refuse("h5ad", scratch(0, "text.h5ad"), HG_ERR_FORMAT, "not an HDF5 file");
	must_refuse("h5ad", scratch(0, "absent.h5ad"), HG_ERR_IO, "No such file");
	size_t count = 0;
	unsigned char *bytes = read_bytes(file_of(&plain), &count);
	write_bytes(scratch(0, "cut.h5ad"), bytes, count / 2);
	free(bytes);
	must_refuse("h5ad", scratch(0, "cut.h5ad"), HG_ERR_FORMAT, "damaged or truncated HDF5 file");
	CHECK_EQ_I(run_convert("@/cut.h5ad -o @/never.h5"), 2);
	CHECK_EQ_I(count_scratch("never.h5"), 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(file_is_read), TEST(bad_files_are_refused)};
	return RUN_TESTS(argc, argv, cases);
}
