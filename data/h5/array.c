/* Read HDF5 datasets. Type, shape and storage are checked before memory is allocated; values are
 * widened and checked against their range. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5/h5.h"

/* A dataset may declare this many bytes more than its stored bytes could inflate to, because a
 * small dataset comes with a chunk that is larger than itself. */
#define DECLARED_SLACK (1 << 26)

static hg_status check_type(const struct h5 *h5, struct h5_array *a)
{
	const hid_t type = H5Dget_type(a->id), half = hg__h5_half_type();
	a->class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
	a->size = type < 0 ? 0 : H5Tget_size(type);
	if (a->class == H5T_FLOAT && a->size == 2 && half >= 0) {
		const int ordered = H5Tset_order(half, H5Tget_order(type)) >= 0;
		a->is_half = ordered && H5Tequal(type, half) > 0;
	}
	a->is_unsigned = a->class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE;
	hg__h5_release(half);
	hg__h5_release(type);
	return a->size == 0 ? hg__h5_fail(h5, HG_ERR_FORMAT, a->where, "its type cannot be read")
	                    : HG_OK;
}

static hg_status check_shape(const struct h5 *h5, struct h5_array *a, int rank)
{
	const hid_t space = H5Dget_space(a->id);
	a->rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
	hsize_t dim[2] = {0, 0};
	const int ok = a->rank == rank && H5Sget_simple_extent_dims(space, dim, NULL) == rank;
	hg__h5_release(space);
	if (!ok)
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: has %d dimensions, expected %d",
		                     h5->path, a->where, a->rank, rank);
	for (int k = 0; k < rank; k++) {
		a->dim[k] = (int64_t)dim[k];
		if (dim[k] > (hsize_t)INT64_MAX)
			return hg__data_fail(h5->message, HG_ERR_FORMAT,
			                     "%s: %s: dimension %d is impossibly large", h5->path, a->where, k);
	}
	return HG_OK;
}

static hg_status check_filter(const struct h5 *h5, struct h5_array *a, hid_t plist, unsigned k)
{
	static const H5Z_filter_t known[HG__FILTER_KINDS] = {[HG__FILTER_SHUFFLE] = H5Z_FILTER_SHUFFLE,
	                                                     [HG__FILTER_DEFLATE] = H5Z_FILTER_DEFLATE,
	                                                     [HG__FILTER_FLETCHER32] =
	                                                         H5Z_FILTER_FLETCHER32};
	char name[64] = "";
	unsigned flags = 0, values[1] = {0};
	size_t length = 1;
	int kind = 0;
	const H5Z_filter_t id =
	    H5Pget_filter2(plist, k, &flags, &length, values, sizeof name, name, NULL);
	while (kind < HG__FILTER_KINDS && known[kind] != id)
		kind++;
	if (kind == HG__FILTER_KINDS)
		return hg__data_fail(
		    h5->message, HG_ERR_FORMAT,
		    "%s: %s: filter %d (%s) is not supported; shuffle, deflate and fletcher32 are",
		    h5->path, a->where, (int)id, name);
	for (int other = 0; other < a->filters; other++)
		if ((int)a->filter[other].kind == kind)
			return hg__data_fail(h5->message, HG_ERR_FORMAT,
			                     "%s: %s: filter %d (%s) is applied twice, expected once", h5->path,
			                     a->where, (int)id, name);
	a->filter[a->filters++] =
	    (struct hg__filter){(enum hg__filter_kind)kind, length > 0 ? values[0] : 0};
	return HG_OK;
}

static hg_status check_filters(const struct h5 *h5, struct h5_array *a, hid_t plist)
{
	const int count = H5Pget_nfilters(plist);
	for (int k = 0; k < count; k++)
		HG__TRY(check_filter(h5, a, plist, (unsigned)k));
	return count < 0 ? hg__h5_fail(h5, HG_ERR_FORMAT, a->where, "its filters cannot be read")
	                 : HG_OK;
}

