/* Chunks of HDF5 files, as other writers may store them. Good ones are read as HDF5 defines them,
 * bad ones are refused by name, and never are more bytes used than there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support.h"

enum { SHUFFLE = 1, DEFLATE = 2, FLETCHER = 4 };

/* Replaces the array /NAME by one with chunks and filters, without content. */
static hid_t chunked(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dim,
                     const hsize_t *chunk, int filters)
{
	const hid_t space = H5Screate_simple(rank, dim, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
	if (H5Lexists(file, name, H5P_DEFAULT) > 0)
		CHECK(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
	CHECK(H5Pset_chunk(plist, rank, chunk) >= 0);
	CHECK(!(filters & SHUFFLE) || H5Pset_shuffle(plist) >= 0);
	CHECK(!(filters & DEFLATE) || H5Pset_deflate(plist, 6) >= 0);
	CHECK(!(filters & FLETCHER) || H5Pset_fletcher32(plist) >= 0);
	const hid_t data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
	CHECK(data >= 0);
	H5Pclose(plist);
	H5Sclose(space);
	return data;
}

static hid_t open_small(const char *path)
{
	hg_dataset *d = small_dataset();
	must_write(d, path);
	hg_dataset_free(d);
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0);
	return file;
}

/* ---- good chunks ---- */

static void read_with(int filters, hsize_t rows, hsize_t cols, hid_t feat_type)
{
	const char *path = scratch(0, "good.h5");
	const hsize_t dim[2] = {6, 3}, chunk[2] = {rows, cols}, labels = 6, edges = 11;
	hg_dataset *d = small_dataset();
	const hid_t file = open_small(path);
	const hid_t feat = chunked(file, "nodes/feat", feat_type, 2, dim, chunk, filters);
	CHECK(H5Dwrite(feat, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->feat) >= 0);
	const hid_t label = chunked(file, "nodes/label", H5T_STD_I16BE, 1, &labels, chunk, filters);
	CHECK(H5Dwrite(label, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->label) >= 0);
	const hid_t mask = chunked(file, "nodes/train_mask", H5T_STD_B8LE, 1, &labels, chunk, filters);
	CHECK(H5Dwrite(mask, H5T_NATIVE_B8, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->train_mask) >= 0);
	const hid_t col = chunked(file, "graph/indices_1", H5T_STD_U64LE, 1, &edges, chunk, filters);
	CHECK(H5Dwrite(col, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->col) >= 0);
	H5Dclose(feat);
	H5Dclose(label);
	H5Dclose(mask);
	H5Dclose(col);
	H5Fclose(file);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

/* All combinations of filters, and chunks that divide the shape, do not divide it, and are larger
 * than it. */
static void all_filters_and_shapes_are_read(void)
{
	static const hsize_t chunk[][2] = {{1, 1}, {2, 3}, {4, 2}, {6, 3}, {5, 1}};
	for (int filters = 0; filters < 8; filters++)
		for (size_t k = 0; k < sizeof chunk / sizeof chunk[0]; k++) {
			read_with(filters, chunk[k][0], chunk[k][1], H5T_IEEE_F32LE);
			read_with(filters, chunk[k][0], chunk[k][1], H5T_IEEE_F64BE);
		}
}

/* More elements than are read at a time, in chunks of which the last is not full. */
static void large_chunks_are_read(void)
{
	enum { N = 300000 };
	const char *path = scratch(0, "large.h5");
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, message));
	d->nodes = N;
	d->rowptr = calloc(N + 1, sizeof *d->rowptr);
	d->col = calloc(1, sizeof *d->col);
	d->orig_id = calloc(N, sizeof *d->orig_id);
	CHECK(d->rowptr && d->col && d->orig_id);
	for (int64_t i = 0; i < N; i++)
		d->orig_id[i] = i * i;
	must_write(d, path);
	unseal(path);
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	const hid_t ids = chunked(file, "nodes/orig_id", H5T_STD_I64BE, 1, (const hsize_t[]){N},
	                          (const hsize_t[]){140000}, SHUFFLE | DEFLATE | FLETCHER);
	CHECK(H5Dwrite(ids, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->orig_id) >= 0);
	H5Dclose(ids);
	H5Fclose(file);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

/* A writer may leave a filter out of one chunk, which the chunk's mask says. */
static void chunk_without_one_of_its_filters_is_read(void)
{
	static const float feat[18] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
	const hsize_t dim[2] = {6, 3}, origin[2] = {0, 0};
	const hid_t file = open_small(scratch(0, "mask.h5")),
	            data = chunked(file, "nodes/feat", H5T_IEEE_F32LE, 2, dim, dim, DEFLATE);
	CHECK(H5Dwrite_chunk(data, H5P_DEFAULT, 1, origin, sizeof feat, feat) >= 0);
	H5Dclose(data);
	H5Fclose(file);
	hg_dataset *d = must_read(scratch(0, "mask.h5"));
	CHECK(memcmp(d->feat, feat, sizeof feat) == 0);
	hg_dataset_free(d);
}

/* ---- bad chunks ---- */

/* Features [6, cols] in one chunk, of which `bytes` are stored as they are. The mask says which
 * filters are left out. */
static void store_raw(const char *path, int filters, unsigned mask, hsize_t cols, const void *bytes,
                      size_t count)
{
	const hsize_t dim[2] = {6, cols}, origin[2] = {0, 0};
	const hid_t file = open_small(path),
	            data = chunked(file, "nodes/feat", H5T_IEEE_F32LE, 2, dim, dim, filters);
	CHECK(H5Dwrite_chunk(data, H5P_DEFAULT, mask, origin, count, bytes) >= 0);
	H5Dclose(data);
	H5Fclose(file);
}

static void refuse_raw(int filters, unsigned mask, hsize_t cols, const void *bytes, size_t count,
                       const char *part)
{
	const char *path = scratch(0, "raw.h5");
	store_raw(path, filters, mask, cols, bytes, count);
	must_not_read(path, HG_ERR_FORMAT, part);
}

/* Compresses `elements` zeros with deflate. */
static size_t deflated(size_t elements, unsigned char *to, size_t room)
{
	float *zeros = calloc(elements, sizeof *zeros);
	uLongf count = (uLongf)room;
	CHECK(zeros != NULL && compress2(to, &count, (const Bytef *)zeros,
	                                 (uLong)(elements * sizeof *zeros), 1) == Z_OK);
	free(zeros);
	return (size_t)count;
}

/* A chunk that holds fewer bytes than it should: the bytes after them are other memory of the
 * process. With 3 columns that is a few bytes, with 300,000 several megabytes, which are not
 * mapped. */
static void short_chunks_are_refused(void)
{
	static unsigned char bytes[1 << 16];
	static const hsize_t cols[] = {3, 300000};
	for (int k = 0; k < 2; k++) {
		const size_t few = k ? 60000 : 70; /* enough for the output of deflate */
		const size_t less = deflated(6 * (size_t)cols[k] - 1, bytes, sizeof bytes);
		refuse_raw(DEFLATE, 0, cols[k], bytes, less,
		           "/nodes/feat: the chunk at row 0, column 0 cannot be read: it inflates to less "
		           "than a chunk");
		refuse_raw(SHUFFLE | DEFLATE, 0, cols[k], bytes, less, "it inflates to less than a chunk");
		refuse_raw(0, 0, cols[k], bytes, 4, "/nodes/feat: declares ");
		refuse_raw(SHUFFLE, 0, cols[k], bytes, few, "/nodes/feat: declares ");
		refuse_raw(
		    DEFLATE, 1, cols[k], bytes, few,
		    "/nodes/feat: the chunk at row 0, column 0 cannot be read: it is shorter than a chunk");
		refuse_raw(SHUFFLE | DEFLATE, 2, cols[k], bytes, few, "it is shorter than a chunk");
	}
	refuse_raw(FLETCHER, 0, 3, "\0\0\0\0\0\0\0", 8, "/nodes/feat: declares ");
}

static void long_and_broken_chunks_are_refused(void)
{
	static unsigned char bytes[1 << 12];
	const size_t more = deflated(19, bytes, sizeof bytes);
	refuse_raw(DEFLATE, 0, 3, bytes, more, "it inflates to more than a chunk");
	const size_t right = deflated(18, bytes, sizeof bytes);
	refuse_raw(DEFLATE, 0, 3, bytes, right - 1,
	           "inflate() failed"); /* the checksum of the stream is cut off */
	bytes[right - 1] ^= 1;
	refuse_raw(DEFLATE, 0, 3, bytes, right, "inflate() failed");
	refuse_raw(SHUFFLE, 0, 3, bytes, 73, "it is longer than a chunk");
	refuse_raw(FLETCHER, 0, 3, bytes, 76, "its checksum is wrong");
}

/* One chunk is too short and another longer by as much, so that the total is right. Each chunk is
 * checked by itself. */
static void lengths_are_checked_chunk_by_chunk(void)
{
	static const float bytes[16] = {0};
	const char *path = scratch(0, "pair.h5");
	const hsize_t dim[2] = {6, 3}, chunk[2] = {3, 3}, first[2] = {0, 0}, second[2] = {3, 0};
	for (int filters = 0; filters < 2; filters++) {
		hg_dataset *d = NULL;
		char message[HG_DATA_MESSAGE] = "";
		const hid_t file = open_small(path), data = chunked(file, "nodes/feat", H5T_IEEE_F32LE, 2,
		                                                    dim, chunk, filters ? SHUFFLE : 0);
		CHECK(H5Dwrite_chunk(data, H5P_DEFAULT, 0, first, 8, bytes) >= 0 &&
		      H5Dwrite_chunk(data, H5P_DEFAULT, 0, second, 64, bytes) >= 0);
		H5Dclose(data);
		H5Fclose(file);
		const hg_status status = hg_dataset_read(path, &d, message);
		CHECK_MSG(status == HG_OK || status == HG_ERR_FORMAT || status == HG_ERR_RANGE, "%s: %s",
		          hg_status_name(status), message);
		CHECK(!filters || status == HG_ERR_FORMAT);
		hg_dataset_free(d);
	}
}

/* A mask of which a chunk was never written. HDF5 would read zeros there. */
static void chunks_that_were_never_written_are_refused(void)
{
	static const uint8_t ones[4] = {1, 1, 0, 0};
	const hsize_t n = 6, four = 4, origin = 0;
	const char *path = scratch(0, "part.h5");
	const hid_t file = open_small(path), data = chunked(file, "nodes/train_mask", H5T_STD_U8LE, 1,
	                                                    &n, &four, SHUFFLE | DEFLATE);
	const hid_t to = H5Dget_space(data), from = H5Screate_simple(1, &four, NULL);
	CHECK(H5Sselect_hyperslab(to, H5S_SELECT_SET, &origin, NULL, &four, NULL) >= 0 &&
	      H5Dwrite(data, H5T_NATIVE_UINT8, from, to, H5P_DEFAULT, ones) >= 0);
	H5Sclose(from);
	H5Sclose(to);
	H5Dclose(data);
	H5Fclose(file);
	must_not_read(path, HG_ERR_FORMAT,
	              "/nodes/train_mask: the chunk at element 4 cannot be read: it was never written");
}

static void repeated_filter_is_refused(void)
{
	const hsize_t n = 6;
	const int32_t label[6] = {0};
	const char *path = scratch(0, "twice.h5");
	const hid_t file = open_small(path), space = H5Screate_simple(1, &n, NULL),
	            plist = H5Pcreate(H5P_DATASET_CREATE);
	CHECK(H5Ldelete(file, "nodes/label", H5P_DEFAULT) >= 0 && H5Pset_chunk(plist, 1, &n) >= 0);
	CHECK(H5Pset_deflate(plist, 1) >= 0 && H5Pset_shuffle(plist) >= 0 &&
	      H5Pset_filter(plist, H5Z_FILTER_DEFLATE, 0, 1, (const unsigned[]){1}) >= 0);
	const hid_t data =
	    H5Dcreate2(file, "nodes/label", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
	CHECK(data >= 0 && H5Dwrite(data, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, label) >= 0);
	H5Dclose(data);
	H5Pclose(plist);
	H5Sclose(space);
	H5Fclose(file);
	must_not_read(path, HG_ERR_FORMAT, "/nodes/label: filter 1 (deflate) is applied twice");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(all_filters_and_shapes_are_read),
	    TEST(large_chunks_are_read),
	    TEST(chunk_without_one_of_its_filters_is_read),
	    TEST(short_chunks_are_refused),
	    TEST(long_and_broken_chunks_are_refused),
	    TEST(lengths_are_checked_chunk_by_chunk),
	    TEST(chunks_that_were_never_written_are_refused),
	    TEST(repeated_filter_is_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
