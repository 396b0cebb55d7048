/* Read a safetensors file. Nothing in it is trusted: lengths, offsets and shapes must agree with
 * each other and with the size of the file. */
#include "weights/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mark.h"

/* Bytes of an element; 0: the type is not known. */
static int64_t size_of(const char *type)
{
	static const struct {
		const char *type;
		int64_t size;
	} types[] = {{"F32", 4},  {"F16", 2}, {"BF16", 2},    {"F64", 8},    {"I64", 8}, {"I32", 4},
	             {"I16", 2},  {"I8", 1},  {"U64", 8},     {"U32", 4},    {"U16", 2}, {"U8", 1},
	             {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
	for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
		if (strcmp(types[k].type, type) == 0)
			return types[k].size;
	return 0;
}

const char *hg__st_shape(int rank, const int64_t *dim, char text[160])
{
	int at = snprintf(text, 160, "[");
	for (int k = 0; k < rank; k++)
		at += snprintf(text + at, (size_t)(160 - at), "%s%" PRId64, k ? ", " : "", dim[k]);
	(void)snprintf(text + at, (size_t)(160 - at), "]");
	return text;
}

/* ---- the file ---- */

static hg_status read_failed(const struct hg__safetensors *f, int reason)
{
	return hg__data_fail(f->message, HG_ERR_IO, "%s: cannot be read: %s", f->path,
	                     strerror(reason));
}

static hg_status read_bytes(struct hg__safetensors *f, int fd)
{
	struct stat info;
	if (fstat(fd, &info) != 0)
		return read_failed(f, errno);
	if (!S_ISREG(info.st_mode))
		return hg__data_fail(f->message, HG_ERR_IO, "%s: cannot be read: not a regular file",
		                     f->path);
	const struct hg__mark mark = hg__mark_of(&info);
	HG__TRY(hg__data_alloc((int64_t)info.st_size, 1, "a file of weights", (void **)&f->bytes,
	                       f->message));
	while (f->size < (size_t)info.st_size) {
		const ssize_t got = read(fd, f->bytes + f->size, (size_t)info.st_size - f->size);
		if (got == 0)
			break; /* it shrank, which its mark tells */
		if (got < 0 && errno != EINTR)
			return read_failed(f, errno);
		f->size += got > 0 ? (size_t)got : 0;
	}
	return hg__mark_check(&mark, fd, NULL, f->path, f->message);
}

static hg_status read_file(struct hg__safetensors *f)
{
	const int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return read_failed(f, errno);
	const hg_status status = read_bytes(f, fd);
	(void)close(fd);
	return status;
}

static hg_status bad(const struct hg__safetensors *f, const char *text)
{
	return hg__data_fail(f->message, HG_ERR_FORMAT, "%s: %s", f->path, text);
}

static hg_status parse_header(struct hg__safetensors *f)
{
	uint64_t length = 0;
	json_error_t error;
	if (f->size < 8)
		return hg__data_fail(f->message, HG_ERR_FORMAT,
		                     "%s: has %zu bytes: not a safetensors file, which begins with the 8 "
		                     "bytes of its header's length",
		                     f->path, f->size);
	for (int k = 7; k >= 0; k--)
		length = length << 8 | f->bytes[k];
	if (length > HG__HEADER_MOST)
		return hg__data_fail(f->message, HG_ERR_FORMAT,
		                     "%s: its header would have %" PRIu64
		                     " bytes, and at most 100000000 are read: not a safetensors file?",
		                     f->path, length);
	if (length > f->size - 8)
		return hg__data_fail(f->message, HG_ERR_FORMAT,
		                     "%s: is cut off: its header has %" PRIu64
		                     " bytes, and %zu bytes follow its length",
		                     f->path, length, f->size - 8);
	f->data = 8 + (size_t)length;
	f->header =
	    json_loadb((const char *)f->bytes + 8, (size_t)length, JSON_REJECT_DUPLICATES, &error);
	if (!f->header)
		return hg__data_fail(f->message, HG_ERR_FORMAT, "%s: header, byte %d: %.200s", f->path,
		                     error.position, error.text);
	return json_is_object(f->header) ? HG_OK : bad(f, "its header is not a JSON object");
}

/* ---- tensors ---- */

static hg_status bad_tensor(const struct hg__safetensors *f, const char *name, const char *text)
{
	return hg__data_fail(f->message, HG_ERR_FORMAT, "%s: %.80s: %s", f->path, name, text);
}

static hg_status read_shape(const struct hg__safetensors *f, json_t *shape, struct hg__st_tensor *t)
{
	if (!json_is_array(shape) || json_array_size(shape) > HG__ST_RANK)
		return bad_tensor(f, t->name, "its shape is not a list of at most 8 lengths");
	t->rank = (int)json_array_size(shape);
	t->elements = 1;
	for (int k = 0; k < t->rank; k++) {
		json_t *dim = json_array_get(shape, (size_t)k);
		t->dim[k] = json_is_integer(dim) ? (int64_t)json_integer_value(dim) : -1;
		if (t->dim[k] < 0 || (t->dim[k] > 0 && t->elements > INT64_MAX / 8 / t->dim[k]))
			return bad_tensor(f, t->name, "a length in its shape is not a number of elements");
		t->elements *= t->dim[k];
	}
	return HG_OK;
}

static hg_status read_tensor(const struct hg__safetensors *f, json_t *entry,
                             struct hg__st_tensor *t)
{
	json_t *offsets = json_object_get(entry, "data_offsets");
	json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
	const int64_t most = (int64_t)(f->size - f->data);
	t->type = json_string_value(json_object_get(entry, "dtype"));
	if (!t->type || !size_of(t->type))
		return bad_tensor(f, t->name, "its dtype is not one of safetensors'");
	HG__TRY(read_shape(f, json_object_get(entry, "shape"), t));
	if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
		return bad_tensor(f, t->name, "its data_offsets are not two integers");
	t->begin = (int64_t)json_integer_value(begin);
	t->end = (int64_t)json_integer_value(end);
	if (t->begin < 0 || t->end < t->begin || t->end > most)
		return hg__data_fail(f->message, HG_ERR_FORMAT,
		                     "%s: %.80s: its bytes %" PRId64 " to %" PRId64
		                     " are not within the %" PRId64 " that follow the header",
		                     f->path, t->name, t->begin, t->end, most);
	char shape[160];
	if (t->end - t->begin != t->elements * size_of(t->type))
		return hg__data_fail(f->message, HG_ERR_FORMAT,
		                     "%s: %.80s: has %" PRId64 " bytes, a %s of shape %s has %" PRId64,
		                     f->path, t->name, t->end - t->begin, t->type,
		                     hg__st_shape(t->rank, t->dim, shape), t->elements * size_of(t->type));
	return HG_OK;
}

static hg_status read_metadata(struct hg__safetensors *f, json_t *metadata)
{
	const char *format = json_string_value(json_object_get(metadata, "format"));
	if (!json_is_object(metadata))
		return bad(f, "its __metadata__ is not an object");
	f->is_native = format && strcmp(format, "halfgraph") == 0;
	return HG_OK;
}

static int by_begin(const void *a, const void *b)
{
	const struct hg__st_tensor *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end != y->end ? (x->end < y->end ? -1 : 1) : strcmp(x->name, y->name);
}

/* The tensors fill all bytes behind the header, each byte once. */
static hg_status check_order(struct hg__safetensors *f)
{
	int64_t at = 0;
	qsort(f->tensor, (size_t)f->count, sizeof *f->tensor, by_begin);
	for (int64_t i = 0; i < f->count; at = f->tensor[i++].end)
		if (f->tensor[i].begin != at)
			return hg__data_fail(f->message, HG_ERR_FORMAT,
			                     "%s: %.80s: its bytes begin at %" PRId64
			                     ", those of the tensor before it end at %" PRId64 ": %s",
			                     f->path, f->tensor[i].name, f->tensor[i].begin, at,
			                     f->tensor[i].begin < at ? "they overlap" : "there is a hole");
	return at == (int64_t)(f->size - f->data)
	           ? HG_OK
	           : hg__data_fail(f->message, HG_ERR_FORMAT,
	                           "%s: has %zu bytes behind its header, and its tensors %" PRId64,
	                           f->path, f->size - f->data, at);
}

static hg_status read_header(struct hg__safetensors *f)
{
	const char *name;
	json_t *entry;
	HG__TRY(parse_header(f));
	HG__TRY(hg__data_alloc((int64_t)json_object_size(f->header), sizeof *f->tensor,
	                       "a table of tensors", (void **)&f->tensor, f->message));
	json_object_foreach(f->header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0) {
			HG__TRY(read_metadata(f, entry));
			continue;
		}
		struct hg__st_tensor *t = &f->tensor[f->count];
		*t = (struct hg__st_tensor){.name = name};
		HG__TRY(read_tensor(f, entry, t));
		f->count++;
	}
	return check_order(f);
}

hg_status hg__safetensors_open(struct hg__safetensors *f, const char *path, char *message)
{
	*f = (struct hg__safetensors){.path = path, .message = message};
	HG__TRY(read_file(f));
	return read_header(f);
}

void hg__safetensors_close(struct hg__safetensors *f)
{
	json_decref(f->header);
	free(f->tensor);
	free(f->bytes);
	*f = (struct hg__safetensors){.path = f->path};
}

/* ---- values ---- */

static uint64_t little(const unsigned char *at, int bytes)
{
	uint64_t value = 0;
	for (int k = bytes - 1; k >= 0; k--)
		value = value << 8 | at[k];
	return value;
}

static float from_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static float value_at(const unsigned char *at, const char *type)
{
	if (strcmp(type, "F32") == 0)
		return from_bits((uint32_t)little(at, 4));
	if (strcmp(type, "BF16") == 0)
		return from_bits((uint32_t)little(at, 2) << 16);
	if (strcmp(type, "F16") == 0)
		return hg_half_to_float((hg_half)little(at, 2));
	const uint64_t bits = little(at, 8);
	double x;
	memcpy(&x, &bits, sizeof x);
	return (float)x;
}

hg_status hg__st_values(const struct hg__safetensors *f, const struct hg__st_tensor *t,
                        float *values)
{
	const unsigned char *at = f->bytes + f->data + t->begin;
	const int64_t size = size_of(t->type);
	if (strcmp(t->type, "F32") != 0 && strcmp(t->type, "F16") != 0 &&
	    strcmp(t->type, "BF16") != 0 && strcmp(t->type, "F64") != 0)
		return hg__data_fail(f->message, HG_ERR_FORMAT,
		                     "%s: %.80s: is of type %s, expected F32, F16, BF16 or F64", f->path,
		                     t->name, t->type);
	for (int64_t i = 0; i < t->elements; i++)
		values[i] = value_at(at + i * size, t->type);
	return HG_OK;
}
