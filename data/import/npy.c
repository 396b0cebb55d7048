/* Read the arrays of a numpy archive directly from the zip file, so that they need no more memory
 * than the result and one slab. */
#include "import/npy.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/archive.h"

/* Longer headers are refused; numpy pads headers to 64 bytes and itself refuses more than
 * 10,000. */
#define HEADER_MAX 65536

hg_status hg__npz_open(struct npz *npz, const char *path, char *message)
{
	*npz = (struct npz){.path = path, .message = message};
	return hg__zip_open(path, &npz->zip, &npz->mark, message);
}

void hg__npz_close(struct npz *npz)
{
	if (npz->zip)
		zip_discard(npz->zip);
	npz->zip = NULL;
}

static void member_name(const char *key, char name[64])
{
	snprintf(name, 64, "%s.npy", key);
}

int hg__npz_has(const struct npz *npz, const char *key)
{
	char name[64];
	member_name(key, name);
	return zip_name_locate(npz->zip, name, 0) >= 0;
}

/* Read exactly `bytes` bytes, or fail. */
static hg_status read_exactly(struct npy *a, void *buffer, int64_t bytes)
{
	for (int64_t done = 0; done < bytes;) {
		size_t got = 0;
		HG__TRY(hg__bytes_read(&a->bytes, (char *)buffer + done, (size_t)(bytes - done), &got));
		if (got == 0)
			return hg__data_fail(a->message, HG_ERR_FORMAT, "%s: ends before its declared size",
			                     a->where);
		done += (int64_t)got;
	}
	return HG_OK;
}

/* The array must end here. Reading its end also verifies the checksum of a member. */
static hg_status expect_end(struct npy *a)
{
	char more;
	size_t got = 0;
	HG__TRY(hg__bytes_read(&a->bytes, &more, 1, &got));
	if (got > 0)
		HG__TRY(hg__bytes_unchanged(&a->bytes));
	return got == 0 ? HG_OK
	                : hg__data_fail(a->message, HG_ERR_FORMAT,
	                                "%s: is longer than its declared size", a->where);
}

/* The header is "\x93NUMPY", the version, the length (2 bytes in version 1, 4 from version 2 on)
 * and the text. The array has `declared` bytes, or at most so many where they are not exact. */
static hg_status read_header(struct npy *a, int64_t declared, int exact)
{
	unsigned char magic[8], size[4] = {0};
	HG__TRY(read_exactly(a, magic, 8));
	if (memcmp(magic, "\x93NUMPY", 6) != 0)
		return hg__data_fail(a->message, HG_ERR_FORMAT, "%s: is not an .npy array", a->where);
	if (magic[6] < 1 || magic[6] > 3)
		return hg__data_fail(a->message, HG_ERR_FORMAT, "%s: .npy version %d is not known",
		                     a->where, magic[6]);
	const int width = magic[6] == 1 ? 2 : 4;
	HG__TRY(read_exactly(a, size, width));
	const int64_t length =
	    (int64_t)size[0] | (int64_t)size[1] << 8 | (int64_t)size[2] << 16 | (int64_t)size[3] << 24;
	if (length > HEADER_MAX || 8 + width + length > declared)
		return hg__data_fail(a->message, HG_ERR_FORMAT,
		                     "%s: header of %" PRId64 " bytes in a member of %" PRId64, a->where,
		                     length, declared);
	void *text = NULL;
	HG__TRY(hg__data_alloc(length + 1, 1, "an .npy header", &text, a->message));
	hg_status status = read_exactly(a, text, length);
	((char *)text)[length] = 0;
	if (status == HG_OK)
		status = hg__npy_parse(text, a);
	free(text);
	HG__TRY(status);
	int64_t bytes = 0;
	if (__builtin_mul_overflow(a->elements, (int64_t)a->type.size, &bytes) ||
	    bytes > declared - 8 - width - length || (exact && bytes != declared - 8 - width - length))
		return hg__data_fail(a->message, HG_ERR_FORMAT,
		                     "%s: header promises %" PRId64 " elements of %d bytes, but %" PRId64
		                     " bytes follow",
		                     a->where, a->elements, a->type.size, declared - 8 - width - length);
	return HG_OK;
}

/* The failure "no member KEY.npy". Where the archive holds pickled objects, the message says so. */
static hg_status fail_missing(const struct npz *npz, const char *key)
{
	const zip_int64_t members = zip_get_num_entries(npz->zip, 0);
	for (zip_int64_t k = 0; k < members; k++) {
		const char *name = zip_get_name(npz->zip, (zip_uint64_t)k, 0);
		const size_t length = name ? strlen(name) : 0;
		char other[64];
		struct npz quiet = *npz;
		struct npy a;
		quiet.message = NULL;
		if (length < 5 || length > 60 || strcmp(name + length - 4, ".npy") != 0)
			continue;
		snprintf(other, sizeof other, "%.*s", (int)length - 4, name);
		if (hg__npy_open(&quiet, other, 1, &a) == HG_OK)
			hg__npy_close(&a);
		if (a.pickled)
			return hg__data_fail(npz->message, HG_ERR_FORMAT,
			                     "%s: no member %s.npy; member %s holds pickled Python objects, "
			                     "which are refused and never executed",
			                     npz->path, key, name);
	}
	return hg__data_fail(npz->message, HG_ERR_FORMAT, "%s: no member %s.npy", npz->path, key);
}

