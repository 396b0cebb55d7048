/* Write HDF5 datasets: integers in compressed chunks, floats without compression. */
#include <string.h>

#include "h5/h5.h"

/* The bytes of a chunk: 1 MiB, the size of HDF5's default chunk cache. */
#define CHUNK_BYTES (1 << 20)

static hid_t file_type(enum h5_type type)
{
	if (type == H5_HALF)
		return hg__h5_half_type();
	const hid_t named[] = {[H5_U8] = H5T_STD_U8LE,           [H5_I32] = H5T_STD_I32LE,
	                       [H5_I64] = H5T_STD_I64LE,         [H5_HALF] = H5I_INVALID_HID,
	                       [H5_F32] = H5T_IEEE_F32LE,        [H5_F64] = H5T_IEEE_F64LE,
	                       [H5_F32_SUMMED] = H5T_IEEE_F32LE, [H5_F64_SUMMED] = H5T_IEEE_F64LE};
	return H5Tcopy(named[type]);
}

/* The same type in the byte order of this machine. */
static hid_t memory_type(hid_t type)
{
	const hid_t memory = H5Tcopy(type);
	if (memory >= 0 && H5Tget_size(memory) > 1 &&
	    H5Tset_order(memory, H5Tget_order(H5T_NATIVE_INT)) < 0) {
		H5Tclose(memory);
		return H5I_INVALID_HID;
	}
	return memory;
}

/* Sorted indices, pointers and masks shrink to a fraction under shuffle and the fastest deflate.
 * Features and weights hardly shrink, so they are stored contiguously, which is also the fastest to
 * read. */
static int set_storage(hid_t plist, enum h5_type type, int rank, const hsize_t dim[2], size_t size)
{
	const hsize_t largest = CHUNK_BYTES / size, width = rank == 2 && dim[1] < largest ? dim[1]
	                                                    : rank == 2                   ? largest
	                                                                                  : 1;
	/* without times, so that equal datasets give equal files whenever they are written */
	if (H5Pset_obj_track_times(plist, 0) < 0)
		return 0;
	if (type == H5_HALF || type == H5_F32 || type == H5_F64 || dim[0] == 0 || width == 0)
		return 1;
	const hsize_t rows = largest / width, chunk[2] = {dim[0] < rows ? dim[0] : rows, width};
	if (H5Pset_chunk(plist, rank, chunk) < 0)
		return 0;
	return type == H5_F32_SUMMED || type == H5_F64_SUMMED
	           ? H5Pset_fletcher32(plist) >= 0
	           : H5Pset_shuffle(plist) >= 0 && H5Pset_deflate(plist, 1) >= 0;
}

/* The progress text for a dataset. */
static const char *progress_text(const char *name)
{
	static const struct {
		const char *name, *progress_text;
	} table[] = {{"pointers_to_1", "writing row pointers"},
	             {"indices_1", "writing column indices"},
	             {"values", "writing weights"},
	             {"feat", "writing features"},
	             {"label", "writing labels"},
	             {"target", "writing targets"},
	             {"orig_id", "writing original ids"},
	             {"names", "writing names of nodes"},
	             {"order", "writing the order"}};
	for (size_t k = 0; k < sizeof table / sizeof table[0]; k++)
		if (strcmp(table[k].name, name) == 0)
			return table[k].progress_text;
	return "writing masks and batches";
}

/* Write slabs of about 16 MiB, so that the progress callback can stop the work between two of
 * them. */
static hg_status write_slabs(const struct h5 *h5, hid_t dataset, hid_t memory, const char *name,
                             int rank, const hsize_t dim[2], const void *values)
{
	const int64_t width = rank == 2 ? (int64_t)dim[1] : 1, rows = (int64_t)dim[0],
	              size = (int64_t)H5Tget_size(memory);
	const int64_t step = width * size < 16 * CHUNK_BYTES ? 16 * CHUNK_BYTES / (width * size) : 1;
	const char *what = progress_text(name);
	for (int64_t row = 0; row < rows; row += step) {
		const hsize_t start[2] = {(hsize_t)row, 0},
		              count[2] = {(hsize_t)(rows - row < step ? rows - row : step), dim[1]};
		HG__TRY(hg__data_step(h5->progress, what, row, rows, h5->message));
		const hid_t to = H5Dget_space(dataset), from = H5Screate_simple(rank, count, NULL);
		const int ok = to >= 0 && from >= 0 &&
		               H5Sselect_hyperslab(to, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
		               H5Dwrite(dataset, memory, from, to, H5P_DEFAULT,
		                        (const char *)values + row * width * size) >= 0;
		const hg_status status =
		    ok ? hg__h5_written(h5) : hg__h5_fail(h5, HG_ERR_IO, name, "cannot be written");
		hg__h5_release(to);
		hg__h5_release(from);
		HG__TRY(status);
	}
	return HG_OK;
}

hg_status hg__h5_write(const struct h5 *h5, hid_t parent, const char *name, enum h5_type type,
                       int64_t rows, int64_t cols, const void *values, hid_t *out)
{
	const int rank = cols > 0 ? 2 : 1;
	const hsize_t dim[2] = {(hsize_t)rows, (hsize_t)cols};
	const int64_t elements = cols > 0 ? rows * cols : rows;
	const hid_t on_disk = file_type(type), memory = memory_type(on_disk),
	            space = H5Screate_simple(rank, dim, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
	hid_t dataset = H5I_INVALID_HID;
	hg_status status = HG_OK;
	if (on_disk >= 0 && memory >= 0 && space >= 0 && plist >= 0 &&
	    set_storage(plist, type, rank, dim, H5Tget_size(on_disk)))
		dataset = H5Dcreate2(parent, name, on_disk, space, H5P_DEFAULT, plist, H5P_DEFAULT);
	if (dataset < 0)
		status = hg__h5_fail(h5, HG_ERR_IO, name, "dataset cannot be created");
	else if (elements > 0)
		status = write_slabs(h5, dataset, memory, name, rank, dim, values);
	hg__h5_release(plist);
	hg__h5_release(space);
	hg__h5_release(memory);
	hg__h5_release(on_disk);
	if (out && status == HG_OK)
		*out = dataset;
	else if (dataset >= 0 && H5Dclose(dataset) < 0 && status == HG_OK)
		status = hg__h5_fail(h5, HG_ERR_IO, name, "cannot be closed");
	return status;
}
