/* Damaged HDF5 files. Each is refused with one line that names the file and the place, before
 * anything of it is used. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static hid_t open_file(const char *path)
{
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0);
	return file;
}

static void put(hid_t file, const char *name, hid_t file_type, hid_t memory_type, int rank,
                const hsize_t *dim, const void *values)
{
	if (H5Lexists(file, name, H5P_DEFAULT) > 0)
		CHECK(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
	const hid_t space = H5Screate_simple(rank, dim, NULL),
	            data =
	                H5Dcreate2(file, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(data >= 0 &&
	      (!values || H5Dwrite(data, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0));
	H5Dclose(data);
	H5Sclose(space);
}

static void put_i64(hid_t file, const char *name, hsize_t count, const int64_t *values)
{
	put(file, name, H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &count, values);
}

static void put_text(hid_t file, const char *object, const char *name, const char *text)
{
	const hid_t at = H5Oopen(file, object, H5P_DEFAULT), type = H5Tcopy(H5T_C_S1),
	            space = H5Screate(H5S_SCALAR);
	CHECK(at >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0);
	if (H5Aexists(at, name) > 0)
		CHECK(H5Adelete(at, name) >= 0);
	const hid_t attribute = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0 && H5Awrite(attribute, type, &text) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
	H5Tclose(type);
	H5Oclose(at);
}

static void drop(hid_t file, const char *name)
{
	CHECK(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
}

static void descriptor(hid_t file, const char *version, const char *format, const char *shape,
                       const char *more)
{
	char text[512];
	snprintf(text, sizeof text,
	         "{\"binsparse\": {\"version\": \"%s\", \"format\": \"%s\", \"shape\": %s, "
	         "\"number_of_stored_values\": 11, "
	         "\"data_types\": {\"pointers_to_1\": \"int64\", \"indices_1\": \"int32\", \"values\": "
	         "\"float32\"}%s}}",
	         version, format, shape, more);
	put_text(file, "/graph", "binsparse", text);
}

static void no_format(hid_t f)
{
	CHECK(H5Adelete(f, "format") >= 0);
}
static void other_format(hid_t f)
{
	put_text(f, "/", "format", "anndata");
}
static void newer_version(hid_t f)
{
	put_text(f, "/", "format_version", "2.0");
}
static void no_graph(hid_t f)
{
	drop(f, "graph");
}
static void no_indices(hid_t f)
{
	drop(f, "graph/indices_1");
}
static void no_pointers(hid_t f)
{
	drop(f, "graph/pointers_to_1");
}
static void no_values(hid_t f)
{
	drop(f, "graph/values");
}
static void group_for_dataset(hid_t f)
{
	drop(f, "graph/indices_1");
	H5Gclose(H5Gcreate2(f, "graph/indices_1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void soft_link(hid_t f)
{
	drop(f, "graph/indices_1");
	CHECK(H5Lcreate_soft("/nodes/label", f, "graph/indices_1", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void external_link(hid_t f)
{
	drop(f, "nodes");
	CHECK(H5Lcreate_external("/etc/other.h5", "/nodes", f, "nodes", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void float_indices(hid_t f)
{
	const float values[11] = {0};
	const hsize_t n = 11;
	put(f, "graph/indices_1", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &n, values);
}
static void broken_chunk(hid_t f)
{
	const hsize_t origin = 0;
	const hid_t data = H5Dopen2(f, "graph/indices_1", H5P_DEFAULT);
	CHECK(data >= 0 && H5Dwrite_chunk(data, H5P_DEFAULT, 0, &origin, 10, "not zlib's") >= 0);
	H5Dclose(data);
}
static void two_dimensions(hid_t f)
{
	const int64_t values[12] = {0};
	const hsize_t n[2] = {6, 2};
	put(f, "graph/indices_1", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, n, values);
}
static void short_pointers(hid_t f)
{
	put_i64(f, "graph/pointers_to_1", 6, (const int64_t[]){0, 2, 5, 7, 9, 11});
}
static void falling_pointers(hid_t f)
{
	put_i64(f, "graph/pointers_to_1", 7, (const int64_t[]){0, 2, 5, 4, 9, 11, 11});
}
static void late_pointers(hid_t f)
{
	put_i64(f, "graph/pointers_to_1", 7, (const int64_t[]){1, 2, 5, 7, 9, 11, 11});
}
static void early_pointers(hid_t f)
{
	put_i64(f, "graph/pointers_to_1", 7, (const int64_t[]){0, 2, 5, 7, 9, 10, 10});
}
static void huge_pointers(hid_t f)
{
	put_i64(f, "graph/pointers_to_1", 7, (const int64_t[]){0, 2, 5, 7, 9, INT64_C(1) << 60, 11});
}
static void endless_pointers(hid_t f)
{
	const uint64_t values[7] = {0, UINT64_MAX, 5, 7, 9, 11, 11};
	const hsize_t n = 7;
	put(f, "graph/pointers_to_1", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n, values);
}
static void endless_ids(hid_t f)
{
	const uint64_t values[6] = {0, 1, 2, 3, 4, UINT64_C(1) << 63};
	const hsize_t n = 6;
	put(f, "nodes/orig_id", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n, values);
}
static void order_beyond(hid_t f)
{
	put_i64(f, "nodes/order", 6, (const int64_t[]){0, 1, 2, 3, 4, 6});
}
static void order_twice(hid_t f)
{
	put_i64(f, "nodes/order", 6, (const int64_t[]){0, 1, 2, 3, 4, 0});
}
static void order_short(hid_t f)
{
	put_i64(f, "nodes/order", 5, (const int64_t[]){0, 1, 2, 3, 4});
}
static void index_too_large(hid_t f)
{
	put_i64(f, "graph/indices_1", 11, (const int64_t[]){1, 2, 0, 2, 6, 0, 1, 1, 4, 3, 4});
}
static void index_wraps(hid_t f)
{
	put_i64(f, "graph/indices_1", 11,
	        (const int64_t[]){1, 2, 0, 2, (INT64_C(1) << 32) + 3, 0, 1, 1, 4, 3, 4});
}
static void index_negative(hid_t f)
{
	put_i64(f, "graph/indices_1", 11, (const int64_t[]){-1, 2, 0, 2, 3, 0, 1, 1, 4, 3, 4});
}
static void index_twice(hid_t f)
{
	put_i64(f, "graph/indices_1", 11, (const int64_t[]){1, 1, 0, 2, 3, 0, 1, 1, 4, 3, 4});
}
static void infinite_weight(hid_t f)
{
	const float values[11] = {1, 1, -INFINITY};
	const hsize_t n = 11;
	put(f, "graph/values", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &n, values);
}
static void huge_weight(hid_t f)
{
	const double values[11] = {1, 1, 1, 1e300};
	const hsize_t n = 11;
	put(f, "graph/values", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &n, values);
}
static void few_weights(hid_t f)
{
	const float values[2] = {1, 1};
	const hsize_t n = 2;
	put(f, "graph/values", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &n, values);
}
static void never_written(hid_t f)
{
	const hsize_t n = 11;
	put(f, "graph/indices_1", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n, NULL);
}
static void claims_terabytes(hid_t f)
{
	const hsize_t dim[2] = {6, INT64_C(1) << 40}, chunk[2] = {1, 1};
	const hid_t space = H5Screate_simple(2, dim, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
	drop(f, "nodes/feat");
	CHECK(H5Pset_chunk(plist, 2, chunk) >= 0);
	const hid_t data =
	    H5Dcreate2(f, "nodes/feat", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
	CHECK(data >= 0);
	H5Dclose(data);
	H5Pclose(plist);
	H5Sclose(space);
}
static void data_elsewhere(hid_t f)
{
	const hsize_t n = 6;
	const hid_t space = H5Screate_simple(1, &n, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
	drop(f, "nodes/label");
	CHECK(H5Pset_external(plist, "/etc/hostname", 0, 24) >= 0);
	const hid_t data =
	    H5Dcreate2(f, "nodes/label", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
	CHECK(data >= 0);
	H5Dclose(data);
	H5Pclose(plist);
	H5Sclose(space);
}
static void other_filter(hid_t f)
{
	const hsize_t n = 6;
	const int32_t label[6] = {0};
	const hid_t space = H5Screate_simple(1, &n, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
	drop(f, "nodes/label");
	CHECK(H5Pset_chunk(plist, 1, &n) >= 0 && H5Pset_scaleoffset(plist, H5Z_SO_INT, 0) >= 0);
	const hid_t data =
	    H5Dcreate2(f, "nodes/label", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
	CHECK(data >= 0 && H5Dwrite(data, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, label) >= 0);
	H5Dclose(data);
	H5Pclose(plist);
	H5Sclose(space);
}
static void feature_nan(hid_t f)
{
	float values[18] = {0};
	const hsize_t n[2] = {6, 3};
	values[11] = NAN;
	put(f, "nodes/feat", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, n, values);
}
static void feature_rows(hid_t f)
{
	const float values[15] = {0};
	const hsize_t n[2] = {5, 3};
	put(f, "nodes/feat", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, n, values);
}
static void feature_text(hid_t f)
{
	const char values[18] = {0};
	const hsize_t n[2] = {6, 3};
	const hid_t type = H5Tcopy(H5T_C_S1);
	put(f, "nodes/feat", type, type, 2, n, values);
	H5Tclose(type);
}
static void label_too_large(hid_t f)
{
	put_i64(f, "nodes/label", 6, (const int64_t[]){0, 1, 2, 3, 0, 0});
}
static void no_classes(hid_t f)
{
	const hid_t attribute = H5Aopen(f, "num_classes", H5P_DEFAULT);
	CHECK(attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT, &(int){0}) >= 0);
	H5Aclose(attribute);
}
static void label_far(hid_t f)
{
	CHECK(H5Adelete(f, "num_classes") >= 0);
	put_i64(f, "nodes/label", 6, (const int64_t[]){0, 1, 1000000000, -1, 0, 0});
}
static void label_float(hid_t f)
{
	const float values[6] = {0};
	const hsize_t n = 6;
	put(f, "nodes/label", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &n, values);
}
static void label_count(hid_t f)
{
	put_i64(f, "nodes/label", 5, (const int64_t[]){0, 1, 2, 0, 0});
}
static void means_alone(hid_t f)
{
	drop(f, "nodes/feat_deviation");
}
static void put_f64(hid_t f, const char *name, hsize_t count, const double *values)
{
	put(f, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &count, values);
}
static void few_means(hid_t f)
{
	put_f64(f, "nodes/feat_mean", 2, (const double[]){0, 0});
}
static void mean_nan(hid_t f)
{
	put_f64(f, "nodes/feat_mean", 3, (const double[]){0, NAN, 0});
}
static void deviation_negative(hid_t f)
{
	put_f64(f, "nodes/feat_deviation", 3, (const double[]){1, 1, -0.5});
}
static void edge_rows(hid_t f)
{
	const float values[20] = {0};
	const hsize_t n[2] = {10, 2};
	put(f, "edges/feat", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, n, values);
}
static void edge_vector(hid_t f)
{
	const float values[11] = {0};
	const hsize_t n = 11;
	put(f, "edges/feat", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &n, values);
}
static void edge_huge(hid_t f)
{
	double values[22] = {0};
	const hsize_t n[2] = {11, 2};
	values[5] = -1e39;
	put(f, "edges/feat", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, n, values);
}
static void edge_nan(hid_t f)
{
	float values[22] = {0};
	const hsize_t n[2] = {11, 2};
	values[5] = NAN;
	put(f, "edges/feat", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, n, values);
}
static void edge_label_rows(hid_t f)
{
	put_i64(f, "edges/label", 2, (const int64_t[]){0, 1});
}
static void edge_label_float(hid_t f)
{
	const float values[11] = {0};
	const hsize_t n = 11;
	put(f, "edges/label", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, &n, values);
}
static void edge_label_beyond(hid_t f)
{
	put_i64(f, "edges/label", 11, (const int64_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5});
}
static void edge_label_wraps(hid_t f)
{
	put_i64(f, "edges/label", 11, (const int64_t[11]){INT64_C(1) << 32});
}
static void edge_label_far(hid_t f)
{
	CHECK(H5Adelete(f, "num_edge_classes") >= 0);
	put_i64(f, "edges/label", 11, (const int64_t[]){0, 0, 99, -1, 0, 0, 0, 0, 0, 0, 0});
}
static void edge_classes_wrap(hid_t f)
{
	const hid_t space = H5Screate(H5S_SCALAR);
	CHECK(H5Adelete(f, "num_edge_classes") >= 0);
	const hid_t attribute =
	    H5Acreate2(f, "num_edge_classes", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0 &&
	      H5Awrite(attribute, H5T_NATIVE_INT64, &(int64_t){INT64_C(1) << 32}) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
}
static void edges_not_a_group(hid_t f)
{
	drop(f, "edges");
	put_i64(f, "edges", 1, (const int64_t[]){1});
}
static void mask_two(hid_t f)
{
	put_i64(f, "nodes/train_mask", 6, (const int64_t[]){0, 2, 0, 0, 0, 0});
}
static void mask_overlap(hid_t f)
{
	put_i64(f, "nodes/train_mask", 6, (const int64_t[]){1, 0, 0, 0, 0, 1});
}
static void split_out_of_range(hid_t f)
{
	H5Gclose(H5Gcreate2(f, "split", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	drop(f, "nodes/val_mask");
	put_i64(f, "split/valid", 2, (const int64_t[]){0, 6});
}
static void split_twice(hid_t f)
{
	H5Gclose(H5Gcreate2(f, "split", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	put_i64(f, "split/valid", 1, (const int64_t[]){2});
}
static void batch_short(hid_t f)
{
	H5Gclose(H5Gcreate2(f, "batch", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	put_i64(f, "batch/graph_ptr", 2, (const int64_t[]){0, 5});
}
static void not_json(hid_t f)
{
	put_text(f, "/graph", "binsparse", "{\"binsparse\": ");
}
static void no_descriptor(hid_t f)
{
	put_text(f, "/graph", "binsparse", "{\"other\": 1}");
}
static void csc(hid_t f)
{
	descriptor(f, "0.1", "CSC", "[6, 6]", "");
}
static void future(hid_t f)
{
	descriptor(f, "1.0", "CSR", "[6, 6]", "");
}
static void rectangle(hid_t f)
{
	descriptor(f, "0.1", "CSR", "[6, 7]", "");
}
static void huge_shape(hid_t f)
{
	descriptor(f, "0.1", "CSR", "[6000000000, 6000000000]", "");
}
static void odd_shape(hid_t f)
{
	descriptor(f, "0.1", "CSR", "[6]", "");
}
static void triangle(hid_t f)
{
	descriptor(f, "0.1", "CSR", "[6, 6]", ", \"structure\": \"symmetric_lower\"");
}
static void filled(hid_t f)
{
	descriptor(f, "0.1", "CSR", "[6, 6]", ", \"fill\": true");
}

static const struct {
	void (*spoil)(hid_t file);
	hg_status status;
	const char *part;
} table[] = {
    {no_format, HG_ERR_FORMAT, "/: attribute format is missing, expected halfgraph"},
    {other_format, HG_ERR_FORMAT, "/: attribute format is anndata, expected halfgraph"},
    {newer_version, HG_ERR_FORMAT, "format_version is 2.0; this reader knows 1.x"},
    {no_graph, HG_ERR_FORMAT, "/graph: no such group"},
    {no_indices, HG_ERR_FORMAT, "/graph/indices_1: no such dataset"},
    {no_pointers, HG_ERR_FORMAT, "/graph/pointers_to_1: no such dataset"},
    {no_values, HG_ERR_FORMAT, "/graph/values: no such dataset"},
    {group_for_dataset, HG_ERR_FORMAT, "/graph/indices_1: is not a dataset"},
    {soft_link, HG_ERR_FORMAT, "/graph/indices_1: is a link, expected a dataset"},
    {external_link, HG_ERR_FORMAT, "/nodes: is a link, expected a group"},
    {float_indices, HG_ERR_FORMAT,
     "/graph/indices_1: elements are of type float (4 bytes), expected integer"},
    {broken_chunk, HG_ERR_FORMAT,
     "/graph/indices_1: the chunk at element 0 cannot be read: inflate() failed"},
    {two_dimensions, HG_ERR_FORMAT, "/graph/indices_1: has 2 dimensions, expected 1"},
    {short_pointers, HG_ERR_FORMAT, "/graph/pointers_to_1: has 6 elements, expected 7 (rows + 1)"},
    {falling_pointers, HG_ERR_FORMAT,
     "/graph/pointers_to_1: pointers decrease after row 2: 4 after 5"},
    {late_pointers, HG_ERR_FORMAT, "/graph/pointers_to_1: pointers start at 1, expected 0"},
    {early_pointers, HG_ERR_FORMAT,
     "/graph/pointers_to_1: pointers end at 10, expected 11 (number_of_stored_values)"},
    {huge_pointers, HG_ERR_FORMAT,
     "/graph/pointers_to_1: value 1152921504606846976 at 5 is not in [0, 11]"},
    {endless_pointers, HG_ERR_FORMAT,
     "/graph/pointers_to_1: value 18446744073709551615 at 1 is not in [0, 11]"},
    {endless_ids, HG_ERR_FORMAT, "/nodes/orig_id: value 9223372036854775808 at 5 is not in"},
    {order_beyond, HG_ERR_FORMAT, "/nodes/order: value 6 at 5 is not in [0, 5]"},
    {order_twice, HG_ERR_FORMAT, "order: it is not a permutation of 0 to 5"},
    {order_short, HG_ERR_FORMAT, "/nodes/order: has 5 rows, but there are 6 nodes"},
    {index_too_large, HG_ERR_FORMAT, "/graph/indices_1: value 6 at 4 is not in [0, 5]"},
    {index_wraps, HG_ERR_FORMAT, "/graph/indices_1: value 4294967299 at 4 is not in [0, 5]"},
    {index_negative, HG_ERR_FORMAT, "/graph/indices_1: value -1 at 0 is not in [0, 5]"},
    {index_twice, HG_ERR_FORMAT, "/graph/indices_1: row 0 is not strictly ascending: 1 after 1"},
    {infinite_weight, HG_ERR_FORMAT, "graph: weight -inf at row 1, column 0 is not finite"},
    {huge_weight, HG_ERR_RANGE, "/graph/values: value 1e+300 at 3 is too large for f32"},
    {few_weights, HG_ERR_FORMAT, "/graph/values: has 2 elements, expected 11"},
    {never_written, HG_ERR_FORMAT,
     "/graph/indices_1: declares 11 elements of 8 bytes, but only 0 bytes are stored"},
    {claims_terabytes, HG_ERR_FORMAT,
     "/nodes/feat: declares 6597069766656 elements of 4 bytes, but only 0 bytes are stored"},
    {data_elsewhere, HG_ERR_FORMAT, "/nodes/label: its data are stored outside of this file"},
    {other_filter, HG_ERR_FORMAT, "/nodes/label: filter 6"},
    {feature_nan, HG_ERR_RANGE, "features: row 3, column 2 is nan"},
    {feature_rows, HG_ERR_FORMAT, "/nodes/feat: has 5 rows, but there are 6 nodes"},
    {feature_text, HG_ERR_FORMAT,
     "/nodes/feat: elements are of type text (1 bytes), expected float"},
    {label_too_large, HG_ERR_FORMAT, "labels: node 3 has label 3, but there are 3 classes"},
    {no_classes, HG_ERR_FORMAT, "labels: node 0 has label 0, but there are 0 classes"},
    {label_far, HG_ERR_FORMAT,
     "labels: node 2 has label 1000000000, which makes 1000000001 classes of 5 labelled nodes; if "
     "that is intended, add the attribute num_classes"},
    {label_float, HG_ERR_FORMAT, "/nodes/label: elements are of type float"},
    {label_count, HG_ERR_FORMAT, "/nodes/label: has 5 rows, but there are 6 nodes"},
    {means_alone, HG_ERR_FORMAT, "/nodes: has feat_mean without feat_deviation, expected both"},
    {few_means, HG_ERR_FORMAT, "/nodes/feat_mean: has 2 elements, but there are 3 features"},
    {mean_nan, HG_ERR_FORMAT, "features: column 1 was standardised with the mean nan"},
    {deviation_negative, HG_ERR_FORMAT, "features: column 2 was standardised with the mean 0 and"},
    {edge_rows, HG_ERR_FORMAT, "/edges/feat: has 10 rows, but there are 11 edges"},
    {edge_vector, HG_ERR_FORMAT, "/edges/feat: has 1 dimensions, expected 2"},
    {edge_huge, HG_ERR_RANGE, "/edges/feat: row 2, column 1 is -1e+39, too large for f32"},
    {edge_nan, HG_ERR_RANGE,
     "edge features: the edge from node 0 to node 1 has nan in column 1, not a finite number"},
    {edge_label_rows, HG_ERR_FORMAT, "/edges/label: has 2 rows, but there are 11 edges"},
    {edge_label_float, HG_ERR_FORMAT,
     "/edges/label: elements are of type float (4 bytes), expected integer"},
    {edge_label_beyond, HG_ERR_FORMAT,
     "edge labels: the edge from node 4 to node 4 has label 5, but there are 5"},
    {edge_label_wraps, HG_ERR_FORMAT, "/edges/label: value 4294967296 at 0 is not in"},
    {edge_label_far, HG_ERR_FORMAT,
     "edge labels: edge 2 has label 99, which makes 100 labels of 10 labelled edges; if that is "
     "intended, add the attribute num_edge_classes"},
    {edge_classes_wrap, HG_ERR_FORMAT,
     "/: attribute num_edge_classes is 4294967296, not in [0, 2147483647]"},
    {edges_not_a_group, HG_ERR_FORMAT, "/edges: not a group that can be read"},
    {mask_two, HG_ERR_FORMAT, "/nodes/train_mask: value 2 at 1 is not in [0, 1]"},
    {mask_overlap, HG_ERR_FORMAT, "splits: node 5 is in train and in test"},
    {split_out_of_range, HG_ERR_FORMAT, "/split/valid: value 6 at 1 is not in [0, 5]"},
    {split_twice, HG_ERR_FORMAT, "/nodes/val_mask and /split/valid both exist, expected one"},
    {batch_short, HG_ERR_FORMAT, "batch: pointers end at 5, but there are 6 nodes"},
    {not_json, HG_ERR_FORMAT, "/graph: attribute binsparse: not JSON"},
    {no_descriptor, HG_ERR_FORMAT, "/graph: attribute binsparse: no object \"binsparse\""},
    {csc, HG_ERR_FORMAT, "format is CSC, expected CSR"},
    {future, HG_ERR_FORMAT, "\"version\" is not 0.x"},
    {rectangle, HG_ERR_FORMAT, "/graph: is 6 x 7, expected as many rows as columns"},
    {huge_shape, HG_ERR_FORMAT, "dimensions must be in [0, 2147483647]"},
    {odd_shape, HG_ERR_FORMAT, "\"shape\" is not [rows, columns]"},
    {triangle, HG_ERR_FORMAT, "\"structure\""},
    {filled, HG_ERR_FORMAT, "\"fill\""},
};

static void each_damage_is_refused_by_name(void)
{
	for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
		const char *path = scratch(0, "bad.h5");
		hg_dataset *d = small_dataset();
		must_write(d, path);
		hg_dataset_free(d);
		unseal(path);
		const hid_t file = open_file(path);
		table[k].spoil(file);
		H5Fclose(file);
		must_not_read(path, table[k].status, table[k].part);
	}
}

static void files_that_are_not_hdf5_are_refused(void)
{
	must_not_read(scratch(0, "absent.h5"), HG_ERR_IO, "No such file or directory");
	must_not_read("/", HG_ERR_IO, "not a regular file");
	write_text(scratch(0, "text.h5"), "this is text\n");
	must_not_read(scratch(0, "text.h5"), HG_ERR_FORMAT, "not an HDF5 file");
	write_text(scratch(0, "nothing.h5"), "");
	must_not_read(scratch(0, "nothing.h5"), HG_ERR_FORMAT, "not an HDF5 file");
}

/* A file that is cut anywhere is refused. Only if the cut removes nothing but padding may it be
 * read. */
static void truncated_files_are_refused(void)
{
	size_t count = 0;
	const char *path = scratch(0, "whole.h5");
	hg_dataset *d = small_dataset();
	must_write(d, path);
	hg_dataset_free(d);
	unsigned char *bytes = read_bytes(path, &count);
	for (size_t cut = 0; cut < count; cut += 97) {
		char message[HG_DATA_MESSAGE] = "";
		write_bytes(scratch(1, "cut.h5"), bytes, cut);
		CHECK_STATUS(hg_dataset_read(scratch(1, "cut.h5"), &d, message), HG_ERR_FORMAT);
		CHECK_CONTAINS(message, "cut.h5: ");
		CHECK(d == NULL);
	}
	free(bytes);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(each_damage_is_refused_by_name),
	                                         TEST(files_that_are_not_hdf5_are_refused),
	                                         TEST(truncated_files_are_refused)};
	return RUN_TESTS(argc, argv, cases);
}
