#include "h5_edits.h"

#include <stdlib.h>

unsigned take(struct program *p)
{
	return p->at < p->end ? *p->at++ : 0;
}

static const hsize_t sizes[] = {0, 1, 2, 3, 5, 6, 7, 11, 12, 18, 64, 300, (hsize_t)1 << 40};

static hid_t parents(void)
{
	const hid_t plist = H5Pcreate(H5P_LINK_CREATE);
	H5Pset_create_intermediate_group(plist, 1);
	return plist;
}

/* Uses the bytes of the input as elements of a type. */
static void fill(struct program *p, unsigned char *raw, size_t bytes)
{
	for (size_t k = 0; k < bytes; k++)
		raw[k] = (unsigned char)take(p);
}

static void replace(struct program *p, hid_t file, const char *name)
{
	const hid_t types[] = {H5T_STD_I8LE,   H5T_STD_U8LE,  H5T_STD_I16BE,   H5T_STD_I32LE,
	                       H5T_STD_U32BE,  H5T_STD_I64LE, H5T_STD_U64LE,   H5T_IEEE_F32LE,
	                       H5T_IEEE_F64BE, H5T_STD_B8LE,  H5T_STD_REF_OBJ, H5T_UNIX_D32LE};
	const hid_t type = types[take(p) % (sizeof types / sizeof types[0])];
	const int rank = (int)(take(p) % 8) < 6 ? 1 : (int)(take(p) % 3);
	const hsize_t dim[2] = {sizes[take(p) % 13], rank == 2 ? sizes[take(p) % 13] : 1},
	              chunk[2] = {1 + take(p) % 7, 1 + take(p) % 5};
	const hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dim, NULL),
	            plist = H5Pcreate(H5P_DATASET_CREATE), create = parents();
	const int small = rank == 0 || (dim[0] <= 300 && dim[1] <= 64);
	if (rank > 0 && (!small || take(p) % 2))
		H5Pset_chunk(plist, rank, chunk);
	const hid_t data = H5Dcreate2(file, name, type, space, create, plist, H5P_DEFAULT);
	if (data >= 0 && small && take(p) % 8) {
		const size_t bytes = (rank == 0 ? 1 : (size_t)(dim[0] * dim[1])) * H5Tget_size(type);
		unsigned char *raw = calloc(bytes + 1, 1);
		if (!raw)
			abort();
		fill(p, raw, bytes);
		H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw);
		free(raw);
	}
	if (data >= 0)
		H5Dclose(data);
	H5Pclose(create);
	H5Pclose(plist);
	H5Sclose(space);
}

/* Changes one element of an existing array. */
static void poke(struct program *p, hid_t file, const char *name)
{
	const hid_t data = H5Dopen2(file, name, H5P_DEFAULT),
	            space = data < 0 ? H5I_INVALID_HID : H5Dget_space(data);
	const hssize_t count = space < 0 ? 0 : H5Sget_simple_extent_npoints(space);
	if (count > 0 && count <= 300) {
		int64_t values[300];
		if (H5Dread(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0) {
			values[take(p) % (unsigned)count] = (int64_t)(int8_t)take(p);
			H5Dwrite(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
		}
	}
	if (space >= 0)
		H5Sclose(space);
	if (data >= 0)
		H5Dclose(data);
}

static void edit(struct program *p, hid_t file, const struct target *t)
{
	const unsigned what = take(p) % 8;
	const char *name = t->members[take(p) % t->count], *other = t->members[take(p) % t->count];
	const hid_t create = parents();
	if (what < 2)
		poke(p, file, name);
	else if (what == 2)
		t->reattribute(p, file);
	else if (H5Ldelete(file, name, H5P_DEFAULT) < 0 || what < 6)
		replace(p, file, name);
	else if (what == 6)
		H5Lcreate_soft(other, file, name, create, H5P_DEFAULT);
	H5Pclose(create);
}

uint8_t *edited(struct program *p, const uint8_t *good, size_t size, const struct target *t,
                size_t *count)
{
	const hid_t plist = H5Pcreate(H5P_FILE_ACCESS);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	H5Pset_fapl_core(plist, 1 << 16, 0);
	H5Pset_file_image(plist, (void *)(uintptr_t)good, size);
	const hid_t file = H5Fopen("image", H5F_ACC_RDWR, plist);
	H5Pclose(plist);
	if (file < 0)
		abort();
	for (unsigned k = 1 + take(p) % 4; k > 0; k--)
		edit(p, file, t);
	H5Fflush(file, H5F_SCOPE_GLOBAL);
	const ssize_t length = H5Fget_file_image(file, NULL, 0);
	uint8_t *image = length > 0 ? malloc((size_t)length) : NULL;
	if (!image || H5Fget_file_image(file, image, (size_t)length) != length)
		abort();
	H5Fclose(file);
	*count = (size_t)length;
	return image;
}
