#ifndef HG_TESTS_SPOIL_H
#define HG_TESTS_SPOIL_H

#include <hdf5.h>
#include <stdint.h>
#include <string.h>

#include "harness.h"

/* Changes of an HDF5 file, for tests of what its reader refuses. */

static inline hid_t member(hid_t file, const char *name)
{
	const hid_t object = H5Oopen(file, name, H5P_DEFAULT);
	CHECK(object >= 0);
	return object;
}

static inline void put_integer(hid_t file, const char *object, const char *name, int64_t value)
{
	const hid_t at = member(file, object), space = H5Screate(H5S_SCALAR);
	if (H5Aexists(at, name) > 0)
		CHECK(H5Adelete(at, name) >= 0);
	const hid_t attribute = H5Acreate2(at, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
	H5Oclose(at);
}

static inline void put_text(hid_t file, const char *object, const char *name, const char *text)
{
	const hid_t at = member(file, object), type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
	CHECK(H5Tset_size(type, strlen(text) + 1) >= 0);
	if (H5Aexists(at, name) > 0)
		CHECK(H5Adelete(at, name) >= 0);
	const hid_t attribute = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(attribute >= 0 && H5Awrite(attribute, type, text) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
	H5Tclose(type);
	H5Oclose(at);
}

static inline void drop_attribute(hid_t file, const char *object, const char *name)
{
	const hid_t at = member(file, object);
	CHECK(H5Adelete(at, name) >= 0);
	H5Oclose(at);
}

static inline void put_zeros(hid_t file, const char *name, hid_t type, int rank, hsize_t rows,
                             hsize_t cols)
{
	static const unsigned char zeros[1 << 14];
	const hsize_t dim[2] = {rows, cols};
	if (H5Lexists(file, name, H5P_DEFAULT) > 0)
		CHECK(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
	const hid_t space = H5Screate_simple(rank, dim, NULL),
	            data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(data >= 0 && (rank == 2 ? rows * cols : rows) * H5Tget_size(type) <= sizeof zeros);
	CHECK(H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) >= 0);
	H5Dclose(data);
	H5Sclose(space);
}

static inline void drop(hid_t file, const char *name)
{
	CHECK(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
}

/* Puts a vector of `type` in the place of another. */
static inline void put_reals(hid_t file, const char *name, hid_t type, hsize_t count,
                             const double *values)
{
	drop(file, name);
	const hid_t space = H5Screate_simple(1, &count, NULL),
	            data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(data >= 0 &&
	      H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
	H5Dclose(data);
	H5Sclose(space);
}

#endif
