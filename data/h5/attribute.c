/* Read and write scalar attributes: texts, integers, reals. */
#include <stdlib.h>
#include <string.h>

#include "h5/h5.h"

static hg_status open_scalar(const struct h5 *h5, hid_t object, const char *name, const char *where,
                             H5T_class_t class, const char *expected, hid_t *attribute, hid_t *type)
{
	*type = H5I_INVALID_HID;
	*attribute = H5Aopen(object, name, H5P_DEFAULT);
	const hid_t space = *attribute < 0 ? H5I_INVALID_HID : H5Aget_space(*attribute);
	const hssize_t count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
	hg__h5_release(space);
	if (*attribute >= 0)
		*type = H5Aget_type(*attribute);
	if (*type < 0 || count < 0)
		return hg__h5_fail(h5, HG_ERR_FORMAT, where, "an attribute cannot be read");
	if (count != 1 || H5Tget_class(*type) != class)
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: attribute %s is not one %s",
		                     h5->path, where, name, expected);
	return HG_OK;
}

static void close_scalar(hid_t attribute, hid_t type)
{
	hg__h5_release(type);
	hg__h5_release(attribute);
}

static hg_status read_variable(const struct h5 *h5, hid_t attribute, hid_t type, const char *name,
                               const char *where, char **value)
{
	char *text = NULL;
	const hid_t memory = H5Tcopy(H5T_C_S1);
	/* the character set must be the file's, because HDF5 does not convert between ASCII and
	 * UTF-8 */
	const int ok = memory >= 0 && H5Tset_size(memory, H5T_VARIABLE) >= 0 &&
	               H5Tset_cset(memory, H5Tget_cset(type)) >= 0 &&
	               H5Aread(attribute, memory, &text) >= 0;
	hg_status status =
	    ok ? HG_OK : hg__h5_fail(h5, HG_ERR_FORMAT, where, "a text attribute cannot be read");
	hg__h5_release(memory);
	HG__TRY(status);
	status = text && strlen(text) <= HG__TEXT_MAX
	             ? hg__data_copy_text(text, value, h5->message)
	             : hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: %s: attribute %s is %s", h5->path,
	                             where, name, text ? "longer than 1 MiB" : "empty");
	if (text && H5free_memory(text) < 0)
		return status < 0 ? status : HG_ERR_INTERNAL;
	return status;
}

static hg_status read_fixed(const struct h5 *h5, hid_t attribute, hid_t type, const char *name,
                            const char *where, char **value)
{
	const size_t size = H5Tget_size(type);
	if (size > HG__TEXT_MAX)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: attribute %s is longer than 1 MiB", h5->path, where, name);
	HG__TRY(hg__data_alloc((int64_t)size + 1, 1, "an attribute", (void **)value, h5->message));
	memset(*value, 0, size + 1);
	if (H5Aread(attribute, type, *value) >= 0)
		return HG_OK;
	free(*value);
	*value = NULL;
	return hg__h5_fail(h5, HG_ERR_FORMAT, where, "a text attribute cannot be read");
}

hg_status hg__h5_text(const struct h5 *h5, hid_t object, const char *name, const char *where,
                      char **value)
{
	*value = NULL;
	if (H5Aexists(object, name) <= 0)
		return HG_OK;
	hid_t attribute, type;
	hg_status status = open_scalar(h5, object, name, where, H5T_STRING, "text", &attribute, &type);
	if (status == HG_OK)
		status = (H5Tis_variable_str(type) > 0 ? read_variable : read_fixed)(h5, attribute, type,
		                                                                     name, where, value);
	close_scalar(attribute, type);
	return status;
}

hg_status hg__h5_integer(const struct h5 *h5, hid_t object, const char *name, const char *where,
                         int64_t *value, int *found)
{
	*found = H5Aexists(object, name) > 0;
	if (!*found)
		return HG_OK;
	hid_t attribute, type;
	hg_status status =
	    open_scalar(h5, object, name, where, H5T_INTEGER, "integer", &attribute, &type);
	if (status == HG_OK && H5Aread(attribute, H5T_NATIVE_INT64, value) < 0)
		status = hg__h5_fail(h5, HG_ERR_FORMAT, where, "an integer attribute cannot be read");
	close_scalar(attribute, type);
	return status;
}

hg_status hg__h5_real(const struct h5 *h5, hid_t object, const char *name, const char *where,
                      double *value, int *found)
{
	*found = H5Aexists(object, name) > 0;
	if (!*found)
		return HG_OK;
	hid_t attribute, type;
	hg_status status = open_scalar(h5, object, name, where, H5T_FLOAT, "number", &attribute, &type);
	if (status == HG_OK && H5Aread(attribute, H5T_NATIVE_DOUBLE, value) < 0)
		status = hg__h5_fail(h5, HG_ERR_FORMAT, where, "an attribute cannot be read");
	close_scalar(attribute, type);
	return status;
}

static hg_status write_scalar(const struct h5 *h5, hid_t object, const char *name, hid_t file_type,
                              hid_t memory_type, const void *value)
{
	const hid_t space = H5Screate(H5S_SCALAR);
	const hid_t attribute =
	    space < 0 ? H5I_INVALID_HID
	              : H5Acreate2(object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
	const int ok = attribute >= 0 && H5Awrite(attribute, memory_type, value) >= 0;
	const hg_status status =
	    ok ? HG_OK : hg__h5_fail(h5, HG_ERR_IO, name, "attribute cannot be written");
	hg__h5_release(attribute); /* the value is in HDF5's memory since H5Awrite */
	hg__h5_release(space);
	return status;
}

/* The type of UTF-8 texts of so many bytes, or H5T_VARIABLE; below 0: HDF5 cannot make it. */
static hid_t text_type(size_t size)
{
	const hid_t type = H5Tcopy(H5T_C_S1);
	if (type >= 0 && H5Tset_size(type, size) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
		return type;
	hg__h5_release(type);
	return H5I_INVALID_HID;
}

hg_status hg__h5_text_write(const struct h5 *h5, hid_t object, const char *name, const char *value)
{
	const hid_t type = text_type(H5T_VARIABLE);
	if (type < 0)
		return hg__h5_fail(h5, HG_ERR_IO, name, "attribute cannot be written");
	const hg_status status = write_scalar(h5, object, name, type, type, &value);
	hg__h5_release(type);
	return status;
}

hg_status hg__h5_fixed_text_write(const struct h5 *h5, hid_t object, const char *name,
                                  const char *value)
{
	const hid_t type = text_type(strlen(value) + 1);
	if (type < 0)
		return hg__h5_fail(h5, HG_ERR_IO, name, "attribute cannot be written");
	const hg_status status = write_scalar(h5, object, name, type, type, value);
	hg__h5_release(type);
	return status;
}

hg_status hg__h5_integer_write(const struct h5 *h5, hid_t object, const char *name, int64_t value)
{
	return write_scalar(h5, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

hg_status hg__h5_real_write(const struct h5 *h5, hid_t object, const char *name, double value)
{
	return write_scalar(h5, object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}