static hg_status check_chunks(const struct h5 *h5, struct h5_array *a, hid_t plist)
{
	hsize_t chunk[2] = {1, 1};
	unsigned options = 0;
	HG__TRY(check_filters(h5, a, plist));
	if (H5Pget_chunk(plist, a->rank, chunk) != a->rank || H5Pget_chunk_opts(plist, &options) < 0 ||
	    chunk[0] == 0 || chunk[1] == 0)
		return hg__h5_fail(h5, HG_ERR_FORMAT, a->where, "its chunks cannot be read");
	if (a->filters > 0 && (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS))
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: its partial chunks at the edge have no filters, the others "
		                     "have: not supported",
		                     h5->path, a->where);
	for (int k = 0; k < 2; k++)
		a->chunk[k] = (int64_t)chunk[k]; /* HDF5's chunk dimensions are below 2^32 */
	return HG_OK;
}

/* The number of chunks that cover a dimension. */
static double chunks_along(int64_t dim, int64_t chunk)
{
	return (double)(dim / chunk + (dim % chunk != 0));
}

static int has_filter(const struct h5_array *a, enum hg__filter_kind kind)
{
	for (int k = 0; k < a->filters; k++)
		if (a->filter[k].kind == kind)
			return 1;
	return 0;
}

static hg_status too_few_bytes(const struct h5 *h5, const struct h5_array *a, double elements,
                               double stored)
{
	return hg__data_fail(
	    h5->message, HG_ERR_FORMAT,
	    "%s: %s: declares %.0f elements of %zu bytes, but only %.0f bytes are stored", h5->path,
	    a->where, elements, a->size, stored);
}

/* Are enough bytes stored for the declared elements, and for one whole chunk? How far deflate
 * compressed the data is known only when they are inflated. Chunks without filters are stored as
 * they are, so all of them must be present at full size: HDF5 reads a whole chunk however few bytes
 * of it are stored. */
static hg_status check_stored_bytes(const struct h5 *h5, const struct h5_array *a, int chunked)
{
	const double stored = (double)H5Dget_storage_size(a->id),
	             factor = has_filter(a, HG__FILTER_DEFLATE) ? HG__DEFLATE_MAX : 1;
	const double elements = (double)a->dim[0] * (a->rank == 2 ? (double)a->dim[1] : 1),
	             size = (double)a->size;
	if (stored > (double)h5->file_bytes || elements * size > stored * factor)
		return too_few_bytes(h5, a, elements, stored);
	if (!chunked)
		return HG_OK;
	const double chunk = (double)a->chunk[0] * (double)a->chunk[1] * size,
	             chunks = chunks_along(a->dim[0], a->chunk[0]) *
	                      (a->rank == 2 ? chunks_along(a->dim[1], a->chunk[1]) : 1);
	if (chunk > stored * factor + DECLARED_SLACK)
		return too_few_bytes(h5, a, elements, stored);
	return a->filters > 0 || stored == chunks * chunk
	           ? HG_OK
	           : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                           "%s: %s: has %.0f chunks of %.0f bytes, but %.0f bytes are stored",
	                           h5->path, a->where, chunks, chunk, stored);
}

/* The storage must lie in this file and be large enough for the shape, chunk by chunk. */
static hg_status check_storage(const struct h5 *h5, struct h5_array *a)
{
	const hid_t plist = H5Dget_create_plist(a->id);
	if (plist < 0)
		return hg__h5_fail(h5, HG_ERR_FORMAT, a->where, "its storage cannot be read");
	const H5D_layout_t layout = H5Pget_layout(plist);
	hg_status status = HG_OK;
	if (layout == H5D_CHUNKED)
		status = check_chunks(h5, a, plist);
	else if (layout != H5D_COMPACT &&
	         (layout != H5D_CONTIGUOUS || H5Pget_external_count(plist) != 0))
		status =
		    hg__data_fail(h5->message, HG_ERR_FORMAT,
		                  "%s: %s: its data are stored outside of this file", h5->path, a->where);
	H5Pclose(plist);
	return status == HG_OK ? check_stored_bytes(h5, a, layout == H5D_CHUNKED) : status;
}

