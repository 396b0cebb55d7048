/* Sparse matrices as binsparse 0.1 (GraphBLAS/binsparse-specification). The descriptor is JSON in
 * the attribute "binsparse" of a group; the arrays are the datasets of the group. The element types
 * come from the datasets, as in the reference implementation, but the descriptor must name them. */
#include "h5/binsparse.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct descriptor {
	int64_t rows, cols, stored;
	int iso;
};

static hg_status bad_descriptor(const struct h5 *h5, const char *where, const char *text)
{
	return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: attribute binsparse: %s", h5->path,
	                     where, text);
}

static hg_status parse_shape(const struct h5 *h5, const char *where, const json_t *matrix,
                             struct descriptor *d)
{
	const json_t *shape = json_object_get(matrix, "shape"),
	             *stored = json_object_get(matrix, "number_of_stored_values");
	const json_t *rows = json_array_get(shape, 0), *cols = json_array_get(shape, 1);
	if (json_array_size(shape) != 2 || !json_is_integer(rows) || !json_is_integer(cols))
		return bad_descriptor(h5, where, "\"shape\" is not [rows, columns]");
	if (!json_is_integer(stored))
		return bad_descriptor(h5, where,
		                      "\"number_of_stored_values\" is missing or not an integer");
	*d = (struct descriptor){json_integer_value(rows), json_integer_value(cols),
	                         json_integer_value(stored), 0};
	if (d->rows < 0 || d->rows > INT32_MAX || d->cols < 0 || d->cols > INT32_MAX || d->stored < 0)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: attribute binsparse: shape [%" PRId64 ", %" PRId64
		                     "] with %" PRId64 " values; dimensions must be in [0, 2147483647]",
		                     h5->path, where, d->rows, d->cols, d->stored);
	return HG_OK;
}

static hg_status parse_matrix(const struct h5 *h5, const char *where, const json_t *matrix,
                              struct descriptor *d)
{
	const char *format = json_string_value(json_object_get(matrix, "format")),
	           *version = json_string_value(json_object_get(matrix, "version"));
	const json_t *types = json_object_get(matrix, "data_types");
	const char *values = json_string_value(json_object_get(types, "values"));
	if (!json_is_object(matrix))
		return bad_descriptor(h5, where, "no object \"binsparse\"");
	if (!version || strncmp(version, "0.", 2) != 0)
		return bad_descriptor(h5, where, "\"version\" is not 0.x");
	if (!format || strcmp(format, "CSR") != 0)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: attribute binsparse: format is %.32s, expected CSR", h5->path,
		                     where, format ? format : "missing");
	if (json_object_get(matrix, "structure"))
		return bad_descriptor(
		    h5, where, "\"structure\" (one triangle only) is not supported: store both triangles");
	if (json_is_true(json_object_get(matrix, "fill")))
		return bad_descriptor(h5, where, "a \"fill\" value is not supported");
	if (!values || !json_is_string(json_object_get(types, "pointers_to_1")) ||
	    !json_is_string(json_object_get(types, "indices_1")))
		return bad_descriptor(h5, where,
		                      "\"data_types\" does not name pointers_to_1, indices_1 and values");
	if (strstr(values, "complex["))
		return bad_descriptor(h5, where, "complex values are not supported");
	HG__TRY(parse_shape(h5, where, matrix, d));
	d->iso = strncmp(values, "iso[", 4) == 0;
	return HG_OK;
}

static hg_status read_descriptor(const struct h5 *h5, hid_t group, const char *where,
                                 struct descriptor *d)
{
	char *text = NULL;
	json_error_t error;
	HG__TRY(hg__h5_text(h5, group, "binsparse", where, &text));
	if (!text)
		return bad_descriptor(h5, where, "missing");
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	free(text);
	if (!root)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: attribute binsparse: not JSON: %s (column %d)", h5->path,
		                     where, error.text, error.column);
	const hg_status status = parse_matrix(h5, where, json_object_get(root, "binsparse"), d);
	json_decref(root);
	return status;
}

static hg_status wrong_length(const struct h5 *h5, const struct h5_array *a, int64_t expected,
                              const char *why)
{
	return hg__data_fail(h5->message, HG_ERR_FORMAT,
	                     "%s: %s: has %" PRId64 " elements, expected %" PRId64 " (%s)", h5->path,
	                     a->where, a->dim[0], expected, why);
}

static hg_status read_pointers(const struct h5 *h5, const struct h5_array *a,
                               const struct descriptor *d, struct hg__sparse *m)
{
	if (a->dim[0] != d->rows + 1)
		return wrong_length(h5, a, d->rows + 1, "rows + 1");
	HG__TRY(hg__h5_read_i64(h5, a, 0, d->stored, &m->rowptr));
	HG__TRY(hg__data_check_pointers(h5->path, a->where, m->rowptr, d->rows, h5->message));
	if (m->rowptr[d->rows] != d->stored)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: pointers end at %" PRId64 ", expected %" PRId64
		                     " (number_of_stored_values)",
		                     h5->path, a->where, m->rowptr[d->rows], d->stored);
	return HG_OK;
}

