/* Write tensors as a safetensors file. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"
#include "weights/safetensors.h"

static int64_t bytes_of(const struct hg__st_out *t)
{
	int64_t bytes = (int64_t)sizeof *t->values;
	for (int k = 0; k < t->rank; k++)
		bytes *= t->dim[k];
	return bytes;
}

static json_t *entry_of(const struct hg__st_out *t, int64_t begin)
{
	json_t *shape = json_array();
	for (int k = 0; shape && k < t->rank; k++)
		if (json_array_append_new(shape, json_integer((json_int_t)t->dim[k]))) {
			json_decref(shape);
			shape = NULL;
		}
	return json_pack("{ss so s[II]}", "dtype", "F32", "shape", shape, "data_offsets",
	                 (json_int_t)begin, (json_int_t)(begin + bytes_of(t)));
}

/* The header as text, padded with blanks so that the tensors are aligned. NULL: out of memory. */
static char *header_text(const struct hg__st_out *tensors, int64_t count, int native, size_t *size)
{
	json_t *header = json_pack("{s{ss}}", "__metadata__", "format", native ? "halfgraph" : "pt");
	int64_t at = 0;
	int failed = !header;
	for (int64_t i = 0; !failed && i < count; at += bytes_of(&tensors[i++]))
		failed = json_object_set_new(header, tensors[i].name, entry_of(&tensors[i], at)) != 0;
	char *text = failed ? NULL : json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER), *padded;
	json_decref(header);
	if (!text)
		return NULL;
	const size_t length = strlen(text);
	*size = (length + 7) / 8 * 8;
	padded = realloc(text, *size + 1);
	if (!padded) {
		free(text);
		return NULL;
	}
	memset(padded + length, ' ', *size - length);
	return padded;
}

static void put_little(struct hg__stream *s, uint64_t value, int bytes)
{
	unsigned char little[8];
	for (int k = 0; k < bytes; k++)
		little[k] = (unsigned char)(value >> 8 * k);
	hg__stream_put(s, little, (size_t)bytes);
}

static void put_values(struct hg__stream *s, const struct hg__st_out *t)
{
	const int64_t count = bytes_of(t) / (int64_t)sizeof *t->values;
	for (int64_t i = 0; i < count; i++) {
		uint32_t bits;
		memcpy(&bits, &t->values[i], sizeof bits);
		put_little(s, bits, 4);
	}
}

static hg_status write_all(const struct hg__atomic *file, const struct hg__st_out *tensors,
                           int64_t count, int native)
{
	size_t size = 0;
	struct hg__stream *stream = NULL;
	char *header = header_text(tensors, count, native, &size);
	if (!header)
		return hg__data_fail(file->message, HG_ERR_NOMEM, "%s: out of memory: a header",
		                     file->path);
	hg_status status = hg__stream_new(file, &stream);
	if (status == HG_OK) {
		put_little(stream, size, 8);
		hg__stream_put(stream, header, size);
		for (int64_t i = 0; i < count; i++)
			put_values(stream, &tensors[i]);
		status = hg__stream_end(stream);
	}
	free(stream);
	free(header);
	return status;
}

hg_status hg__safetensors_write(const char *path, const struct hg__st_out *tensors, int64_t count,
                                int native, char *message)
{
	struct hg__atomic file;
	HG__TRY(hg__atomic_begin(&file, path, message));
	return hg__atomic_end(&file, write_all(&file, tensors, count, native));
}