static hg_status open_array(const struct npz *npz, const char *key, int rank, int texts,
                            struct npy *a)
{
	char name[64];
	zip_stat_t info;
	*a = (struct npy){.message = npz->message, .bytes.fd = -1, .texts = texts};
	member_name(key, name);
	snprintf(a->where, sizeof a->where, "%.80s: member %s", npz->path, name);
	zip_stat_init(&info);
	if (zip_stat(npz->zip, name, 0, &info) != 0)
		return fail_missing(npz, key);
	HG__TRY(hg__zip_check(&info, npz->mark.bytes, a->where, a->message));
	zip_file_t *member = zip_fopen(npz->zip, name, 0);
	if (!member)
		return hg__data_fail(npz->message, HG_ERR_FORMAT, "%s: %s", a->where,
		                     zip_strerror(npz->zip));
	hg_status status = hg__bytes_open_member(&a->bytes, member, (int64_t)info.size, npz->path,
	                                         &npz->mark, a->where, NULL, npz->message);
	if (status == HG_OK)
		status = read_header(a, (int64_t)info.size, 1);
	if (status == HG_OK && a->rank != rank)
		status = hg__data_fail(npz->message, HG_ERR_FORMAT, "%s: has %d dimensions, expected %d",
		                       a->where, a->rank, rank);
	if (status < 0)
		hg__npy_close(a);
	return status;
}

hg_status hg__npy_open(const struct npz *npz, const char *key, int rank, struct npy *a)
{
	return open_array(npz, key, rank, 0, a);
}

hg_status hg__npy_open_texts(const struct npz *npz, const char *key, struct npy *a)
{
	return open_array(npz, key, 1, 1, a);
}

/* Read the header of a file whose bytes were opened, with this status. */
static hg_status begin_file(struct npy *a, const char *path, hg_status status)
{
	char *message = a->message;
	snprintf(a->where, sizeof a->where, "%.150s", path);
	a->bytes.path = a->where;
	const int plain = a->bytes.state == HG__PLAIN;
	const int64_t stored = a->bytes.file_bytes;
	if (status == HG_OK && stored == 0)
		status = hg__data_fail(message, HG_ERR_FORMAT, "%s: is empty: 0 bytes", path);
	if (status == HG_OK)
		status = read_header(a, plain ? stored : stored * HG__DEFLATE_MAX, plain);
	if (status == HG_OK && a->rank == 0)
		status = hg__data_fail(message, HG_ERR_FORMAT, "%s: has no dimensions, expected 1 or 2",
		                       a->where);
	if (status < 0)
		hg__npy_close(a);
	return status;
}

hg_status hg__npy_open_file(const char *path, const hg_progress *progress, char *message,
                            struct npy *a)
{
	*a = (struct npy){.message = message};
	return begin_file(a, path, hg__bytes_open(&a->bytes, path, progress, message));
}

hg_status hg__npy_open_part(const struct hg__folder *folder, const char *part, struct npy *a)
{
	char *name = NULL, *path = NULL;
	*a = (struct npy){.message = folder->message, .bytes.fd = -1};
	HG__TRY(hg__folder_part(folder, part, &name));
	hg_status status = hg__folder_path(folder, name, &path);
	if (status == HG_OK)
		status = begin_file(a, path, hg__folder_bytes(folder, name, path, &a->bytes));
	free(path);
	free(name);
	return status;
}

void hg__npy_close(struct npy *a)
{
	hg__bytes_close(&a->bytes);
}

/* A callback that receives element `index` of the array. */
typedef hg_status (*take_fn)(const struct npy *a, void *user, int64_t index,
                             const unsigned char *element);

static hg_status read_elements(struct npy *a, take_fn take, void *user)
{
	unsigned char *slab = NULL;
	const int64_t most = a->texts ? 64 : HG__SLAB; /* texts are long */
	HG__TRY(hg__data_alloc(most, (size_t)a->type.size, a->where, (void **)&slab, a->message));
	hg_status status = HG_OK;
	for (int64_t first = 0; status == HG_OK && first < a->elements; first += most) {
		const int64_t count = a->elements - first < most ? a->elements - first : most;
		status = read_exactly(a, slab, count * a->type.size);
		for (int64_t i = 0; status == HG_OK && i < count; i++)
			status = take(a, user, first + i, slab + i * a->type.size);
	}
	free(slab);
	HG__TRY(status);
	return expect_end(a);
}

struct integers {
	int64_t low, high;
	int64_t *wide;
	int32_t *narrow;
	char *bytes;
};