static hg_status read_indices(const struct h5 *h5, const struct h5_array *a,
                              const struct descriptor *d, struct hg__sparse *m)
{
	if (a->dim[0] != d->stored)
		return wrong_length(h5, a, d->stored, "number_of_stored_values");
	HG__TRY(hg__h5_read_i32(h5, a, 0, d->cols - 1, &m->col));
	for (int64_t i = 0; i < d->rows; i++)
		for (int64_t e = m->rowptr[i] + 1; e < m->rowptr[i + 1]; e++)
			if (m->col[e] <= m->col[e - 1])
				return hg__data_fail(h5->message, HG_ERR_FORMAT,
				                     "%s: %s: row %" PRId64 " is not strictly ascending: %" PRId32
				                     " after %" PRId32,
				                     h5->path, a->where, i, m->col[e], m->col[e - 1]);
	return HG_OK;
}

/* iso[T] stores one value that all entries share. */
static hg_status read_values(const struct h5 *h5, const struct h5_array *a,
                             const struct descriptor *d, struct hg__sparse *m)
{
	const int64_t expected = d->iso ? 1 : d->stored;
	if (a->dim[0] != expected)
		return wrong_length(h5, a, expected, d->iso ? "iso" : "number_of_stored_values");
	HG__TRY(hg__h5_read_f32(h5, a, &m->value));
	if (d->iso) {
		const float shared = m->value[0];
		HG__TRY(
		    hg__data_grow((void **)&m->value, d->stored, sizeof *m->value, a->where, h5->message));
		for (int64_t e = 0; e < d->stored; e++)
			m->value[e] = shared;
	}
	hg__sparse_drop_ones(m);
	return HG_OK;
}

typedef hg_status (*read_fn)(const struct h5 *, const struct h5_array *, const struct descriptor *,
                             struct hg__sparse *);

static hg_status read_arrays(const struct h5 *h5, hid_t group, const char *where,
                             const struct descriptor *d, struct hg__sparse *m)
{
	static const struct {
		const char *name;
		read_fn read;
	} arrays[] = {
	    {"pointers_to_1", read_pointers}, {"indices_1", read_indices}, {"values", read_values}};
	for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++) {
		char path[128];
		struct h5_array a;
		snprintf(path, sizeof path, "%s/%s", where, arrays[k].name);
		HG__TRY(hg__h5_array(h5, group, arrays[k].name, path, 1, &a));
		const hg_status status = arrays[k].read(h5, &a, d, m);
		hg__h5_array_close(&a);
		HG__TRY(status);
	}
	return HG_OK;
}

hg_status hg__binsparse_read(const struct h5 *h5, hid_t parent, const char *name, const char *where,
                             struct hg__sparse *m)
{
	hid_t group;
	struct descriptor d = {0};
	*m = (struct hg__sparse){0};
	HG__TRY(hg__h5_group(h5, parent, name, where, &group));
	hg_status status = read_descriptor(h5, group, where, &d);
	*m = (struct hg__sparse){.rows = d.rows, .cols = d.cols, .m = d.stored};
	if (status == HG_OK)
		status = read_arrays(h5, group, where, &d, m);
	H5Gclose(group);
	if (status < 0)
		hg__sparse_free(m);
	return status;
}

static hg_status write_descriptor(const struct h5 *h5, hid_t group, const struct hg__sparse *m,
                                  const char *row_meaning, const char *col_meaning)
{
	json_t *root = json_pack("{s:{s:s, s:s, s:[I, I], s:I, s:{s:s, s:s, s:s}}, s:{s:s, s:s}}",
	                         "binsparse", "version", "0.1", "format", "CSR", "shape",
	                         (json_int_t)m->rows, (json_int_t)m->cols, "number_of_stored_values",
	                         (json_int_t)m->m, "data_types", "pointers_to_1", "int64", "indices_1",
	                         "int32", "values", m->value ? "float32" : "iso[uint8]", "halfgraph",
	                         "row", row_meaning, "column", col_meaning);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text)
		return hg__data_fail(h5->message, HG_ERR_NOMEM, "%s: out of memory for a descriptor",
		                     h5->path);
	const hg_status status = hg__h5_text_write(h5, group, "binsparse", text);
	free(text);
	return status;
}

/* Are all values 1? Readers do not distinguish this from a matrix without values. */
static int all_one(const float *values, int64_t count)
{
	int64_t e = 0;
	while (values && e < count && values[e] == 1.0f)
		e++;
	return !values || e == count;
}

hg_status hg__binsparse_write(const struct h5 *h5, hid_t parent, const char *name,
                              const struct hg__sparse *matrix, const char *row_meaning,
                              const char *col_meaning)
{
	static const uint8_t one = 1;
	struct hg__sparse plain = *matrix, *const m = &plain;
	hid_t group;
	if (all_one(plain.value, plain.m))
		plain.value = NULL; /* equal matrices must give equal files */
	HG__TRY(hg__h5_group_create(h5, parent, name, &group));
	hg_status status = write_descriptor(h5, group, m, row_meaning, col_meaning);
	if (status == HG_OK)
		status = hg__h5_write(h5, group, "pointers_to_1", H5_I64, m->rows + 1, 0, m->rowptr, NULL);
	if (status == HG_OK)
		status = hg__h5_write(h5, group, "indices_1", H5_I32, m->m, 0, m->col, NULL);
	if (status == HG_OK)
		status = m->value ? hg__h5_write(h5, group, "values", H5_F32, m->m, 0, m->value, NULL)
		                  : hg__h5_write(h5, group, "values", H5_U8, 1, 0, &one, NULL);
	if (H5Gclose(group) < 0 && status == HG_OK)
		status = hg__h5_fail(h5, HG_ERR_IO, name, "cannot be closed");
	return status;
}