static hg_status check_link(const struct h5 *h5, hid_t parent, const char *name, const char *where)
{
	H5L_info_t link;
	H5O_info_t object;
	if (!hg__h5_has(parent, name))
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: no such dataset", h5->path,
		                     where);
	if (H5Lget_info(parent, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: is a link, expected a dataset",
		                     h5->path, where);
	if (H5Oget_info_by_name2(parent, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
		return hg__h5_fail(h5, HG_ERR_FORMAT, where, "cannot be read");
	if (object.type != H5O_TYPE_DATASET)
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: is not a dataset", h5->path,
		                     where);
	return HG_OK;
}

/* Open without a chunk cache. With a cache HDF5 reads as many bytes of an unfiltered chunk as the
 * index says and then uses a whole chunk of the buffer, even where fewer bytes were read. Without a
 * cache it reads unfiltered chunks from the file at their full size. */
static hid_t open_uncached(hid_t parent, const char *name)
{
	const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
	const hid_t id =
	    access >= 0 && H5Pset_chunk_cache(access, 0, 0, H5D_CHUNK_CACHE_W0_DEFAULT) >= 0
	        ? H5Dopen2(parent, name, access)
	        : H5I_INVALID_HID;
	hg__h5_release(access);
	return id;
}

hg_status hg__h5_array(const struct h5 *h5, hid_t parent, const char *name, const char *where,
                       int rank, struct h5_array *a)
{
	*a = (struct h5_array){.id = H5I_INVALID_HID};
	snprintf(a->where, sizeof a->where, "%s", where);
	HG__TRY(check_link(h5, parent, name, where));
	a->id = open_uncached(parent, name);
	if (a->id < 0)
		return hg__h5_fail(h5, HG_ERR_FORMAT, where, "cannot be opened");
	hg_status status = check_type(h5, a);
	if (status == HG_OK)
		status = check_shape(h5, a, rank);
	if (status == HG_OK)
		status = check_storage(h5, a);
	if (status < 0)
		hg__h5_array_close(a);
	return status;
}

void hg__h5_array_close(struct h5_array *a)
{
	if (a->id >= 0)
		H5Dclose(a->id);
	a->id = H5I_INVALID_HID;
}

static int64_t elements_of(const struct h5_array *a)
{
	return a->rank == 2 ? a->dim[0] * a->dim[1] : a->dim[0];
}

/* Read rows [begin, begin + rows) of a dataset into `values`. */
static hg_status read_rows(const struct h5 *h5, const struct h5_array *a, hid_t type, int64_t begin,
                           int64_t rows, void *values)
{
	const hsize_t start[2] = {(hsize_t)begin, 0}, count[2] = {(hsize_t)rows, (hsize_t)a->dim[1]};
	const hid_t file = H5Dget_space(a->id), memory = H5Screate_simple(a->rank, count, NULL);
	const int ok = file >= 0 && memory >= 0 &&
	               H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
	               H5Dread(a->id, type, memory, file, H5P_DEFAULT, values) >= 0;
	const hg_status status =
	    ok ? HG_OK : hg__h5_fail(h5, HG_ERR_FORMAT, a->where, "its data cannot be read");
	hg__h5_release(file);
	hg__h5_release(memory);
	return status;
}

/* Read the whole dataset, about HG__SLAB elements at a time, as `type` with elements of `size`
 * bytes. */
static hg_status read_slabs(const struct h5 *h5, const struct h5_array *a, hid_t type, size_t size,
                            hg__h5_take take, void *user)
{
	const int64_t width = a->rank == 2 ? a->dim[1] : 1,
	              step = width > 0 && width < HG__SLAB ? HG__SLAB / width : 1;
	void *slab = NULL;
	if (elements_of(a) == 0)
		return HG_OK;
	if (a->filters > 0)
		return hg__h5_read_chunks(h5, a, type, size, take, user);
	HG__TRY(hg__data_alloc(step * width, size, a->where, &slab, h5->message));
	hg_status status = HG_OK;
	for (int64_t row = 0; status == HG_OK && row < a->dim[0]; row += step) {
		const int64_t rows = a->dim[0] - row < step ? a->dim[0] - row : step;
		status = read_rows(h5, a, type, row, rows, slab);
		if (status == HG_OK)
			status = take(h5, a, user, row * width, rows * width, slab);
	}
	free(slab);
	return status;
}

static hg_status take_bytes(const struct h5 *h5, const struct h5_array *a, void *user,
                            int64_t first, int64_t count, const void *values)
{
	(void)h5;
	memcpy((char *)user + (size_t)first * a->size, values, (size_t)count * a->size);
	return HG_OK;
}

/* Read the whole dataset as a `type` whose elements are as large as those in the file. */
static hg_status read_whole(const struct h5 *h5, const struct h5_array *a, hid_t type, void *values)
{
	if (elements_of(a) == 0)
		return HG_OK;
	return a->filters > 0 ? hg__h5_read_chunks(h5, a, type, a->size, take_bytes, values)
	                      : read_rows(h5, a, type, 0, a->dim[0], values);
}

struct integers {
	int64_t low, high;
	int64_t *wide;
	int32_t *narrow;
	uint8_t *bytes;
};

static hg_status take_integers(const struct h5 *h5, const struct h5_array *a, void *user,
                               int64_t first, int64_t count, const void *values)
{
	struct integers *to = user;
	const int64_t *in = values;
	char digits[24];
	for (int64_t i = 0; i < count; i++) {
		/* a negative value of an unsigned type stands for 2^63 or more */
		if ((a->is_unsigned && in[i] < 0) || in[i] < to->low || in[i] > to->high)
			return hg__data_fail(h5->message, HG_ERR_FORMAT,
			                     "%s: %s: value %s at %" PRId64 " is not in [%" PRId64 ", %" PRId64
			                     "]",
			                     h5->path, a->where, hg__data_digits(in[i], a->is_unsigned, digits),
			                     first + i, to->low, to->high);
		if (to->wide)
			to->wide[first + i] = in[i];
		if (to->narrow)
			to->narrow[first + i] = (int32_t)in[i];
		if (to->bytes)
			to->bytes[first + i] = (uint8_t)in[i];
	}
	return HG_OK;
}

static hg_status wrong_type(const struct h5 *h5, const struct h5_array *a, const char *expected)
{
	static const char *const names[] = {"integer",     "float",    "time",     "text",
	                                    "bitfield",    "opaque",   "compound", "reference",
	                                    "enumeration", "sequence", "array"};
	const char *found = a->class >= 0 && (size_t)a->class < sizeof names / sizeof names[0]
	                        ? names[a->class]
	                        : "unknown";
	return hg__data_fail(h5->message, HG_ERR_FORMAT,
	                     "%s: %s: elements are of type %s (%zu bytes), expected %s", h5->path,
	                     a->where, found, a->size, expected);
}

static hg_status read_integers(const struct h5 *h5, const struct h5_array *a, struct integers *to)
{
	if (a->class != H5T_INTEGER || a->size > 8)
		return wrong_type(h5, a, "integer");
	return read_slabs(h5, a, a->is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, sizeof(int64_t),
	                  take_integers, to);
}

hg_status hg__h5_read_i64(const struct h5 *h5, const struct h5_array *a, int64_t low, int64_t high,
                          int64_t **values)
{
	HG__TRY(
	    hg__data_alloc(elements_of(a), sizeof **values, a->where, (void **)values, h5->message));
	return read_integers(h5, a, &(struct integers){low, high, *values, NULL, NULL});
}

hg_status hg__h5_read_i32(const struct h5 *h5, const struct h5_array *a, int64_t low, int64_t high,
                          int32_t **values)
{
	HG__TRY(
	    hg__data_alloc(elements_of(a), sizeof **values, a->where, (void **)values, h5->message));
	return read_integers(h5, a,
	                     &(struct integers){low > INT32_MIN ? low : INT32_MIN,
	                                        high < INT32_MAX ? high : INT32_MAX, NULL, *values,
	                                        NULL});
}

hg_status hg__h5_read_bytes(const struct h5 *h5, const struct h5_array *a, char **values)
{
	HG__TRY(
	    hg__data_alloc(elements_of(a), sizeof **values, a->where, (void **)values, h5->message));
	return read_integers(h5, a, &(struct integers){0, 255, NULL, NULL, (uint8_t *)(void *)*values});
}

hg_status hg__h5_read_mask(const struct h5 *h5, const struct h5_array *a, uint8_t **values)
{
	HG__TRY(
	    hg__data_alloc(elements_of(a), sizeof **values, a->where, (void **)values, h5->message));
	/* other writers store booleans as one byte, 0 or 1 */
	if (a->class == H5T_ENUM || a->class == H5T_BITFIELD) {
		if (a->size != 1)
			return wrong_type(h5, a, "boolean");
		const hid_t type = H5Dget_type(a->id);
		const hg_status status =
		    type < 0 ? hg__h5_fail(h5, HG_ERR_FORMAT, a->where, "its type cannot be read")
		             : read_whole(h5, a, type, *values);
		hg__h5_release(type);
		HG__TRY(status);
		for (int64_t i = 0; i < a->dim[0]; i++)
			if ((*values)[i] > 1)
				return hg__data_fail(h5->message, HG_ERR_FORMAT,
				                     "%s: %s: value %d at %" PRId64 " is neither 0 nor 1", h5->path,
				                     a->where, (*values)[i], i);
		return HG_OK;
	}
	return read_integers(h5, a, &(struct integers){0, 1, NULL, NULL, *values});
}

static hg_status too_large_for_f32(const struct h5 *h5, const struct h5_array *a, int64_t at,
                                   double x)
{
	if (a->rank == 1)
		return hg__data_fail(h5->message, HG_ERR_RANGE,
		                     "%s: %s: value %g at %" PRId64 " is too large for f32", h5->path,
		                     a->where, x, at);
	return hg__data_fail(h5->message, HG_ERR_RANGE,
	                     "%s: %s: row %" PRId64 ", column %" PRId64 " is %g, too large for f32",
	                     h5->path, a->where, at / a->dim[1], at % a->dim[1], x);
}

static hg_status take_reals(const struct h5 *h5, const struct h5_array *a, void *user,
                            int64_t first, int64_t count, const void *values)
{
	float *out = user;
	const double *in = values;
	for (int64_t i = 0; i < count; i++) {
		if (isfinite(in[i]) && fabs(in[i]) > (double)FLT_MAX)
			return too_large_for_f32(h5, a, first + i, in[i]);
		out[first + i] = (float)in[i];
	}
	return HG_OK;
}

hg_status hg__h5_read_f32(const struct h5 *h5, const struct h5_array *a, float **values)
{
	const int is_f32 = a->class == H5T_FLOAT && a->size == 4;
	if ((a->class != H5T_FLOAT && a->class != H5T_INTEGER) || a->size > 8)
		return wrong_type(h5, a, "float");
	HG__TRY(
	    hg__data_alloc(elements_of(a), sizeof **values, a->where, (void **)values, h5->message));
	return is_f32 ? read_whole(h5, a, H5T_NATIVE_FLOAT, *values)
	              : read_slabs(h5, a, H5T_NATIVE_DOUBLE, sizeof(double), take_reals, *values);
}

hg_status hg__h5_read_f64(const struct h5 *h5, const struct h5_array *a, double **values)
{
	if ((a->class != H5T_FLOAT && a->class != H5T_INTEGER) || a->size > 8)
		return wrong_type(h5, a, "float");
	HG__TRY(
	    hg__data_alloc(elements_of(a), sizeof **values, a->where, (void **)values, h5->message));
	return read_whole(h5, a, H5T_NATIVE_DOUBLE, *values);
}

hg_status hg__h5_read_half(const struct h5 *h5, const struct h5_array *a, hg_half **values)
{
	const hid_t type = hg__h5_half_type();
	hg_status status =
	    type < 0 ? hg__h5_fail(h5, HG_ERR_INTERNAL, a->where, "no binary16 type") : HG_OK;
	if (status == HG_OK)
		status =
		    hg__data_alloc(elements_of(a), sizeof **values, a->where, (void **)values, h5->message);
	if (status == HG_OK && H5Tset_order(type, H5Tget_order(H5T_NATIVE_INT)) < 0)
		status = hg__h5_fail(h5, HG_ERR_INTERNAL, a->where, "no binary16 type");
	if (status == HG_OK)
		status = read_whole(h5, a, type, *values);
	hg__h5_release(type);
	return status;
}