static hg_status take_integer(const struct npy *a, void *user, int64_t index,
                              const unsigned char *element)
{
	const struct integers *to = user;
	const int64_t x = hg__element_integer(a->type, element);
	const int is_unsigned = a->type.kind != 'i';
	char digits[24];
	if ((is_unsigned && x < 0) || x < to->low || x > to->high)
		return hg__data_fail(a->message, HG_ERR_FORMAT,
		                     "%s: value %s at %" PRId64 " is not in [%" PRId64 ", %" PRId64 "]",
		                     a->where, hg__data_digits(x, is_unsigned, digits), index, to->low,
		                     to->high);
	if (to->wide)
		to->wide[index] = x;
	else if (to->narrow)
		to->narrow[index] = (int32_t)x;
	else
		to->bytes[index] = (char)(unsigned char)x;
	return HG_OK;
}

static hg_status read_integers(struct npy *a, struct integers *to)
{
	if (a->type.kind == 'f')
		return hg__data_fail(a->message, HG_ERR_FORMAT, "%s: holds floats, expected integers",
		                     a->where);
	return read_elements(a, take_integer, to);
}

hg_status hg__npy_read_i64(struct npy *a, int64_t low, int64_t high, int64_t **values)
{
	HG__TRY(hg__data_alloc(a->elements, sizeof **values, a->where, (void **)values, a->message));
	return read_integers(a, &(struct integers){low, high, *values, NULL, NULL});
}

hg_status hg__npy_read_i32(struct npy *a, int64_t low, int64_t high, int32_t **values)
{
	HG__TRY(hg__data_alloc(a->elements, sizeof **values, a->where, (void **)values, a->message));
	return read_integers(a, &(struct integers){low > INT32_MIN ? low : INT32_MIN,
	                                           high < INT32_MAX ? high : INT32_MAX, NULL, *values,
	                                           NULL});
}

hg_status hg__npy_read_bytes(struct npy *a, char **values)
{
	HG__TRY(hg__data_alloc(a->elements, sizeof **values, a->where, (void **)values, a->message));
	return read_integers(a, &(struct integers){0, 255, NULL, NULL, *values});
}

static hg_status take_real(const struct npy *a, void *user, int64_t index,
                           const unsigned char *element)
{
	float *out = user;
	const double x = hg__element_real(a->type, element);
	const int64_t width = a->rank == 2 ? a->dim[1] : 1,
	              height = a->rank == 2 ? a->dim[0] : a->elements;
	const int64_t row = a->fortran && a->rank == 2 ? index % height : index / width,
	              column = a->fortran && a->rank == 2 ? index / height : index % width;
	if (isfinite(x) && fabs(x) > (double)FLT_MAX)
		return hg__data_fail(a->message, HG_ERR_RANGE,
		                     "%s: row %" PRId64 ", column %" PRId64 " is %g, too large for f32",
		                     a->where, row, column, x);
	out[row * width + column] = (float)x;
	return HG_OK;
}

hg_status hg__npy_read_f32(struct npy *a, float **values)
{
	HG__TRY(hg__data_alloc(a->elements, sizeof **values, a->where, (void **)values, a->message));
	return read_elements(a, take_real, *values);
}

hg_status hg__npy_read_finite(struct npy *a, float **values)
{
	const int64_t width = a->rank == 2 ? a->dim[1] : 1;
	HG__TRY(hg__npy_read_f32(a, values));
	for (int64_t k = 0; k < a->elements; k++)
		if (!isfinite((*values)[k]))
			return hg__data_fail(a->message, HG_ERR_RANGE,
			                     "%s: row %" PRId64 ", column %" PRId64
			                     " is %g, not a finite number",
			                     a->where, k / width, k % width, (double)(*values)[k]);
	return HG_OK;
}

static hg_status take_wide(const struct npy *a, void *user, int64_t index,
                           const unsigned char *element)
{
	((double *)user)[index] = hg__element_real(a->type, element);
	return HG_OK;
}

hg_status hg__npy_read_f64(struct npy *a, double **values)
{
	HG__TRY(hg__data_alloc(a->elements, sizeof **values, a->where, (void **)values, a->message));
	return read_elements(a, take_wide, *values);
}

struct texts {
	hg__npy_take take;
	void *user;
};

static hg_status take_text(const struct npy *a, void *user, int64_t index,
                           const unsigned char *element)
{
	const struct texts *to = user;
	const struct hg__element point = {'u', 4, a->type.swap};
	uint32_t text[HG__NPY_TEXT];
	const int64_t length = a->type.size / 4;
	(void)index;
	for (int64_t k = 0; k < length; k++)
		text[k] = (uint32_t)hg__element_integer(point, element + 4 * k);
	return to->take(to->user, text, length, a->message);
}

hg_status hg__npy_read_texts(struct npy *a, hg__npy_take take, void *user)
{
	return read_elements(a, take_text, &(struct texts){take, user});
}
