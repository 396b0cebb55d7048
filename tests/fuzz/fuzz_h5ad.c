/* The reader of AnnData files, which have no checksum: valid HDF5 that is wrong in other ways. The
 * input of the fuzzer is a program that edits one of two good files. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "h5_edits.h"

/* ---- good files ---- */

static void text_attribute(hid_t object, const char *name, const char *text, size_t size)
{
	const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
	H5Tset_size(type, size);
	const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	if (attribute >= 0) {
		H5Awrite(attribute, type, size == H5T_VARIABLE ? (const void *)&text : text);
		H5Aclose(attribute);
	}
	H5Sclose(space);
	H5Tclose(type);
}

static void shape_attribute(hid_t object, int64_t rows, int64_t cols, hsize_t count, int real)
{
	const int64_t shape[3] = {rows, cols, 1};
	const hid_t space = H5Screate_simple(1, &count, NULL);
	const hid_t attribute = H5Acreate2(object, "shape", real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64,
	                                   space, H5P_DEFAULT, H5P_DEFAULT);
	if (attribute >= 0) {
		H5Awrite(attribute, H5T_NATIVE_INT64, shape);
		H5Aclose(attribute);
	}
	H5Sclose(space);
}

static void array(hid_t group, const char *name, hid_t type, int rank, hsize_t rows, hsize_t cols,
                  const void *values)
{
	const hsize_t dim[2] = {rows, cols};
	const hid_t space = H5Screate_simple(rank, dim, NULL);
	const hid_t data = H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (data < 0 || H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
		abort();
	H5Dclose(data);
	H5Sclose(space);
}

static void matrix(hid_t parent, const char *name, const char *encoding, int64_t cols,
                   const int32_t *indptr, const int32_t *indices)
{
	static const float data[] = {1, 0.5f, 1, 2};
	const hid_t group = H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	text_attribute(group, "encoding-type", encoding, H5T_VARIABLE);
	shape_attribute(group, 4, cols, 2, 0);
	array(group, "indptr", H5T_NATIVE_INT32, 1, 5, 0, indptr);
	array(group, "indices", H5T_NATIVE_INT32, 1, (hsize_t)indptr[4], 0, indices);
	array(group, "data", H5T_NATIVE_FLOAT, 1, (hsize_t)indptr[4], 0, data);
	H5Gclose(group);
}

static void categories(hid_t obs, const char *name)
{
	static const int8_t codes[] = {1, 0, -1, 1};
	const hid_t group = H5Gcreate2(obs, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	text_attribute(group, "encoding-type", "categorical", H5T_VARIABLE);
	array(group, "codes", H5T_NATIVE_INT8, 1, 4, 0, codes);
	H5Gclose(group);
}

/* kind 0: one matrix by rows, sparse features, one column of categories; 1: two matrices by
 * columns, dense features, two columns of categories. */
static void fill_file(hid_t file, int kind)
{
	static const int32_t rows[] = {0, 1, 3, 3, 4}, row_indices[] = {1, 2, 0, 3},
	                     x[] = {0, 2, 2, 3, 3}, x_indices[] = {0, 2, 1};
	static const float dense[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const hid_t obsp = H5Gcreate2(file, "obsp", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
	            obs = H5Gcreate2(file, "obs", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	matrix(obsp, "connectivities", kind ? "csc_matrix" : "csr_matrix", 4, rows, row_indices);
	if (kind)
		matrix(obsp, "distances", "csr_matrix", 4, rows, row_indices);
	if (kind)
		array(file, "X", H5T_NATIVE_FLOAT, 2, 4, 2, dense);
	else
		matrix(file, "X", "csr_matrix", 3, x, x_indices);
	categories(obs, "kind");
	if (kind)
		categories(obs, "batch");
	H5Gclose(obs);
	H5Gclose(obsp);
}

static const uint8_t *good_file(int kind, size_t *count)
{
	static uint8_t *image[2];
	static ssize_t size[2];
	if (!image[kind]) {
		const hid_t plist = H5Pcreate(H5P_FILE_ACCESS);
		H5Pset_fapl_core(plist, 1 << 14, 0);
		const hid_t file = H5Fcreate("good", H5F_ACC_TRUNC, H5P_DEFAULT, plist);
		if (file < 0)
			abort();
		fill_file(file, kind);
		H5Fflush(file, H5F_SCOPE_GLOBAL);
		size[kind] = H5Fget_file_image(file, NULL, 0);
		image[kind] = malloc((size_t)size[kind]);
		if (!image[kind] || H5Fget_file_image(file, image[kind], (size_t)size[kind]) < 0)
			abort();
		H5Fclose(file);
		H5Pclose(plist);
		if (fuzz_import("h5ad", image[kind], (size_t)size[kind]) != HG_OK)
			abort();
	}
	*count = (size_t)size[kind];
	return image[kind];
}

/* ---- edits ---- */

static const char *const members[] = {"obsp/connectivities/indptr",
                                      "obsp/connectivities/indices",
                                      "obsp/connectivities/data",
                                      "obsp/connectivities",
                                      "obsp/distances",
                                      "obsp/new",
                                      "obsp",
                                      "X",
                                      "X/indptr",
                                      "X/indices",
                                      "X/data",
                                      "obs",
                                      "obs/kind",
                                      "obs/kind/codes",
                                      "obs/batch",
                                      "obs/new"};

static void reattribute(struct program *p, hid_t file)
{
	static const char *const objects[] = {"obsp/connectivities", "X", "obs/kind", "obsp"},
	                         *const texts[] = {"csr_matrix", "csc_matrix", "array", "",
	                                           "\xff\n\x01"};
	const hid_t object = H5Oopen(file, objects[take(p) % 4], H5P_DEFAULT);
	const unsigned what = take(p) % 8;
	if (object < 0)
		return;
	const char *name = what < 4 ? "encoding-type" : "shape";
	H5Adelete(object, name);
	if (what < 3) {
		char text[16] = "";
		snprintf(text, sizeof text, "%s", texts[take(p) % 5]);
		text_attribute(object, name, text, what ? sizeof text : H5T_VARIABLE);
	} else if (what == 6)
		text_attribute(object, name, "4", 1);
	else if (what != 7) { /* 3: the encoding is gone, or numbers; 7: the shape is gone */
		const int64_t scale = (int64_t)1 << take(p) % 36, rows = (int8_t)take(p) * scale;
		shape_attribute(object, rows, (int8_t)take(p), 1 + take(p) % 3, what == 5);
	}
	H5Oclose(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct target target = {members, sizeof members / sizeof *members, reattribute};
	struct program p = {bytes, bytes + count};
	size_t size = 0;
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	const uint8_t *good = good_file(take(&p) % 2, &size);
	uint8_t *image = edited(&p, good, size, &target, &size);
	(void)fuzz_import("h5ad", image, size);
	free(image);
	return 0;
}
